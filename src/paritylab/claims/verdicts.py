"""Checks and verdicts: the lines of a pass rule, and what they add up to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paritylab.claims.rules import Rule

REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE = "reproduced", "not reproduced", "inconclusive"

Interval = tuple[float, float]


@dataclass(frozen=True)
class Check:
    """One line of a pass rule: what was measured, what was asked, and whether it holds.

    ``passed`` is None where it could not be decided, for want of runs that ended for instance. ``certain`` says whether
    a failure is beyond doubt: it is not where the 95 % interval of the value reaches the bound.
    """

    name: str
    value: float | None
    rule: str
    passed: bool | None
    interval: Interval | None = None
    certain: bool = True
    by: Rule | None = field(default=None, compare=False, repr=False)
    """The rule of the Trial that it applies."""

    def __str__(self) -> str:
        sign = {True: "pass", False: "FAIL", None: "open"}[self.passed]
        shown = "unknown" if self.value is None else f"{self.value:.4g}"
        if self.interval is not None:
            shown += f" [{self.interval[0]:.4g}, {self.interval[1]:.4g}]"
        return f"{sign}  {self.name}: {shown}  (asked: {self.rule})"

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "value": finite(self.value),
            "interval": None if self.interval is None else [finite(end) for end in self.interval],
            "rule": self.rule,
            "passed": self.passed,
            "certain": self.certain,
        }


def between(name: str, value: float | None, low: float, high: float, interval: Interval | None = None) -> Check:
    """``low <= value <= high``; a value that is None or NaN leaves the check open.

    >>> print(between("slope", 1.9, 1, 4, (1.7, 2.1)))
    pass  slope: 1.9 [1.7, 2.1]  (asked: 1 to 4)
    """
    if high == math.inf:
        rule = f">= {low:g}"
    elif low == -math.inf:
        rule = f"<= {high:g}"
    else:
        rule = f"{low:g} to {high:g}"
    if value is None or math.isnan(value):
        return Check(name, None, rule, None, interval)
    value = float(value)
    interval = None if interval is None else (float(interval[0]), float(interval[1]))
    certain = interval is None or interval[1] < low or interval[0] > high
    return Check(name, value, rule, low <= value <= high, interval, certain)


def at_least(name: str, value: float | None, bound: float, interval: Interval | None = None) -> Check:
    """``value >= bound``."""
    return between(name, value, bound, math.inf, interval)


def at_most(name: str, value: float | None, bound: float, interval: Interval | None = None) -> Check:
    """``value <= bound``."""
    return between(name, value, -math.inf, bound, interval)


def significant(name: str, p_value: float | None, level: float) -> Check:
    """A p-value below ``level``. A larger one does not speak against a claim: it leaves it inconclusive.

    >>> verdict([significant("p", 0.2, 0.01)])
    'inconclusive'
    """
    if p_value is None or math.isnan(p_value):
        return Check(name, None, f"< {level:g}", None)
    return Check(name, float(p_value), f"< {level:g}", bool(p_value < level), certain=False)


def holds(name: str, truth: bool | None, rule: str = "yes", value: float | None = None) -> Check:
    """A condition that is not a bound on one number."""
    shown = value if value is not None or truth is None else float(bool(truth))
    return Check(name, shown, rule, None if truth is None else bool(truth))


def verdict(checks: Sequence[Check]) -> str:
    """What the checks add up to.

    ``reproduced`` if all pass as stated; ``not reproduced`` if one fails beyond doubt; ``inconclusive`` otherwise.

    >>> verdict([at_least("ratio", 1.4, 1.5, (1.2, 1.6))])
    'inconclusive'
    """
    if any(check.passed is False and check.certain for check in checks):
        return NOT_REPRODUCED
    return REPRODUCED if checks and all(check.passed for check in checks) else INCONCLUSIVE


@dataclass(frozen=True)
class Outcome:
    """What trying a claim gave: the checks of its rule, tidy data (one row per point) and a figure of it.

    ``numbers`` are further results worth quoting, ``note`` a sentence on how this trial departs from the paper's.
    """

    checks: Sequence[Check]
    data: Sequence[Mapping[str, Any]]
    figure: Any = field(default=None, repr=False)
    numbers: Mapping[str, float | None] = field(default_factory=dict)
    note: str = ""

    @property
    def verdict(self) -> str:
        return verdict(self.checks)


def finite(value: float | None) -> float | str | None:
    """A number as JSON can hold it: infinities become words, NaN becomes null.

    >>> finite(math.inf)
    'inf'
    """
    if value is None or math.isnan(value):
        return None
    return float(value) if math.isfinite(value) else str(float(value))
