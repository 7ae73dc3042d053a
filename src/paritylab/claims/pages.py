"""Shipped evidence as text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from paritylab.claims import evidence
from paritylab.claims.library import Claim
from paritylab.claims.standing import CONTRADICTED, IN_PARTS, UNDECIDED, Standing, standing, told
from paritylab.claims.texts import NOWHERE
from paritylab.claims.verdicts import more_runs

HEAD = """# What holds

This page is written by `paritylab claims --markdown` from the evidence that the package ships; `paritylab claims show
ID` tells all about one claim, `paritylab reproduce ID --full` (or `--quick`, or neither) tries it again. `full` is the
published setup, `quick` takes at most a minute on two cores, `standard` is the largest in between that was affordable.

A claim, or each part of one that has parts, **holds** if the whole 95 % interval of every check lies within what is
asked, is **contradicted** if one lies outside, and is **undecided** otherwise. The basis says whether the trial is as
the paper prints it, rests on a value that the paper does not print, changes one that it does, or corrects a statement.
Rules were written before the evidence was recorded, though some were calibrated on trials. Where one was changed later,
the new one was committed before its run and tried on seeds that nobody had seen, and the claim's history says what was
asked before, what came of it, and why it is asked otherwise now (`claims show ID`); *reproduced* there means that all
values passed, for which a point estimate was enough then. Departures that a
paper's own errors force are in its errata."""
AGREED = """An interval has no width where all the runs that it is made of agree: {count} of {all} checks
rest on such agreement, and say "its runs agree". It is as good as their number: of five runs that agree one
can be 95 % sure that about half of all runs do so."""


def check_line(check: dict[str, Any]) -> str:
    """One check of a result, as text."""
    value = check["value"]
    shown = "unknown" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)
    if check["interval"]:
        ends = (f"{end:.4g}" if isinstance(end, float) else str(end) for end in check["interval"])
        shown += f" [{', '.join(ends)}]"
    part = f"[{check['part']}] " if check.get("part") else ""
    asked = "; ".join(filter(None, (check["rule"], power_words(check))))
    result = check["result"]
    return f"{result}  {part}{check['name']}: {shown}  (asked: {asked})"


def power_words(check: dict[str, Any]) -> str:
    """How many runs would decide, at the effect measured where it is undecided, else at the one that is claimed.

    Of an interval of no width it says why: it is no better than the number of runs that agree.
    """
    times, claimed = check.get("times"), check.get("times_claimed")
    if agreed(check):
        return "its runs agree"
    if check["result"] == UNDECIDED and isinstance(times, float) and times:
        return more_runs(times)
    return f"{claimed:.2g} times the runs decide at the claimed effect" if isinstance(claimed, float) else ""


def agreed(check: dict[str, Any]) -> bool:
    """Whether its interval has no width."""
    return bool(check["interval"]) and check["interval"][0] == check["interval"][1]


def markdown(claims: Sequence[Claim]) -> str:
    """A page of results: a table of all, then the numbers of those that do not hold as a whole."""
    found = {claim.id: standing(NOWHERE, claim) for claim in claims}
    published = [each for each in found.values() if not each.claim.paper.own]
    checks = [check for each in found.values() if each.found for check in each.found["checks"]]
    lines = [HEAD, "", AGREED.format(count=sum(map(agreed, checks)), all=len(checks)), "",
             f"Of {len(published)} published claims: {told(published)}.", "",
             "| claim | | result and basis | size | runs | seconds |", "|---|---|---|---|---|---|"]
    lines += [f"| `{name}` | {plain(each.claim.title)} | {_row(each)} |" for name, each in found.items()]
    for title, word in (("Contradicted", CONTRADICTED), ("In parts", IN_PARTS), ("Undecided", UNDECIDED)):
        chosen = [each for each in found.values() if each.word == word]
        if chosen:
            lines += ["", f"## {title}"]
        for each in chosen:
            lines += ["", f"### `{each.claim.id}`: {plain(each.claim.title)}", "", *_numbers(each)]
    return "\n".join(lines)


def _row(each: Standing) -> str:
    """Results, size, runs and seconds; no seconds where most came from disk."""
    found = each.found
    if found is None:
        return " | ".join([""] * 4)
    seconds = "" if evidence.from_disk(found) else f"{found['seconds']:g}"
    results = "; ".join(map(plain, each.lines))
    return f"{results} | {found['size']} | {found['runs']} | {seconds}"


def _numbers(each: Standing) -> list[str]:
    found = each.found or {}
    lines = [f"{found['size']}, {found['runs']} runs, seed {found['seed']}:", ""]
    lines += [f"- {plain(check_line(check))}" for check in found["checks"]]
    lines += [f"- note: {plain(found['note'])}"] if found["note"] else []
    lines += ["", *(plain(line) for line in history_lines(each.claim))] if each.claim.history else []
    return lines + (["", each.claim.remark] if each.claim.remark else [])


def history_lines(claim: Claim) -> list[str]:
    """What was asked before, what came of it, and why it is asked otherwise now."""
    lines: list[str] = []
    for each in claim.history:
        lines += [f"Asked until {each.date}: {each.asked}", f"It gave: {each.result} (commit {each.commit[:10]})",
                  f"Changed ({each.reason}): {each.change}"]
        lines += [f"The paper, {each.paper}"] if each.paper else []
        lines.append(f"Known then: {each.known}")
    return lines


def origin_lines(found: Mapping[str, Any], files: Mapping[str, str]) -> list[str]:
    """Who made evidence, with what, and the digests of what it stands on; of older evidence, that it says none."""
    origin = found.get("origin")
    if origin is None:
        return ["recorded before evidence said where it comes from: no origin, no digests"]
    commit = f", commit {origin['commit']}" if "commit" in origin else ""
    lines = [f"made by paritylab {origin['paritylab']}{commit}, {origin['time']}, seed {found['seed']}",
             f"on {origin['processor']} ({origin['hardware']}), {origin['system']}",
             f"with Python {origin['python']}, {origin['libraries']}"]
    lines += [f"engine {name}: {build}" for name, build in origin["builds"].items() if build]
    if "records" in found:
        lines.append(f"stands on records: {found['records']['file']}, digest {found['records']['digest']}")
    return lines + [f"{name}: digest {digest}" for name, digest in files.items()]


def command(claim: Claim, found: Mapping[str, Any] | None) -> str:
    """What makes evidence again; without any, a quick trial."""
    if not found:
        return f"paritylab reproduce {claim.id} --quick"
    size = {"quick": " --quick", "full": " --full"}.get(found["size"], "")
    seed = f" --seed {found['seed']}" if found["seed"] else ""
    return f"paritylab reproduce {claim.id}{size}{seed}"


def plain(text: str) -> str:
    """Without what Markdown would take for a sign."""
    for sign in "|*_<":
        text = text.replace(sign, "\\" + sign)
    return text
