"""Skills of power-law frequency: the solvable model of nam2024 and the quantization model of michaud2023.

Skill k of many comes up with a frequency in proportion to k^-(a+1). In the solvable model (nam2024, Sections 3 and 4)
the output is a sum of skills of strengths R_k with targets S, each trained by itself: its strength grows along a
logistic curve in time, and is cut off where examples, hidden units or skills that can be held are too few. The
quantization model (michaud2023) has skills that are learned at once or not at all. The laws of both follow.

Strengths are relative to the target, R/S; times are steps times rate where no rate is asked for. The losses are halves
of squared errors; on whole ones a skill learns twice as fast.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.integrate  # pyright: ignore[reportMissingTypeStubs]
import scipy.optimize  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import ArrayLike
from scipy import special

from paritylab.aliases import Floats
from paritylab.errors import require

integrate: Any = scipy.integrate  # SciPy has no types
optimize: Any = scipy.optimize
SKILLS = 10**5
"""As many as the published sums have."""
LARGEST = 350.0
"""Beyond it the square of exp overflows."""


def frequencies(a: float, skills: int) -> Floats:
    """How often each of so many skills comes up: in proportion to k^-(a+1).

    >>> frequencies(0.6, 5).round(4)
    array([0.5927, 0.1955, 0.1022, 0.0645, 0.0451])
    """
    require(skills >= 1, f"there must be at least one skill, not {skills}")
    weights = np.arange(1, skills + 1, dtype=float) ** -(_exponent(a) + 1)
    return weights / weights.sum()


# --- one skill ----------------------------------------------------------------------------------------------------


def sigmoid(exponent: ArrayLike, start: float) -> Floats:
    """The strength of a skill that began at ``start`` and has had so many e-foldings (nam2024, Equation 14).

    It solves dr/ds = r (1 - r). After T steps at rate eta they are s = 2 eta P B^2 S T, or twice that on the whole
    squared error, for a skill of frequency P; B^2 is the one constant that a network needs (1/22 in nam2024).

    >>> sigmoid([0.0, math.log(99), 20.0], start=0.01).round(3)
    array([0.01, 0.5 , 1.  ])
    """
    require(0 < start < 1, f"a strength starts above 0 and below 1, not at {start:g}")
    return 1 / (1 + np.exp(np.minimum(LARGEST, -np.asarray(exponent, float))) * (1 / start - 1))


def missing(exponent: ArrayLike, start: float) -> Floats:
    """The square of what a strength lacks, (1 - r)^2: what a skill adds to the loss, in units of S^2/2.

    >>> missing([0.0, 20.0], start=0.5)
    array([2.50000000e-01, 4.24835424e-18])
    """
    require(0 < start < 1, f"a strength starts above 0 and below 1, not at {start:g}")
    return (1 + np.exp(np.minimum(LARGEST, np.asarray(exponent, float))) / (1 / start - 1)) ** -2.0


def emergence_time(
    frequency: ArrayLike, rate: float, target: float, square: float, start: float, level: float = 0.5, factor: float = 4
) -> Floats:
    """The step at which skills of these frequencies reach a strength.

    ``square`` is B^2; ``factor`` is 4 for networks trained on the whole squared error and 2 on half of it.

    >>> emergence_time([1, 0.1955], rate=0.02, target=5, square=1 / 22, start=0.01**2 / 18).round()
    array([ 666., 3404.])
    """
    require(0 < start < 1 and 0 < level < 1, "strengths are above 0 and below 1")
    folds = math.log(level / (1 - level)) + math.log(1 / start - 1)
    return folds / (factor * rate * target * square * np.asarray(frequency, float))


def with_data(examples: ArrayLike, enough: float = 800.0) -> Floats:
    """The strength of a skill after infinite time on so many examples of its own (nam2024, Equation 17).

    >>> with_data([200, 600, 800, 1000]).round(3)
    array([0.134, 0.5  , 1.   , 1.   ])
    """
    return 1 - np.sqrt(np.maximum(0, 1 - np.asarray(examples, float) / enough))


def with_units(units: ArrayLike, enough: float = 4.0) -> Floats:
    """The strength of a skill that has so many hidden units to itself (nam2024, Equation 21).

    >>> with_units([1, 3, 6])
    array([0.25, 0.75, 1.  ])
    """
    return np.clip(np.asarray(units, float) / enough, 0, 1)


def shared_units(units: float, skills: int, enough: float = 4.0) -> Floats:
    """The strengths of skills in order of frequency where each takes as many of the units left as it can use.

    >>> shared_units(10, skills=5)
    array([1. , 1. , 0.5, 0. , 0. ])
    """
    return with_units(units - enough * np.arange(skills), enough)


# --- all of them --------------------------------------------------------------------------------------------------


def loss_after(time: float, a: float, skills: int = SKILLS, start: float = 0.01, target: float = 1.0) -> float:
    """The loss after a time, of skills that began at R(0) = ``start``: S^2/2 sum_k P_k (1 - R_k/S)^2.

    >>> [round(loss_after(time, 0.6, start=0.5), 4) for time in (0, 1e4)]
    [0.125, 0.0024]
    """
    p = frequencies(a, skills)
    return float(target**2 / 2 * np.sum(p * missing(2 * target * p * time, start / target)))


def loss_with_data(examples: float, a: float, skills: int = SKILLS) -> float:
    """The mean loss after infinite time on so many examples, where a skill that was seen is learned (S = 1).

    >>> [round(loss_with_data(examples, 0.6, skills=2), 4) for examples in (0, 1, 10)]
    [0.5, 0.1865, 0.0072]
    """
    p = frequencies(a, skills)
    if skills == 1:
        return 0.0 if examples else 0.5
    return float(np.sum(p * np.exp(examples * np.log1p(-p))) / 2)


def loss_with_skills(held: int, a: float, skills: int = SKILLS) -> float:
    """The loss after infinite time where only the ``held`` most frequent skills are learned (S = 1).

    >>> [round(loss_with_skills(held, 0.6, skills=5), 4) for held in (0, 2, 5)]
    [0.5, 0.1059, 0.0]
    """
    return float(frequencies(a, skills)[held:].sum() / 2)


def best_split(
    compute: float, a: float, skills: int = 50_000, most: int = 40_000, start: float = 0.01, target: float = 5.0
) -> tuple[int, float]:
    """The number N of skills held at which the loss after a time C / N is smallest, and that loss (Appendix E.4).

    The loss falls and then rises in N: the best of a coarse grid, then every N between its neighbours.

    >>> best_split(1e4, 0.9)[0]
    25
    """
    p = frequencies(a, skills)
    beyond = 1 - np.cumsum(p)

    def loss(held: int) -> float:
        learned = p[:held] @ missing(2 * target * p[:held] * compute / held, start / target)
        return target**2 / 2 * float(learned + beyond[held - 1])

    grid = np.unique(np.geomspace(1, min(most, skills), 400).round().astype(int))
    place = int(np.argmin([loss(held) for held in grid]))
    between = range(grid[max(0, place - 1)], grid[min(len(grid) - 1, place + 1)] + 1)
    best = min(between, key=loss)
    return best, loss(best)


# --- their power laws, for many skills and much of a resource -----------------------------------------------------


class Law(NamedTuple):
    """The power law ``prefactor * resource ** -exponent`` that a loss follows."""

    prefactor: float
    exponent: float

    def __call__(self, resource: ArrayLike) -> Floats:
        return self.prefactor * np.asarray(resource, float) ** -self.exponent


def time_law(a: float, start: float = 0.01, target: float = 1.0) -> Law:
    """That of :func:`loss_after`: T^(-a/(a+1)).

    Of many skills the sum becomes an integral over u = P_k S T (Appendix K.4), S^(2 - a/(a+1)) / (2 (a+1)) times
    zeta(a+1)^(-1/(a+1)) times that of u^(-1/(a+1)) (1 - r(2 u))^2 over u > 0.

    >>> [round(2 * time_law(a).prefactor, 2) for a in (0.3, 0.6, 0.9)]
    [1.29, 1.2, 1.06]
    """
    power = _exponent(a) / (a + 1)
    # With u = v^(1/power) the weight u^(power - 1) is gone.
    area, _ = integrate.quad(lambda v: missing(2 * v ** (1 / power), start / target) / power, 0, 50**power,
                             epsabs=1e-12, limit=500)
    prefactor = special.zeta(a + 1) ** (-1 / (a + 1)) * area / (2 * (a + 1))
    return Law(float(target**2 * target**-power * prefactor), power)


def data_law(a: float) -> Law:
    """That of :func:`loss_with_data`: D^(-a/(a+1)).

    >>> data_law(1.0).exponent
    0.5
    """
    power = _exponent(a) / (a + 1)
    return Law(float(special.zeta(a + 1) ** (-1 / (a + 1)) * special.gamma(power) / (2 * (a + 1))), power)


def skills_law(a: float) -> Law:
    """That of :func:`loss_with_skills`: N^-a with the prefactor 1 / (2 a zeta(a+1)).

    >>> round(skills_law(0.6).prefactor, 4)
    0.3646
    """
    return Law(float(1 / (2 * _exponent(a) * special.zeta(a + 1))), a)


def compute_law(a: float, start: float = 0.01, target: float = 5.0) -> Law:
    """That of :func:`best_split`: C^(-a/(a+2)).

    With N skills and u = 2 S C / (zeta N^(a+2)), the e-foldings of the rarest one that is held, the loss is
    S^2 N^-a / (2 zeta) times 1/a + integral over v > 1 of v^(-1/(a+1)) (1 - r(u v))^2 / (a+1). The best u does not
    depend on C. In units of S^2/2 the prefactors in nam2024's code are 0.68, 0.70 and 0.64 for a = 0.3, 0.6 and 0.9.

    >>> [round(2 / 25 * compute_law(a).prefactor, 2) for a in (0.3, 0.6, 0.9)]
    [0.95, 0.79, 0.65]
    """
    power, zeta = _exponent(a) / (a + 2), float(special.zeta(a + 1))

    def bracket(log_u: float) -> float:
        u = math.exp(log_u)
        ends = 1, max(2.0, 60 / u)  # beyond 60 e-foldings nothing is missing
        area, _ = integrate.quad(lambda v: v ** (-1 / (a + 1)) * missing(u * v, start / target), *ends, limit=500)
        return u**power * (1 / a + area / (a + 1))

    found = optimize.minimize_scalar(bracket, bounds=(-6, 6), method="bounded", options={"xatol": 1e-9})
    return Law(float(target**2 / (2 * zeta) * (2 * target / zeta) ** -power * found.fun), power)


# --- skills that are learned at once (michaud2023) ----------------------------------------------------------------


class Exponents(NamedTuple):
    """The exponents of the loss in parameters, steps and examples, and of the number of skills learned in examples."""

    parameters: float
    steps: float
    examples: float
    learned: float


def exponents(a: float) -> Exponents:
    """The relations of the quantization model: alpha_N = a, alpha_S = alpha_D = a/(a+1), counts as D^(1/(a+1)).

    Each parameter budget holds a number of skills in proportion to it; each skill needs a number of its own examples,
    or of steps with it, that is the same for all.

    >>> exponents(1.0)
    Exponents(parameters=1.0, steps=0.5, examples=0.5, learned=0.5)
    """
    return Exponents(_exponent(a), a / (a + 1), a / (a + 1), 1 / (a + 1))


def learned(examples: ArrayLike, a: float, threshold: float, skills: int = SKILLS) -> np.ndarray:
    """How many skills have at least ``threshold`` of so many examples for themselves, in the mean: D P_k >= threshold.

    >>> learned([1e3, 1e4, 1e5], 0.4, threshold=500, skills=500)
    array([ 0,  3, 20])
    """
    p = frequencies(a, skills)
    return np.searchsorted(-p, -threshold / np.asarray(examples, float), side="right")


def loss_of_learned(
    count: ArrayLike, a: float, skills: int = SKILLS, before: float = 1.0, after: float = 0.0
) -> Floats:
    """The mean loss where the so many most frequent skills have the loss ``after`` and the others ``before``.

    >>> loss_of_learned([0, 2, 5], 0.6, skills=5).round(3)
    array([1.   , 0.212, 0.   ])
    """
    done = np.append(0.0, np.cumsum(frequencies(a, skills)))[np.asarray(count, int)]
    return before + (after - before) * done


def _exponent(a: float) -> float:
    require(a > 0, f"the exponent of skills must be above 0, not {a:g}")
    return a
