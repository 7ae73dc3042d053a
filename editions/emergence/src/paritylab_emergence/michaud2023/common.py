"""What the claims share: parities of Zipf's frequencies, the network that learns them, and what its losses say."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from paritylab import Problem, Protocol, Setup, Tasks, multitask
from paritylab.aliases import Floats
from paritylab.claims.published import table
from paritylab.engines.curves import Curves
from paritylab_emergence import skills
from paritylab_emergence.fits import Exponent
from paritylab_emergence.logits import BIT, two_logits

JUDGED = 1000
"""Fresh inputs of each subtask at a check."""
Row = dict[str, Any]


@functools.lru_cache(maxsize=512)
def zipf(
    subtasks: int, task_bits: int, k: int, alpha: float, width: int, batch: int, seed: int, sample: int | None = None
) -> Setup:
    """Parities whose frequencies fall as i^-(alpha + 1), on random supports that belong to a seed.

    >>> setup = zipf(500, 100, 3, 0.4, 500, 20_000, seed=0)
    >>> setup.problem.n, round(float(frequencies(setup)[0]), 6)
    (600, 0.345126)
    """
    problem = multitask(task_bits, subtasks, k, alpha=alpha + 1, seed=seed, sample=sample)
    return Setup(problem, two_logits([width], batch), Protocol(eval_size=subtasks * JUDGED, fresh=True))


def frequencies(setup: Setup) -> Floats:
    """How often each subtask is asked for."""
    assert isinstance(setup.problem, Problem)
    assert isinstance(setup.problem.target, Tasks)
    weights = np.array(setup.problem.target.weights)
    return weights / weights.sum()


def subtask_bits(curves: Curves) -> Floats:
    """Losses in bits (points, subtasks) of the one run that was recorded."""
    assert curves.task_loss is not None
    return curves.task_loss[0] / BIT


def mean_bits(setup: Setup, curves: Curves) -> Floats:
    """The mean loss in bits (points,) with the frequencies of training."""
    return subtask_bits(curves) @ frequencies(setup)


def published(law: str) -> dict[float, Exponent]:
    """The published exponents by alpha: of the loss in ``N``, ``S`` or ``D``, or ``n`` of subtasks learned.

    >>> published("N")[0.1]
    Exponent(value=0.2286, error=0.0096, freedom=inf)
    """
    rows = table(__file__, "exponents").rows(named=True)
    return {row["alpha"]: Exponent(row["exponent"], row["standard_error"]) for row in rows if row["law"] == law}


def theory(law: str, alpha: float) -> float:
    """The exponent that the quantization model predicts.

    >>> theory("N", 0.4), round(theory("S", 0.4), 3), round(theory("n", 0.4), 3)
    (0.4, 0.286, 0.714)
    """
    return skills.exponents(alpha)["NSDn".index(law)]
