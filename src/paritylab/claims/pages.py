"""Shipped evidence as text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from paritylab.claims import evidence
from paritylab.claims.library import Claim
from paritylab.claims.verdicts import INCONCLUSIVE, NOT_REPRODUCED, REPRODUCED

HEAD = """# What was reproduced

This page is written by `paritylab claims --markdown` from the evidence that the package ships; `paritylab claims show
ID` tells all about one claim, `paritylab reproduce ID --full` (or `--quick`, or neither) tries it again. `full` is the
published setup, `quick` takes at most a minute on two cores, `standard` is the largest in between that was affordable.
A claim is reproduced if every check of its rule passes as stated, not reproduced if one fails beyond its 95 % interval,
and inconclusive otherwise. Departures from the papers that their own errors force are in [errata](errata.md)."""


def check_line(check: dict[str, Any]) -> str:
    """One check of a result, as text."""
    sign = {True: "pass", False: "FAIL", None: "open"}[check["passed"]]
    value = check["value"]
    shown = f"{value:.4g}" if isinstance(value, float) else str(value)
    if check["interval"]:
        ends = (f"{end:.4g}" if isinstance(end, float) else str(end) for end in check["interval"])
        shown += f" [{', '.join(ends)}]"
    return f"{sign}  {check['name']}: {shown}  (asked: {check['rule']})"


def markdown(claims: Sequence[Claim]) -> str:
    """A page of verdicts: a table of all, then the numbers of those that did not reproduce."""
    found = {claim.id: _largest(claim) for claim in claims}
    verdicts = [entry["verdict"] if entry else None for entry in found.values()]
    counts = ", ".join(f"{verdicts.count(name)} {name}" for name in (REPRODUCED, NOT_REPRODUCED, INCONCLUSIVE))
    lines = [HEAD, "", f"Of {len(claims)} claims: {counts}, {verdicts.count(None)} not tried.", "",
             "| claim | | verdict | size | runs | seconds |", "|---|---|---|---|---|---|"]
    for claim in claims:
        entry = found[claim.id]
        lines.append(f"| `{claim.id}` | {_plain(claim.title)} | {_told(entry)} |")
    for title, verdict in (("Not reproduced", NOT_REPRODUCED), ("Inconclusive", INCONCLUSIVE)):
        chosen = [claim for claim in claims if (entry := found[claim.id]) and entry["verdict"] == verdict]
        if chosen:
            lines += ["", f"## {title}"]
        for claim in chosen:
            lines += ["", f"### `{claim.id}`: {_plain(claim.title)}", "", *_numbers(claim, found[claim.id] or {})]
    return "\n".join(lines)


def _told(entry: dict[str, Any] | None) -> str:
    """Verdict, size, runs and seconds; no seconds where most came from disk, or from another machine."""
    if entry is None:
        return " | ".join([""] * 4)
    seconds = "" if evidence.from_disk(entry) else f"{entry['seconds']:g}"
    return f"{entry['verdict']} | {entry['size']} | {entry['runs']} | {seconds}"


def _numbers(claim: Claim, entry: dict[str, Any]) -> list[str]:
    checks = [f"- {_plain(check_line(check))}" for check in entry["checks"]]
    note = [f"- note: {_plain(entry['note'])}"] if entry["note"] else []
    remark = ["", claim.remark] if claim.remark else []
    return [f"{entry['size']}, {entry['runs']} runs, seed {entry['seed']}:", "", *checks, *note, *remark]


def _largest(claim: Claim) -> dict[str, Any] | None:
    sizes = evidence.shipped(claim.id)
    return next((sizes[size] for size in reversed(evidence.SIZES) if size in sizes), None)


def _plain(text: str) -> str:
    """Without what Markdown would take for a sign."""
    for sign in "|*_<":
        text = text.replace(sign, "\\" + sign)
    return text
