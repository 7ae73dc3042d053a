"""Runs once more: records that are stored or shipped, trained again and compared with what they were.

Where docs/explanation/engines.md promises the same record to the last bit, it must be the same; elsewhere the same law.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from paritylab import engines, statistics
from paritylab.engines import promises
from paritylab.errors import CellFailed, InvalidInput
from paritylab.setups.setup import Setup
from paritylab.storage.blocks import Origin
from paritylab.storage.gathered import Key
from paritylab.storage.records import COLUMNS, STATUSES, Records
from paritylab.storage.store import Store

AT_ONCE = 64
"""Lots that are looked at together: those of one program train side by side."""
FEW = 16
"""Runs of each Setup where time is the limit: many Setups say more than many runs of one."""
ENOUGH = 20
"""Setups among which a small share is spread."""


@dataclass(frozen=True)
class Lot:
    """Some runs of a Setup that an engine trained, by the label of its Records; ``origin`` says where, if known."""

    setup: Setup
    seed: int
    runs: np.ndarray
    label: str
    origin: Mapping[str, str] = field(default_factory=dict[str, str])

    @functools.cached_property
    def engine(self) -> str:
        """The engine of this machine that has this label, in whichever version of its arithmetic, if it can train the
        Setup; ``auto`` otherwise."""
        return promises.labelled(promises.current(self.label), self.setup) or engines.AUTO

    @property
    def earlier(self) -> bool:
        """Whether an earlier arithmetic of an engine that is here made the records."""
        return self.engine != engines.AUTO and self.label != promises.current(self.label)

    @property
    def exact(self) -> bool:
        """Whether the same records are promised here."""
        return promises.exact(self.engine, self.label, self.setup, self.origin)


class Compared(NamedTuple):
    """How records compare with those of the same runs trained again."""

    identical: bool
    difference: str | None = None
    """Where they differ though they must be the same, in words."""
    p_value: float | None = None
    """Where they need not be the same: of their having one law. The same runs begin alike, so it errs high."""
    accuracy_p_value: float | None = None
    """The same of their final accuracies."""


def compared(lot: Lot, before: Records, again: Records) -> Compared:
    """What training a lot again says of its records."""
    identical = before.digest == again.digest
    if not lot.exact:
        if identical:
            return Compared(True, p_value=1.0, accuracy_p_value=1.0)
        return Compared(False, None, statistics.compare(before, again).p_value,
                        statistics.compare_accuracy(before, again))
    if identical:
        return Compared(True)
    first, second = (records.take(np.argsort(records.run)) for records in (before, again))
    differs = np.zeros(len(first), bool)
    for name in COLUMNS:
        mine, theirs = getattr(first, name), getattr(second, name)
        differs |= (mine != theirs) & ~((mine != mine) & (theirs != theirs))
    i = int(np.flatnonzero(differs)[0])
    what = f"run {first.run[i]} {_told(first, i)}, trained again {_told(second, i)}"
    return Compared(False, f"{differs.sum()} of {len(first)} records differ: {what}")


def _told(records: Records, i: int) -> str:
    status, steps = STATUSES[records.status[i]], records.steps[i]
    return f"{status} at step {steps} (accuracy {records.accuracy[i]:.9g}, loss {records.loss[i]:.9g})"


def trained_again(
    lots: Sequence[Lot], over: Callable[[], bool] = lambda: False
) -> Iterator[tuple[int, Records | CellFailed]]:
    """The records of each lot, or why there are none; those of one program are trained together, until it is over."""
    groups: dict[tuple[str, Setup], list[int]] = {}
    for i, lot in enumerate(lots):
        groups.setdefault((lot.engine, lot.setup.program), []).append(i)
    for (engine, _), group in groups.items():
        if over():
            return
        parts: dict[int, list[Records]] = {i: [] for i in group}
        failed: dict[int, CellFailed] = {}
        jobs = [engines.Job(lots[i].setup, lots[i].seed, lots[i].runs) for i in group]
        for ended in engines.attempt(jobs, engine):
            for place, records in ended:
                if isinstance(records, CellFailed):
                    failed[group[place]] = records
                else:
                    parts[group[place]].append(records)
            if over():
                break
        for i in group:
            found = Records.concatenate(parts[i])
            if i in failed or len(found) == len(lots[i].runs):  # others were cut short
                yield i, failed.get(i, found)


class Sampled(NamedTuple):
    """Records of a store, drawn at random; no lot where their Setup needs functions that are not at hand."""

    setup_id: str
    lot: Lot | None
    records: Records


def sampled(store: Store, share: float | None, rng: np.random.Generator) -> Iterator[Sampled]:
    """Random records of a store: each with probability ``share``; without one, a few of each Setup, in random order.

    A small share is drawn from some of the Setups, so that not all of them need be read.
    """
    setups = dict(store.setups())
    some = 1.0 if share is None or not setups else min(1.0, max(share, ENOUGH / len(setups)))
    ids = [setup_id for setup_id in rng.permutation(list(setups)) if rng.random() < some] or list(setups)[:1]
    drawn = False
    for few in (ids[i : i + AT_ONCE] for i in range(0, len(ids), AT_ONCE)):
        for (setup_id, engine, seed), origin, records in _stored(store, few):
            count = min(FEW, len(records)) if share is None else int(rng.binomial(len(records), share / some))
            count = count if drawn else max(count, 1)  # of a small store, one record at least
            if count:
                drawn = True
                chosen = records.take(np.sort(rng.choice(len(records), count, replace=False)))
                lot = _lot(setup_id, json.dumps(setups[setup_id]), engine, seed, chosen, origin)
                yield Sampled(setup_id, lot, chosen)


def _stored(store: Store, ids: Sequence[str]) -> list[tuple[Key, Origin, Records]]:
    """All records of these Setups, in this order, by engine, seed and origin."""
    places = {str(setup_id): place for place, setup_id in enumerate(ids)}
    return sorted(store.by_origin(places), key=lambda part: (places[part[0][0]], *part[0][1:]))


def _lot(setup_id: str, text: str, engine: str, seed: int, records: Records, origin: Origin) -> Lot | None:
    try:
        setup = Setup.from_json(text)
    except InvalidInput:
        return None
    return Lot(setup, seed, records.run, engine, origin) if setup.id == setup_id else None
