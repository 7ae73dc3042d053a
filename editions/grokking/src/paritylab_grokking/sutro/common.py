"""What the claims on trained networks share: a hidden layer on a finite sample, in passes, and when it is solved."""

from __future__ import annotations

import math

import numpy as np

from paritylab import MLP, Learner, Parity, Protocol, Result, Setup
from paritylab.aliases import Floats
from paritylab.claims.medians import samples
from paritylab.claims.published import table
from paritylab.setups.optimisers import Optimiser

BATCH = 32
INSIDE = 0.005
"""A published number lies between our 0.5 % and 99.5 % quantiles where so large a share of runs is on either side."""
UNREACHED = "none in"


def steps_of(sample: int) -> int:
    """Updates of a pass, the last by what is left.

    >>> steps_of(1000)
    32
    """
    return math.ceil(sample / BATCH)


def setup(
    n: int, k: int, sample: int, width: int, optimiser: Optimiser, passes: int, threshold: float, tested: int = 200
) -> Setup:
    """A hidden layer on ``sample`` examples in reshuffled passes, judged after each pass on ``tested`` inputs.

    The law is the same for all supports of k bits, so it is the first k.
    """
    each = steps_of(sample)
    learner = Learner(MLP(width), init="unbiased kaiming", loss="hinge", optimiser=optimiser, batch=BATCH)
    protocol = Protocol(max_steps=passes * each, eval_every=each, eval_size=tested, threshold=threshold)
    return Setup(Parity(n, k, sample=sample, short_last=True), learner, protocol)


def passes(result: Result, sample: int) -> Floats:
    """Passes until solved of each run; infinite where it was not."""
    return samples(result.records) / steps_of(sample)


def published(experiment: str, case: str) -> Floats:
    """The published numbers of a case; infinite where a run did not get there.

    >>> published("weight decay", "0.01").tolist()
    [49.0, 39.0, 28.0, 42.0, 37.0]
    """
    rows = table(__file__, "results").rows(named=True)
    found = [row["value"] for row in rows if (row["experiment"], row["case"]) == (experiment, case)]
    return np.array([math.inf if value.startswith(UNREACHED) else sum(map(float, value.split("+"))) for value in found])
