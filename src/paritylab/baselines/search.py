"""Search over all supports: blind guessing, and correlation with every candidate."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paritylab.aliases import Floats
from paritylab.errors import require

Subsets = NDArray[np.intp]
CHUNK = 2**13
MOST_SUBSETS = 2**12


@dataclass(frozen=True)
class RandomSearch:
    """Guessing one of C(n, k) supports at each step, with replacement, by each of ``searchers`` in parallel.

    The first success is geometric with rate 1 - (1 - 1/C(n, k))^searchers.

    >>> one, many = RandomSearch(30, 3), RandomSearch(30, 3, searchers=100)
    >>> round(one.mean, 6), one.quantile(0.5), round(many.mean, 1)
    (4060.0, 2814, 41.1)
    """

    n: int
    k: int
    searchers: int = 1

    def __post_init__(self) -> None:
        require(0 <= self.k <= self.n, f"a support has from 0 to {self.n} members, not {self.k}")
        require(self.searchers >= 1, f"there must be a searcher at least, not {self.searchers}")
        fewer = min(self.k, self.n - self.k)  # C(n, k) is at least (n / fewer)^fewer
        small = fewer == 0 or fewer * (math.log(self.n) - math.log(fewer)) < 300 * math.log(10)
        require(small and self._candidates < 10**300, f"there are more than 10^300 sets of {self.k} out of {self.n}")

    @cached_property
    def _candidates(self) -> int:
        return math.comb(self.n, self.k)

    @property
    def _log_failure(self) -> float:
        """log P(one step fails)."""
        return -math.inf if self._candidates == 1 else self.searchers * math.log1p(-1 / self._candidates)

    @property
    def rate(self) -> float:
        """P(one step succeeds)."""
        return -math.expm1(self._log_failure)

    @property
    def mean(self) -> float:
        """The expected number of steps."""
        return float(self._candidates) if self.searchers == 1 else 1 / self.rate

    def survival(self, steps: ArrayLike) -> Floats:
        """P(not found within ``steps``)."""
        t = np.asarray(steps, np.float64)
        require(bool(np.all(t >= 0)), "a number of steps is at least 0")
        with np.errstate(invalid="ignore"):
            return np.where(t == 0, 1.0, np.exp(np.floor(t) * self._log_failure))

    def quantile(self, q: float) -> int:
        """The least number of steps by which the support is found with probability ``q``."""
        require(0 < q < 1, f"a quantile must be between 0 and 1, not {q:g}")
        return max(1, math.ceil(math.log1p(-q) / self._log_failure))

    def sample(self, size: int, seed: int | np.random.Generator = 0) -> NDArray[np.int64]:
        """Numbers of steps that ``size`` searches took."""
        return np.random.default_rng(seed).geometric(self.rate, size)


def samples_needed(candidates: int, noise: float = 0.0, failure: float = 0.05) -> int:
    """Samples with which correlation above (1 - 2 noise)/2 tells the support from ``candidates`` others.

    By Hoeffding and a union bound: 8 log((candidates + 1)/failure) / (1 - 2 noise)^2.

    >>> samples_needed(math.comb(30, 3)), samples_needed(math.comb(30, 3), noise=0.25)
    (91, 362)
    """
    require(0 <= noise < 0.5, f"the flip rate must be at least 0 and below 1/2, not {noise:g}")
    require(0 < failure < 1, f"the probability of failure must be between 0 and 1, not {failure:g}")
    return math.ceil(8 * math.log((candidates + 1) / failure) / (1 - 2 * noise) ** 2)


class Found(NamedTuple):
    """The support with the largest correlation mean(y chi_T), and the largest one of all the other supports."""

    support: list[int]
    correlation: float
    runner_up: float


def exhaustive(x: ArrayLike, y: ArrayLike, k: int, absolute: bool = False) -> Found:
    """Correlate labels with chi_T for all C(n, k) supports T: x (samples, n) signs, y (samples,) signs, noisy or not.

    With ``absolute``, sizes of correlations are compared and reported, as for a classifier that may be anti-correlated.

    >>> x = np.random.default_rng(0).choice([-1, 1], (200, 20))
    >>> exhaustive(x, x[:, [3, 8, 17]].prod(1), 3)[:2]
    ([3, 8, 17], 1.0)
    """
    labels = np.asarray(y)
    require(bool(np.all(np.abs(labels) == 1)), "samples and labels are -1 or +1")
    best = Found([], -math.inf, -math.inf)
    for means, head, tails in correlations(x, labels, k):
        best = _better(best, np.abs(means) if absolute else means, head, tails)
    return best


def correlations(x: ArrayLike, y: ArrayLike, k: int) -> Iterator[tuple[Floats, Subsets, Subsets]]:
    """mean(y chi_T) for all C(n, k) supports T, in blocks (heads, tails), with those heads and tails; y are reals.

    >>> x = np.random.default_rng(0).choice([-1, 1], (200, 5))
    >>> sum(means.size for means, _, _ in correlations(x, x[:, 0] + 0.5, 2))
    10
    """
    signs, labels = np.asarray(x), np.asarray(y)
    require(signs.ndim == 2 and labels.shape == signs.shape[:1], "samples are (samples, n) signs with one label each")
    samples, n = signs.shape
    require(1 <= k <= n, f"a support has from 1 to {n} members, not {k}")
    require(samples >= 1, "a correlation needs samples")
    require(bool(np.all(np.abs(signs) == 1)), "samples and labels are -1 or +1")
    columns = np.ascontiguousarray(signs.T, np.float32)
    labels = labels.astype(np.float32)
    for head, tails in _blocks(n, k):
        total = np.zeros((len(head), len(tails)))
        for start in range(0, samples, CHUNK):  # sums of fewer than 2^24 signs are exact in float32
            part = columns[:, start : start + CHUNK]
            signed = _products(part, head) * labels[start : start + CHUNK]
            # Of 5 samples OpenBLAS's AVX-512 kernel reads what was left on the stack beside them; the sums are right,
            # but a signalling NaN there raises the flag that NumPy warns of.
            with np.errstate(invalid="ignore"):
                total += signed @ _products(part, tails).T
        yield total / samples, head, tails


def _blocks(n: int, k: int) -> Iterator[tuple[Subsets, Subsets]]:
    """Pairs of lists of index tuples: every support is one head followed by one tail, in exactly one pair.

    Heads of one pair end at the same input and tails lie beyond it, so no product is wasted on overlaps.
    """
    first = -(-k // 2)
    for last in range(first - 1, n - (k - first)):
        heads = np.array([(*rest, last) for rest in combinations(range(last), first - 1)])
        tails = np.array(list(combinations(range(last + 1, n), k - first)), np.intp)
        for i in range(0, len(heads), MOST_SUBSETS):
            for j in range(0, len(tails), MOST_SUBSETS):
                yield heads[i : i + MOST_SUBSETS], tails[j : j + MOST_SUBSETS]


def _products(columns: NDArray[np.float32], subsets: Subsets) -> NDArray[np.float32]:
    """chi_T of every sample, for each T: (subsets, samples)."""
    out = np.ones((len(subsets), columns.shape[1]), np.float32)
    for member in subsets.T:
        out *= columns[member]
    return out


def _better(best: Found, correlations: Floats, head: Subsets, tails: Subsets) -> Found:
    flat = correlations.reshape(-1)
    place = int(flat.argmax())
    top = float(flat[place])
    flat[place] = -math.inf
    second = float(flat.max())
    if top <= best.correlation:
        return best._replace(runner_up=max(best.runner_up, top))
    support = [*head[place // len(tails)].tolist(), *tails[place % len(tails)].tolist()]
    return Found(support, top, max(best.correlation, second))
