"""Networks as a list of steps: layers, activations, sums and products, each with the name it goes by in files."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from paritylab.errors import InvalidInput, require, whole
from paritylab.later import jax, jnp
from paritylab.setups import specs
from paritylab.setups.inits import Init
from paritylab.setups.networks.activations import activation
from paritylab.setups.problems.arrays import from_text, to_text

LAYERS = {"linear": (1, 1), "linear-no-bias": (1, 1), "layer-norm": (0, 1), "layer-norm-no-bias": (0, 1)}
"""What has weights: ``linear:outputs``, ``layer-norm:eps`` (1e-5 unless said); and how many numbers each takes."""
UNARY: dict[str, tuple[int, int, Callable[..., Any]]] = {
    "relu": (0, 0, activation("relu").function),
    "relu6": (0, 0, activation("relu6").function),
    "gelu": (0, 0, activation("gelu").function),
    "gelu-tanh": (0, 0, lambda x: jax.nn.gelu(x, approximate=True)),
    "tanh": (0, 0, lambda x: jnp.tanh(x)),
    "sigmoid": (0, 0, lambda x: jax.nn.sigmoid(x)),
    "silu": (0, 0, lambda x: jax.nn.silu(x)),
    "selu": (0, 0, lambda x: jax.nn.selu(x)),
    "mish": (0, 0, lambda x: jax.nn.mish(x)),
    "softplus": (0, 0, lambda x: jax.nn.softplus(x)),
    "leaky-relu": (1, 1, lambda x, slope: jnp.where(x > 0, x, slope * x)),
    "elu": (1, 1, lambda x, alpha: jax.nn.elu(x, alpha)),
    "sin": (0, 0, lambda x: jnp.sin(x)),
    "cos": (0, 0, lambda x: jnp.cos(x)),
    "abs": (0, 0, lambda x: jnp.abs(x)),
    "layer-norm-no-weights": (0, 1, lambda x, eps=1e-5: normalised(x, eps)),
    "power": (1, 1, lambda x, q: jax.lax.integer_pow(x, whole("the exponent of power", q))),
    "plus": (1, 1, lambda x, number: x + number),
    "times": (1, 1, lambda x, number: x * number),
    "sum": (0, 0, lambda x: x.sum(-1)),
    "mean": (0, 0, lambda x: x.mean(-1)),
    "prod": (0, 0, lambda x: x.prod(-1)),
    "squeeze": (0, 0, lambda x: x.squeeze(-1)),
    "select": (1, 1, lambda x, place: x[..., whole("the place of select", place)]),
}
"""What has none: how many numbers each takes, and what it computes."""
SEVERAL: dict[str, Callable[..., Any]] = {
    "add": lambda first, *rest: functools.reduce(jnp.add, rest, first),
    "mul": lambda first, *rest: functools.reduce(jnp.multiply, rest, first),
    "sub": lambda first, second: first - second,
    "cat": lambda *parts: jnp.concatenate(parts, axis=-1),
}
"""What takes the outputs of several steps, side by side along the last axis for ``cat``."""
ARITIES = (LAYERS | {name: (fewest, most) for name, (fewest, most, _) in UNARY.items()}
           | dict.fromkeys(SEVERAL, (0, 0)) | {"dropout": (1, 1), "again": (1, 1)})


class Step(NamedTuple):
    """A step of a Graph: its name and numbers, and the numbers of the steps it takes (0 is the input)."""

    name: str
    numbers: tuple[float, ...]
    of: tuple[int, ...]


@dataclass(frozen=True)
class Graph:
    """A network of named steps, each applied to what the one before it made.

    ``linear:64``, ``linear-no-bias:64``, ``layer-norm``, ``layer-norm:1e-6``, ``dropout:0.1``, activations (``relu``,
    ``gelu``, ``tanh``, ...), sums and products. A step that takes others says which, counted from 1, 0 being the
    input: ``add of 2,4``. ``again:3`` applies the layer of step 3 once more, with the same weights. Layers take as many
    inputs as there are, and an output of one number loses its axis. Linear layers start by the Learner's init,
    ``layer-norm`` at ones and zeros, as in PyTorch; or all runs start from given ``weights``, those of the layers in
    order. Params are a list of layers, ``{"w": (fan_in, fan_out), "b": (fan_out,)}``. Trains on ``jax``.

    >>> Graph(["linear:16", "relu", "linear:16", "add of 1,3", "linear:1"]).steps[3]
    'add of 1,3'
    """

    steps: Any  # several specs
    weights: Any = field(default=None, repr=False)  # arrays

    def __post_init__(self) -> None:
        require(not isinstance(self.steps, str) and isinstance(self.steps, Sequence) and len(self.steps) > 0,
                f"a Graph has one or more steps, not {self.steps!r}")
        parsed = _all_parsed(tuple(self.steps))
        object.__setattr__(self, "steps", tuple(_rendered(i, step) for i, step in enumerate(parsed)))
        layers = [i + 1 for i, step in enumerate(parsed) if step.name in LAYERS]
        require(len(layers) > 0, f"a Graph needs a layer; allowed: {', '.join(LAYERS)}")
        for step in parsed:
            require(step.name != "again" or step.numbers[0] in layers,
                    f"{specs.render(*step[:2])!r} must name a step that is a layer: one of {_listed(layers)}")
        if self.weights is not None:
            texts = tuple(to_text("weights", each) for each in self.weights)
            wanted = sum(len(_parts(step.name, 1, 1)) for step in parsed if step.name in LAYERS)
            require(len(texts) == wanted, f"this Graph has {wanted} arrays of weights, not {len(texts)}")
            object.__setattr__(self, "weights", texts)

    @property
    def parsed(self) -> tuple[Step, ...]:
        return _all_parsed(self.steps)

    @property
    def takes_key(self) -> bool:
        """Whether the forward pass is random in training."""
        return any(step.name == "dropout" for step in self.parsed)

    def init(self, key: Any, n: int, init: Init) -> Any:
        require(not init.mirrored, "a Graph has no mirrored pairs")
        require(not init.raised, "a raised start is for an MLP, not for a Graph")
        layers = self._shapes(n)
        if self.weights is not None:
            given = iter(self.weights)
            return [{part: _given(next(given), shape, name) for part, shape in _parts(name, fan_in, fan_out).items()}
                    for name, fan_in, fan_out in layers]
        last = max((i for i, (name, *_) in enumerate(layers) if name.startswith("linear")), default=0)
        require(last > 0 or not init.logits, "a law of logits needs a network with a hidden and an output layer")
        keys = jax.random.split(key, len(layers))
        params: list[dict[str, Any]] = []
        for i, (name, fan_in, fan_out) in enumerate(layers):
            if name.startswith("linear"):
                law = init.output if init.output is not None and i == last > 0 else init
                layer = law.dense(keys[i], fan_in, fan_out)
            else:
                layer = {"w": jnp.ones(fan_out), "b": jnp.zeros(fan_out)}
            params.append({part: layer[part] for part in _parts(name, fan_in, fan_out)})
        return params

    def _shapes(self, n: int) -> list[tuple[str, int, int]]:
        """The layers, with as many inputs and outputs as each has."""
        found: list[tuple[str, int, int]] = []
        shapes: list[Any] = [jax.ShapeDtypeStruct((1, n), jnp.float32)]
        for i, step in enumerate(self.parsed):
            taken = [shapes[place] for place in step.of]
            layer = self.parsed[int(step.numbers[0]) - 1] if step.name == "again" else step
            if layer.name in LAYERS:
                require(len(taken[0].shape) == 2, f"step {i + 1}, {self.steps[i]!r}, needs an axis of inputs")
                fan_in = taken[0].shape[-1]
                fan_out = int(layer.numbers[0]) if layer.name.startswith("linear") else fan_in
                if step is layer:
                    found.append((step.name, fan_in, fan_out))
                shapes.append(jax.ShapeDtypeStruct((1, fan_out), jnp.float32))
                continue
            try:
                shapes.append(jax.eval_shape(_function(step), *taken))
            except (TypeError, ValueError) as error:
                sizes = ", ".join(str(each.shape[1:]) for each in taken)
                raise InvalidInput(f"step {i + 1} of a Graph, {self.steps[i]!r}, cannot take {sizes}") from error
        return found

    def apply(self, params: Any, x: Any, key: Any = None) -> Any:
        made, weights = [x], iter(params)
        layers: dict[int, tuple[Step, Any]] = {}
        for i, step in enumerate(self.parsed):
            taken = [made[place] for place in step.of]
            if step.name in LAYERS:
                layers[i + 1] = step, next(weights)
                made.append(_layer(*layers[i + 1], taken[0]))
            elif step.name == "again":
                made.append(_layer(*layers[int(step.numbers[0])], taken[0]))
            elif step.name == "dropout" and key is not None:
                made.append(_dropped(taken[0], step.numbers[0], jax.random.fold_in(key, i)))
            else:
                made.append(_function(step)(*taken))
        f = made[-1]
        return f[..., 0] if f.ndim == x.ndim and f.shape[-1] == 1 else f


@functools.lru_cache(maxsize=256)
def _all_parsed(steps: tuple[Any, ...]) -> tuple[Step, ...]:
    return tuple(_parsed(i, text) for i, text in enumerate(steps))


def _parsed(i: int, text: Any) -> Step:
    require(isinstance(text, str), f"a step of a Graph must be a spec such as 'linear:64', not {text!r}")
    spec, told, places = text.partition(" of ")
    name, numbers = specs.parse("step of a Graph", spec, ARITIES)
    try:
        of = tuple(int(place) for place in places.split(",")) if told else (i,)
    except ValueError:
        of = ()
    require(len(of) > 0 and all(0 <= place <= i for place in of),
            f"step {i + 1} of a Graph, {text!r}, may take steps 0 to {i}: write 'of' and their numbers with commas")
    several = {"sub": 2}.get(name, 2 if name in SEVERAL else 1)
    require(len(of) >= several if name in ("add", "mul", "cat") else len(of) == several,
            f"step {i + 1} of a Graph, {text!r}, must take {several} step{'s' * (several > 1)}, not {len(of)}")
    if name.startswith("linear"):
        require(whole("outputs of a linear layer", numbers[0]) >= 1, "a linear layer has at least 1 output")
    if name == "dropout":
        require(0 <= numbers[0] < 1, f"the share that is dropped must be in [0, 1), not {numbers[0]:g}")
    return Step(name, numbers, of)


def _rendered(i: int, step: Step) -> str:
    spec = specs.render(step.name, step.numbers)
    return spec if step.of == (i,) else f"{spec} of {','.join(map(str, step.of))}"


def _function(step: Step) -> Callable[..., Any]:
    """What a step without weights computes; of dropout, the shape."""
    if step.name in SEVERAL:
        return SEVERAL[step.name]
    if step.name == "dropout":
        return lambda x: x
    return lambda x: UNARY[step.name][2](x, *step.numbers)


def _layer(step: Step, weights: Any, x: Any) -> Any:
    if step.name.startswith("linear"):
        z = x @ weights["w"]
        return z + weights["b"] if "b" in weights else z
    z = normalised(x, *(step.numbers or (1e-5,))) * weights["w"]
    return z + weights["b"] if "b" in weights else z


def normalised(x: Any, eps: float) -> Any:
    """Mean 0 and variance 1 along the last axis."""
    centred = x - x.mean(-1, keepdims=True)
    return centred / jnp.sqrt((centred**2).mean(-1, keepdims=True) + eps)


def _dropped(x: Any, share: float, key: Any) -> Any:
    return jnp.where(jax.random.bernoulli(key, 1 - share, x.shape), x / (1 - share), 0.0)


def _parts(name: str, fan_in: int, fan_out: int) -> dict[str, tuple[int, ...]]:
    """The arrays of a layer, and their shapes."""
    weights = (fan_in, fan_out) if name.startswith("linear") else (fan_out,)
    return {"w": weights} if name.endswith("no-bias") else {"w": weights, "b": (fan_out,)}


def _given(text: str, shape: tuple[int, ...], name: str) -> Any:
    weights = from_text(text)
    require(weights.shape == shape, f"weights of {name} have the shape {weights.shape}, not {shape}")
    return jnp.asarray(weights, jnp.float32)


def _listed(layers: list[int]) -> str:
    return ", ".join(map(str, layers))
