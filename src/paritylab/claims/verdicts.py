"""Checks and verdicts: the lines of a pass rule, and what they add up to."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from paritylab.aliases import Interval

if TYPE_CHECKING:
    from paritylab.claims.rules import Rule

REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE = "reproduced", "not reproduced", "inconclusive"



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


def verdict(checks: Sequence[Check]) -> str:
    """What the checks add up to.

    ``reproduced`` if all pass as stated; ``not reproduced`` if one fails beyond doubt; ``inconclusive`` otherwise.

    >>> verdict([Check("ratio", 1.4, ">= 1.5", False, (1.2, 1.6), certain=False)])
    'inconclusive'
    """
    if any(check.passed is False and check.certain for check in checks):
        return NOT_REPRODUCED
    return REPRODUCED if checks and all(check.passed for check in checks) else INCONCLUSIVE


@dataclass(frozen=True)
class Outcome:
    """What trying a claim gave: what was found, and a figure of it."""

    checks: Sequence[Check]
    data: Sequence[Mapping[str, Any]]
    figure: Any = field(default=None, repr=False)
    numbers: Mapping[str, float | None] = field(default_factory=dict[str, "float | None"])
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
