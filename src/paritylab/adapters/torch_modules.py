"""PyTorch modules as Networks: traced by ``torch.fx``, written as the steps of a Graph, or as an MLP."""

from __future__ import annotations

import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from paritylab.errors import InvalidInput, in_a_line, require
from paritylab.setups import specs
from paritylab.setups.networks import MLP, Graph

PLAIN = {"ReLU": "relu", "ReLU6": "relu6", "Tanh": "tanh", "Sigmoid": "sigmoid", "SiLU": "silu", "SELU": "selu",
         "Mish": "mish"}
LAYERS = ("Linear", "LayerNorm", "Dropout", "Flatten", "Identity", "Sequential", *PLAIN, "GELU", "LeakyReLU", "ELU",
          "Softplus")
FUNCTIONS = {"relu": "relu", "relu6": "relu6", "tanh": "tanh", "sigmoid": "sigmoid", "silu": "silu", "selu": "selu",
             "mish": "mish", "sin": "sin", "cos": "cos", "abs": "abs", "square": "power:2", "neg": "times:-1"}
"""Functions of one array and methods of tensors that are called so in ``torch`` or ``torch.nn.functional``."""
NATIVE = ("relu", "relu6", "gelu", "tanh")
CHECKED = 16
"""So many random inputs are given to the module and to what was made of it."""


class ModuleNotice(UserWarning):
    """Something about a module that its owner should know."""


def from_torch(module: Any, weights: bool = False) -> MLP | Graph:
    """A PyTorch module as a Network that is trained thousands at a time.

    It has the module's layers, not its weights: every run draws a start of its own, linear layers by the Learner's
    ``init`` (``torch``, PyTorch's default, unless said), ``LayerNorm`` at ones and zeros. Linear layers with one
    activation between them become an ``MLP``, which the native engines train; all else a ``Graph``, on ``jax``. The
    number of inputs is the problem's. ``Dropout`` drops in training alone. What was made is compared with the module on
    random inputs before it is returned.

    Args:
        module: ``Sequential`` or a class of your own whose ``forward`` ``torch.fx`` can trace: layers, activations,
            sums, products and ``torch.cat`` of what they return. What is not known is named, with what is.
        weights: start all runs from the weights that the module has now; they become part of the Setup's id.

    >>> from torch import nn
    >>> from_torch(nn.Sequential(nn.Linear(30, 10), nn.ReLU(), nn.Linear(10, 1))).width
    10
    >>> from_torch(nn.Sequential(nn.Linear(30, 16), nn.LayerNorm(16), nn.Tanh(), nn.Linear(16, 1))).steps
    ('linear:16', 'layer-norm', 'tanh', 'linear:1')
    """
    torch = _torch()
    require(isinstance(module, torch.nn.Module), f"from_torch takes a torch.nn.Module, not {type(module).__name__}")
    for name, part in module.named_modules():
        require(not (part._forward_hooks or part._forward_pre_hooks),
                f"{_called(part, name)} has hooks, which cannot be followed")
    for name, parameter in module.named_parameters():
        require(parameter.requires_grad, f"{name} is frozen (requires_grad=False): freeze layers by"
                " SGD(rates=...), one factor for each")
    steps, layers, n = _Reader(torch, module).read()
    own = [array for layer in layers for array in _arrays(layer)]
    whole = Graph(steps, own)
    _compare(torch, module, whole, n)
    if weights:
        return whole
    _notice(layers)
    return _as_mlp(steps) or Graph(steps)


class _Reader:
    """The steps of a Graph from the nodes of a traced module."""

    def __init__(self, torch: Any, module: Any) -> None:
        alone = type(module).__module__.startswith("torch.nn.") and type(module).__name__ != "Sequential"
        self._torch, self._module = torch, torch.nn.Sequential(module) if alone else module  # of one layer
        self._modules = dict(self._module.named_modules())
        self._steps: list[str] = []
        self._place: dict[Any, int] = {}
        """Of each node, the step that makes its value."""
        self._first: dict[int, int] = {}
        """Of each layer, the step at which it was first met."""
        self._layers: list[Any] = []
        self._n: int | None = None

    def read(self) -> tuple[list[str], list[Any], int | None]:
        """The steps, the layers with weights in the order of their first use, and how many inputs there are."""
        for node in self._traced().nodes:
            if node.op == "placeholder":
                require(not self._place, f"forward must take one array, not also {node.name!r}")
                self._place[node] = 0
            elif node.op == "output":
                place = self._place.get(node.args[0]) if hasattr(node.args[0], "op") else None
                require(place == len(self._steps), "forward must return one array, made from its input")
            elif node.op == "get_attr":
                raise InvalidInput(f"{node.target!r} is a weight outside of a layer; allowed: {_allowed()}")
            else:
                self._place[node] = self._step(node)
        require(len(self._layers) > 0, f"a module needs weights; allowed: {_allowed()}")
        return self._steps, self._layers, self._n

    def _traced(self) -> Any:
        """What the forward does, less what it does not use."""

        class Tracer(self._torch.fx.Tracer):
            def is_leaf_module(self, m: Any, module_qualified_name: str) -> bool:
                return super().is_leaf_module(m, module_qualified_name) and type(m).__name__ != "Sequential"

        try:
            found = Tracer().trace(self._module)
        except Exception as error:
            raise InvalidInput(f"torch.fx cannot trace the forward of {type(self._module).__name__}:"
                               f" {in_a_line(error)}") from error
        for node in reversed(found.nodes):
            if node.op not in ("placeholder", "output") and not node.users:
                found.erase_node(node)
        return found

    def _add(self, spec: str, *places: int) -> int:
        near = places == (len(self._steps),)
        self._steps.append(spec if near else f"{spec} of {','.join(map(str, places))}")
        return len(self._steps)

    def _step(self, node: Any) -> int:
        if node.op == "call_module":
            return self._of_module(node)
        name = node.target if node.op == "call_method" else getattr(node.target, "__name__", str(node.target))
        taken, numbers = _split(node.args, self._place)
        options = {key: value for key, value in node.kwargs.items() if key not in ("inplace",)}
        handler: Callable[..., int | None] = _HANDLERS.get(name, _one)
        place = handler(self, name, node.args, options, taken, numbers)
        if place is None:
            shown = ", ".join([*map(str, node.args), *(f"{key}={value}" for key, value in node.kwargs.items())])
            raise InvalidInput(f"forward calls {name}({shown}); allowed beside layers: {', '.join(_HANDLERS)},"
                               f" {', '.join(FUNCTIONS)} along the features of (batch, features)")
        return place

    def _of_module(self, node: Any) -> int:
        layer = self._modules[node.target]
        (given,) = node.args
        place, kind = self._place[given], type(layer).__name__
        known = kind in LAYERS and type(layer) is getattr(self._torch.nn, kind)
        spec = _spec(layer, kind, self._torch) if known else None
        if spec is None:
            raise InvalidInput(f"unsupported layer {_called(layer, node.target)}; allowed: {_allowed()}")
        if spec == "":
            return place
        if not list(layer.parameters()):
            return self._add(spec, place)
        if id(layer) in self._first:
            return self._add(f"again:{self._first[id(layer)]}", place)
        if place == 0:
            self._n = getattr(layer, "in_features", None) or layer.normalized_shape[0]
        self._layers.append(layer)
        self._first[id(layer)] = made = self._add(spec, place)
        return made


def _spec(layer: Any, kind: str, torch: Any) -> str | None:
    """The step of a layer; nothing for one that changes nothing, None where it is not what a Graph has."""
    if kind in PLAIN:
        return PLAIN[kind]
    if kind == "Linear":
        return f"linear{'-no-bias' * (layer.bias is None)}:{layer.out_features}"
    if kind == "LayerNorm":
        form = "-no-weights" if layer.weight is None else "-no-bias" if layer.bias is None else ""
        eps = () if layer.eps == 1e-5 else (layer.eps,)
        return specs.render(f"layer-norm{form}", eps) if len(layer.normalized_shape) == 1 else None
    if kind == "Dropout":
        return specs.render("dropout", (layer.p,)) if 0 < layer.p < 1 else "" if layer.p == 0 else None
    if kind == "GELU":
        return {"none": "gelu", "tanh": "gelu-tanh"}[layer.approximate]
    if kind == "LeakyReLU":
        return specs.render("leaky-relu", (layer.negative_slope,))
    if kind == "ELU":
        return specs.render("elu", (layer.alpha,))
    if kind == "Softplus":
        return "softplus" if layer.beta == 1 and layer.threshold >= 20 else None
    return "" if kind == "Identity" or (layer.start_dim, layer.end_dim) in ((1, -1), (1, 1)) else None


def _split(arguments: Any, place: dict[Any, int]) -> tuple[list[int], list[float]]:
    """What a call takes: steps, and numbers."""
    taken = [place[each] for each in arguments if hasattr(each, "op")]
    return taken, [each for each in arguments if isinstance(each, (int, float)) and not isinstance(each, bool)]


# --- what a forward may call ----------------------------------------------------------------------------------------
# Each is given the reader, the function's name, its arguments, options, and of the arguments the steps and the numbers;
# it returns the place of its value, or None where it is asked for something that no Graph has.


def _one(reader: _Reader, name: str, args: Any, options: Any, taken: list[int], numbers: list[float]) -> int | None:
    """A function of one array."""
    spec = FUNCTIONS.get(name)
    alone = len(taken) == len(args) == 1 and not options
    return reader._add(spec, *taken) if spec and alone else None


def _arithmetic(reader: _Reader, name: str, args: Any, options: Any, taken: Any, numbers: Any) -> int | None:
    if options or len(args) != 2 or len(taken) + len(numbers) != 2:
        return None
    name = {"iadd": "add", "imul": "mul", "isub": "sub", "div": "truediv"}.get(name, name)
    if len(taken) == 2:
        return reader._add(name, *taken) if name != "truediv" else None
    number, first = float(numbers[0]), hasattr(args[0], "op")
    if name == "truediv":
        return reader._add(specs.render("times", (1 / number,)), *taken) if first and number else None
    if name in ("add", "mul"):
        return reader._add(specs.render({"add": "plus", "mul": "times"}[name], (number,)), *taken)
    if first:
        return reader._add(specs.render("plus", (-number,)), *taken)
    return reader._add(specs.render("plus", (number,)), reader._add("times:-1", *taken))


def _power(reader: _Reader, name: str, args: Any, options: Any, taken: Any, numbers: Any) -> int | None:
    right = hasattr(args[0], "op") and len(numbers) == 1 and not options and float(numbers[0]).is_integer()
    return reader._add(specs.render("power", (float(numbers[0]),)), *taken) if right and numbers[0] >= 1 else None


def _gelu(reader: _Reader, name: str, args: Any, options: Any, taken: Any, numbers: Any) -> int | None:
    spec = {"none": "gelu", "tanh": "gelu-tanh"}.get(options.get("approximate", "none"))
    return reader._add(spec, *taken) if spec and len(args) == 1 else None


def _cat(reader: _Reader, name: str, args: Any, options: Any, taken: Any, numbers: Any) -> int | None:
    parts = args[0] if args and isinstance(args[0], (list, tuple)) else options.get("tensors", ())
    dim = options.get("dim", options.get("axis", args[1] if len(args) > 1 else 0))
    return reader._add("cat", *(reader._place[each] for each in parts)) if len(parts) > 1 and dim in (1, -1) else None


def _reduced(reader: _Reader, name: str, args: Any, options: Any, taken: Any, numbers: Any) -> int | None:
    dim = options.get("dim", options.get("axis", args[1] if len(args) > 1 else None))
    dim = dim[0] if isinstance(dim, (list, tuple)) and len(dim) == 1 else dim
    right = dim in (1, -1) and len(args) <= 2 and set(options) <= {"dim", "axis", "keepdim"}
    return reader._add(name, *taken) if right and not options.get("keepdim") else None


def _flat(reader: _Reader, name: str, args: Any, options: Any, taken: Any, numbers: Any) -> int | None:
    """Of (batch, features) nothing changes."""
    start = options.get("start_dim", numbers[0] if numbers else 0)
    return taken[0] if start == 1 and set(options) <= {"start_dim"} and len(args) <= 2 else None


def _squeezed(reader: _Reader, name: str, args: Any, options: Any, taken: Any, numbers: Any) -> int | None:
    dim = options.get("dim", numbers[0] if numbers else None)
    return reader._add("squeeze", *taken) if dim in (1, -1) and len(args) <= 2 else None


def _item(reader: _Reader, name: str, args: Any, options: Any, taken: Any, numbers: Any) -> int | None:
    """``x[:, 3]``, ``x[..., 3]``"""
    where = args[1]
    if not isinstance(where, tuple) or len(where) != 2 or where[0] not in (slice(None), ...):
        return None
    place = where[1]
    right = isinstance(place, int) and not isinstance(place, bool)
    return reader._add(specs.render("select", (place,)), *taken) if right else None


_HANDLERS: dict[str, Any] = {
    **dict.fromkeys(("add", "sub", "mul", "truediv", "div", "iadd", "imul", "isub"), _arithmetic),
    "pow": _power, "gelu": _gelu, "cat": _cat, "concat": _cat, **dict.fromkeys(("sum", "mean", "prod"), _reduced),
    "flatten": _flat, "squeeze": _squeezed, operator.getitem.__name__: _item,
}


# --- what was made ----------------------------------------------------------------------------------------------------


def _as_mlp(steps: list[str]) -> MLP | None:
    """The MLP of these steps, if they are one: linear layers, one kind of activation, one output."""
    steps = steps[:-1] if steps[-1] == "squeeze" else steps
    layers, between = [step.partition(":") for step in steps[::2]], set(steps[1::2])
    if len(steps) < 3 or len(steps) % 2 == 0 or len(between) > 1 or not between <= set(NATIVE):
        return None
    if any(name not in ("linear", "linear-no-bias") or " " in size for name, _, size in layers):
        return None
    *hidden, output = [name == "linear" for name, _, _ in layers]
    if layers[-1][2] != "1" or len(set(hidden)) > 1 or (output and not hidden[0]):
        return None
    return MLP([int(size) for _, _, size in layers[:-1]], between.pop(), output_bias=output, bias=hidden[0])


def _arrays(layer: Any) -> list[np.ndarray]:
    """A layer's weights as a Graph has them."""
    found = [each.detach().cpu().numpy() for each in (layer.weight, layer.bias) if each is not None]
    return [found[0].T if found[0].ndim == 2 else found[0], *found[1:]]


def _compare(torch: Any, module: Any, made: Graph, n: int | None) -> None:
    """Give both the same inputs; what was not understood is refused, not trained."""
    require(n is not None, "the input must go to a Linear layer or a LayerNorm, or it is not known how long it is")
    from paritylab.setups.inits import torch as law

    x = np.random.default_rng(0).choice(np.array([-1.0, 1.0]), (CHECKED, n or 0))
    was = {name: part.training for name, part in module.named_modules()}
    kind = next(iter(module.parameters()))
    try:
        with torch.no_grad():
            wanted = module.eval()(torch.as_tensor(x, dtype=kind.dtype, device=kind.device)).cpu().double().numpy()
    except Exception as error:
        raise InvalidInput(f"the module fails on inputs of shape {x.shape}: {in_a_line(error)}") from error
    finally:
        for name, part in module.named_modules():
            part.training = was[name]
    import jax

    found = np.asarray(jax.jit(made.apply)(made.init(jax.random.key(0), n or 0, law()), x.astype(np.float32)))
    wanted = wanted.reshape(found.shape) if wanted.shape == (*found.shape, 1) else wanted
    scale = 1 + float(np.abs(wanted).max(initial=0))
    agree = wanted.shape == found.shape and float(np.abs(found - wanted).max(initial=0)) <= 1e-4 * scale
    require(agree, f"the forward of {type(module).__name__} computes something else than what torch.fx saw of it")


def _notice(layers: list[Any]) -> None:
    """Say so where a layer's weights cannot come from PyTorch's default law."""
    for layer in layers:
        if not hasattr(layer, "in_features"):
            continue
        bound = (1 + 1e-6) / math.sqrt(layer.in_features)
        arrays = _arrays(layer)
        if max(float(np.abs(each).max()) for each in arrays) > bound or not arrays[-1].any():
            warnings.warn(f"the weights of {layer} do not come from PyTorch's default law, but runs start by the"
                          " Learner's init; from_torch(module, weights=True) starts them all from these weights",
                          ModuleNotice, stacklevel=3)
            return


def _called(part: Any, name: str) -> str:
    return f"{type(part).__name__} ({name!r})" if name else type(part).__name__


def _allowed() -> str:
    return ", ".join(LAYERS)


def _torch() -> Any:
    try:
        import torch
        import torch.fx
    except ImportError:
        raise InvalidInput("from_torch needs PyTorch: pip install torch") from None
    return torch
