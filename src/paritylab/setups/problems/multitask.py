"""Several sparse parities at once, told apart by control bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from paritylab.errors import real, require, unknown, whole
from paritylab.setups.problems.problem import Problem
from paritylab.setups.problems.targets import Tasks

OVERLAPS = ("random", "disjoint")


def multitask(
    n: int,
    tasks: int = 16,
    k: int = 3,
    *,
    alpha: float = 0.0,
    overlap: str = "random",
    unions: Sequence[Sequence[int]] = (),
    seed: int = 0,
    solved: Sequence[int] | None = None,
    **more: Any,
) -> Problem:
    """A Problem of several parities of k of the same n bits; control bits, one for each task, come before them.

    Args:
        n: number of task bits; the Problem has ``tasks`` (and ``unions``) more.
        tasks: how many.
        k: the size of each support.
        alpha: task t is drawn with a frequency in proportion to (t + 1)^-alpha; 0 for all equally often.
        overlap: ``"random"`` supports, any k of n bits and no two the same, or ``"disjoint"`` ones.
        unions: for each a list of tasks; a further task has the union of their supports.
        seed: of the random supports.
        solved: the tasks that must be learned; all unless said.
        more: what else a Problem takes, such as ``noise`` or ``sample``.

    >>> problem = multitask(n=20, tasks=4, k=3, overlap="disjoint", unions=[(0, 1)])
    >>> problem.n, problem.tasks, problem.target.supports[-1]
    (25, 5, (5, 6, 7, 8, 9, 10))
    """
    n, tasks, k, alpha = whole("n", n), whole("tasks", tasks), whole("k", k), real("alpha", alpha)
    require(tasks >= 1, f"tasks must be at least 1, not {tasks}")
    require(1 <= k <= n, f"k must be in 1..n={n}, not {k}")
    if overlap not in OVERLAPS:
        raise unknown("overlap", str(overlap), OVERLAPS)
    if overlap == "disjoint":
        require(tasks * k <= n, f"{tasks} disjoint supports of {k} need n of at least {tasks * k}, not {n}")
        chosen = [tuple(range(t * k, (t + 1) * k)) for t in range(tasks)]
    else:
        chosen = _different(n, tasks, k, seed)
    for union in unions:
        require(all(0 <= t < tasks for t in union), f"a union is of tasks in 0..{tasks - 1}, not {list(union)}")
        chosen.append(tuple(sorted({j for t in union for j in chosen[t]})))
    count = len(chosen)
    supports = [tuple(count + j for j in support) for support in chosen]
    weights = None if alpha == 0 else tuple(float(t + 1) ** -alpha for t in range(count))
    return Problem(n + count, Tasks(supports, weights, solved), **more)


def _different(n: int, tasks: int, k: int, seed: int) -> list[tuple[int, ...]]:
    """So many random supports, no two the same."""
    generator, found = np.random.default_rng(seed), dict[tuple[int, ...], None]()
    for _ in range(100 * tasks):
        found[tuple(sorted(generator.choice(n, k, replace=False).tolist()))] = None
        if len(found) == tasks:
            return list(found)
    require(False, f"there are hardly {tasks} different supports of {k} of {n} bits")
    return []
