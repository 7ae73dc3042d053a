"""A cell of the comparison: its best rate, and many fresh runs at it. It needs JAX and NumPy alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from importlib import metadata
from typing import Any

import numpy as np

from paritylab import engines, provenance
from paritylab.aliases import Arrays
from paritylab.running.computations import computation
from paritylab.running.cost import step_flops
from paritylab.running.tasks import ComputeTask
from paritylab.setups.setup import Setup
from paritylab.storage.records import SOLVED, Records
from paritylab_beyond.beyond.contest import design
from paritylab_beyond.beyond.contest.design import Cell, Entrant, Size
from paritylab_beyond.beyond.contest.flops import optimiser_flops

Train = Callable[[Sequence[Setup], int, int], list[Records]]
"""Records of runs 0, 1, ... of each Setup: Setups, how many runs, seed."""


@computation
def optimiser_cell(
    seed: int, optimiser: str, network: str, n: int, k: int, rates: list[float], limit: int, tuning: int, runs: int
) -> Arrays:
    """One cell of the table: see :func:`played`."""
    entrant = design.ENTRANTS[optimiser]
    return played(entrant, network, n, k, rates, limit, tuning, runs, seed, _here)


def task(cell: Cell, size: Size, seed: int = design.SEED) -> ComputeTask:
    """The cell as a task that any machine can do; it says all that decides what comes of it."""
    arguments = {"optimiser": cell.optimiser, "network": cell.network, "n": cell.n, "k": cell.k,
                 "rates": list(design.ENTRANTS[cell.optimiser].rates), "limit": design.limit(cell.k, size),
                 "tuning": size.tuning, "runs": size.runs}
    return ComputeTask.of(optimiser_cell, arguments, seed)


def played(
    entrant: Entrant, network: str, n: int, k: int, rates: Sequence[float], limit: int, tuning: int, runs: int,
    seed: int, train: Train,
) -> Arrays:
    """The choice of a rate, with what it stands on, and the runs at it; the seed of the choice is the next one."""

    def at(rate: float, steps: int) -> Setup:
        return design.setup(entrant.at(rate), network, n, k, steps)

    place, tried, steps = chosen(lambda end: train([at(rate, end) for rate in rates], tuning, seed + 1), limit)
    best = at(rates[place], limit)
    (records,) = train([best], runs, seed)
    engine = engines.label(engines.choose(best))
    return {
        "rate": np.array(rates[place]), "place": np.array(place), "tuning_steps": np.array(steps),
        "tuning_medians": np.array([median(each) for each in tried]),
        "tuning_solved": np.array([np.sum(each.status == SOLVED) for each in tried]),
        "status": records.status.astype(np.int8), "t_c": records.t_c.astype(np.int32),
        "steps": records.steps.astype(np.int32),
        "flops": np.array([step_flops(best), optimiser_flops(best)]),
        "origin": np.array(json.dumps(provenance.origin(engine) | _optax(entrant))),
    }


def _optax(entrant: Entrant) -> dict[str, str]:
    """Which optax a rule is of, if it is one of optax."""
    found = [] if entrant.native else metadata.distributions(name="optax")
    return {each.name: each.version for each in found}


def chosen(trained: Callable[[int], list[Records]], limit: int) -> tuple[int, list[Records], int]:
    """The position of the best rate by the rule of :mod:`.design`, all that decided it, and the steps it took."""
    for divisor in design.STAGES[:-1]:
        tried = trained(steps := max(1, limit // divisor))
        medians = [median(each) for each in tried]
        if min(medians) < np.inf:
            return int(np.argmin(medians)), tried, steps
    tried = trained(limit)
    medians = [median(each) for each in tried]
    solved = [np.sum(each.status == SOLVED) for each in tried]
    return int(np.argmin(medians) if min(medians) < np.inf else np.argmax(solved)), tried, limit


def median(records: Records) -> float:
    """Of the steps to 100 %; a run that was not solved counts as infinite.

    >>> median(Records(range(3), [0, 0, 1], [10, 30, -1], [10, 30, 50], [1.0] * 3, [0.0] * 3))
    30.0
    """
    times = np.sort(np.where(records.status == SOLVED, records.t_c, np.inf))
    low, high = times[(len(times) - 1) // 2], times[len(times) // 2]
    return float(low if low == high else (low + high) / 2)


def _here(setups: Sequence[Setup], runs: int, seed: int) -> list[Records]:
    jobs = [engines.Job(setup, seed, np.arange(runs)) for setup in setups]
    parts: list[list[Any]] = [[] for _ in jobs]
    for group in engines.together(jobs):
        for ended in engines.train([jobs[i] for i in group]):
            for index, records in ended:
                parts[group[index]].append(records)
    return [Records.concatenate(each).ordered() for each in parts]
