"""Gaussian elimination as a learner: strict, or pooled over random subsets to survive a little noise."""

from __future__ import annotations

import numpy as np

from paritylab.baselines import gf2
from paritylab.baselines.sources import Examples, Guess

NOISY = "inconsistent: the labels are noisy"
TRIALS = 500


def find(examples: Examples) -> Guess:
    """The one support that explains every label; refuses where there is none."""
    n = examples.x.shape[1]
    solution = gf2.solve(examples.x < 0, examples.y < 0)
    if solution.support is None:
        return Guess(refused=True, note=NOISY)
    if solution.rank < n:
        return Guess(note=f"undetermined: rank {solution.rank} of {n}")
    return Guess(tuple(solution.support))


def pooled(x: np.ndarray, y: np.ndarray, generator: np.random.Generator, enough: float, trials: int) -> gf2.Solution:
    """The best of solutions from random subsets of examples: bits x (m, n) and y (m,); with noise p a subset is clean
    with probability (1 - p)^rank.

    Ends early with a solution that explains a share ``enough`` of all labels. Where x has not full rank, a solution is
    one of several.

    >>> generator = np.random.default_rng(0)
    >>> x = generator.integers(0, 2, (200, 20))
    >>> y = (x[:, [3, 8]].sum(1) + (generator.random(200) < 0.05)) % 2
    >>> pooled(x, y, generator, 0.8, 100).support
    [3, 8]
    """
    best, most = gf2.Solution([], 0), -1.0
    for _ in range(trials):
        rows = generator.permutation(len(x))
        subset = _independent(x, rows)
        solution = gf2.solve(x[subset], y[subset])
        right = float(np.mean(x[:, solution.support or []].sum(axis=1) % 2 == y))
        if right > most:
            best, most = solution, right
        if most >= enough:
            break
    return best


def _independent(x: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The first of ``rows`` of x that are linearly independent and span all of them: no labels on them contradict."""
    few = rows[: x.shape[1] + 20]
    return few[gf2.pivots(x[few].T)]


def find_pooled(examples: Examples) -> Guess:
    """As :func:`pooled`, from at most 500 subsets; needs a solution that the labels bear out."""
    x, y = examples.x < 0, examples.y < 0
    solution = pooled(x, y, examples.generator, 0.75 - examples.noise / 2, TRIALS)
    if solution.rank < x.shape[1]:
        return Guess(note=f"undetermined: rank {solution.rank} of {x.shape[1]}")
    right = float(np.mean(x[:, solution.support or []].sum(axis=1) % 2 == y))
    if right < 0.75 - examples.noise / 2:
        return Guess(note=f"no subset of {TRIALS} was clean")
    return Guess(tuple(solution.support or ()))
