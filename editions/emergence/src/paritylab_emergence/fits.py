"""Exponents: least squares of one logarithm on another, and its like where some values are only known to be larger."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy import optimize, stats

from paritylab.aliases import Floats, Interval
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
    fit: Any = stats.linregress(np.log(xs), np.log(ys))
    return Exponent(float(fit.slope), float(fit.stderr), len(xs) - 2)


def censored_exponent(x: ArrayLike, y: ArrayLike, beyond: ArrayLike, horizon: float) -> Exponent:
    """The exponent of y as a power of x where at ``beyond`` all that is known of y is that it is above the horizon.

    By maximum likelihood, with normal errors of one width in the logarithm (Tobit regression).

    >>> x = np.geomspace(1, 1000, 61)
    >>> y = x * np.exp(np.random.default_rng(0).normal(size=61))
    >>> seen = y < 100  # of the large ones only those that happen to be small: the slope through them is too flat
    >>> round(exponent(x[seen], y[seen]).value, 2), round(censored_exponent(x[seen], y[seen], x[~seen], 100).value, 2)
    (0.95, 1.09)
    """
    at, log_y, hidden = (np.log(np.asarray(each, float)) for each in (x, y, beyond))
    centre = float(np.mean(np.concatenate([at, hidden])))

    def unlikely(line: Floats) -> float:
        level, slope, width = line[0], line[1], math.exp(line[2])
        seen = stats.norm.logpdf(log_y, level + slope * (at - centre), width)
        above = stats.norm.logsf(math.log(horizon), level + slope * (hidden - centre), width)
        return -float(seen.sum() + above.sum())

    start: Any = stats.linregress(at - centre, log_y)
    found = optimize.minimize(unlikely, [start.intercept, start.slope, 0.0], method="BFGS")
    covariance = np.linalg.inv(_curvature(unlikely, found.x))
    return Exponent(float(found.x[1]), math.sqrt(float(covariance[1, 1])), len(at) - 3)


def _curvature(function: Callable[[Floats], float], x: Floats, step: float = 1e-3) -> Floats:
    """The second derivatives of a function, by central differences."""
    moves = step * np.eye(len(x))
    return np.array([[(function(x + a + b) - function(x + a - b) - function(x - a + b) + function(x - a - b))
                      / (4 * step**2) for b in moves] for a in moves])
