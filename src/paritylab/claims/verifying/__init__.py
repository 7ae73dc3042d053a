"""Verification: evidence and stored records, checked once more. ``paritylab store verify`` prints what comes of it.

Digests are compared, the words of evidence are derived again from its numbers, a random sample of records is trained
again, and evidence that lists none that must be the same here is tried again as a whole. What an earlier version of an
engine's arithmetic made is compared by distribution.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np

from paritylab.claims.library import Claim
from paritylab.claims.verifying.entries import Entry, check_files, check_words, entries
from paritylab.claims.verifying.records import Listed, Over, check_links, check_listed, check_store, listed
from paritylab.claims.verifying.report import Report as Report
from paritylab.claims.verifying.trials import check_trial
from paritylab.progress import Bar
from paritylab.storage.store import Store

T = TypeVar("T")
LONG = 60.0
"""Seconds that one trial, or one Setup's runs, may take where a share is asked for."""


class Verification:
    """What is verified, by which sample, and what was found; interrupted, the report has what was done.

    Args:
        claims: whose evidence is verified.
        out: where records and trials of one's own are.
        share: of stored records, of listed Setups and of trials; at least one of each.
        minutes: instead of a share, how long it may last; a third for each.
        seed: of the sample.
        store: whether stored records are sampled, whatever trial asked for them.
        progress: bars on standard error; by default only on a terminal.
    """

    def __init__(
        self,
        claims: Sequence[Claim],
        out: Path,
        share: float = 0.01,
        minutes: float | None = None,
        seed: int = 0,
        store: bool = True,
        progress: bool | None = None,
    ) -> None:
        self.claims = claims
        self.out, self.progress = out, progress
        self.share = share if minutes is None else None
        self.seconds = None if minutes is None else 60 * minutes
        self.rng = np.random.default_rng(seed)
        self.store = Store(out / "store") if (out / "store").is_dir() else None
        self.sample = store
        self.report = Report()
        self._start = time.monotonic()

    def run(self) -> Report:
        check_files(self.claims, self.out, self.report, self.progress)
        found = entries(self.claims, self.out)
        for entry in found:
            check_words(entry, self.report)
        if self.store is not None:
            check_links(found, self.out, self.store, self.report)
        if self.store is not None and self.sample:
            check_store(self.store, self.share, self.rng, self._over(1 / 3), self.report, self.progress)
        lines = listed(found, self.report)
        check_listed(self._lines(lines), self._over(2 / 3), self.report, self.progress)
        covered = {id(line.entry) for line in lines if line.lot.exact}
        self._try([entry for entry in found if entry.source == "shipped" and id(entry) not in covered])
        return self.report

    def _over(self, part: float) -> Over:
        return lambda: self._left(part) <= 0

    def _left(self, part: float = 1.0) -> float:
        """Seconds until so large a part of the time is over."""
        return np.inf if self.seconds is None else self._start + part * self.seconds - time.monotonic()

    def _lines(self, lines: Sequence[Listed]) -> list[Listed]:
        """A random choice, and what it would take too long to train left out."""
        most = LONG if self.share is not None else self._left(2 / 3)
        short = [line for line in lines if line.seconds <= most]
        self.report.left_out["listed Setups that may take too long (more --minutes)"] += len(lines) - len(short)
        return self._drawn(short)

    def _try(self, found: Sequence[Entry]) -> None:
        """Trials, in random order: as many as the share says, or as there is time for."""
        most = LONG if self.share is not None else self._left()
        short = [entry for entry in found if entry.seconds <= most]
        self.report.left_out["trials that take too long (more --minutes)"] += len(found) - len(short)
        chosen = self._drawn(short)
        with Bar("trials, again", len(chosen), self.progress) as bar:
            for done, entry in enumerate(chosen, 1):
                if entry.seconds <= self._left():
                    check_trial(entry, self.report)
                bar.show(done)

    def _drawn(self, items: Sequence[T]) -> list[T]:
        """A random choice of them: the share, and one at least; or all, in random order."""
        shuffled = [items[i] for i in self.rng.permutation(len(items))]
        if self.share is None:
            return shuffled
        return shuffled[: max(1, int(self.rng.binomial(len(items), self.share)))]
