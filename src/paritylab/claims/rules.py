"""Rules: the lines of a pass rule, declared in a Trial and applied to what was measured. ``claims show`` prints them.

A rule's name is a template: ``at_least("lowest accuracy, d = {d}", 0.999)`` declares it, and in ``judge``
``self.accuracy(0.9995, d=32)`` is the Check of one value.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from paritylab.claims.power import times_to_decide, times_to_significance
from paritylab.claims.verdicts import Check
from paritylab.errors import require

if TYPE_CHECKING:
    from paritylab.aliases import Interval

ROUNDING = 1e-9
"""By what part of itself a value may lie outside of its interval."""
Size = Literal["quick", "standard", "full"]
SIZES: tuple[Size, ...] = ("quick", "standard", "full")


@dataclass(frozen=True)
class Rule:
    """What is asked of one measured number, at all sizes of a trial or at those of ``only``.

    Called with a value, it gives a Check; ``passed`` says whether the value does what the words of ``asked`` say,
    ``certain`` whether a failure is beyond doubt (``sure``: whether either is). Other keywords fill the templates of
    name, words and part. ``part`` names the part of the claim that it decides, where a claim has several. ``exact``
    says that the value needs no interval: it is computed and not sampled, or the end of an interval itself.
    ``claimed`` is the value that the paper prints or implies.

    >>> slope = Rule("slope, eta = {eta:g}", "95 % interval in 0.8 to 1.7")
    >>> print(slope(1.1, passed=True, interval=(0.9, 1.3), eta=0.25))
    holds  slope, eta = 0.25: 1.1 [0.9, 1.3]  (asked: 95 % interval in 0.8 to 1.7)
    """

    name: str
    asked: str
    only: tuple[Size, ...] = SIZES
    part: str = ""
    exact: bool = False
    claimed: float | None = None

    def __call__(
        self,
        value: float | None,
        *,
        passed: bool | None,
        interval: Interval | None = None,
        certain: bool = True,
        sure: bool | None = None,
        **fields: Any,
    ) -> Check:
        passed = None if passed is None else bool(passed)
        sure = (certain or passed is True) if sure is None else sure
        return self._check(Check("", _number(value), self.asked.format(**fields), passed, interval, sure), fields)

    def _check(self, check: Check, fields: dict[str, Any]) -> Check:
        """The Check by this rule. An interval that is inverted, or does not hold its own value, is none."""
        if check.value is not None and check.interval is not None:
            low, high = check.interval
            room = ROUNDING * abs(check.value) if math.isfinite(check.value) else 0.0
            require(low - room <= check.value <= high + room,
                    f"{self.name.format(**fields)}: the interval [{low:g}, {high:g}] does not hold {check.value:g}")
        return replace(check, name=self.name.format(**fields), part=self.part.format(**fields), by=self)

    def made(self, name: str) -> bool:
        """Whether a check of this name may be one of this rule's."""
        return fits(self.name, name)

    def __str__(self) -> str:
        sizes = "" if self.only == SIZES else f"  ({' and '.join(self.only)} only)"
        return f"{_plain(self.name)}: {_plain(self.asked)}{sizes}"


@dataclass(frozen=True)
class Bounds(Rule):
    """A number between two bounds; those that depend on what was measured are said in words, and given with it."""

    low: float | str = -math.inf
    high: float | str = math.inf

    def __call__(  # pyright: ignore[reportIncompatibleMethodOverride]
        self,
        value: float | None,
        interval: Interval | None = None,
        *,
        low: float | None = None,
        high: float | None = None,
        **fields: Any,
    ) -> Check:
        ends = [given if isinstance(said, str) else said for given, said in ((low, self.low), (high, self.high))]
        assert None not in ends, f"{self.name}: say where the bound is"
        least, most = (float(end) for end in ends if end is not None)
        if value is None or math.isnan(value):
            return self._check(Check("", None, between_words(least, most), None, interval), fields)
        check = Check("", float(value), between_words(least, most), bool(least <= value <= most))
        if interval is None:
            return self._check(check, fields)
        ends_ = float(interval[0]), float(interval[1])
        sure = (least <= ends_[0] and ends_[1] <= most) if check.passed else (ends_[1] < least or ends_[0] > most)
        times, claimed = (None if effect is None else times_to_decide(effect, (least, most), float(value), ends_)
                          for effect in (float(value), self.claimed))
        return self._check(replace(check, interval=ends_, sure=sure, times=times, times_claimed=claimed), fields)


@dataclass(frozen=True)
class Significance(Rule):
    """A p-value below a level. A larger one does not speak against a claim: it leaves it undecided."""

    level: float = 0.05

    def __call__(self, p_value: float | None, **fields: Any) -> Check:  # pyright: ignore[reportIncompatibleMethodOverride]
        if p_value is None or math.isnan(p_value):
            return self._check(Check("", None, self.asked, None), fields)
        passed = bool(p_value < self.level)
        times = times_to_significance(float(p_value), self.level)
        return self._check(Check("", float(p_value), self.asked, passed, sure=passed, times=times), fields)


@dataclass(frozen=True)
class Condition(Rule):
    """A condition that is not a bound on one number."""

    def __call__(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, truth: bool | None, value: float | None = None, **fields: Any
    ) -> Check:
        shown = value if value is not None or truth is None else float(bool(truth))
        passed = None if truth is None else bool(truth)
        return self._check(Check("", shown, self.asked.format(**fields), passed), fields)


def between(
    name: str, low: float | str, high: float | str, *, only: tuple[Size, ...] = SIZES, part: str = "",
    exact: bool = False, claimed: float | None = None,
) -> Bounds:
    """``low <= value <= high``; a value that is None or NaN leaves the check undecided.

    >>> slope = between("slope, k = {k}", 1, 4)
    >>> print(slope(1.9, (1.7, 2.1), k=3))
    holds  slope, k = 3: 1.9 [1.7, 2.1]  (asked: 1 to 4)
    >>> print(slope)
    slope, k = {k}: 1 to 4
    """
    return Bounds(name, between_words(low, high), only, part, exact, claimed, low, high)


def at_least(
    name: str, bound: float | str, *, only: tuple[Size, ...] = SIZES, part: str = "", exact: bool = False,
    claimed: float | None = None,
) -> Bounds:
    """``value >= bound``.

    >>> print(at_least("share", "that of the other start")(0.8, low=0.7))
    holds  share: 0.8  (asked: >= 0.7)
    """
    return between(name, bound, math.inf, only=only, part=part, exact=exact, claimed=claimed)


def at_most(
    name: str, bound: float | str, *, only: tuple[Size, ...] = SIZES, part: str = "", exact: bool = False,
    claimed: float | None = None,
) -> Bounds:
    """``value <= bound``."""
    return between(name, -math.inf, bound, only=only, part=part, exact=exact, claimed=claimed)


def significant(name: str, level: float, *, only: tuple[Size, ...] = SIZES, part: str = "") -> Significance:
    """A p-value below ``level``."""
    return Significance(name, f"< {level:g}", only, part, level=level)


def holds(
    name: str, asked: str = "yes", *, only: tuple[Size, ...] = SIZES, part: str = "", exact: bool = False
) -> Condition:
    """A condition in words; ``self.rule(truth, value)`` is its Check.

    >>> print(holds("upper end of the slope", "< 1.7")(True, 1.2))
    holds  upper end of the slope: 1.2  (asked: < 1.7)
    """
    return Condition(name, asked, only, part, exact)


def between_words(low: float | str, high: float | str) -> str:
    """
    >>> between_words(1, 4), between_words(0.9, math.inf), between_words(-math.inf, "the bound")
    ('1 to 4', '>= 0.9', '<= the bound')
    """
    ends = [end if isinstance(end, str) else f"{end:g}" for end in (low, high)]
    if high == math.inf:
        return f">= {ends[0]}"
    return f"<= {ends[1]}" if low == -math.inf else f"{ends[0]} to {ends[1]}"


def fits(template: str, text: str) -> bool:
    """Whether a template may have been filled to give this text.

    >>> fits("slope, k = {k:d}", "slope, k = 3"), fits("slope", "slope, k = 3")
    (True, False)
    """
    literal = re.split(r"(?<!\{)\{[^{}]*\}(?!\})", template)
    pattern = ".*".join(re.escape(each.replace("{{", "{").replace("}}", "}")) for each in literal)
    return re.fullmatch(pattern, text, re.DOTALL) is not None


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)


def _plain(template: str) -> str:
    """A template as people read it: the names of its fields, without how they are formatted."""
    named = re.sub(r"(?<!\{)\{(\w+)[^{}]*\}(?!\})", r"{\1}", template)
    return named.replace("{{", "{").replace("}}", "}")
