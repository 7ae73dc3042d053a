"""Two learners on the same runs: measured together, compared in pairs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from paritylab import statistics
from paritylab.errors import CellFailed, InvalidInput, require
from paritylab.running.interfaces import RecordStore
from paritylab.running.sweeps import Result, sweep
from paritylab.setups.setup import Setup
from paritylab.setups.words import setups_in_words
from paritylab.storage.records import SOLVED, STATUSES, Records

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from polars import DataFrame


@dataclass(frozen=True, repr=False)
class Compared:
    """Two Results and what their runs, taken in pairs, say: ``paired`` has the numbers."""

    first: Result
    second: Result
    paired: statistics.Paired

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain JSON values."""
        return {**self.paired.to_dict(), "first": self.first.to_dict(), "second": self.second.to_dict()}

    def to_frame(self) -> DataFrame:
        """One row for each pair: the run, both times (null where not solved), how both ended, the ratio of times."""
        import polars as pl

        both = dict(zip(("first", "second"), self._records(), strict=True))
        columns: dict[str, Any] = {"run": both["first"].run}
        for name, records in both.items():
            solved = (records.status == SOLVED).tolist()
            columns[f"{name}_t_c"] = [t if ok else None for t, ok in zip(records.t_c.tolist(), solved, strict=True)]
            columns[f"{name}_status"] = [STATUSES[status] for status in records.status]
        kinds = {"run": pl.Int64(), "first_t_c": pl.Int64(), "first_status": pl.String(), "second_t_c": pl.Int64(),
                 "second_status": pl.String()}
        return pl.DataFrame(columns, schema=kinds).with_columns(ratio=pl.col("first_t_c") / pl.col("second_t_c"))

    def plot(self, labels: tuple[str, str] = ("first", "second")) -> Figure:
        """The times of both on each run against each other."""
        from paritylab import plots

        mine, theirs = self._records()
        return plots.pairs_plot(mine, theirs, labels)

    def _records(self) -> tuple[Records, Records]:
        """Of the runs that both have."""
        _, mine, theirs = np.intersect1d(self.first.records.run, self.second.records.run, return_indices=True)
        return self.first.records.take(mine), self.second.records.take(theirs)

    @property
    def verdict(self) -> str:
        """Which is faster, or how many more runs would tell."""
        found = self.paired
        if found.decided:
            return f"the {'first' if found.statistic > 0 else 'second'} is faster (p = {found.p_value:.2g})"
        if math.isinf(found.more):
            return f"no difference was seen (p = {found.p_value:.2g})"
        least = max(1, found.needed_at_least - found.pairs)
        return (f"not decided (p = {found.p_value:.2g}); about {_rounded(found.more)} more runs would, if the"
                f" difference is the one seen, {_rounded(least)} if it is as large as it may be (90 % power)")

    def __str__(self) -> str:
        return "\n".join(f"{name}: {text}" for name, text in self._rows().items())

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.first.setup.id}, {self.second.setup.id}: {self.verdict}>"

    def _repr_html_(self) -> str:
        """For notebooks."""
        rows = {"Setups": setups_in_words([self.first.setup, self.second.setup]), **self._rows()}
        cells = "".join(f"<tr><th style=\"text-align:left;vertical-align:top\">{escape(name)}</th>"
                        f"<td style=\"text-align:left\">{escape(text)}</td></tr>" for name, text in rows.items())
        return f"<table>{cells}</table>"

    def _rows(self) -> dict[str, str]:
        found = self.paired
        low, high = found.ratio_interval
        share, *ends = (100 * end for end in (found.solved_difference, *found.solved_interval))
        ratio = "not known" if math.isnan(found.ratio) else f"{found.ratio:.3g}"
        return {
            "first": str(self.first),
            "second": str(self.second),
            "same runs": f"time of the first over the second's {ratio} [{low:.3g}, {high:.3g}], median of {found.pairs}"
                         f" pairs up to step {found.horizon}",
            "faster": self.verdict,
            "solved": f"{found.first_alone} by the first alone, {found.second_alone} by the second alone: difference"
                      f" {share:.1f} % [{ends[0]:.1f}, {ends[1]:.1f}] (p = {found.solved_p_value:.2g})",
        }


def _rounded(count: float) -> str:
    """Two digits of a number of runs.

    >>> _rounded(3), _rounded(345), _rounded(123456)
    ('3', '350', '120,000')
    """
    return f"{float(f'{count + 1e-9:.1e}'):,.0f}"


def compare(
    first: Setup | Result,
    second: Setup | Result,
    runs: int | range = 1000,
    *,
    seed: int = 0,
    engine: str = "auto",
    threads: int | None = None,
    store: RecordStore | None = None,
    progress: bool | None = None,
    level: float = 0.95,
) -> Compared:
    """Train two learners on the same runs and say which is faster, by how much, and how many more runs would tell.

    Runs of one number share their seed: inputs, labels, evaluation and, where shapes agree, the start. What is tested
    and why: :mod:`paritylab.statistics.paired`.

    Args:
        first: a Setup, or a Result of runs that are done.
        second: the other.
        runs: how many of each, or their numbers; those of a Result are what they are.
        seed: the root of all random numbers.
        engine: ``auto``, ``jax``, ``lanes`` or ``warps``.
        threads: cores for the native engine; all of them unless said.
        store: where Records are kept and looked up; None keeps nothing.
        progress: a bar on standard error; by default only on a terminal.
        level: of intervals; a difference is decided if the test's p-value is at most 1 less this.

    >>> from paritylab import SGD, Learner, Parity, Protocol
    >>> slow, fast = (Setup(Parity(n=8, k=2), Learner(optimiser=SGD(lr)), Protocol(1000, eval_size=128))
    ...               for lr in (0.02, 0.2))
    >>> found = compare(slow, fast, runs=30)
    >>> found.paired.decided, found.paired.ratio > 2
    (True, True)
    """
    given = [first, second]
    for each in given:
        require(isinstance(each, Setup | Result), f"compare takes two Setups, or Results, not {each!r:.60}")
    setups = [each for each in given if isinstance(each, Setup)]
    done = sweep(setups, runs, seed=seed, engine=engine, threads=threads, store=store, progress=progress)
    for each in done:
        if each.failure:
            raise CellFailed(each.failure)
    made = iter(done)
    one, two = (next(made) if isinstance(each, Setup) else each for each in given)
    if one.seed != two.seed:
        raise InvalidInput(f"pairs of runs share their seed, and it is {one.seed} here and {two.seed} there")
    horizon = min(each.setup.protocol.max_steps for each in (one, two))
    return Compared(one, two, statistics.paired(one.records, two.records, horizon, level))
