"""Checks and verdicts: the lines of a pass rule, and what they add up to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from paritylab.aliases import Interval


if TYPE_CHECKING:
    from paritylab.claims.rules import Rule

Result = Literal["holds", "contradicted", "undecided"]
HOLDS: Result = "holds"
CONTRADICTED: Result = "contradicted"
UNDECIDED: Result = "undecided"
RESULTS = (HOLDS, CONTRADICTED, UNDECIDED)


@dataclass(frozen=True)
class Check:
    """One line of a pass rule: what was measured, what was asked, and whether it holds.

    ``passed`` is about the value alone, and None where there is none, for want of runs that ended for instance. The
    ``result`` asks for the whole 95 % interval, within the bounds to hold and outside of them to be contradicted:
    ``sure`` says that it lies on one side. ``times`` is how many times as many runs would decide (80 % power) at the
    effect measured, ``times_claimed`` at the effect that the paper claims.
    """

    name: str
    value: float | None
    rule: str
    passed: bool | None
    interval: Interval | None = None
    sure: bool = True
    point: bool = False
    """Whether a point estimate is all there is: then it decides nothing."""
    part: str = ""
    times: float | None = None
    times_claimed: float | None = None
    by: Rule | None = field(default=None, compare=False, repr=False)
    """The rule of the Trial that it applies."""

    @property
    def result(self) -> Result:
        if self.passed is None or self.point or not self.sure:
            return UNDECIDED
        return HOLDS if self.passed else CONTRADICTED

    def __str__(self) -> str:
        shown = "unknown" if self.value is None else f"{self.value:.4g}"
        if self.interval is not None:
            shown += f" [{self.interval[0]:.4g}, {self.interval[1]:.4g}]"
        more = f"; {more_runs(self.times)}" if self.result == UNDECIDED and self.times else ""
        return f"{self.result}  {self.name}: {shown}  (asked: {self.rule}{more})"

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "value": finite(self.value),
            "interval": None if self.interval is None else [finite(end) for end in self.interval],
            "rule": self.rule,
            "passed": self.passed,
            "result": self.result,
            "part": self.part,
            "times": finite(self.times),
            "times_claimed": finite(self.times_claimed),
        }


def more_runs(times: float) -> str:
    """
    >>> more_runs(3.21), more_runs(0.4)
    ('3.2 times as many runs would decide', 'as many runs again would decide')
    """
    return f"{times:.2g} times as many runs would decide" if times > 1 else "as many runs again would decide"


def results(checks: Sequence[Check]) -> dict[str, Result]:
    """What the checks of each part add up to: it holds if all do, and is contradicted if one is.

    >>> results([Check("share", 0.3, ">= 0.2", True, (0.1, 0.5), sure=False, part="B = 1"),
    ...          Check("share", 0.9, ">= 0.2", True, (0.8, 1.0), part="B = 32")])
    {'B = 1': 'undecided', 'B = 32': 'holds'}
    """
    parts: dict[str, list[Result]] = {}
    for check in checks:
        parts.setdefault(check.part, []).append(check.result)
    return {part: joined(found) for part, found in parts.items()}


def joined(found: Sequence[Result]) -> Result:
    """All hold, or one is contradicted, or it is undecided."""
    if CONTRADICTED in found:
        return CONTRADICTED
    return HOLDS if found and set(found) == {HOLDS} else UNDECIDED


@dataclass(frozen=True)
class Outcome:
    """What trying a claim gave: what was found, and a figure of it."""

    checks: Sequence[Check]
    data: Sequence[Mapping[str, Any]]
    figure: Any = field(default=None, repr=False)
    numbers: Mapping[str, float | None] = field(default_factory=dict[str, "float | None"])
    note: str = ""

    @property
    def results(self) -> dict[str, Result]:
        return results(self.checks)


def finite(value: float | None) -> float | str | None:
    """A number as JSON can hold it: infinities become words, NaN becomes null.

    >>> finite(math.inf)
    'inf'
    """
    if value is None or math.isnan(value):
        return None
    return float(value) if math.isfinite(value) else str(float(value))
