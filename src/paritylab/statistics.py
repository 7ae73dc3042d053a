"""What many Runs say together: percentiles, survival, scaling and comparison of convergence times.

A run that was not solved is never given a made-up convergence time. Two readings of it are used:

- *Percentiles* are over all runs, an unsolved run counting as ``inf``. A percentile that touches an unsolved
  run is ``inf``: not reached. Where runs were given up before the others, a percentile beyond the first such
  step is an upper bound (the given-up run might have been solved before it); :class:`Summary` then says so.
- *Survival* (and the comparison of two samples) treats a censored run as unsolved up to the step at which it
  was given up, and unknown afterwards. A diverged run can never be solved: it counts as unsolved up to the
  largest horizon.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import scipy.stats  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import ArrayLike, NDArray

from paritylab.errors import require
from paritylab.records import CENSORED, DIVERGED, SOLVED, Records

stats: Any = scipy.stats  # SciPy has no types
Interval = tuple[float, float]
Floats = NDArray[np.float64]


# --- percentiles --------------------------------------------------------------------------------------------


def percentile(t_c: ArrayLike, status: ArrayLike, q: float) -> float:
    """The ``q``-th percentile of the convergence time over all runs; ``inf`` when it is not reached.

    Interpolates linearly between order statistics as NumPy does, an unsolved run counting as ``inf``.

    >>> percentile([100, 300, -1, -1], [0, 0, 1, 2], 10)
    160.0
    >>> percentile([100, 300, -1, -1], [0, 0, 1, 2], 50)
    inf
    """
    _check_percentile(q)
    times, runs = _order(t_c, status)
    return _percentile(times, runs, q)


def percentile_interval(t_c: ArrayLike, status: ArrayLike, q: float, level: float = 0.95) -> Interval:
    """A confidence interval for the ``q``-th percentile, from two order statistics of the sample.

    The ranks come from the binomial law of the number of runs below the true percentile, so the coverage is
    at least ``level`` for every sample size and every law of t_c, ties and unsolved runs included. Where the
    sample is too small to bound the percentile, the lower end is 0 and the upper end ``inf``.

    >>> percentile_interval(range(1, 101), [0] * 100, 50)
    (40.0, 61.0)
    >>> percentile_interval([100, 300, -1], [0, 0, 1], 50)
    (0.0, inf)
    """
    _check_percentile(q)
    times, runs = _order(t_c, status)
    return _percentile_interval(times, runs, q, level)


def _order(t_c: ArrayLike, status: ArrayLike) -> tuple[Floats, int]:
    """The solved times in increasing order, closed by one ``inf`` that stands for every unsolved run."""
    solved = np.asarray(status) == SOLVED
    return np.append(np.sort(np.asarray(t_c)[solved]), np.inf), len(solved)


def _check_percentile(q: float) -> None:
    require(0 <= q <= 100, f"a percentile must be between 0 and 100, not {q:g}")


def _at(times: Floats, index: Any) -> Any:
    return times[np.minimum(index, len(times) - 1)]


def _position(runs: int, q: float) -> tuple[int, float]:
    # Multiplying first keeps whole positions whole, so that no rounding error touches an unsolved run.
    position = q * (runs - 1) / 100
    return math.floor(position), position - math.floor(position)


def _interpolate(low: Any, high: Any, fraction: float) -> Any:
    if fraction == 0:
        return low
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(high), np.inf, low + fraction * (high - low))


def _percentile(times: Floats, runs: int, q: float) -> float:
    index, fraction = _position(runs, q)
    if runs == 0:
        return math.inf
    return float(_interpolate(_at(times, index), _at(times, index + 1), fraction))


def _percentile_interval(times: Floats, runs: int, q: float, level: float) -> Interval:
    tail = _tail(level)
    below = stats.binom(runs, q / 100)
    first, last = int(below.ppf(tail)), int(below.ppf(1 - tail)) + 1
    low = float(_at(times, first - 1)) if first > 0 else 0.0
    high = float(_at(times, last - 1)) if last <= runs else math.inf
    # With few runs and an extreme q the interpolated percentile can lie beyond the bounding order statistic.
    value = _percentile(times, runs, q)
    return min(low, value), max(high, value)


def _tail(level: float) -> float:
    require(0 < level < 1, f"a confidence level must be between 0 and 1, not {level:g}")
    return (1 - level) / 2


# --- fractions and survival ---------------------------------------------------------------------------------


def solved_fraction(status: ArrayLike, level: float = 0.95) -> tuple[float, Interval]:
    """The fraction of runs that were solved, and its Wilson interval (of no runs: ``nan`` and (0, 1)).

    >>> fraction, (low, high) = solved_fraction([0] * 9 + [1])
    >>> fraction, round(low, 3), round(high, 3)
    (0.9, 0.596, 0.982)
    """
    _tail(level)
    flags = np.asarray(status) == SOLVED
    if len(flags) == 0:
        return math.nan, (0.0, 1.0)
    test = stats.binomtest(int(flags.sum()), len(flags))
    interval = test.proportion_ci(confidence_level=level, method="wilson")
    return float(test.statistic), (float(interval.low), float(interval.high))


@dataclass(frozen=True)
class Survival:
    """The fraction still unsolved after ``steps`` (increasing), with a pointwise confidence band.

    ``censored`` counts the censored runs that were given up at each of these steps (diverged runs not
    included).
    """

    steps: Floats
    unsolved: Floats
    low: Floats
    high: Floats
    censored: NDArray[np.int64]


def survival(records: Records, level: float = 0.95) -> Survival:
    """The Kaplan-Meier curve of the convergence time, with its log-log Greenwood band.

    Where that band is undefined: before the first solved run the lower end is the exact binomial one, and
    once everything is solved the upper end stays where it last was, which can only be too wide.

    >>> survival(Records([0, 1], [0, 1], [10, -1], [10, 20], [1, 0.5], [0, 1])).unsolved
    array([0.5, 0.5])
    """
    tail = _tail(level)
    times, unsolved_runs = _censored_times(records, horizon=_horizon(records))
    curve = stats.ecdf(stats.CensoredData.right_censored(times, unsolved_runs)).sf
    steps, unsolved = np.asarray(curve.quantiles), np.asarray(curve.probabilities)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The confidence interval is undefined")
        band = curve.confidence_interval(confidence_level=level, method="log-log")
    at_risk = len(times) - np.searchsorted(np.sort(times), steps)
    low = np.where(unsolved == 1, tail ** (1 / at_risk), band.low.probabilities)
    high = np.where(unsolved == 1, 1.0, band.high.probabilities)
    if len(steps) and unsolved[-1] == 0:
        low[-1], high[-1] = 0.0, high[-2] if len(steps) > 1 else 1.0
    given_up = np.searchsorted(steps, records.steps[records.status == CENSORED])
    return Survival(steps, unsolved, low, high, np.bincount(given_up, minlength=len(steps)))


def _horizon(*samples: Records) -> int:
    return max((int(records.steps.max()) for records in samples if len(records)), default=0)


def _censored_times(records: Records, horizon: int) -> tuple[Floats, NDArray[np.bool_]]:
    """The time of each run (solved at, or known to be unsolved up to), and which runs are unsolved."""
    unsolved = records.status != SOLVED
    times = np.where(unsolved, records.steps, records.t_c).astype(np.float64)
    times[records.status == DIVERGED] = horizon
    return times, unsolved


class Comparison(NamedTuple):
    """The log-rank statistic (positive: the first sample solves faster) and its two-sided p-value."""

    statistic: float
    p_value: float


def compare(first: Records, second: Records) -> Comparison:
    """Test whether two samples have the same law of convergence times (log-rank, censoring respected).

    Most powerful where one sample is faster at all times; curves that cross can escape it. Diverged runs
    count as unsolved up to the largest horizon of both samples. Where there is nothing to tell apart (nothing
    was solved, or everything at the same step), the p-value is 1.

    >>> fast = Records(range(9), [0] * 9, range(1, 10), range(1, 10), [1] * 9, [0] * 9)
    >>> slow = Records(range(9), [0] * 9, range(21, 30), range(21, 30), [1] * 9, [0] * 9)
    >>> compare(fast, slow).p_value < 1e-4
    True
    """
    horizon = _horizon(first, second)
    samples = [_censored_times(records, horizon) for records in (first, second)]
    with np.errstate(invalid="ignore"):
        result = stats.logrank(*(stats.CensoredData.right_censored(*sample) for sample in samples))
    if math.isnan(result.statistic):
        return Comparison(0.0, 1.0)
    return Comparison(float(result.statistic), float(result.pvalue))


# --- scaling ------------------------------------------------------------------------------------------------


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
    quantile = stats.t.ppf(1 - _tail(level), len(abscissa) - 2)

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
    _check_percentile(q)
    orders = [_order(records.t_c, records.status) for records in samples]
    abscissa, ordinate = _checked_points(x, [_percentile(times, runs, q) for times, runs in orders])
    generator = np.random.default_rng(seed)
    resampled = np.log([_resampled_percentile(*order, q, resamples, generator) for order in orders])

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


def _resampled_percentile(
    times: Floats, runs: int, q: float, resamples: int, generator: np.random.Generator
) -> Floats:
    """Percentiles of bootstrap samples, without drawing the samples.

    The j-th smallest of n uniform numbers follows Beta(j, n + 1 - j), and given it the next one lies at a
    Beta(1, n - j) fraction of what is left above. Scaled to run indices, these are the order statistics of a
    bootstrap sample: the cost does not depend on the number of runs.
    """
    index, fraction = _position(runs, q)
    uniform = generator.beta(index + 1, runs - index, resamples)
    low = _at(times, (runs * uniform).astype(np.int64))
    if fraction == 0:
        return low
    uniform = uniform + (1 - uniform) * generator.beta(1, runs - index - 1, resamples)
    return _interpolate(low, _at(times, (runs * uniform).astype(np.int64)), fraction)


def _bootstrap_interval(values: Floats, level: float) -> Interval:
    tail = _tail(level)
    undefined = ~np.isfinite(values)
    low = np.quantile(np.where(undefined, -np.inf, values), tail, method="lower")
    high = np.quantile(np.where(undefined, np.inf, values), 1 - tail, method="higher")
    return float(low), float(high)


# --- summary ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Summary:
    """What a sample of Runs says. A percentile of ``inf`` is not reached; ``fastest`` is the smallest t_c.

    ``min_horizon`` is the first step at which a run was censored (``max_horizon`` where none was),
    ``max_horizon`` the largest number of steps any run was trained.
    """

    runs: int
    solved: int
    censored: int
    diverged: int
    solved_fraction: float
    solved_interval: Interval
    p10: float
    p10_interval: Interval
    median: float
    median_interval: Interval
    p90: float
    p90_interval: Interval
    fastest: float
    min_horizon: int
    max_horizon: int

    @property
    def upper_bounds(self) -> bool:
        """Whether a percentile lies beyond the first censored step, and is therefore only an upper bound."""
        return any(self.min_horizon < value < math.inf for value in (self.p10, self.median, self.p90))

    def to_dict(self) -> dict[str, Any]:
        """The summary as plain JSON values; what is not reached (or not defined) is None."""

        def plain(value: Any) -> Any:
            if isinstance(value, tuple):
                return [plain(part) for part in value]  # pyright: ignore[reportUnknownVariableType]
            return None if isinstance(value, float) and not math.isfinite(value) else value

        return {name: plain(value) for name, value in asdict(self).items()}

    def __str__(self) -> str:
        if self.runs == 0:
            return "no runs"
        low, high = (100 * end for end in self.solved_interval)
        text = (
            f"solved {100 * self.solved_fraction:.1f} % [{low:.1f}, {high:.1f}] of {self.runs}"
            f", median t_c {_shown(self.median, self.median_interval)}"
            f", 10 % {_shown(self.p10, self.p10_interval)}"
            f", 90 % {_shown(self.p90, self.p90_interval)}"
        )
        if self.upper_bounds:
            text += f"\ncensored from step {self.min_horizon} on: percentiles beyond it are upper bounds"
        return text


def summary(records: Records, level: float = 0.95) -> Summary:
    """Summarise a sample of Runs.

    >>> t_c = np.repeat([300, 600, 700, -1], [150, 400, 400, 50])
    >>> steps, status = np.where(t_c < 0, 5000, t_c), np.where(t_c < 0, 1, 0)
    >>> print(summary(Records(range(1000), status, t_c, steps, status == 0, status)))
    solved 95.0 % [93.5, 96.2] of 1000, median t_c 600 [600, 600], 10 % 300 [300, 300], 90 % 700 [700, 700]
    """
    times, runs = _order(records.t_c, records.status)
    counts = np.bincount(records.status, minlength=3)
    fraction, interval = solved_fraction(records.status, level)
    horizon = _horizon(records)
    p10, median, p90 = (_percentile(times, runs, q) for q in (10, 50, 90))
    intervals = [_percentile_interval(times, runs, q, level) for q in (10, 50, 90)]
    return Summary(
        runs=runs,
        solved=int(counts[SOLVED]),
        censored=int(counts[CENSORED]),
        diverged=int(counts[DIVERGED]),
        solved_fraction=fraction,
        solved_interval=interval,
        p10=p10,
        p10_interval=intervals[0],
        median=median,
        median_interval=intervals[1],
        p90=p90,
        p90_interval=intervals[2],
        fastest=float(times[0]),
        min_horizon=int(records.steps[records.status == CENSORED].min(initial=horizon)),
        max_horizon=horizon,
    )


def _shown(value: float, interval: Interval) -> str:
    if math.isinf(interval[0]):
        return "not reached"
    low, high = (_number(end) for end in interval)
    return f"{'not reached' if math.isinf(value) else _number(value)} [{low}, {high}]"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")
