"""The words of evidence once more, from its numbers, by the rules that the code declares now."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from paritylab.aliases import Interval
from paritylab.claims import verdicts
from paritylab.claims.library import Claim
from paritylab.claims.reproduction import earned
from paritylab.claims.rules import ROUNDING, Bounds, Condition, Rule, Significance, between_words, fits
from paritylab.claims.standing import printed_bounds
from paritylab.claims.trial import Trial
from paritylab.claims.verdicts import UNDECIDED, Check

PRINTED = 1e-5
"""Words print six digits of a bound: a value closer to it than that cannot be told from it."""


def differences(claim: Claim, entry: Mapping[str, Any]) -> Iterator[str]:
    """What the words of an entry say that does not follow from its values, intervals and rules, in words."""
    trial = claim.trial(entry["size"], entry["seed"])
    again: list[Check] = []
    for check in entry["checks"]:
        if not _holds_its_value(check):
            yield f"{check['name']!r}: the interval {check['interval']} does not hold {check['value']}"
            check = check | {"interval": None}
        rules = [rule for rule in trial.rules() if rule.made(check["name"]) and trial.size in rule.only]
        if not rules:
            yield f"{check['name']!r} is not a rule for {trial.size}"
            return
        found = [_again(rule, trial, check) for rule in rules]
        wrong = [_wrong(rule, check, each) for rule, each in zip(rules, found, strict=True)]
        best = min(range(len(rules)), key=lambda i: len(wrong[i]))
        again.append(found[best])
        yield from (f"{check['name']!r}: {line}" for line in wrong[best])
    if entry["results"] != (derived := verdicts.results(again)):
        yield f"results {entry['results']}: by its checks they are {derived}"


def _holds_its_value(check: Mapping[str, Any]) -> bool:
    value, interval = _number(check["value"]), _interval(check["interval"])
    if value is None or interval is None or math.isnan(interval[0]) or math.isnan(interval[1]):
        return True
    room = ROUNDING * abs(value) if math.isfinite(value) else 0.0
    return interval[0] - room <= value <= interval[1] + room


def _again(rule: Rule, trial: Trial, check: Mapping[str, Any]) -> Check:
    """The check that a rule makes of the same value and interval."""
    value, interval = _number(check["value"]), _interval(check["interval"])
    plain = replace(rule, name=_literal(check["name"]), part=_literal(check.get("part", "")))
    if isinstance(plain, Bounds):
        low, high = printed_bounds(check["rule"]) or (-math.inf, math.inf)
        made = plain(value, interval, low=low, high=high)
    elif isinstance(plain, Significance):
        made = plain(value)
    else:  # whether it passes is for the trial to say, unless its words do; what follows from that is not
        bounds, passed = printed_bounds(check["rule"]), check["passed"]
        if bounds is not None and value is not None:
            passed = bounds[0] <= value <= bounds[1]
        sure = isinstance(rule, Condition) or check["result"] != UNDECIDED or passed is None
        made = Check(check["name"], value, check["rule"], passed, interval, sure, part=check.get("part", ""))
    return earned(replace(made, by=rule), trial)


def _wrong(rule: Rule, check: Mapping[str, Any], again: Check) -> list[str]:
    """Where a check and what its rule makes of it differ."""
    asked = between_words(rule.low, rule.high) if isinstance(rule, Bounds) else rule.asked
    said = isinstance(rule, Bounds) and isinstance(rule.low, str) | isinstance(rule.high, str)
    if not (said or fits(asked, check["rule"])):
        return [f"asked {check['rule']}, and the code asks {asked}"]
    if not fits(rule.part, check.get("part", "")):
        return [f"part {check['part']!r} is not {rule.part!r}"]
    if (said or not isinstance(rule, Bounds | Significance)) and _at_the_bound(check):
        return []
    words: dict[str, Any] = {"passed": again.passed, "result": again.result}
    return [f"{name} {check[name]}: by the rule it is {value}" for name, value in words.items()
            if check[name] != value]


def _at_the_bound(check: Mapping[str, Any]) -> bool:
    bounds = [end for end in printed_bounds(check["rule"]) or () if math.isfinite(end)]
    numbers = [_number(check["value"]), *(_interval(check["interval"]) or ())]
    return any(number is not None and math.isclose(number, end, rel_tol=PRINTED, abs_tol=1e-300)
               for number in numbers for end in bounds)


def _number(value: float | str | None) -> float | None:
    return None if value is None else float(value)


def _interval(ends: list[Any] | None) -> Interval | None:
    return None if ends is None else (_end(ends[0]), _end(ends[1]))


def _end(value: float | str | None) -> float:
    return math.nan if value is None else float(value)


def _literal(text: str) -> str:
    return text.replace("{", "{{").replace("}", "}}")
