"""Laws of one initial weight, and the layers that they make.

A law is stated unscaled (``perturbed-rademacher:0.1`` is a sign plus N(0, 0.01)); each layer multiplies it by a scale
that depends on its fan-in and fan-out. Biases follow the law and scale of their layer's weights.

A law of finitely many values (signs, ``discrete``, ``sparse-rademacher``) has a **grain**: all its values are whole
multiples of it. The grain times a layer's scale is rounded to 12 significant bits, a relative change of at most 2^-12.
So float32 sums of up to 4,096 grains are exact in any order, and where the weighted inputs of a neuron cancel, every
engine has exactly 0. :func:`paritylab.alignment` and characteristic functions are of the law before this rounding.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from paritylab.errors import positive, require
from paritylab.functions.named import MARK
from paritylab.later import jax, jnp
from paritylab.setups import specs
from paritylab.setups.genuine import Specified, builtin

Sampler = Callable[[Any, tuple[int, ...]], Any]
Characteristic = Callable[[np.ndarray], np.ndarray]
Scale = Callable[[int, int], float]
Layers = list[dict[str, Any]]
MOST_GRAINS = 2**12
"""Most grains of a point: float32 has 24 bits, and a layer's level takes 12."""


@dataclass(frozen=True)
class FromWords:
    """A sampler that makes each weight from one random word; ``formula(words)`` takes NumPy and JAX arrays alike."""

    formula: Callable[[Any], Any]

    def __call__(self, key: Any, shape: tuple[int, ...]) -> Any:
        return self.formula(jax.random.bits(key, shape))


def unscaled(fan_in: int, fan_out: int) -> float:
    """The scale of weights that are used as they are drawn."""
    return 1.0


@dataclass(frozen=True, eq=False)
class Init(Specified):
    """The distribution of one initial weight.

    ``sample(key, shape)`` draws unscaled weights, ``characteristic(t)`` is their characteristic function E exp(itw)
    (None where weights of one unit depend on each other), ``scale(fan_in, fan_out)`` the factor of a layer. With
    ``fixed`` every run starts from the weights that ``jax.random.key(fixed)`` gives. The last layer of a network with
    several follows the law ``output``, if there is one; its biases start ``raised`` by a number. All draws
    of a built-in law with a ``grain`` are whole multiples of it.
    """

    spec: str
    sample: Sampler = field(compare=False, repr=False)
    characteristic: Characteristic | None = field(default=None, compare=False, repr=False)
    scale: Scale = field(default=unscaled, compare=False, repr=False)
    mirrored: bool = field(default=False, repr=False)
    biased: bool = field(default=True, repr=False)
    fixed: int | None = field(default=None, repr=False)
    output: Init | None = field(default=None, compare=False, repr=False)
    logits: bool = field(default=False, repr=False)
    raised: float = field(default=0.0, repr=False)
    grain: float | None = field(default=None, compare=False, repr=False)

    @property
    def token(self) -> tuple[Any, ...]:
        """What tells it from other Inits where it is an argument of a function."""
        own = (id(self.sample), id(self.scale), id(self.output)) if self.is_own else ()
        return (self.spec.partition(MARK)[0], *own)

    def dense(self, key: Any, fan_in: int, fan_out: int) -> dict[str, Any]:
        """Weights (fan_in, fan_out) and biases (fan_out,) of one layer."""
        weight_key, bias_key = jax.random.split(key)
        bias = self.scaled(self.sample(bias_key, (fan_out,)), fan_in, fan_out) if self.biased else jnp.zeros(fan_out)
        return {"w": self.scaled(self.sample(weight_key, (fan_in, fan_out)), fan_in, fan_out), "b": bias}

    def scaled(self, draws: Any, fan_in: int, fan_out: int) -> Any:
        """Draws as a layer has them: times its scale, or as whole multiples of its level."""
        wholes = draws if self.grain in (None, 1) else jnp.round(draws / self.grain)
        return self.level(fan_in, fan_out) * wholes

    def level(self, fan_in: int, fan_out: int) -> float:
        """The scale of a layer; of a law with a grain, what a grain becomes: 12 significant bits.

        What multiplies the scale (``released``, ``logits``) does so before it is rounded.
        """
        scale = self.scale(fan_in, fan_out)
        return scale if self.grain is None else coarse(scale * self.grain)

    def layers(self, key: Any, sizes: tuple[int, ...]) -> Layers:
        """The layers of a network with these sizes, input first; pairs of units mirrored where the law says so."""
        keys = jax.random.split(key, len(sizes) - 1)
        laws: list[Init] = [self] * (len(sizes) - 1)
        require(len(laws) > 1 or not self.logits, "a law of logits needs a network with a hidden and an output layer")
        if self.output is not None and len(laws) > 1:
            laws[-1] = self.output
        layers = [law.dense(k, a, b) for law, k, a, b in zip(laws, keys, sizes[:-1], sizes[1:], strict=True)]
        layers = mirror(layers) if self.mirrored else layers
        if self.raised:
            require(len(laws) > 1, "a raised start needs a network with a hidden and an output layer")
            layers[-1]["b"] = layers[-1]["b"] + self.raised
        return layers


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


def coarse(number: float) -> float:
    """The nearest number with 12 significant bits, by Veltkamp's splitting: double precision gives it in any language.

    >>> coarse(1 / math.sqrt(30)) * 2**14
    2991.0
    """
    far = number * (2**41 + 1)
    return far - (far - number)


def common_grain(points: Sequence[float]) -> float | None:
    """The largest number that all points are whole multiples of; None where a point is more than 4,096 of it.

    >>> common_grain([-3, 1.25, 1.5]), common_grain([-2.8, -2, 2, 2.8]), common_grain([1, 1.41421])
    (0.25, 0.4, None)
    """
    for ten in (10**digits for digits in range(12)):
        wholes = [round(point * ten) for point in points]
        if all(whole / ten == point for whole, point in zip(wholes, points, strict=True)):
            divisor = math.gcd(*wholes)
            return divisor / ten if max(map(abs, wholes)) <= MOST_GRAINS * divisor else None
    return None


def law(make: Callable[..., Init]) -> Callable[..., Init]:
    """Mark what a function makes as built in."""
    return functools.wraps(make)(lambda *numbers: builtin(make(*numbers)))


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


@law
def uniform() -> Init:
    """U(-1, 1), unscaled."""
    return Init("uniform", _uniform, _sinc)


@law
def torch() -> Init:
    """PyTorch's default for linear layers: weights and biases U(-c, c), c = 1/sqrt(fan_in)."""
    return replace(uniform(), spec="torch", scale=fan_in_scale(1.0))


@law
def xavier() -> Init:
    """Xavier uniform: U(-c, c), c = sqrt(6 / (fan_in + fan_out))."""
    return replace(uniform(), spec="xavier", scale=lambda fan_in, fan_out: math.sqrt(6 / (fan_in + fan_out)))


@law
def gaussian() -> Init:
    """N(0, 1), scaled to variance 1/fan_in."""
    return Init("gaussian", _normal, lambda t: np.exp(-np.square(t) / 2), fan_in_scale(1.0))


@law
def normal(sigma: float) -> Init:
    """N(0, sigma^2) whatever the fan-in, biases included.

    >>> normal(0.01).scale(10, 1), normal(0.01).scale(1000, 1)
    (0.01, 0.01)
    """
    positive("the standard deviation", sigma)
    return replace(gaussian(), spec=specs.render("normal", (sigma,)), scale=lambda fan_in, fan_out: sigma)


@law
def truncated(constants: float = 0) -> Init:
    """N(0, 1) given that it is within two standard deviations, times 1/sqrt(fan_in): the variance is 0.774/fan_in.

    With ``constants`` hidden layers have so many inputs more, which are always 1: ``truncated:1`` is the law where
    their biases are written as the weights of one.

    >>> float(truncated().characteristic(np.array(0.0))), truncated(1).scale(3, 1)
    (1.0, 0.5)
    """
    require(constants >= 0 and float(constants).is_integer(),
            f"the constant inputs of a truncated law must be a whole number of at least 0, not {constants:g}")

    def sample(key: Any, shape: tuple[int, ...]) -> Any:
        return jax.random.truncated_normal(key, -2.0, 2.0, shape)

    def characteristic(t: np.ndarray) -> np.ndarray:
        # exp(-t^2/2) Re erf((2 - it)/sqrt 2) / erf(sqrt 2), written with w(z) = exp(-z^2) erfc(-iz), which stays small
        from scipy.special import erf, wofz

        t = np.asarray(t, float)
        beyond = np.exp(-2 + 2j * t) * wofz((t + 2j) / math.sqrt(2))
        return (np.exp(-np.square(t) / 2) - beyond.real) / erf(math.sqrt(2))

    plain = Init("truncated", sample, characteristic, fan_in_scale(1.0))
    if not constants:
        return plain
    return replace(plain, spec=specs.render("truncated", (constants,)), output=plain,
                   scale=lambda fan_in, fan_out: 1 / math.sqrt(fan_in + constants))


@law
def kaiming() -> Init:
    """Kaiming Gaussian: N(0, 2/fan_in)."""
    return replace(gaussian(), spec="kaiming", scale=fan_in_scale(math.sqrt(2)))


@law
def rademacher() -> Init:
    """Fair signs, scaled to 1/sqrt(fan_in). ``sign`` is the same law."""
    return Init("rademacher", _signs, lambda t: np.cos(t), fan_in_scale(1.0), grain=1)


@law
def xavier_sign() -> Init:
    """Fair signs at the scale of Xavier's uniform law: -c or c, c = sqrt(6 / (fan_in + fan_out))."""
    return replace(rademacher(), spec="xavier-sign", scale=xavier().scale)


@law
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
    grain = None if sigma else 1
    return Init(spec, sample, lambda t: np.cos(t) * np.exp(-np.square(sigma * t) / 2), scale, grain=grain)


@law
def uniform_perturbed(sigma: float) -> Init:
    """A sign plus a uniform of standard deviation sigma, scaled to variance 1/fan_in."""
    require(0 <= sigma <= 1e6, f"the perturbation must be at least 0 and at most 1e6, not {sigma:g}")
    width = math.sqrt(3) * sigma

    def sample(key: Any, shape: tuple[int, ...]) -> Any:
        signs, noise = jax.random.split(key)
        return _signs(signs, shape) + width * _uniform(noise, shape)

    spec = specs.render("uniform-perturbed", (sigma,))
    scale = fan_in_scale(1 / math.sqrt(1 + sigma**2))
    return Init(spec, sample, lambda t: np.cos(t) * _sinc(width * np.asarray(t)), scale, grain=None if sigma else 1)


@law
def sparse_rademacher(s: float) -> Init:
    """A sign, or 0 with probability s; scaled to variance 1/fan_in."""
    require(0 <= s < 1, f"the sparsity must be in [0, 1), not {s:g}")

    def sample(key: Any, shape: tuple[int, ...]) -> Any:
        signs, kept = jax.random.split(key)
        return _signs(signs, shape) * (jax.random.uniform(kept, shape) >= s)

    spec = specs.render("sparse-rademacher", (s,))
    return Init(spec, sample, lambda t: s + (1 - s) * np.cos(t), fan_in_scale(1 / math.sqrt(1 - s)), grain=1)


@law
def discrete(*points: float) -> Init:
    """Uniform over the given points, scaled to second moment 1/fan_in: ``discrete(-2, -1, 1, 2)``.

    Points that are whole multiples of one number (1 and 1.5, of 0.5), up to 4,096 times, keep their ratios exactly.
    Others (1 and 1.41421) are scaled and rounded to float32 one by one.
    """
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
    scale = fan_in_scale(1 / math.sqrt(np.mean(values**2)))
    return Init(spec, sample, characteristic, scale, grain=common_grain(values.tolist()))


@law
def sphere(radius: float = 1.0) -> Init:
    """Each unit's weight vector uniform on the sphere of this radius; biases 0."""
    positive("the radius", radius)
    return Init(specs.render("sphere", (radius,)), _sphere, None, lambda fan_in, fan_out: radius, biased=False)


@law
def mean_field(radius: float = 1.0, share: float = 0.5) -> Init:
    """The start in Glasgow (2023): f = (1/p) sum_j a_j relu(w_j . x): w_j on the sphere of this radius, a_j = +-radius.

    Output weights are a_j / p, positive with probability ``share``; biases 0.
    """
    positive("the radius", radius)
    require(0 <= share <= 1, f"the share of positive output weights must be in [0, 1], not {share:g}")

    def signs(key: Any, shape: tuple[int, ...]) -> Any:
        return jnp.where(jax.random.uniform(key, shape) < share, 1.0, -1.0)

    output = Init("signs", signs, None, lambda fan_in, fan_out: radius / fan_in, biased=False)
    spec = specs.render("mean-field", (radius,) if share == 0.5 else (radius, share))
    return replace(sphere(radius), spec=spec, output=output)


LAWS: dict[str, tuple[Callable[..., Init], int, int]] = {
    "torch": (torch, 0, 0),
    "xavier": (xavier, 0, 0),
    "kaiming": (kaiming, 0, 0),
    "sign": (lambda: replace(rademacher(), spec="sign"), 0, 0),
    "xavier-sign": (xavier_sign, 0, 0),
    "uniform": (uniform, 0, 0),
    "rademacher": (rademacher, 0, 0),
    "gaussian": (gaussian, 0, 0),
    "normal": (normal, 1, 1),
    "truncated": (truncated, 0, 1),
    "perturbed-rademacher": (perturbed_rademacher, 1, 1),
    "uniform-perturbed": (uniform_perturbed, 1, 1),
    "sparse-rademacher": (sparse_rademacher, 1, 1),
    "discrete": (discrete, 1, 999),
    "sphere": (sphere, 0, 1),
    "mean-field": (mean_field, 0, 2),
}
