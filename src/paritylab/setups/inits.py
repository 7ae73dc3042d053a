"""Inits: the law of one initial weight, by spec or as a user's sampler.

A law is stated unscaled (``perturbed-rademacher:0.1`` is a sign plus N(0, 0.01)); each layer multiplies it by a scale
that depends on its fan-in and fan-out. Biases follow the law and scale of their layer's weights.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from paritylab.errors import InvalidInput, positive, require, whole
from paritylab.functions.fingerprints import fingerprint
from paritylab.setups import specs
from paritylab.setups.genuine import genuine, known

Sampler = Callable[[Any, tuple[int, ...]], Any]
Characteristic = Callable[[np.ndarray], np.ndarray]
Scale = Callable[[int, int], float]
Layers = list[dict[str, Any]]
InitLike = Any
"""A spec, an Init or a sampler of the user's own; an Init once its owner is made."""


@dataclass(frozen=True)
class FromWords:
    """A sampler that makes each weight from one random word; ``formula(words)`` takes NumPy and JAX arrays alike."""

    formula: Callable[[Any], Any]

    def __call__(self, key: Any, shape: tuple[int, ...]) -> Any:
        return self.formula(jax.random.bits(key, shape))


@dataclass(frozen=True)
class Init:
    """The distribution of one initial weight.

    ``sample(key, shape)`` draws unscaled weights, ``characteristic(t)`` is their characteristic function E exp(itw)
    (None where weights of one unit depend on each other), ``scale(fan_in, fan_out)`` the factor of a layer. With
    ``fixed`` every run starts from the weights that ``jax.random.key(fixed)`` gives. The last layer of a network with
    several follows the law ``output``, if there is one.
    """

    spec: str
    sample: Sampler = field(compare=False, repr=False)
    characteristic: Characteristic | None = field(default=None, compare=False, repr=False)
    scale: Scale = field(default=lambda fan_in, fan_out: 1.0, compare=False, repr=False)
    mirrored: bool = field(default=False, repr=False)
    biased: bool = field(default=True, repr=False)
    fixed: int | None = field(default=None, repr=False)
    output: Init | None = field(default=None, compare=False, repr=False)
    own: Any = field(default=None, compare=False, repr=False)  # what a user gave for it

    def functions(self) -> tuple[Any, ...]:
        output = None if self.output is None else self.output.functions()
        return (self.sample, self.characteristic, self.scale, output)

    def spec_now(self) -> str:
        """The spec of a user's law as its functions are now."""
        words = re.match(r"(mirrored |released |fixed:\d+ )*", self.spec)
        own = (self.sample, self.scale) if self.own is None else self.own
        return f"{words.group() if words else ''}{fingerprint(own, self.sample)}"

    def dense(self, key: Any, fan_in: int, fan_out: int) -> dict[str, Any]:
        """Weights (fan_in, fan_out) and biases (fan_out,) of one layer."""
        weight_key, bias_key = jax.random.split(key)
        scale = self.scale(fan_in, fan_out)
        bias = scale * self.sample(bias_key, (fan_out,)) if self.biased else jnp.zeros(fan_out)
        return {"w": scale * self.sample(weight_key, (fan_in, fan_out)), "b": bias}

    def layers(self, key: Any, sizes: tuple[int, ...]) -> Layers:
        """The layers of a network with these sizes, input first; pairs of units mirrored where the law says so."""
        keys = jax.random.split(key, len(sizes) - 1)
        laws: list[Init] = [self] * (len(sizes) - 1)
        if self.output is not None and len(laws) > 1:
            laws[-1] = self.output
        layers = [law.dense(k, a, b) for law, k, a, b in zip(laws, keys, sizes[:-1], sizes[1:], strict=True)]
        return mirror(layers) if self.mirrored else layers


def mirror(layers: Layers) -> Layers:
    """Make the network zero everywhere: each unit of the last hidden layer gets a twin with the opposite sign."""
    require(len(layers) > 1, "mirrored pairs need a network with a hidden layer and an output layer")
    *below, hidden, output = layers
    half, odd = divmod(hidden["b"].shape[0], 2)
    require(odd == 0, f"mirrored pairs need an even last hidden width, not {2 * half + 1}")
    twin = {name: jnp.concatenate([value[..., :half]] * 2, axis=-1) for name, value in hidden.items()}
    weights = jnp.concatenate([output["w"][:half], -output["w"][:half]])
    return [*below, twin, {"w": weights, "b": jnp.zeros_like(output["b"])}]


def fan_in_scale(gain: float) -> Scale:
    """Variance gain^2 / fan_in for a law of variance 1."""
    return lambda fan_in, fan_out: gain / math.sqrt(fan_in)


@FromWords
def _uniform(words: Any) -> Any:
    """U(-1, 1) as ``jax.random.uniform`` makes it: 23 bits of the word become the fraction of a float in [1, 2)."""
    return 2.0 * (((words >> 9) | 0x3F800000).view(np.float32) - 1.0) - 1.0


@FromWords
def _signs(words: Any) -> Any:
    return 1.0 - 2.0 * (words & 1).astype(np.float32)


def _normal(key: Any, shape: tuple[int, ...]) -> Any:
    return jax.random.normal(key, shape)


def _sphere(key: Any, shape: tuple[int, ...]) -> Any:
    draws = jax.random.normal(key, shape)
    return draws / jnp.linalg.norm(draws, axis=0, keepdims=True)


def _sinc(t: np.ndarray) -> np.ndarray:
    return np.sinc(np.asarray(t) / math.pi)


def uniform() -> Init:
    """U(-1, 1), unscaled."""
    return Init("uniform", _uniform, _sinc)


def torch() -> Init:
    """PyTorch's default for linear layers: weights and biases U(-c, c), c = 1/sqrt(fan_in)."""
    return replace(uniform(), spec="torch", scale=fan_in_scale(1.0))


def xavier() -> Init:
    """Xavier uniform: U(-c, c), c = sqrt(6 / (fan_in + fan_out))."""
    return replace(uniform(), spec="xavier", scale=lambda fan_in, fan_out: math.sqrt(6 / (fan_in + fan_out)))


def gaussian() -> Init:
    """N(0, 1), scaled to variance 1/fan_in."""
    return Init("gaussian", _normal, lambda t: np.exp(-np.square(t) / 2), fan_in_scale(1.0))


def kaiming() -> Init:
    """Kaiming Gaussian: N(0, 2/fan_in)."""
    return replace(gaussian(), spec="kaiming", scale=fan_in_scale(math.sqrt(2)))


def rademacher() -> Init:
    """Fair signs, scaled to 1/sqrt(fan_in). ``sign`` is the same law."""
    return Init("rademacher", _signs, lambda t: np.cos(t), fan_in_scale(1.0))


def xavier_sign() -> Init:
    """Fair signs at the scale of Xavier's uniform law: -c or c, c = sqrt(6 / (fan_in + fan_out))."""
    return replace(rademacher(), spec="xavier-sign", scale=xavier().scale)


def perturbed_rademacher(sigma: float) -> Init:
    """A sign plus N(0, sigma^2), scaled to variance 1/fan_in.

    >>> float(perturbed_rademacher(0.0).characteristic(np.array(np.pi)))
    -1.0
    """
    require(0 <= sigma <= 1e6, f"the perturbation must be at least 0 and at most 1e6, not {sigma:g}")

    def sample(key: Any, shape: tuple[int, ...]) -> Any:
        signs, noise = jax.random.split(key)
        return _signs(signs, shape) + sigma * _normal(noise, shape)

    spec = specs.render("perturbed-rademacher", (sigma,))
    scale = fan_in_scale(1 / math.sqrt(1 + sigma**2))
    return Init(spec, sample, lambda t: np.cos(t) * np.exp(-np.square(sigma * t) / 2), scale)


def uniform_perturbed(sigma: float) -> Init:
    """A sign plus a uniform of standard deviation sigma, scaled to variance 1/fan_in."""
    require(0 <= sigma <= 1e6, f"the perturbation must be at least 0 and at most 1e6, not {sigma:g}")
    width = math.sqrt(3) * sigma

    def sample(key: Any, shape: tuple[int, ...]) -> Any:
        signs, noise = jax.random.split(key)
        return _signs(signs, shape) + width * _uniform(noise, shape)

    spec = specs.render("uniform-perturbed", (sigma,))
    scale = fan_in_scale(1 / math.sqrt(1 + sigma**2))
    return Init(spec, sample, lambda t: np.cos(t) * _sinc(width * np.asarray(t)), scale)


def sparse_rademacher(s: float) -> Init:
    """A sign, or 0 with probability s; scaled to variance 1/fan_in."""
    require(0 <= s < 1, f"the sparsity must be in [0, 1), not {s:g}")

    def sample(key: Any, shape: tuple[int, ...]) -> Any:
        signs, kept = jax.random.split(key)
        return _signs(signs, shape) * (jax.random.uniform(kept, shape) >= s)

    spec = specs.render("sparse-rademacher", (s,))
    return Init(spec, sample, lambda t: s + (1 - s) * np.cos(t), fan_in_scale(1 / math.sqrt(1 - s)))


def discrete(*points: float) -> Init:
    """Uniform over the given points, scaled to second moment 1/fan_in: ``discrete(-2, -1, 1, 2)``."""
    require(len(points) > 0 and any(points), "a discrete init needs at least one point that is not 0")
    require(1e-6 <= max(map(abs, points)) <= 1e6, "the largest point of a discrete init must be from 1e-6 to 1e6")
    values = np.asarray(points, float)

    def sample(key: Any, shape: tuple[int, ...]) -> Any:
        return jnp.asarray(values, jnp.float32)[jax.random.randint(key, shape, 0, len(values))]

    def characteristic(t: np.ndarray) -> np.ndarray:
        phases = np.multiply.outer(np.asarray(t), values)
        real, imaginary = np.cos(phases).mean(-1), np.sin(phases).mean(-1)
        return real if np.allclose(sorted(values), sorted(-values)) else real + 1j * imaginary

    spec = specs.render("discrete", tuple(float(p) for p in points))
    return Init(spec, sample, characteristic, fan_in_scale(1 / math.sqrt(np.mean(values**2))))


def sphere(radius: float = 1.0) -> Init:
    """Each unit's weight vector uniform on the sphere of this radius; biases 0."""
    positive("the radius", radius)
    return Init(specs.render("sphere", (radius,)), _sphere, None, lambda fan_in, fan_out: radius, biased=False)


def mean_field(radius: float = 1.0, share: float = 0.5) -> Init:
    """glasgow2023's start of f = (1/p) sum_j a_j relu(w_j . x): w_j on the sphere of this radius, a_j = +-radius.

    Output weights are a_j / p, positive with probability ``share``; biases 0.
    """
    positive("the radius", radius)
    require(0 <= share <= 1, f"the share of positive output weights must be in [0, 1], not {share:g}")

    def signs(key: Any, shape: tuple[int, ...]) -> Any:
        return jnp.where(jax.random.uniform(key, shape) < share, 1.0, -1.0)

    output = Init("signs", signs, None, lambda fan_in, fan_out: radius / fan_in, biased=False)
    spec = specs.render("mean-field", (radius,) if share == 0.5 else (radius, share))
    return replace(sphere(radius), spec=spec, output=output)


def mirrored(law: str | Init | Sampler) -> Init:
    """The given law, with the last hidden layer's units in pairs of opposite output sign: the network starts at 0."""
    base = init(law)
    require(base.fixed is None, f"write a fixed and mirrored law as 'fixed:{base.fixed} mirrored ...', in this order")
    return replace(base, spec=f"mirrored {base.spec}", mirrored=True)


def released(law: str | Init) -> Init:
    """A law of abbe2024 at the scale of the authors' code, which divides by the *sample* variance of a list of points.

    So the weights of ``discrete`` laws and of sparsities 1/2 and 1/5 (lists of four and five points) have variances
    3/4, 3/4 and 4/5 of 1/fan_in; the other laws are as in the paper.

    >>> released("discrete:-2,-1,1,2").scale(50, 1)**2 * 2.5 * 50
    0.75
    """
    base = init(law)
    points = base.spec.count(",") + 1 if base.spec.startswith("discrete:") else RELEASED_POINTS.get(base.spec)
    factor = math.sqrt(1 - 1 / points) if points else 1.0
    return replace(base, spec=f"released {base.spec}", scale=lambda a, b: factor * base.scale(a, b))


def fixed(law: str | Init | Sampler, number: int) -> Init:
    """The given law, but every run starts from the same weights: those drawn from ``jax.random.key(number)``.

    The data still differ from run to run.

    >>> fixed("mirrored kaiming", 3).spec
    'fixed:3 mirrored kaiming'
    """
    base = init(law)
    require(base.fixed is None, "a fixed start has one number, not two")
    number = whole("the number of a fixed start", number)
    require(0 <= number < 2**32, f"the number of a fixed start must be at least 0 and below 2^32, not {number}")
    return replace(base, spec=f"fixed:{number} {base.spec}", fixed=number)


def custom(sample: Sampler, characteristic: Characteristic | None = None, scale: Scale | None = None) -> Init:
    """A law of the user's own: ``sample(key, shape)``, and optionally its characteristic function and layer scale."""
    own = sample if scale is None else (sample, scale)
    return Init(fingerprint(own, sample), sample, characteristic, scale or fan_in_scale(1.0), own=own)


RELEASED_POINTS = {"sparse-rademacher:0.5": 4, "sparse-rademacher:0.2": 5}
LAWS: dict[str, tuple[Callable[..., Init], int, int]] = {
    "torch": (torch, 0, 0),
    "xavier": (xavier, 0, 0),
    "kaiming": (kaiming, 0, 0),
    "sign": (lambda: replace(rademacher(), spec="sign"), 0, 0),
    "xavier-sign": (xavier_sign, 0, 0),
    "uniform": (uniform, 0, 0),
    "rademacher": (rademacher, 0, 0),
    "gaussian": (gaussian, 0, 0),
    "perturbed-rademacher": (perturbed_rademacher, 1, 1),
    "uniform-perturbed": (uniform_perturbed, 1, 1),
    "sparse-rademacher": (sparse_rademacher, 1, 1),
    "discrete": (discrete, 1, 999),
    "sphere": (sphere, 0, 1),
    "mean-field": (mean_field, 0, 2),
}


def init(given: str | Init | Sampler) -> Init:
    """The init a user means by a spec such as ``perturbed-rademacher:0.1``, or by a sampler of their own.

    A leading ``mirrored`` asks for pairs of opposite output sign, a leading ``fixed:number`` for one start for all
    runs: ``mirrored kaiming``, ``fixed:3 torch``, ``fixed:3 mirrored kaiming``. A leading ``released`` asks for the
    scale of abbe2024's code: ``released discrete:-2,-1,1,2``.

    >>> init("discrete:-2,-1,1,2").spec
    'discrete:-2,-1,1,2'
    """
    if isinstance(given, Init):
        return genuine("init", given, _named)
    if not isinstance(given, str):
        require(callable(given), f"an init must be a spec or a function, not {given!r}")
        return custom(given)
    return known(_named(given))


def rebuilt(spec: str, find: Callable[[str], Any]) -> Init:
    """The init of a spec that has a user's sampler in it: ``fixed:3 mirrored my_module.sampler@0123456789ab``.

    ``find`` gives the sampler for its fingerprint, or the Init itself for the whole spec of one.
    """
    word, _, law = spec.partition(" ")
    if word == "mirrored":
        return mirrored(rebuilt(law, find))
    if word == "released":
        return released(rebuilt(law, find))
    if word.startswith("fixed:") and word[6:].isdecimal():
        return fixed(rebuilt(law, find), int(word[6:]))
    return init(find(spec))


def _named(given: str) -> Init:
    if given.startswith("mirrored "):
        return mirrored(given.removeprefix("mirrored "))
    if given.startswith("released "):
        return released(given.removeprefix("released "))
    if given.startswith("fixed:"):
        number, _, law = given.removeprefix("fixed:").partition(" ")
        require(number.isdecimal(), f"init {given!r}: write a fixed start as 'fixed:3 torch', with a whole number")
        return fixed(law, int(number))
    arities = {name: (fewest, most) for name, (_, fewest, most) in LAWS.items()}
    name, numbers = specs.parse("init", given, arities)
    if name == "discrete" and len(set(numbers)) != len(numbers):
        raise InvalidInput(f"init {given!r}: the points must differ")
    return LAWS[name][0](*numbers)
