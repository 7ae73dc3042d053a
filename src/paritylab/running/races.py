"""Races: which of several Setups has the smallest percentile of t_c, trained no longer than it takes to tell.

Setups (usually one problem and learner at several rates) are followed in stages, each four times as long as the one
before. All runs of a Setup stop at the same step, its horizon, so what is still unknown about them is bounded: an
unsolved run is solved after the horizon or never. A Setup is left behind once its percentile must exceed the best one,
so the answer is the one that training every run to its end would give. It does not depend on what the store holds: a
race that is repeated takes the same stages, and finds them there.
"""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from paritylab import statistics
from paritylab.aliases import Interval
from paritylab.engines.arithmetic import earlier
from paritylab.errors import require
from paritylab.running import crews
from paritylab.running.interfaces import RecordStore, check_store
from paritylab.running.known import look_up
from paritylab.running.sweeps import Result, run_numbers, sweep
from paritylab.setups.setup import Setup
from paritylab.storage.records import CENSORED, SOLVED, Records

FIRST_CHECKS = 16
GROWTH = 4  # a run that is followed further starts again, which costs a third of the last stage


@dataclass(frozen=True, repr=False)
class Entry(Result):
    """One Setup of a race: a Result whose unsolved runs may have stopped at the horizon, before their step limit."""

    runs: range = range(0)
    q: float = 10.0
    trained: frozenset[int] = frozenset()
    """The runs that did not come from the store."""

    @cached_property
    def pending(self) -> np.ndarray:
        """Which runs could still be solved."""
        return (self.records.status == CENSORED) & (self.records.steps < self.setup.protocol.max_steps)

    @cached_property
    def horizon(self) -> int:
        """The steps up to which all runs are known."""
        return int(self.records.steps[self.pending].min(initial=self.setup.protocol.max_steps))

    @cached_property
    def _soonest(self) -> Records:
        """The runs as if those pending were solved at the horizon; as they are, they are as if never solved."""
        status = np.where(self.pending, SOLVED, self.records.status)
        return replace(self.records, status=status, t_c=np.where(self.pending, self.records.steps, self.records.t_c))

    @cached_property
    def low(self) -> float:
        """A lower bound of the percentile; equal to it once it is known."""
        return statistics.percentile(self._soonest.t_c, self._soonest.status, self.q)

    @cached_property
    def percentile(self) -> float:
        """The percentile; ``inf`` if it is not reached, or not known yet (then ``low`` bounds it)."""
        return statistics.percentile(self.records.t_c, self.records.status, self.q)

    @property
    def known(self) -> bool:
        return self.low == self.percentile

    @cached_property
    def interval(self) -> Interval:
        """The percentile's 95 % interval; wider than of all runs trained to their end unless ``settled``."""
        return self._interval(self._soonest)[0], self._interval(self.records)[1]

    @cached_property
    def settled(self) -> bool:
        """Whether nothing that the pending runs do can change the percentile or its interval."""
        return self.known and self._interval(self._soonest) == self._interval(self.records)

    def _interval(self, records: Records) -> Interval:
        return statistics.percentile_interval(records.t_c, records.status, self.q)

    @property
    def solved_fraction(self) -> float:
        """The fraction of runs solved within the horizon."""
        return statistics.solved_fraction(self.records.status)[0]

    def reach(self, bar: float) -> float:
        """The steps at which ``low`` gets to ``bar`` if no other run is solved before."""
        fraction, index = math.modf(self.q * (len(self.records) - 1) / 100)
        solved = np.sort(self.records.t_c[self.records.status == SOLVED])
        if fraction == 0 or len(solved) <= index:
            return bar
        first = float(solved[int(index)])
        return first + (bar - first) / fraction

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values; what is not reached, or not known, is None."""
        low, high = self.interval
        return {
            **super().to_dict(),
            "q": self.q,
            "percentile": _finite(self.percentile),
            "percentile_interval": [_finite(low), _finite(high)],
            "known": self.known,
            "low": _finite(self.low),
            "horizon": self.horizon,
            "pending": int(self.pending.sum()),
        }

    def __str__(self) -> str:
        solved = f"solved {100 * self.solved_fraction:.0f} % of {len(self.records)} by step {self.horizon}"
        if not self.known:
            return f"{self.q:g} % above {self.low:g}, {solved}"
        value = f"{self.percentile:g}" if self.percentile < math.inf else "not reached"
        return f"{self.q:g} % {value} [{self.interval[0]:g}, {self.interval[1]:g}], {solved}"


@dataclass(frozen=True, repr=False)
class Race:
    """What is known of every Setup, in the order in which they were given."""

    rates: tuple[Entry, ...]
    seconds: float

    @property
    def best(self) -> Entry:
        """The smallest percentile (the first of equals); its interval, too, is that of complete runs."""
        return self.rates[leader(self.rates)]

    def __repr__(self) -> str:
        return f"<Race of {len(self.rates)} Setups, won by {self.best.setup.id}: {self.best}>"

    def _repr_html_(self) -> str:
        """For notebooks: what is known of every Setup, and which was the fastest."""
        from paritylab.running.shown import race_html

        return race_html(self)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return {
            "best": self.best.to_dict(),
            "rates": [entry.to_dict() for entry in self.rates],
            "seconds": round(self.seconds, 3),
        }


def race(
    setups: Sequence[Setup],
    q: float = 10,
    runs: int | range = 25,
    *,
    seed: int = 0,
    engine: str = "auto",
    threads: int | None = None,
    store: RecordStore | None = None,
    progress: bool | None = None,
    follow: float = 0,
    any_arithmetic: bool = False,
) -> Race:
    """Find the Setup with the smallest ``q``-th percentile of t_c, trained no longer than it takes to tell.

    Args:
        setups: the competitors, usually one problem and learner at several rates.
        q: which percentile.
        runs: how many runs of each, or their numbers.
        seed: the root of all random numbers.
        engine: ``auto``, ``jax``, ``lanes`` or ``warps``.
        threads: cores for the native engine; all of them unless said.
        store: where Records are kept and looked up; None keeps nothing.
        progress: a bar on standard error; by default only on a terminal.
        follow: the percentile of every Setup is followed until it is known or must exceed so many steps.
        any_arithmetic: use stored runs of earlier versions of the engine's arithmetic too, and do not train them again.

    >>> from paritylab import SGD, Learner, Parity, Protocol
    >>> setups = [Setup(Parity(8, 2), Learner(optimiser=SGD(lr)), Protocol(eval_size=128)) for lr in (1.0, 0.001)]
    >>> result = race(setups, runs=20, engine="jax")
    >>> result.best.setup.learner.optimiser.lr, result.rates[1].known
    (1.0, False)
    """
    require(len(setups) > 0, "a race needs at least one setup")
    check_store(store)
    options = {"engine": engine, "threads": threads, "store": store, "progress": progress,
               "any_arithmetic": any_arithmetic}
    start = time.perf_counter()
    entries = enter(setups, q, runs, seed, engine)
    if not any_arithmetic:
        tell_earlier(entries, store)
    entries = decide(entries, functools.partial(extend, **options), follow)
    return Race(tuple(entries), time.perf_counter() - start)


def enter(
    setups: Sequence[Setup], q: float, runs: int | range, seed: int = 0, engine: str = "auto", *, check: bool = True
) -> list[Entry]:
    """Entries of which nothing is known yet; without ``check`` nobody has tried their functions."""
    numbers = run_numbers(runs, len(setups))
    require(len(numbers) > 0, "a race needs at least one run")
    require(0 <= q <= 100, f"a percentile must be between 0 and 100, not {q:g}")
    setups = [setup.now() for setup in setups]
    for setup in {setup.program: setup for setup in setups}.values() if check else ():
        setup.check()
    records = _stopped(np.array(numbers), 0)
    return [Entry(setup, label, seed, records, 0.0, len(records), runs=numbers, q=q)
            for setup, (_, label) in zip(setups, crews.trainer().choices(setups, engine), strict=True)]


def tell_earlier(entries: Sequence[Entry], store: RecordStore | None) -> None:
    """Say which runs are trained again since an earlier arithmetic made those of the store."""
    some = [entry for entry in entries if earlier(entry.engine)]
    if some:
        look_up(store, [entry.setup for entry in some], [entry.engine for entry in some], some[0].seed, some[0].runs)


def decide(entries: Sequence[Entry], extend: Callable[[Entry, int], Entry], follow: float = 0) -> list[Entry]:
    """Extend Entries until the best one is certain and settled, and all are known or must exceed ``follow``."""
    entries = list(entries)
    limit = follow or FIRST_CHECKS * max(entry.setup.protocol.eval_every for entry in entries)
    while wanted := {i: steps for i, steps in enumerate(needs(entries, follow)) if steps > entries[i].horizon}:
        now = [i for i in wanted if entries[i].horizon < limit]
        if not now:
            limit *= GROWTH
            continue
        # The most promising first: what it achieves tells how far the others must be followed.
        i = min(now, key=lambda i: (entries[i].percentile, -entries[i].solved_fraction, i))
        entries[i] = extend(entries[i], math.ceil(min(wanted[i], limit, entries[i].setup.protocol.max_steps)))
    return entries


def leader(entries: Sequence[Entry]) -> int:
    """The position of the smallest percentile, as far as is known; the first of equals."""
    return min(range(len(entries)), key=lambda i: entries[i].percentile)


def needs(entries: Sequence[Entry], follow: float = 0) -> list[float]:
    """The steps up to which each Entry must be followed, as far as can be told; 0 for no further."""
    first = leader(entries)
    best = entries[first].percentile
    steps: list[float] = []
    for i, entry in enumerate(entries):
        bar = max(follow, best if i > first else math.nextafter(best, math.inf))  # the first of equals wins
        if i == first and entry.known:
            need = 0.0 if entry.settled else math.inf
        elif entry.known or entry.low >= bar:
            need = 0.0
        else:
            need = max(entry.reach(bar), entry.horizon + 1.0)
        steps.append(need)
    return steps


def extend(
    entry: Entry,
    steps: int,
    engine: str = "auto",
    threads: int | None = None,
    store: RecordStore | None = None,
    progress: bool | None = None,
    any_arithmetic: bool = False,
) -> Entry:
    """The Entry with all runs followed up to ``steps`` (the next check, at most the step limit)."""
    if _limit(entry.setup, steps) <= entry.horizon:
        return entry
    part = _stage(entry.setup, steps)
    ledger = _Ledger(entry, part, store, any_arithmetic)
    (result,) = sweep([part], entry.runs, seed=entry.seed, engine=engine, threads=threads, store=ledger,
                      progress=progress, any_arithmetic=any_arithmetic)
    trained = entry.trained | ledger.trained
    known = {"reused": len(entry.runs) - len(trained), "trained": trained}
    return replace(entry, records=result.records, seconds=entry.seconds + result.seconds, engine=result.engine,
                   earlier=result.earlier, **known)


def missing(entry: Entry, steps: int, store: RecordStore) -> tuple[Setup, Entry] | None:
    """What another machine should train so that ``steps`` are known: None if the store has all of it.

    It is a whole stage, which serves however far the race turns out to need it; and the Entry as if no run were solved
    in it, to see what else is certain to be asked for.
    """
    if _limit(entry.setup, steps) <= entry.horizon:
        return None
    part = _stage(entry.setup, steps)
    if store.root is not None and store.root.is_dir():
        ledger = _Ledger(entry, part, store)
        known = ledger.find((part.id,), (entry.engine,), entry.seed, None).get((part.id, entry.engine, entry.seed))
        if known is not None and np.isin(np.array(entry.runs), known.run).all():
            return None
    whole = _stage(entry.setup, next(end for end in _stage_ends(entry.setup) if end >= steps))
    return whole, replace(entry, records=_stopped(np.array(entry.runs), whole.protocol.max_steps))


def _limit(setup: Setup, steps: int) -> int:
    """The first check from ``steps`` on."""
    every = setup.protocol.eval_every
    return min(-(-steps // every) * every, setup.protocol.max_steps)


def _stage(setup: Setup, steps: int) -> Setup:
    """The Setup with its step limit there."""
    return setup.derived(protocol=replace(setup.protocol, max_steps=_limit(setup, steps)))


def _stage_ends(setup: Setup) -> list[int]:
    """The step limits of whole stages; the last is the Setup's own."""
    ends = [FIRST_CHECKS * setup.protocol.eval_every]
    while ends[-1] < setup.protocol.max_steps:
        ends.append(ends[-1] * GROWTH)
    return [*ends[:-1], setup.protocol.max_steps]


class _Ledger:
    """The records of one stage: runs that ended belong to the race's Setup, runs that stopped to the stage's."""

    def __init__(self, entry: Entry, part: Setup, store: RecordStore | None, any_arithmetic: bool = False) -> None:
        self._entry, self._part, self._store = entry, part, store
        self._left_out = () if any_arithmetic else earlier(entry.engine)
        self.trained: set[int] = set()
        self.root = None if store is None else store.root

    def find(
        self, setup_ids: Collection[str], engines: Collection[str] | None, seed: int, runs: range | None
    ) -> dict[tuple[str, str, int], Records]:
        """What a stage up to its step limit would give, of all runs that were trained so far or further."""
        part, own = self._part, self._entry.setup
        engines = engines and set(engines).difference(self._left_out)
        if self._store is None:
            known = self._entry.records.take(~self._entry.pending)
            return {(part.id, engine, seed): known for engine in engines or (self._entry.engine,)}
        limit = part.protocol.max_steps
        further = [_stage(own, end).id for end in _stage_ends(own) if end > limit]
        order = {setup_id: place for place, setup_id in enumerate(dict.fromkeys((own.id, part.id, *further)))}
        found = self._store.find(order, engines, seed, runs)
        series: dict[str, list[Records]] = {}
        for setup_id, engine, _ in sorted(found, key=lambda key: order[key[0]]):
            each = found[setup_id, engine, seed]
            series.setdefault(engine, []).extend(
                (each.take(each.steps <= limit), _stopped(each.run[each.steps > limit], limit)))
        every = {engine: Records.concatenate(parts) for engine, parts in series.items()}
        return {(part.id, engine, seed): each.take(np.unique(each.run, return_index=True)[1])
                for engine, each in every.items()}

    def extend(self, parts: Sequence[tuple[str, str, str, int, Records]]) -> None:
        setup = self._entry.setup
        kept: list[tuple[str, str, str, int, Records]] = []
        for setup_id, text, engine, seed, records in parts:
            self.trained.update(records.run.tolist())
            stopped = (records.status == CENSORED) & (records.steps < setup.protocol.max_steps)
            for which, key in ((~stopped, (setup.id, setup.to_json())), (stopped, (setup_id, text))):
                if which.any():
                    kept.append((*key, engine, seed, records.take(which)))
        if self._store is not None and kept:
            self._store.extend(kept)

    def compact(self) -> None:
        if self._store is not None:
            self._store.compact()


def _stopped(runs: np.ndarray, steps: int) -> Records:
    """Records of runs that were not solved within so many steps; how well they did is not known."""
    count = len(runs)
    unknown = np.full(count, np.nan)
    return Records(runs, np.full(count, CENSORED), np.full(count, -1), np.full(count, steps), unknown, unknown)


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
