"""Results as notebooks show them."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from paritylab import notebooks
from paritylab.aliases import Interval
from paritylab.setups import parameters
from paritylab.setups.setup import Setup
from paritylab.setups.words import part_in_words, setups_in_words

if TYPE_CHECKING:
    from paritylab.running.races import Race
    from paritylab.running.result import Result
    from paritylab.running.results import Results

MOST_ROWS = 24


def html(result: Result) -> str:
    """A small table and the survival curve, as one piece of HTML that needs nothing else."""
    about = {
        "Setup": setups_in_words([result.setup]),
        "runs": f"{len(result.records)} by {result.engine}, seed {result.seed}, {result.reused} from the store",
        "result": str(result.summary),
    }
    return notebooks.facts(about) + (_curve(result) if len(result.records) else "")


def _curve(result: Result) -> str:
    from paritylab.plots.files import drawn_as

    text = drawn_as(result.plot(), "svg").decode()
    return text[text.index("<svg") :]


def results_html(results: Results) -> str:
    """One row for each: the parameters in which they differ, and what came of the runs."""
    if not results:
        return notebooks.facts({"Results": "none"})
    names, values = _differences([result.setup for result in results])
    rows: list[list[Any]] = []
    for given, result in zip(values, results[:MOST_ROWS], strict=False):
        found = result.summary
        low, high = (100 * end for end in found.solved_interval)
        share = f"{100 * found.solved_fraction:.1f} [{low:.1f}, {high:.1f}]" if found.runs else "none"
        times = [_time(*each) for each in ((found.median, found.median_interval), (found.p10, found.p10_interval),
                                           (found.p90, found.p90_interval))] if found.runs else [""] * 3
        rows.append([*given, found.runs, share, *times])
    said = setups_in_words([result.setup for result in results]) + _left_out(len(results))
    return notebooks.table([*names, "runs", "solved %", "median t_c", "10 %", "90 %"], rows, said)


def race_html(race: Race) -> str:
    """One row for each Setup, and which is the fastest."""
    names, values = _differences([entry.setup for entry in race.rates])
    best = race.best
    rows = [[*given, f"{100 * entry.solved_fraction:.0f}", entry.horizon,
             _time(entry.percentile, entry.interval) if entry.known else f"above {entry.low:g}",
             "the fastest" if entry is best else ""]
            for given, entry in zip(values, race.rates[:MOST_ROWS], strict=False)]
    said = (f"{setups_in_words([entry.setup for entry in race.rates])}; {len(best.records)} runs of each"
            + _left_out(len(race.rates)))
    return notebooks.table([*names, "solved %", "by step", f"{best.q:g} %", ""], rows, said)


def _left_out(count: int) -> str:
    return f"; the first {MOST_ROWS} of {count}" if count > MOST_ROWS else ""


def _differences(setups: list[Setup]) -> tuple[list[str], list[list[Any]]]:
    """The names of the parameters in which Setups differ, and their values for each."""
    documents = [json.loads(setup.to_json()) for setup in setups]
    rows = [parameters.flattened(document) for document in documents]
    for part in ("network", "optimiser"):
        parts = [document["learner"][part] for document in documents]
        if len({each["type"] for each in parts}) > 1:  # they have few fields in common: each in words
            rows = [{name: value for name, value in row.items() if parameters.OWNER.get(name) != part
                     and not name.startswith(f"{part}_")} | {part: part_in_words(each)}
                    for row, each in zip(rows, parts, strict=True)]
    names = parameters.ordered(dict.fromkeys(name for row in rows for name in row))
    names = [name for name in names if name != "support" and len({row.get(name) for row in rows}) > 1]
    return names, [[row.get(name) for name in names] for row in rows]


def _time(value: float, interval: Interval) -> str:
    if math.isinf(interval[0]):
        return "not reached"
    return f"{'not reached' if math.isinf(value) else f'{value:g}'} [{interval[0]:g}, {interval[1]:g}]"
