"""Which search a table gets: by its shape, whether its labels are noisy, and the time there is; and what each said."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from paritylab import provenance
from paritylab.baselines import gf2, supports
from paritylab.baselines.packed import Packed, copies
from paritylab.baselines.sparsest import few
from paritylab.baselines.supports import Chosen, Found, Until
from paritylab.baselines.votes import Votes, log_chance, most_errors, parity
from paritylab.progress import duration

ALARM = 0.01
"""The probability, at most, that labels in random order are said to be a parity."""
NOISES = (0.1, 0.25)
"""Label noise that is looked for first, since that takes less time."""
SHORT = 0.1
"""Seconds that are not worth an earlier search for less noise."""
MOST_SIZE = 8
"""The largest support that is looked for among noisy labels where no size is given."""
SUBSETS = 64
WORTH = 1.0
"""Seconds for which larger parities are looked for in any case, once a noisy one was found."""


class Guess(NamedTuple):
    """A parity, or its opposite; how it was found; a bound on the probability that chance explains as many labels with
    any of the supports that might have been searched; and why it may be another one."""

    support: list[int]
    negated: bool
    method: str
    chance: float
    doubt: str = ""


class _Step(NamedTuple):
    """One size, searched for parities of up to so much noise, and how."""

    size: int
    noise: float
    limit: NDArray[np.uint32]
    seconds: float
    chosen: Chosen | None


@dataclass
class Auto:
    """One table's searches, in order of the time they take."""

    votes: Votes
    k: int | None
    until: Until
    generator: np.random.Generator
    report: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.start = time.perf_counter()
        self.votes = self.votes.decided()
        self.rows, self.n = self.votes.x.shape
        self.dependent = ""

    def find(self) -> Guess | None:
        """The parity of fewest errors that chance does not explain, or None; ``report`` says what was tried."""
        labels = self.votes.labels
        if self.rows == 0 or bool(np.all(labels == labels[:1])):
            self.report.append(f"all {self.rows} labels are the same: no parity can be told from a constant")
            return None
        if self.k == 0 or self.n == 0:
            self.report.append("no parity was looked for: no feature may be part of it")
            return None
        noisy = self.votes.contradicted
        if noisy:
            self.report.append("the same inputs have different labels: no parity explains all")
        else:
            found, noisy = self._eliminate()
            if found is not None:
                return found
        if not noisy:
            found = self._few()
            if found is not None:
                return found
        return self._noisy()

    # --- without noise ------------------------------------------------------------------------------------------

    def _eliminate(self) -> tuple[Guess | None, bool]:
        """The one parity that explains all labels, and whether there is none."""
        x, y = self.votes.x, self.votes.labels
        if self.rows <= self.n + 1:
            self.report.append(f"elimination: not tried, {self.rows} distinct rows cannot determine {self.n} features")
            return None, False
        seconds = self.rows * self.n**2 / 64 * 2e-9
        if seconds > self.until.left():
            self.report.append(f"elimination: not tried, it would take about {duration(seconds)}")
            return None, False
        start = time.perf_counter()
        solution = gf2.solve(np.column_stack([x, np.ones(self.rows, bool)]), y)
        if solution.support is None:
            self._say("elimination", "no parity explains all labels", start)
            return None, True
        if solution.rank <= self.n:
            rank = f"rank {solution.rank} of {self.n + 1}"
            self.dependent = f"features depend on one another ({rank}), so a larger one explains all labels too"
            self._say("elimination", f"several parities explain all labels ({rank})", start)
            return None, False
        support = [j for j in solution.support if j < self.n]
        guess = self._judged(support, self.n in solution.support, "gaussian-elimination", self._any_size())
        small = self.k is None or len(support) <= self.k
        said = f"{_named(support)} explains all labels" + ("" if small else f", but has more than {self.k} features")
        self._say("elimination", said + _beyond(guess), start)
        return (guess if small and guess.chance <= ALARM else None), not small

    def _few(self) -> Guess | None:
        most = min(4, self.n, *(() if self.k is None else (self.k,)))
        tellable = max((size for size in range(1, most + 1) if self._most_errors(size) >= 0), default=0)
        if tellable == 0:
            self.report.append(f"{self.rows} distinct rows are too few: any parity of {self.n} features may be chance")
            return None
        start = time.perf_counter()
        found = few(self.votes.x, self.votes.labels, self.generator, tellable, self.until)
        what = f"supports of up to {tellable} without errors, meeting in the middle"
        if found.alone is None:
            done = found.least - 1
            self._say(what, "none" if done == tellable else f"none of up to {done}, then time was up", start)
            return None
        values = parity(self.votes.x, found.support)
        guess = self._judged(found.support, bool(values[0] ^ self.votes.labels[0]), "meet-in-the-middle",
                             self._of_size(len(found.support)),
                             self.dependent if found.alone else "another one of its size explains all labels too")
        self._say(what, f"{_named(found.support)} explains all labels{_beyond(guess)}", start)
        return guess if guess.chance <= ALARM else None

    # --- with noise ---------------------------------------------------------------------------------------------

    def _noisy(self) -> Guess | None:
        """Sizes and rates of noise in order of the time they take; once a parity was found, other sizes in which one
        may have fewer errors, for no longer than it took so far."""
        x, y = self.votes.units()
        order = self.generator.permutation(len(y))  # limits take rows to be in random order
        whole = Packed.of(x[order], y[order])
        alike, counts = copies(whole)
        packed = whole.of_features(alike)
        largest = min(MOST_SIZE if self.k is None else self.k, packed.features, supports.MOST_MEMBERS)
        fewer = min(int(y.sum()), int((~y).sum())) - 1  # errors than those of a constant
        most = {size: min(fewer, self._most_errors(size) * packed.rows // self.rows) for size in range(1, largest + 1)}
        steps = [step for size, few in most.items() if few > 0 for step in self._steps(packed, size, few)]
        best: Guess | None = None
        left_out: list[str] = []
        subsets = SUBSETS * (6e-5 * self.n + 6e-11 * self.n**3)  # seconds
        every = largest == min(self.n, self.k or self.n) and all(step.seconds < self.until.left() for step in steps)
        pooled = every or self.rows < 2 * self.n or subsets > self.until.left()  # done, or of no use
        while steps or not pooled:
            step = min(steps, key=lambda step: step.seconds, default=None)
            if not pooled and best is None and (step is None or step.seconds > subsets):
                pooled = True
                best = self._pooled()
                if best is not None:
                    break
                continue
            if step is None:
                break
            steps.remove(step)
            left = self.until.left()
            if best is not None:
                left = min(left, max(WORTH, time.perf_counter() - self.start))
            if step.seconds > left:
                left_out.append(f"of {step.size} with up to {100 * step.noise:.3g} % (about {duration(step.seconds)})")
                continue
            found = self._search(packed, step, self.until._replace(end=time.perf_counter() + left))
            if not found.supports:
                continue
            members, negated = found.supports[0]
            ties = found.number > 1 or bool(np.any(counts[list(members)] > 1))
            guess = self._judged([int(alike[j]) for j in members], negated, "correlation", self._of_size(step.size),
                                 "another one explains as many labels" if ties else "")
            self.report[-1] += f": {_named(guess.support)} with {found.errors} errors{_beyond(guess)}"
            if guess.chance <= ALARM:
                best = guess
                better = found.errors - 1
                steps = [self._step(packed, size, min(most[size], better) / packed.rows, min(most[size], better))
                         for size in {step.size for step in steps} - {step.size} if min(most[size], better) > 0]
        if left_out:
            others = f" and {len(left_out) - 3} more" if len(left_out) > 3 else ""
            self.report.append(f"not searched for lack of time: supports {', '.join(left_out[:3])}{others}")
        return best

    def _steps(self, packed: Packed, size: int, most: int) -> list[_Step]:
        """For parities of up to so many errors; where that takes long, for fewer errors before."""
        whole = self._step(packed, size, most / packed.rows, most)
        fewer = [noise for noise in NOISES if noise * packed.rows < most and whole.seconds > SHORT]
        return [*(self._step(packed, size, noise, most) for noise in fewer), whole]

    def _step(self, packed: Packed, size: int, noise: float, most: int) -> _Step:
        """The faster way to search one size for parities of up to so much noise."""
        limit = supports.limits(packed, noise, most)
        seconds = supports.seconds_for_all(packed, size, supports.first_test(packed, limit), self.until.threads)
        if size in (3, 4) and provenance.kernel() is not None:
            chosen = Chosen.of(packed, size, noise, self.until.threads)
            if chosen.seconds < seconds:
                return _Step(size, noise, limit, chosen.seconds, chosen)
        return _Step(size, noise, limit, seconds, None)

    def _search(self, packed: Packed, step: _Step, until: Until) -> Found:
        start = time.perf_counter()
        if step.chosen is None:
            how, found = "all of them", supports.enumerate_all(packed, step.size, until, step.limit)
        else:
            how = f"by keys of {step.chosen.rows} rows, up to {step.chosen.trials} times"
            found = supports.meet_by_chosen(packed, step.size, step.chosen, step.limit, until, self.generator)
        said = "" if found.complete else f", {100 * found.share:.0f} % done when time was up"
        self._say(f"supports of {step.size} with up to {100 * step.noise:.3g} % noise",
                  how + said + ("" if found.supports else ": none"), start)
        return found

    def _pooled(self) -> Guess | None:
        x, y = self.votes.x, self.votes.labels
        start = time.perf_counter()
        columns = np.column_stack([x, np.ones(self.rows, bool)])
        found = gf2.pooled(columns, y, self.generator, 1.0, SUBSETS).support or []
        support = [j for j in found if j < self.n]
        guess = self._judged(support, self.n in found, "pooled-elimination", self._any_size())
        small = self.k is None or len(support) <= self.k
        fits = guess.chance <= ALARM and small
        said = _named(support) + _beyond(guess) if fits else "none"
        self._say(f"elimination of {SUBSETS} random subsets", said, start)
        return guess if fits else None

    # --- what it means ------------------------------------------------------------------------------------------

    def _of_size(self, size: int) -> float:
        """The logarithm of how many supports one of this size is one of, weighed so that all sizes together, and
        elimination, have one false alarm rate."""
        return math.log(math.comb(self.n, size)) + (size + 2) * math.log(2)

    def _any_size(self) -> float:
        return (self.n + 1) * math.log(2)

    def _most_errors(self, size: int) -> int:
        return most_errors(self.rows, self._of_size(size), ALARM)

    def _judged(self, support: list[int], negated: bool, method: str, log_supports: float, doubt: str = "") -> Guess:
        logs = log_supports + log_chance(parity(self.votes.x, support), self.votes.labels)
        return Guess(sorted(support), negated, method, math.exp(min(0.0, logs)), doubt)

    def _say(self, what: str, outcome: str, start: float) -> None:
        self.report.append(f"{what} ({time.perf_counter() - start:.2f} s): {outcome}")


def _named(support: Sequence[int]) -> str:
    return f"[{', '.join(map(str, support))}]" if len(support) <= 12 else f"a parity of {len(support)} features"


def _beyond(guess: Guess) -> str:
    if guess.chance <= ALARM:
        return f"; chance does so with probability {max(guess.chance, 1e-300):.1g} at most"
    return f"; chance may well do so ({guess.chance:.1g})"
