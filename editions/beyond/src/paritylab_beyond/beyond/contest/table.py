"""The table: cells as rows, with intervals, on three axes; the one that is shipped, and where another lands in it."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from paritylab import __version__, provenance, statistics
from paritylab.aliases import Arrays
from paritylab.errors import require, unknown
from paritylab.running import keeping
from paritylab.running.interfaces import RecordStore
from paritylab.setups.optimisers import Optimiser
from paritylab.setups.setup import Setup
from paritylab.storage.kept import load_document, save_document
from paritylab.storage.records import SOLVED, Records
from paritylab_beyond.beyond.contest import design
from paritylab_beyond.beyond.contest.design import Cell, Entrant, Size
from paritylab_beyond.beyond.contest.playing import played, task

AXES = ("steps", "examples", "flops")
ORIGIN = ("paritylab", "commit", "hardware", "libraries", "optax")
"""What a row says of where it was made."""
SHIPPED = Path(__file__).parents[1] / "data" / "contest.json"
Row = dict[str, Any]
Problem = tuple[str, int, int]
"""A network with n and k."""


def row(cell: Cell, found: Arrays, rates: Sequence[float], limit: int) -> Row:
    """What a cell says, as plain JSON values; what is not reached is None."""
    status, times = found["status"], found["t_c"]
    fraction, (low, high) = statistics.solved_fraction(status)
    ends = statistics.percentile_interval(times, status, 50)
    middle = statistics.percentile(times, status, 50)
    gradient, rule = (float(each) for each in found["flops"])
    each = {"steps": 1.0, "examples": float(design.BATCH), "flops": gradient + rule}
    place, origin = int(found["place"]), json.loads(str(found["origin"]))
    return {
        "optimiser": cell.optimiser, "network": cell.network, "n": cell.n, "k": cell.k,
        "rate": float(found["rate"]), "edge": place in (0, len(rates) - 1) and len(rates) > 1, "runs": len(status),
        "solved": int(np.sum(status == SOLVED)), "solved_fraction": fraction, "solved_interval": [low, high],
        "limit": limit, "flops_of_gradient": gradient, "flops_of_rule": rule,
        **{axis: _finite(middle * factor) for axis, factor in each.items()},
        **{f"{axis}_interval": [_finite(end * factor) for end in ends] for axis, factor in each.items()},
        "tuning": {"steps": int(found["tuning_steps"]), "rates": list(rates),
                   "medians": [_finite(float(each)) for each in found["tuning_medians"]],
                   "solved": found["tuning_solved"].tolist()},
        "engine": origin.get("engine", "unknown"),
        "origin": ", ".join(f"{name} {origin[name]}" for name in ORIGIN if name in origin),
    }


def gathered(cells: Iterable[Cell], size: Size, folder: Path) -> tuple[list[Row], list[Cell]]:
    """Rows of the cells that a folder keeps, and the cells that it does not."""
    rows, missing = [], []
    for cell in cells:
        found = keeping.find(task(cell, size), folder)
        if found is None:
            missing.append(cell)
        else:
            rows.append(row(cell, found, design.ENTRANTS[cell.optimiser].rates, design.limit(cell.k, size)))
    return rows, missing


def document(rows: Sequence[Row], size: Size) -> dict[str, Any]:
    """The rows with what they were made by."""
    return {"paritylab": __version__, "origin": provenance.origin(), "tuning": size.tuning, "runs": size.runs,
            "rows": list(rows)}


def record(rows: Sequence[Row], size: Size, path: Path = SHIPPED) -> None:
    """Write the table that the package ships."""
    save_document(path, document(rows, size))


def shipped(path: Path = SHIPPED) -> dict[str, Any]:
    return load_document(path)


def place(
    name: str, optimiser: Optimiser, rates: Sequence[float] = design.doubling(0.0005),
    cells: Sequence[Problem] = (("narrow", 40, 2),), runs: int | None = None, tuning: int | None = None,
    size: Size = design.SIZES["full"], store: RecordStore | None = None, progress: bool | None = None,
) -> list[Row]:
    """Rows of an optimiser of your own, tuned and measured as the twelve were, on cells (network, n, k).

    Args:
        name: what it is called in the table.
        optimiser: any, such as ``pl.Optax(transformation=...)``; its rate is replaced by those tried.
        rates: from the smallest to the largest.
        cells: networks of the table with n and k.
        runs: of each cell; 1,000 unless said.
        tuning: runs of each rate by which one is chosen; 101 unless said.
        size: the step limits, and what is not said.
        store: where Records are kept and looked up; None keeps nothing.
        progress: a bar on standard error; by default only on a terminal.
    """
    from paritylab.running.sweeps import sweep

    def train(setups: Sequence[Setup], runs: int, seed: int) -> list[Records]:
        return [each.records for each in sweep(setups, runs, seed=seed, store=store, progress=progress)]

    require(name not in design.ENTRANTS, f"{name} is in the table already: choose another name")
    require(len(rates) > 0 and list(rates) == sorted(set(rates)), "rates must rise from the smallest to the largest")
    entrant = Entrant(name, name, lambda: optimiser, tuple(map(float, rates)), native=False)
    runs, tuning = size.runs if runs is None else runs, size.tuning if tuning is None else tuning
    require(runs >= 1 and tuning >= 1, f"runs and tuning must be at least 1, not {runs} and {tuning}")
    rows = []
    for network, n, k in cells:
        require((n, k) in design.PROBLEMS, f"no such cell: ({n}, {k}); (n, k) are {design.told(design.PROBLEMS)}")
        if network not in design.NETWORKS:
            raise unknown("network", network, design.NETWORKS)
        limit = design.limit(k, size)
        found = played(entrant, network, n, k, entrant.rates, limit, tuning, runs, design.SEED, train)
        rows.append(row(Cell(name, network, n, k), found, entrant.rates, limit))
    return rows


def beside(rows: Sequence[Row], axis: str = "steps") -> list[Row]:
    """These rows among the published ones of the same cells, as :func:`ranked` has them."""
    mine = by_problem(rows)
    published = [each for each in shipped()["rows"] if (each["network"], each["n"], each["k"]) in mine]
    return ranked([*published, *rows], axis)


def ranked(rows: Sequence[Row], axis: str = "steps") -> list[Row]:
    """Rows cell by cell, the best first, with their ``place`` (None if the median is not reached) and whether they are
    ``level`` with the best: their intervals overlap."""
    found: list[Row] = []
    for mine in by_problem(rows).values():
        order = sorted(mine, key=lambda each: (_or_inf(each[axis]), -each["solved"]))
        top = _or_inf(order[0][f"{axis}_interval"][1])
        for each in order:
            reached = each[axis] is not None
            number = 1 + sum(_or_inf(other[axis]) < each[axis] for other in mine) if reached else None
            level = reached and _or_inf(each[f"{axis}_interval"][0]) <= top
            found.append(each | {"place": number, "level": level})
    return found


def by_problem(rows: Iterable[Row]) -> dict[Problem, list[Row]]:
    """Rows by network, n and k."""
    found: dict[Problem, list[Row]] = {}
    for each in rows:
        found.setdefault((each["network"], each["n"], each["k"]), []).append(each)
    return found


def standings(rows: Sequence[Row], axis: str = "steps") -> list[Row]:
    """For each optimiser: in how many cells it is the best, level with the best, and reaches its median at all.

    Where it does, how many times the best one's median its own is, as a geometric mean.
    """
    found = []
    best = {key: min(_or_inf(each[axis]) for each in mine) for key, mine in by_problem(rows).items()}
    mine: dict[str, list[Row]] = {}
    for each in ranked(rows, axis):
        mine.setdefault(each["optimiser"], []).append(each)
    for name, places in mine.items():
        ratios = [each[axis] / best[each["network"], each["n"], each["k"]] for each in places if each["place"]]
        found.append({"optimiser": name, "cells": len(places), "best": sum(each["place"] == 1 for each in places),
                      "level": sum(each["level"] for each in places), "reached": len(ratios),
                      "ratio": math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else None})
    return sorted(found, key=lambda each: (-each["reached"], each["ratio"] or math.inf))


def title(name: str) -> str:
    """An optimiser in words; one's own by its name."""
    return design.ENTRANTS[name].title if name in design.ENTRANTS else name


def _or_inf(value: float | None) -> float:
    return math.inf if value is None else value


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None
