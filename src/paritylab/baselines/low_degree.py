"""Low-degree Fourier estimation: the largest of all estimated coefficients of degree at most k."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.special  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import ArrayLike

from paritylab.baselines.search import Found, correlations
from paritylab.baselines.sources import Examples, Guess
from paritylab.baselines.targets import Support, Term, kind_of
from paritylab.errors import require
from paritylab.setups.problems import AnyProblem

special: Any = scipy.special


def largest(x: ArrayLike, y: ArrayLike, degree: int) -> Found:
    """The largest |mean(y chi_T)| over all supports T of at most ``degree`` members, and the next one.

    >>> x = np.random.default_rng(0).choice([-1, 1], (200, 12))
    >>> largest(x, -x[:, [3, 8]].prod(1), degree=3)[:2]
    ([3, 8], 1.0)
    """
    (support, first), *others = ranked(x, y, degree, 2)
    return Found(list(support), abs(first), abs(others[0][1]) if others else -1.0)


def ranked(x: ArrayLike, y: ArrayLike, degree: int, count: int) -> list[tuple[Support, float]]:
    """The ``count`` supports T of at most ``degree`` members with the largest |mean(y chi_T)|, and these means.

    >>> x = np.random.default_rng(0).choice([-1, 1], (400, 12))
    >>> [T for T, _ in ranked(x, x[:, 5] - 0.5 * x[:, [3, 8]].prod(1), degree=2, count=2)]
    [(5,), (3, 8)]
    """
    signs, values = np.asarray(x), np.asarray(y)
    require(0 <= degree <= signs.shape[1], f"the degree must be from 0 to {signs.shape[1]}, not {degree}")
    best: list[tuple[Support, float]] = [((), float(values.mean()))]
    for size in range(1, degree + 1):
        for means, head, tails in correlations(signs, values, size):
            flat = means.reshape(-1)
            most = min(count, len(flat))
            for place in np.argpartition(-np.abs(flat), most - 1)[:most].tolist():
                i, j = divmod(place, len(tails))
                best.append(((*head[i].tolist(), *tails[j].tolist()), float(flat[place])))
            best = sorted(best, key=lambda each: -abs(each[1]))[:count]
    return best


def terms(x: ArrayLike, y: ArrayLike, degree: int, count: int, noise: float = 0.0) -> tuple[Term, ...]:
    """The ``count`` largest Fourier coefficients of degree at most ``degree``, from uniform examples of any function.

    y are real labels, or signs, of which a share ``noise`` has been flipped. A coefficient's 95 % interval is
    Student's, from the spread of y chi_T; it is that of one coefficient, and says nothing of those not listed.

    >>> x = np.random.default_rng(1).choice([-1, 1], (4000, 12))
    >>> for term in sorted(terms(x, np.sign(x[:, 4] + x[:, 7] + x[:, 9]), degree=3, count=4)):
    ...     print(term.support, *(round(number, 2) for number in term[1:]))
    (4,) 0.48 0.45 0.51
    (4, 7, 9) -0.51 -0.54 -0.48
    (7,) 0.51 0.48 0.53
    (9,) 0.5 0.48 0.53
    """
    require(count >= 1, f"the number of terms must be at least 1, not {count}")
    require(0 <= noise < 0.5, f"the flip rate must be at least 0 and below 1/2, not {noise:g}")
    signs, values = np.asarray(x), np.asarray(y)
    return estimates(signs, values, [T for T, _ in ranked(signs, values, degree, count)], noise)


def estimates(x: np.ndarray, y: np.ndarray, supports: Sequence[Support], noise: float) -> tuple[Term, ...]:
    """The coefficients at given supports."""
    bias, m = 1 - 2 * noise, len(y)
    reach = float(special.stdtrit(m - 1, 0.975)) / math.sqrt(m) if m > 1 else math.inf
    found = []
    for support in supports:
        products = y * x[:, list(support)].prod(axis=1) / bias
        mean, spread = float(products.mean()), float(products.std(ddof=1)) if m > 1 else 1.0
        found.append(Term(support, mean, mean - reach * spread, mean + reach * spread))
    return tuple(found)


def find(examples: Examples) -> Guess:
    """As many of the largest coefficients as there are parities, if there is no tie for the last place and all are at
    least half of what the smallest should be."""
    count, bias = examples.count, 1 - 2 * examples.noise
    found = ranked(examples.x, examples.y, examples.k, count + 1)
    sizes = [abs(mean) for _, mean in found]
    if len(sizes) > count and sizes[count - 1] <= sizes[count]:
        return Guess(note="two coefficients are equally large")
    if sizes[count - 1] < bias * examples.least / 2:
        return Guess(note="no coefficient stands out" if count == 1 else f"fewer than {count} coefficients stand out")
    named = estimates(examples.x, examples.y, [T for T, _ in found[:count]], examples.noise)
    return Guess(named[0].support if count == 1 else None, terms=named)


def refuses(problem: AnyProblem) -> str:
    """Why it cannot find the target of a Problem: the means of other inputs are not the coefficients."""
    if kind_of(problem) == "polynomial" and not problem.packed:
        return "needs uniform inputs to find the terms of a polynomial"
    return ""
