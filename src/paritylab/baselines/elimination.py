"""Gaussian elimination as a learner: strict, or over random subsets, pooled or by a vote, to survive a little noise."""

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


def find_pooled(examples: Examples) -> Guess:
    """As :func:`gf2.pooled`, from at most 500 subsets; needs a solution that the labels bear out."""
    x, y = examples.x < 0, examples.y < 0
    solution = gf2.pooled(x, y, examples.generator, 0.75 - examples.noise / 2, TRIALS)
    if solution.rank < x.shape[1]:
        return Guess(note=f"undetermined: rank {solution.rank} of {x.shape[1]}")
    right = float(np.mean(x[:, solution.support or []].sum(axis=1) % 2 == y))
    if right < 0.75 - examples.noise / 2:
        return Guess(note=f"no subset of {TRIALS} was clean")
    return Guess(tuple(solution.support or ()))


def find_voted(examples: Examples) -> Guess:
    """The support that most of 100 random subsets of n examples give; no label is looked at again."""
    m, n = examples.x.shape
    if m < n:
        return Guess(note=f"undetermined: a subset has {n} examples, and there are {m}")
    found = gf2.vote(examples.x < 0, examples.y < 0, examples.generator)
    return Guess(note=NOISY) if found.support is None else Guess(tuple(found.support))
