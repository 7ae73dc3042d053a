"""Networks of measured runs, trained again: a record says how a run ended, and its Setup, seed and number the rest.

The runs are trained together by the engine that measured them. Each is followed to the end of its record too, and
refused if it is not the record that was measured: then the network is another one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from paritylab import engines, provenance, rng
from paritylab.engines import promises, starts
from paritylab.engines.gradient import MOST_ORDERED
from paritylab.errors import InvalidInput, require, unknown, whole
from paritylab.later import jax
from paritylab.memory import Part, require_room
from paritylab.progress import COMPILING, Bar
from paritylab.setups.setup import Setup
from paritylab.storage.records import DIVERGED, SOLVED, STATUSES, Records
from paritylab.trained import params as arrays
from paritylab.trained.kept import KeptNetworks
from paritylab.trained.networks import TrainedNetworks

START, BEFORE, SOLVED_AT, AFTER, END = MOMENTS = ("start", "before", "solved", "after", "end")
"""When a network is looked at: at step 0, half of t_c, t_c, twice t_c, or the end of the record."""
NEVER = 2**31 - 1
"""Checks in a row that no run completes."""


@dataclass(frozen=True)
class Measured:
    """Runs as they were measured: by the engine with this label, which may have kept their networks."""

    setup: Setup
    seed: int
    engine: str
    records: Records
    kept: KeptNetworks | None = None


At = str | int | Sequence[str | int]
"""A moment or a step, or several."""


def networks(
    measured: Measured,
    runs: Iterable[int] | None = None,
    at: At = SOLVED_AT,
    *,
    omit_missing: bool = False,
    threads: int | None = None,
    progress: bool | None = None,
) -> TrainedNetworks:
    """The networks of some runs, all unless said, at a moment or several; see :meth:`paritylab.Result.networks`."""
    asked, steps = planned(measured, runs, at, omit_missing)
    if measured.kept is not None and np.array_equal(steps, asked.steps):
        found = measured.kept.find(measured.setup, measured.engine, measured.seed, asked)
        if found is not None:
            return found
    setup = measured.setup
    require_room("training again", {"networks": Part(len(asked), 4 * arrays.size_of(setup))})
    if not steps.any():
        params, exact = _starts(measured, asked.run), True
    else:
        params, exact = _trained(measured, asked, steps, threads, progress)
    finite = np.logical_and.reduce([np.isfinite(leaf).all(axis=tuple(range(1, leaf.ndim))) for leaf in params.values()])
    origin = provenance.origin(measured.engine)
    made = TrainedNetworks(setup, measured.seed, asked.run, steps, params, measured.engine, exact, origin)
    if finite.all():
        return made
    run = int(asked.run[~finite][0])
    require(omit_missing, f"run {run} has diverged by step {steps[~finite][0]}; omit_missing leaves such runs out")
    return made[np.flatnonzero(finite)]


def planned(
    measured: Measured, runs: Iterable[int] | None, at: At, omit_missing: bool = False
) -> tuple[Records, np.ndarray]:
    """Of each network that is asked for, moment by moment, the record of its run, and its step."""
    chosen, parts = _chosen(measured.records, runs), []
    for moment in [_moment(at)] if isinstance(at, str) or not isinstance(at, Iterable) else map(_moment, at):
        there, why = _present(chosen, moment)
        left = _left(chosen, there, why, omit_missing)
        parts.append((left, _steps(left, moment)))
    require(len(parts) > 0, f"at must be one or more of {', '.join(MOMENTS)}, or steps")
    return Records.concatenate([part for part, _ in parts]), np.concatenate([steps for _, steps in parts])


def _chosen(records: Records, runs: Iterable[int] | None) -> Records:
    """The records of the runs asked for, in that order."""
    if runs is None:
        return records.ordered()
    require(isinstance(runs, Iterable) and not isinstance(runs, str),
            f"runs must be a range or a list of run numbers, not {runs!r}; one network is network({runs!r})")
    numbers = np.array([whole("a run", run) for run in runs], np.int64)
    require(len(np.unique(numbers)) == len(numbers), "runs must be different numbers")
    order = np.argsort(records.run)
    places = np.searchsorted(records.run[order], numbers)
    found = places < len(records)
    found[found] = records.run[order][places[found]] == numbers[found]
    if not found.all():
        those = f"runs {records.run.min()} to {records.run.max()}" if len(records) else "no run"
        raise InvalidInput(f"there is no record of run {numbers[~found][0]}: {those} were measured")
    return records.take(order[places])


def _moment(at: Any) -> str | int:
    if isinstance(at, str):
        if at not in MOMENTS:
            raise unknown("moment", at, (*MOMENTS, "a step"))
        return at
    step = whole("the step at which networks are looked at", at)
    require(0 <= step < 2**31, f"the step at which networks are looked at must be in 0..2^31-1, not {step}")
    return step


def _present(records: Records, moment: str | int) -> tuple[np.ndarray, str]:
    """Which runs have a network at a moment, and what the others lack."""
    if moment in (BEFORE, SOLVED_AT, AFTER):
        return records.status == SOLVED, f"so it has no network at={moment!r}"
    if moment == START:
        return np.ones(len(records), bool), ""
    late = True if moment == END else records.steps <= moment
    return ~((records.status == DIVERGED) & late), "so its params are not finite then"


def _left(records: Records, there: np.ndarray, why: str, omit: bool) -> Records:
    if there.all():
        return records
    i = int(np.flatnonzero(~there)[0])
    said = f"run {records.run[i]} was {STATUSES[records.status[i]]} at step {records.steps[i]}, {why}"
    require(omit, f"{said}; omit_missing leaves such runs out ({int((~there).sum())} of {len(records)})")
    return records.take(there)


def _steps(records: Records, moment: str | int) -> np.ndarray:
    if isinstance(moment, int):
        return np.full(len(records), moment, np.int64)
    return {START: 0 * records.steps, BEFORE: records.t_c // 2, SOLVED_AT: records.t_c, AFTER: 2 * records.t_c,
            END: records.steps}[moment]


def _starts(measured: Measured, runs: np.ndarray) -> dict[str, np.ndarray]:
    """Initial params, which are the same for every engine."""
    if not len(runs):
        shapes = arrays.shapes(measured.setup)
        return arrays.named(jax.tree.map(lambda leaf: np.zeros((0, *leaf.shape), leaf.dtype), shapes))
    keys = rng.run_keys(np.full(len(runs), measured.seed, np.int64), runs)
    return arrays.named(starts.initial_params(measured.setup.program, keys))


def _trained(
    measured: Measured, asked: Records, steps: np.ndarray, threads: int | None, progress: bool | None
) -> tuple[dict[str, np.ndarray], bool]:
    """Params at these steps, and whether they are promised to be those of the measured runs."""
    setup, seed, label = measured.setup, measured.seed, measured.engine
    engine = promises.labelled(label, setup)
    if (now := promises.current(label)) != label:
        raise InvalidInput(f"an earlier arithmetic measured these runs ({label!r}; here it is {now!r}): measure them"
                           " again for their networks")
    if engine is None:
        raise InvalidInput(f"these runs were measured by {label!r}, which is not on this machine: their networks cannot"
                           " be trained again here; measure with keep='weights' there")
    _, first, whose = np.unique(asked.run, return_index=True, return_inverse=True)
    records = asked.take(first)  # of each run once
    early, late = (steps > 0) & (steps < asked.steps), steps > asked.steps
    options: dict[str, Any] = {} if threads is None else {"threads": threads}
    with Bar("model-steps", int(records.steps.sum() + steps[early | late].sum()), progress) as bar:
        if engines.compiles(engine):
            bar.wait(COMPILING)
        jobs = [engines.Job(setup, seed, records.run), engines.Job(setup, seed, asked.run[early], steps[early])]
        again, tree = engines.final_params(jobs, engine, bar.show, **options)
        identical = _same(records, again.take(np.arange(len(records))))
        found = arrays.named(tree)
        made = {name: leaf[whose] for name, leaf in found.items()}
        parts = [(early, {name: leaf[len(records) :] for name, leaf in found.items()})]
        if late.any():
            done = int(again.steps.sum())
            job = engines.Job(_unjudged(setup, int(steps.max())), seed, asked.run[late], steps[late])
            parts.append((late, arrays.named(
                engines.final_params([job], engine, lambda more: bar.show(done + more), **options)[1])))
    parts.append((steps == 0, _starts(measured, asked.run[steps == 0])))
    for where, params in parts:
        for name, leaf in params.items():
            made[name][where] = leaf
    promised = promises.exact(engine, label, setup, provenance.origin(label))
    return made, identical and promised and (engine != "jax" or not late.any())


def _unjudged(setup: Setup, last: int) -> Setup:
    """The Setup for runs that go on when solved, with few checks."""
    protocol = replace(setup.protocol, max_steps=last, eval_every=MOST_ORDERED, consecutive=NEVER)
    return setup.derived(protocol=protocol)


def _same(before: Records, again: Records) -> bool:
    """Refuse other records; whether they are the same to the last bit."""
    differs = (before.status != again.status) | (before.steps != again.steps)
    if differs.any():
        i = int(np.flatnonzero(differs)[0])
        then, now = (f"{STATUSES[each.status[i]]} at step {each.steps[i]}" for each in (before, again))
        raise InvalidInput(f"run {before.run[i]} was {then} when measured and is {now} when trained again"
                           f" ({int(differs.sum())} of {len(before)} runs differ): its network would be another one")
    return before.digest == again.digest


def complete(measured: Measured, threads: int | None = None, progress: bool | None = None) -> None:
    """See that all networks at the end of these runs are kept: those that are not are trained again."""
    assert measured.kept is not None
    lacking = measured.kept.lacking(measured.setup, measured.engine, measured.seed, measured.records)
    if len(lacking):
        measured.kept.add(networks(replace(measured, kept=None), lacking, END, threads=threads, progress=progress))
