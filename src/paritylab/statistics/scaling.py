"""Power laws and their exponential alternative, fitted to medians or other percentiles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from paritylab.errors import require
from paritylab.statistics.percentiles import (
    Floats,
    Interval,
    check_percentile,
    holding,
    interpolate,
    order,
    percentile,
    position,
    tail_of,
    time_at,
)
from paritylab.statistics.risk import Risk, counts, event_steps, horizons_differ
from paritylab.storage.records import Records

MOST_COUNTS = 2**22
"""How many numbers of runs are held at a time while samples are drawn again."""


@dataclass(frozen=True)
class Law:
    """A fitted law: ``prefactor * x**exponent`` (power) or ``prefactor * exp(exponent * x)`` (exponential).

    ``residual`` is the root mean square of ln(y) - ln(law).
    """

    form: Literal["power", "exponential"]
    exponent: float
    exponent_interval: Interval
    prefactor: float
    prefactor_interval: Interval
    residual: float

    def __call__(self, x: ArrayLike) -> Floats:
        return self.prefactor * np.exp(self.exponent * _abscissa(self.form, x))


@dataclass(frozen=True)
class ScalingFit:
    """A power law, and the exponential law that is the alternative to it, fitted to the same points."""

    power: Law
    exponential: Law
    points: int

    @property
    def evidence(self) -> float:
        """How much better the power law fits: AIC of the exponential minus AIC of the power law.

        Both laws have two parameters, so this is ``2 * points * ln(exponential residual / power residual)``.
        """
        if self.power.residual == self.exponential.residual:
            return 0.0
        with np.errstate(divide="ignore"):
            ratio = np.log(self.exponential.residual) - np.log(self.power.residual)
        return float(2 * self.points * ratio)


def power_law_fit(x: ArrayLike, y: ArrayLike, level: float = 0.95) -> ScalingFit:
    """Fit ``y = prefactor * x**exponent`` by least squares of ln(y) on ln(x), with Student-t intervals.

    The intervals come from the scatter of the points about the law; they need at least three different x.

    >>> fit = power_law_fit([1, 2, 4, 8], [3.0, 12.1, 47.9, 192.0])
    >>> f"{fit.power.prefactor:.1f} x^{fit.power.exponent:.2f}", fit.evidence > 10
    ('3.0 x^2.00', True)
    """
    abscissa, ordinate = _checked_points(x, y)
    import scipy.stats  # pyright: ignore[reportMissingTypeStubs]

    stats: Any = scipy.stats  # SciPy has no types
    quantile = stats.t.ppf(1 - tail_of(level), len(abscissa) - 2)

    def fit(form: Literal["power", "exponential"]) -> Law:
        line = stats.linregress(_abscissa(form, abscissa), np.log(ordinate))
        slope, intercept = float(line.slope), float(line.intercept)
        slope_margin, intercept_margin = quantile * line.stderr, quantile * line.intercept_stderr
        return Law(
            form,
            slope,
            (float(slope - slope_margin), float(slope + slope_margin)),
            math.exp(intercept),
            (float(np.exp(intercept - intercept_margin)), float(np.exp(intercept + intercept_margin))),
            _residual(_abscissa(form, abscissa), np.log(ordinate), slope, intercept),
        )

    return ScalingFit(fit("power"), fit("exponential"), len(abscissa))


def power_law_fit_runs(
    x: ArrayLike,
    samples: Sequence[Records],
    q: float = 50,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> ScalingFit:
    """Fit a power law to the ``q``-th percentile of t_c at each ``x``, with intervals bootstrapped over runs.

    The intervals say how much the exponent would move with other runs of the same setups; they do not say
    whether the law is a power law (``evidence`` and the residuals speak to that). A resample whose percentile
    is not reached counts against both ends of an interval.

    >>> samples = [Records(range(99), [0] * 99, t, t, [1] * 99, [0] * 99) for t in
    ...            (scale * np.arange(51, 150) for scale in (1, 4, 16))]
    >>> fit = power_law_fit_runs([1, 2, 4], samples)
    >>> fit.power.exponent_interval[0] < 2 < fit.power.exponent_interval[1]
    True
    """
    abscissa, ordinate, resampled = _points_of_runs(x, samples, q, resamples, seed)

    def fit(form: Literal["power", "exponential"]) -> Law:
        abscissas = _abscissa(form, abscissa)
        slope, intercept = (float(value) for value in _line(abscissas, np.log(ordinate)))
        slopes, intercepts = _line(abscissas, resampled)
        low, high = _bootstrap_interval(intercepts, level)
        return Law(
            form,
            slope,
            _bootstrap_interval(slopes, level),
            math.exp(intercept),
            (float(np.exp(low)), float(np.exp(high))),
            _residual(abscissas, np.log(ordinate), slope, intercept),
        )

    return ScalingFit(fit("power"), fit("exponential"), len(abscissa))


def power_law_band(
    x: ArrayLike,
    samples: Sequence[Records],
    at: ArrayLike,
    q: float = 50,
    level: float = 0.95,
    resamples: int = 2000,
    seed: int = 0,
) -> tuple[Floats, Floats]:
    """The ends of the interval of :func:`power_law_fit_runs`'s power law at each of ``at``, from the same resamples.

    >>> samples = [Records(range(99), [0] * 99, t, t, [1] * 99, [0] * 99) for t in
    ...            (scale * np.arange(51, 150) for scale in (1, 4, 16))]
    >>> low, high = power_law_band([1, 2, 4], samples, [1, 4])
    >>> law = power_law_fit_runs([1, 2, 4], samples).power([1, 4])
    >>> bool(np.all((low < law) & (law < high)))
    True
    """
    abscissa, ordinate, resampled = _points_of_runs(x, samples, q, resamples, seed)
    places = _abscissa("power", at)
    slopes, intercepts = _line(_abscissa("power", abscissa), resampled)
    slope, intercept = _line(_abscissa("power", abscissa), np.log(ordinate))
    with np.errstate(invalid="ignore"):
        laws = ((slope * place + intercept, slopes * place + intercepts) for place in places)
        ends = np.array([holding(float(law), _bootstrap_interval(others, level)) for law, others in laws])
    return np.exp(ends[:, 0]), np.exp(ends[:, 1])


def _points_of_runs(
    x: ArrayLike, samples: Sequence[Records], q: float, resamples: int, seed: int
) -> tuple[Floats, Floats, Floats]:
    """The points of a law, and the logarithms of what other runs of the same setups might have given instead."""
    check_percentile(q)
    values = [percentile(records.t_c, records.status, q, records.steps) for records in samples]
    abscissa, ordinate = _checked_points(x, values)
    generator = np.random.default_rng(seed)
    return abscissa, ordinate, np.log([_resampled(records, q, resamples, generator) for records in samples])


def _checked_points(x: ArrayLike, y: ArrayLike) -> tuple[Floats, Floats]:
    abscissa, ordinate = np.asarray(x, np.float64), np.asarray(y, np.float64)
    require(abscissa.shape == ordinate.shape and abscissa.ndim == 1, "a law needs one y for each x")
    require(len(np.unique(abscissa)) >= 3, "a law needs points at three different x at least")
    for name, values in (("x", abscissa), ("y", ordinate)):
        require(bool(np.all((values > 0) & np.isfinite(values))), f"a law needs positive, finite {name}")
    return abscissa, ordinate


def _abscissa(form: str, x: ArrayLike) -> Floats:
    values = np.asarray(x, np.float64)
    return np.log(values) if form == "power" else values


def _line(abscissa: Floats, ordinate: Floats) -> tuple[Floats, Floats]:
    """Slope and intercept of the least-squares line, for each column of ``ordinate``."""
    centred = abscissa - abscissa.mean()
    with np.errstate(invalid="ignore"):
        slope = centred @ ordinate / (centred @ centred)
        return slope, ordinate.mean(axis=0) - slope * abscissa.mean()


def _residual(abscissa: Floats, ordinate: Floats, slope: float, intercept: float) -> float:
    return float(np.sqrt(np.mean((ordinate - slope * abscissa - intercept) ** 2)))


def _resampled(records: Records, q: float, resamples: int, generator: np.random.Generator) -> Floats:
    """Percentiles of bootstrap samples."""
    columns = records.t_c, records.status, records.steps
    if not horizons_differ(*columns[1:]):
        return resampled_percentile(*order(*columns[:2]), q, resamples, generator)
    grid = event_steps(*columns)
    share = counts(*columns, grid).ravel() / len(records)
    found: list[Floats] = []
    for size in _parts(resamples, max(1, MOST_COUNTS // len(share))):
        drawn = generator.multinomial(len(records), share, size).astype(np.float64)
        found.append(Risk.of_counts(grid, *np.moveaxis(drawn.reshape(size, 3, -1), 1, 0)).percentile(q))
    return np.concatenate(found)


def _parts(total: int, most: int) -> list[int]:
    """``total`` in parts of ``most`` and what is left."""
    return [min(most, total - start) for start in range(0, total, most)]


def resampled_percentile(
    times: Floats, runs: int, q: float, resamples: int, generator: np.random.Generator
) -> Floats:
    """Percentiles of bootstrap samples, without drawing the samples.

    The j-th smallest of n uniform numbers follows Beta(j, n + 1 - j), and given it the next one lies at a
    Beta(1, n - j) fraction of what is left above. Scaled to run indices, these are the order statistics of a
    bootstrap sample: the cost does not depend on the number of runs.
    """
    index, fraction = position(runs, q)
    uniform = generator.beta(index + 1, runs - index, resamples)
    low = time_at(times, (runs * uniform).astype(np.int64))
    if fraction == 0:
        return low
    uniform = uniform + (1 - uniform) * generator.beta(1, runs - index - 1, resamples)
    return interpolate(low, time_at(times, (runs * uniform).astype(np.int64)), fraction)


def _bootstrap_interval(values: Floats, level: float) -> Interval:
    tail = tail_of(level)
    undefined = ~np.isfinite(values)
    low = np.quantile(np.where(undefined, -np.inf, values), tail, method="lower")
    high = np.quantile(np.where(undefined, np.inf, values), 1 - tail, method="higher")
    return float(low), float(high)
