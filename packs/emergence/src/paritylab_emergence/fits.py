"""Exponents: least squares of one logarithm on another, with standard errors."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import stats

from paritylab.aliases import Interval
from paritylab.claims.intervals import Estimate


class Exponent(NamedTuple):
    """An exponent, its standard error and its degrees of freedom."""

    value: float
    error: float
    freedom: float = math.inf

    def interval(self, level: float = 0.95) -> Interval:
        """Student's; infinite where nothing is left to tell the error from."""
        if self.freedom <= 0:
            return -math.inf, math.inf
        half = float(stats.t.ppf((1 + level) / 2, self.freedom)) * self.error
        return self.value - half, self.value + half

    @property
    def estimate(self) -> Estimate:
        return self.value, self.interval()

    def less(self, other: float) -> Exponent:
        """What it is above a number."""
        return self._replace(value=self.value - other)

    def minus(self, other: Exponent) -> Exponent:
        """The difference of two independent ones, with Welch's degrees of freedom."""
        squares = self.error**2, other.error**2
        freedom = _welch(squares, (self.freedom, other.freedom))
        return Exponent(self.value - other.value, math.sqrt(sum(squares)), freedom)

    def agrees(self, other: Exponent, errors: float = 2.576) -> bool:
        """Whether two lie within so many of their joint standard errors."""
        return self.apart(other) <= errors

    def apart(self, other: Exponent) -> float:
        """Their distance in joint standard errors."""
        return abs(self.value - other.value) / math.hypot(self.error, other.error)


def _welch(squares: tuple[float, float], freedoms: tuple[float, float]) -> float:
    """Degrees of freedom of a sum of estimates with these squared errors; none where one has none."""
    if min(freedoms) <= 0:
        return 0.0
    lost = sum(square**2 / freedom for square, freedom in zip(squares, freedoms, strict=True))
    return sum(squares) ** 2 / lost if lost else math.inf


def exponent(x: ArrayLike, y: ArrayLike) -> Exponent:
    """The exponent of y as a power of x, by least squares of logarithms; NaN for fewer than two points.

    >>> fit = exponent([1, 10, 100, 1000], [1.1, 9, 100, 1050])
    >>> round(fit.value, 2), fit.freedom
    (1.0, 2)
    """
    xs, ys = np.asarray(x, float), np.asarray(y, float)
    if len(np.unique(xs)) < 2:
        return Exponent(math.nan, math.nan, 0)
    fit = stats.linregress(np.log(xs), np.log(ys))
    return Exponent(float(fit.slope), float(fit.stderr), len(xs) - 2)
