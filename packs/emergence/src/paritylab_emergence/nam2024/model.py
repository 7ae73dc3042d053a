"""The solvable model: skills of power-law frequency, each gained along a curve of its own (Sections 3 and 4).

The network's output is a sum of skills, one for each task; skill k has strength R_k and target S. Under gradient flow
each strength follows a sigmoid in time; with few data or few units it is cut off at a rank. ``a`` is the exponent:
skill k has frequency proportional to k^-(a+1).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.integrate  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import ArrayLike
from scipy import special

from paritylab.aliases import Floats

integrate: Any = scipy.integrate
SKILLS = 10**5
"""Of the laws in Figure 2."""
TARGET = 5.0
"""S, the scale of the labels in all experiments and in Figure 3."""
LARGEST = 700.0
"""Beyond it exp overflows."""


def frequencies(a: float, skills: int) -> Floats:
    """How often each skill comes up.

    >>> frequencies(0.6, 5).round(4)
    array([0.5927, 0.1955, 0.1022, 0.0645, 0.0451])
    """
    weights = np.arange(1, skills + 1, dtype=float) ** -(a + 1)
    return weights / weights.sum()


def sigmoid(exponent: ArrayLike, start: float) -> Floats:
    """Strength over target where it began at ``start`` and grew so many e-foldings (Equation 14).

    >>> sigmoid([0.0, math.log(99)], start=0.01)
    array([0.01, 0.5 ])
    """
    return 1 / (1 + np.exp(np.minimum(LARGEST, -np.asarray(exponent, float))) * (1 / start - 1))


def with_data(examples: ArrayLike, enough: float = 800.0) -> Floats:
    """Strength over target with so many examples of the skill itself (Equation 17).

    >>> with_data([200, 600, 800, 1000]).round(3)
    array([0.134, 0.5  , 1.   , 1.   ])
    """
    return 1 - np.sqrt(np.maximum(0, 1 - np.asarray(examples, float) / enough))


def with_units(units: ArrayLike, enough: float = 4.0) -> Floats:
    """Strength over target with so many hidden units for it (Equation 21).

    >>> with_units([1, 3, 6])
    array([0.25, 0.75, 1.  ])
    """
    return np.clip(np.asarray(units, float) / enough, 0, 1)


def missing(exponent: ArrayLike, start: float) -> Floats:
    """One minus the sigmoid, squared: what a skill adds to the loss, relative to what it added before."""
    return (1 + np.exp(np.minimum(LARGEST, np.asarray(exponent, float))) / (1 / start - 1)) ** -2.0


def loss_after(steps: float, a: float, skills: int = SKILLS, start: float = 0.01, target: float = 1.0) -> float:
    """The loss of the model after time T at rate 1."""
    p = frequencies(a, skills)
    return float(target**2 / 2 * np.sum(p * missing(2 * target * p * steps, start / target)))


def loss_with_data(examples: float, a: float, skills: int = SKILLS) -> float:
    """Its loss on D examples, after infinite time: a skill that was seen is learned."""
    p = frequencies(a, skills)
    return float(np.sum(p * np.exp(examples * np.log1p(-p))) / 2)


def loss_with_skills(held: int, a: float, skills: int = SKILLS) -> float:
    """Its loss if it can hold the N most frequent skills."""
    return float(frequencies(a, skills)[held:].sum() / 2)


def time_prefactor(a: float, start: float = 0.01) -> float:
    """A_T of the law A_T T^(-a/(a+1)), for S = 1 (Appendix K.4).

    >>> round(2 * time_prefactor(0.3), 2)
    1.29
    """
    power = a / (a + 1)
    # With u = v^(1/power) the weight u^(power - 1) is gone.
    area, _ = integrate.quad(lambda v: missing(2 * v ** (1 / power), start) / power, 0, 50**power, epsabs=1e-12,
                             limit=500)
    return float(special.zeta(a + 1) ** (-1 / (a + 1)) * area / (2 * (a + 1)))


def data_prefactor(a: float) -> float:
    """A_D of the law A_D D^(-a/(a+1))."""
    return float(special.zeta(a + 1) ** (-1 / (a + 1)) * special.gamma(a / (a + 1)) / (2 * (a + 1)))


def skills_prefactor(a: float) -> float:
    """A_N of the law A_N N^-a.

    >>> round(skills_prefactor(0.6), 4)
    0.3646
    """
    return float(1 / (2 * a * special.zeta(a + 1)))


def best_split(
    compute: float, a: float, skills: int = 50_000, most: int = 40_000, start: float = 0.01, target: float = TARGET
) -> tuple[int, float]:
    """The number N of skills at which the loss with compute N T is smallest, and that loss (Appendix E.4).

    The loss falls and then rises in N: the best of a coarse grid, then every N between its neighbours.
    """
    p = frequencies(a, skills)
    beyond = 1 - np.cumsum(p)

    def loss(held: int) -> float:
        learned = p[:held] @ missing(2 * target * p[:held] * compute / held, start / target)
        return target**2 / 2 * float(learned + beyond[held - 1])

    grid = np.unique(np.geomspace(1, most, 400).round().astype(int))
    place = int(np.argmin([loss(held) for held in grid]))
    between = range(grid[max(0, place - 1)], grid[min(len(grid) - 1, place + 1)] + 1)
    best = min(between, key=loss)
    return best, loss(best)


def half_time(frequency: ArrayLike, rate: float, target: float, square: float, start: float) -> Floats:
    """The step of half strength of skills trained on the whole squared error; ``square`` is B^2.

    >>> round(float(half_time(1.0, rate=0.02, target=5.0, square=1 / 22, start=0.01**2 / 18)))
    666
    """
    return math.log(1 / start - 1) / (4 * rate * target * square * np.asarray(frequency, float))
