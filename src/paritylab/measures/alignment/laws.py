"""Laws of one weight or bias as alignment needs them: finitely many atoms, plus optional normal or uniform noise."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import reduce
from typing import Any

import numpy as np

from paritylab.aliases import Floats
from paritylab.errors import InvalidInput, require
from paritylab.setups import inits, specs


def rational(number: float | Fraction) -> Fraction:
    """The number that was meant: a simple fraction with this float, or else the decimals that print it.

    >>> rational(0.1), rational(1 / 3)
    (Fraction(1, 10), Fraction(1, 3))
    """
    if isinstance(number, Fraction):
        return number
    simple = Fraction(number).limit_denominator(10**4)
    return simple if float(simple) == number else Fraction(repr(float(number)))


@dataclass(frozen=True)
class Law:
    """A random atom, or any law by its characteristic function; plus N(0, normal^2), plus U(-uniform, uniform)."""

    atoms: tuple[Fraction, ...] = (Fraction(0),)
    probabilities: tuple[Fraction, ...] = (Fraction(1),)
    normal: float = 0.0
    uniform: float = 0.0
    init: inits.Init | None = None  # only where the structure is not known
    factor: float = 1.0  # of that init

    @property
    def discrete(self) -> bool:
        return self.init is None and self.normal == 0 and self.uniform == 0

    @property
    def zero(self) -> bool:
        return self.discrete and not any(self.atoms)

    @property
    def second_moment(self) -> float:
        if self.init:
            step = 1e-3  # 2 (1 - phi(t)) / t^2 at t = step and 2 step, extrapolated to 0
            near, far = (2 * (1 - self.even(np.array(t))) / t**2 for t in (step, 2 * step))
            return float(4 * near - far) / 3
        return float(self.mean_square) + self.normal**2 + self.uniform**2 / 3

    @property
    def mean_square(self) -> Fraction:
        """Of the atoms."""
        return sum((p * a * a for a, p in zip(self.atoms, self.probabilities, strict=True)), Fraction(0))

    def even(self, t: Floats) -> Floats:
        """E cos(tw), the characteristic function of the law made symmetric."""
        return self._wave(t, np.cos)

    def odd(self, t: Floats) -> Floats:
        """E sin(tw)."""
        return self._wave(t, np.sin)

    def slope(self, t: Floats) -> Floats:
        """E w sin(tw), minus the derivative of :meth:`even`."""
        require(self.init is None, "degree 1 with a bias that is not symmetric needs a law with a known formula")
        atoms = self._mean(t, lambda phase, atom: atom * np.sin(phase))
        x = self.uniform * t
        small = np.abs(x) < 1e-4
        ratio = np.where(small, -x / 3, (np.cos(x) - np.sinc(x / math.pi)) / np.where(small, 1.0, x))
        even = self._mean(t, lambda phase, _: np.cos(phase))
        normal = np.exp(-np.square(self.normal * t) / 2)
        sinc = np.sinc(x / math.pi)
        return normal * (atoms * sinc + even * (self.normal**2 * t * sinc - self.uniform * ratio))

    def _wave(self, t: Floats, wave: Callable[[Any], Any]) -> Floats:
        if self.init:
            assert self.init.characteristic is not None
            values = self.init.characteristic(self.factor * np.asarray(t))
            found = np.real(values) if wave is np.cos else np.imag(values)
        else:
            found = self._mean(t, lambda phase, _: wave(phase))
        if self.normal:
            found = found * np.exp(-np.square(self.normal * t) / 2)
        return found * np.sinc(self.uniform * t / math.pi) if self.uniform else found

    def _mean(self, t: Floats, term: Callable[[Any, float], Any]) -> Floats:
        pairs = zip(self.atoms, self.probabilities, strict=True)
        return sum((float(p) * term(float(a) * t, float(a)) for a, p in pairs), np.zeros(np.shape(t)))

    def envelope(self, t: Floats) -> Floats:
        """A falling bound on |even|; 1 throughout where nothing is known."""
        bound = np.exp(-np.square(self.normal * t) / 2)
        if self.uniform:
            bound = bound / np.maximum(1.0, self.uniform * t)
        return bound

    def scaled(self, factor: float | Fraction) -> Law:
        by = factor if isinstance(factor, Fraction) else Fraction(factor)
        return replace(self, atoms=tuple(a * by for a in self.atoms), normal=self.normal * abs(float(factor)),
                       uniform=self.uniform * abs(float(factor)), factor=self.factor * float(factor))

    def moved(self, by: float) -> Law:
        """The law plus N(0, by^2).

        >>> law("perturbed-rademacher:0.3").moved(0.4).normal
        0.5
        """
        return replace(self, normal=math.hypot(self.normal, by)) if by else self

    def with_noise(self, factor: float) -> Law:
        """The same atoms, with so many times the noise."""
        return replace(self, normal=factor * self.normal, uniform=factor * self.uniform)

    def shifted(self, by: float | Fraction) -> Law:
        if by == 0:
            return self
        require(self.init is None, "a hinge neuron's bias needs a law with a known formula")
        return replace(self, atoms=tuple(a + Fraction(by) for a in self.atoms))

    @property
    def symmetric(self) -> bool:
        if self.init:
            return bool(np.allclose(self.odd(np.linspace(0.1, 3, 30)), 0, atol=1e-12))
        return self._weights() == {-a: p for a, p in self._weights().items()}

    def symmetrised(self) -> dict[Fraction, Fraction]:
        """Atoms and probabilities of the law times a fair sign."""
        weights: dict[Fraction, Fraction] = {}
        for atom, p in self._weights().items():
            for sign in (1, -1):
                weights[sign * atom] = weights.get(sign * atom, Fraction(0)) + p / 2
        return weights

    def _weights(self) -> dict[Fraction, Fraction]:
        weights: dict[Fraction, Fraction] = {}
        for atom, p in zip(self.atoms, self.probabilities, strict=True):
            weights[atom] = weights.get(atom, Fraction(0)) + p
        return weights

    @property
    def spacing(self) -> Fraction:
        """The largest c of which all atoms are multiples.

        >>> Law((rational(0.5), Fraction(-2)), (Fraction(1, 2),) * 2).spacing
        Fraction(1, 2)
        """
        return _gcd([abs(a) for a in self.atoms if a]) or Fraction(1)

    def sample(self, generator: np.random.Generator, shape: tuple[int, ...]) -> Floats:
        if self.init:
            import jax

            key = jax.random.key(int(generator.integers(2**32)))
            found = self.factor * np.asarray(self.init.sample(key, shape), np.float64)
        else:
            weights = np.array([float(p) for p in self.probabilities])
            chosen = generator.choice(len(weights), shape, p=weights / weights.sum())
            found = np.array([float(a) for a in self.atoms])[chosen]
        if self.normal:
            found = found + self.normal * generator.standard_normal(shape)
        return found + generator.uniform(-self.uniform, self.uniform, shape) if self.uniform else found


def _gcd(numbers: list[Fraction]) -> Fraction:
    def two(a: Fraction, b: Fraction) -> Fraction:
        common = math.lcm(a.denominator, b.denominator)
        return Fraction(math.gcd(int(a * common), int(b * common)), common)

    return reduce(two, numbers, Fraction(0))


def sum_gap(law: Law, d: int, offset: Fraction) -> Fraction:
    """The least |w.x + offset| that is not 0 when the d weights are atoms of the law."""
    sizes = sorted({abs(a) for a in law.atoms})
    step = _gcd([2 * sizes[-1], *(a - sizes[0] for a in sizes), *(2 * a for a in sizes)])
    rest = (d * sizes[0] + offset) % step if step else abs(offset)
    return min(r for r in (rest, step - rest, step) if r > 0)


def point(value: float | Fraction) -> Law:
    """Always this value."""
    return Law((rational(value),))


def law(given: inits.InitLike) -> Law:
    """The unscaled law of an init.

    >>> law("perturbed-rademacher:0.1").normal, law("sparse-rademacher:0.2").probabilities
    (0.1, (Fraction(2, 5), Fraction(2, 5), Fraction(1, 5)))
    """
    init = inits.init(given)
    half = Fraction(1, 2)
    signs = Law((Fraction(1), Fraction(-1)), (half, half))
    name, _, tail = init.spec.split(" ")[-1].partition(":")
    if name not in inits.LAWS:
        if init.characteristic is None:
            raise InvalidInput("a law of one's own needs its characteristic function: inits.custom(sample, phi)")
        return Law(init=init)
    require(name != "sphere", "alignment needs independent weights; 'sphere' weights depend on each other")
    numbers = [float(part) for part in tail.split(",")] if tail else []
    if name in ("rademacher", "sign"):
        return signs
    if name in ("gaussian", "kaiming"):
        return Law(normal=1.0)
    if name in ("uniform", "torch", "xavier"):
        return Law(uniform=1.0)
    if name == "perturbed-rademacher":
        return replace(signs, normal=numbers[0])
    if name == "uniform-perturbed":
        return replace(signs, uniform=math.sqrt(3) * numbers[0])
    if name == "sparse-rademacher":
        s = rational(numbers[0])
        return replace(signs, atoms=(*signs.atoms, Fraction(0)), probabilities=((1 - s) / 2, (1 - s) / 2, s))
    return Law(tuple(map(rational, numbers)), (Fraction(1, len(numbers)),) * len(numbers))


def bias_law(given: Any) -> Law:
    """The law of a bias: None (no bias), a number, ``gaussian:0.7`` (its standard deviation), or any init.

    >>> bias_law("gaussian:0.7").normal, bias_law(0.3).atoms
    (0.7, (Fraction(3, 10),))
    """
    if given is None:
        return Law()
    if isinstance(given, (int, float, Fraction)):
        require(math.isfinite(given), f"a bias must be finite, not {given}")
        return point(given)
    if isinstance(given, str):
        try:
            return bias_law(float(given))
        except ValueError:
            pass
        if given.startswith("gaussian:"):
            _, (sigma,) = specs.parse("bias", given, {"gaussian": (1, 1)})
            require(sigma >= 0, f"a bias's standard deviation must be at least 0, not {sigma:g}")
            return Law(normal=sigma)
    return law(given)
