"""What is trained: a random sample of stored records, and of those that shipped evidence lists."""

from __future__ import annotations

import contextlib
import itertools
import tempfile
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple, TypeVar

import numpy as np

from paritylab.claims import resolving, sources
from paritylab.claims.sources import Source
from paritylab.claims.verifying.entries import Entry
from paritylab.claims.verifying.report import Report
from paritylab.errors import CellFailed, InvalidInput
from paritylab.functions import finding
from paritylab.progress import Bar
from paritylab.running import keeping
from paritylab.running.cost import step_seconds
from paritylab.running.retraining import AT_ONCE, Lot, compared, sampled, trained_again
from paritylab.running.tasks import ComputeTask, CurveTask, ParamsTask, runs_of
from paritylab.statistics import p_value_of_sum
from paritylab.storage.records import Records
from paritylab.storage.store import Store, StoreWarning

EARLIER = "{} of an earlier arithmetic, trained again and compared by distribution"
T = TypeVar("T")
Over = Callable[[], bool]


def check_store(
    store: Store, share: float | None, rng: np.random.Generator, over: Over, report: Report,
    progress: bool | None = None,
) -> None:
    """Train a sample of the records that are stored; without a share, until it is over."""
    with _damage_told(report), Bar("stored records, again", 0, progress) as bar:
        for batch in batches(sampled(store, share, rng)):
            if over():
                return
            few = [(each, each.lot) for each in batch if each.lot is not None]
            report.left_out["stored Setups with functions that are not at hand"] += len(batch) - len(few)
            for place, again in trained_again([lot for _, lot in few], over):
                each, lot = few[place]
                where = f"store, {each.setup_id}, {lot.label}, seed {lot.seed}"
                if isinstance(again, CellFailed):
                    report.differ(where, f"cannot be trained again: {again}")
                    continue
                found = compared(lot, each.records, again)
                count(report, "stored records", len(again), found.identical)
                if found.difference is not None:
                    report.differ(where, found.difference)
                if lot.earlier:
                    report.checked[EARLIER.format("stored records")] += len(again)
                if found.p_value is not None:
                    report.weigh(where, "records of another law", found.p_value)
                if found.accuracy_p_value is not None:
                    report.weigh(where, "accuracies of another law", found.accuracy_p_value)
                bar.show(report.checked["stored records, trained again"])


def check_links(entries: Sequence[Entry], out: Path, store: Store, report: Report) -> None:
    """Compare what trials of one's own stand on with what is stored."""
    with _damage_told(report):
        for entry in entries:
            table = entry.table(out) if entry.source == "local" else None
            for row in sources.read(table) if table is not None else ():
                if row["what"] != "records":
                    continue
                stored = store.records(row["id"], row["engine"], int(row["seed"]), range(int(row["runs"])))
                if len(stored) < int(row["runs"]):
                    report.left_out["Setups of trials of one's own whose records are no longer stored"] += 1
                    continue
                report.checked["Setups of trials of one's own, compared with the store"] += 1
                if stored.digest != row["digest"]:
                    where = f"{entry.where}, {row['id']}, {row['engine']}, seed {row['seed']}"
                    report.differ(where, "the store has other records than those that the trial stood on")


def count(report: Report, what: str, runs: int, identical: bool) -> None:
    report.checked[f"{what}, trained again"] += runs
    report.checked[f"{what}, the same to the last bit"] += runs if identical else 0


@contextlib.contextmanager
def _damage_told(report: Report) -> Generator[None, None, None]:
    """What the store says of blocks that it cannot use is a difference."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", StoreWarning)
        try:
            yield
        finally:
            for each in said:
                if issubclass(each.category, StoreWarning):
                    report.differ("store", str(each.message))


def batches(items: Iterable[T], size: int = AT_ONCE) -> Iterator[list[T]]:
    """
    >>> list(batches("abcde", 2))
    [['a', 'b'], ['c', 'd'], ['e']]
    """
    iterator = iter(items)
    while batch := list(itertools.islice(iterator, size)):
        yield batch


class Listed(NamedTuple):
    """A line of the records that shipped evidence stands on, and what is trained for it."""

    entry: Entry
    source: Source
    lot: Lot

    @property
    def seconds(self) -> float:
        """About what it takes on two cores."""
        return self.source.steps * step_seconds(self.lot.setup)

    @property
    def where(self) -> str:
        return f"{self.entry.where}, {self.source.id}, {self.source.engine}, seed {self.lot.seed}"


def listed(entries: Sequence[Entry], report: Report) -> list[Listed]:
    """Every line of shipped evidence whose values must be the same if it is trained here; of those that an earlier
    arithmetic made, every line whose steps must have the same distribution."""
    found: list[Listed] = []
    for entry in entries:
        table = entry.table(Path()) if entry.source == "shipped" else None
        if table is None:
            continue
        asked = {"claim": entry.claim.id, "size": entry.found["size"], "seed": entry.found["seed"]}
        with contextlib.suppress(InvalidInput), finding.also_in([entry.claim.trial.__module__]):
            for row in sources.read(table):  # a damaged one was told of
                try:
                    source = sources.source_of(row, lambda task, asked=asked: resolving.task(task, asked))
                except InvalidInput:
                    report.left_out["listed Setups with functions that are not at hand"] += 1
                    continue
                if isinstance(source.task, ComputeTask):
                    report.left_out["listed computations"] += 1
                    continue
                lot = Lot(source.task.setup, source.task.seed, np.arange(runs_of(source.task)), source.engine,
                          _origin(entry, source))
                if lot.exact or (lot.earlier and source.what in ("records", "outcomes")):
                    found.append(Listed(entry, source, lot))
                elif lot.earlier:
                    report.left_out["listed curves and networks of an earlier arithmetic"] += 1
                else:
                    report.left_out["listed Setups of an engine or machine that rounds otherwise"] += 1
    return found


def _origin(entry: Entry, source: Source) -> dict[str, str]:
    """Where listed records come from: unknown if some were there before the trial."""
    origin = entry.found["origin"]
    if entry.found["reused_runs"] or entry.found["recalled_arrays"]:
        return {}
    return {**origin, "build": origin["builds"].get(source.engine, "")}


def check_listed(chosen: Sequence[Listed], over: Over, report: Report, progress: bool | None = None) -> None:
    """Train what is listed; its digest must be the same, or of an earlier arithmetic the distribution of its steps."""
    with Bar("listed records, again", len(chosen), progress) as bar:
        done = 0
        for batch in batches(chosen):
            runs = [each for each in batch if not isinstance(each.source.task, CurveTask | ParamsTask)]
            for place, again in trained_again([each.lot for each in runs], over):
                each = runs[place]
                if isinstance(again, CellFailed):
                    report.differ(each.where, f"cannot be trained again: {again}")
                    continue
                known = sources.outcomes(again) if each.source.what == "outcomes" else again
                (_alike if each.lot.earlier else _same)(each, known, report)
                bar.show(done := done + 1)
            for each in batch:
                if isinstance(each.source.task, CurveTask | ParamsTask) and not over():
                    _same_digest(each, _kept_again(each), report)
                    bar.show(done := done + 1)


def _kept_again(each: Listed) -> set[str]:
    """The digest of curves or params that are made again, with and without the series that came later."""
    task, engine = each.source.task, each.lot.engine
    assert isinstance(task, CurveTask | ParamsTask)
    with tempfile.TemporaryDirectory(prefix="paritylab-verify-") as folder:
        keeping.keep([task], Path(folder), engine, progress=False)
        arrays = keeping.find(task, Path(folder), engine)
    assert arrays is not None
    return {sources.of_arrays(task, arrays, leaving).digest for leaving in ((), sources.LATER)}


def _alike(each: Listed, again: Records, report: Report) -> None:
    """Evidence has the sum of its runs' steps, which solved runs end early and unsolved ones at their step limit."""
    report.checked[EARLIER.format("listed runs")] += len(again)
    before, now = each.source.steps, int(again.steps.sum())
    same = again.digest == each.source.digest
    p_value = 1.0 if same else p_value_of_sum(before, again.steps, each.lot.setup.protocol.max_steps)
    report.weigh(each.where, f"{len(again)} runs took {before:,} steps and take {now:,}, trained again", p_value)


def _same(each: Listed, again: Records, report: Report) -> None:
    _same_digest(each, {again.digest}, report)


def _same_digest(each: Listed, digests: set[str], report: Report) -> None:
    same = each.source.digest in digests
    count(report, f"listed runs ({each.source.what})", len(each.lot.runs), same)
    if not same:
        report.differ(each.where, f"{each.source.what} of {len(each.lot.runs)} runs have another digest, trained again")
