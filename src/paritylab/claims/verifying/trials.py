"""What is tried as a whole: evidence that does not list its records, with its seed, and its checks compared."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from paritylab.claims.lab import Lab
from paritylab.claims.reproduction import tried
from paritylab.claims.standing import printed_bounds
from paritylab.claims.verdicts import Check
from paritylab.claims.verifying.entries import Entry
from paritylab.claims.verifying.report import Report
from paritylab.errors import InvalidInput
from paritylab.later import stats

SAME = 1e-9
"""Relative: the same but for the order of sums in a library."""
CLOSE = 1e-6
"""Relative to a value or to its bounds: a number that is computed and not sampled, by another version or machine."""
ROUNDING = 1e-9
"""A rule that allows no more than this allows for rounding."""


def check_trial(entry: Entry, report: Report) -> None:
    """Try a claim again at the size and with the seed of its evidence; nothing of it is kept."""
    found = entry.found
    with tempfile.TemporaryDirectory(prefix="paritylab-verify-") as folder:
        lab = Lab(found["size"], Path(folder), found["seed"], progress=False)
        try:
            outcome = tried(entry.claim.trial(found["size"], found["seed"]), lab)
        except InvalidInput as error:
            report.differ(entry.where, f"cannot be tried again: {error}")
            return
    report.checked["trials, done again"] += 1
    again: dict[str, list[Check]] = {}
    for check in outcome.checks:
        again.setdefault(check.name, []).append(check)
    for check in found["checks"]:
        if alike := again.get(check["name"]):
            compare(entry, check, alike.pop(0), report)  # parts may have checks of one name, in one order
        else:
            report.left_out["checks that a trial on this machine does not make"] += 1


def compare(entry: Entry, before: Mapping[str, Any], again: Check, report: Report) -> None:
    """A check of evidence and the same check of a trial done again."""
    report.checked["checks, done again"] += 1
    value, now = before["value"] if before["value"] is None else float(before["value"]), again.value
    if value is None or now is None or math.isnan(now):
        if (value is None) != (now is None or math.isnan(now)):
            report.left_out["checks that have a value in one of two trials"] += 1
        else:
            report.checked["checks, the same"] += 1
        return
    bounds = [abs(end) for end in printed_bounds(before["rule"]) or () if math.isfinite(end)]
    same = value == now or math.isclose(value, now, rel_tol=SAME, abs_tol=1e-300) or _both_rounding(value, now, bounds)
    report.checked["checks, the same"] += same
    what = f"{before['name']!r} was {value:.6g} and is {now:.6g}, tried again"
    ends, ends_now = before["interval"], again.interval
    if ends is not None and ends_now is not None and None not in ends:
        report.weigh(entry.where, what, p_value(value, tuple(map(float, ends)), now, ends_now))
    elif same:
        return
    elif entry.claim.kind == "exact" or (again.by is not None and again.by.exact):
        if abs(value - now) > CLOSE * max(abs(value), abs(now), *bounds):
            report.differ(entry.where, what)
    else:
        report.left_out["checks without an interval, whose values differ"] += 1


def _both_rounding(value: float, now: float, bounds: Sequence[float]) -> bool:
    """Whether both are errors of rounding, which processors make differently: a thousandth of what is tolerated.

    >>> _both_rounding(2.6e-17, 3.1e-17, [1e-12]), _both_rounding(2e-13, 3e-13, [1e-12]), _both_rounding(2, 3, [1e4])
    (True, False, False)
    """
    tolerated = max(bounds, default=0.0)
    return tolerated <= ROUNDING and max(abs(value), abs(now)) <= tolerated / 1000


def p_value(first: float, first_ends: Sequence[float], second: float, second_ends: Sequence[float]) -> float:
    """Of two estimates of one number with their 95 % intervals, by those halves that face each other.

    >>> round(p_value(1.0, (0.8, 1.2), 1.2, (1.0, 1.4)), 2), p_value(1.0, (0.9, 1.1), 9.0, (8.9, 9.1)) < 1e-9
    (0.17, True)
    """
    (low, low_ends), (high, high_ends) = sorted([(first, first_ends), (second, second_ends)])
    half = math.hypot(low_ends[1] - low, high - high_ends[0])
    if not half > 0 or math.isinf(half):
        return 1.0 if math.isinf(half) or low == high else 0.0
    return float(2 * stats.norm.sf(float(stats.norm.isf(0.025)) * (high - low) / half))
