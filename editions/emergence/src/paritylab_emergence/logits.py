"""Networks with two logits as networks with one output.

Of two logits only the difference f = z1 - z0 matters, and cross-entropy is log(1 + exp(-y f)), the logistic loss. The
gradients of the two logits' weights are opposite, so Adam moves both by equal steps apart, and their difference by
twice such a step: one output, whose weights start as the difference of two draws and move at twice the rate, is the
same network at every step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from paritylab import MLP, Adam, Learner

BIT = math.log(2)
"""A bit in nats: the cross-entropy of two equal logits."""


def two_logits(widths: Sequence[int], batch: int, lr: float = 1e-3, eps: float = 1e-8) -> Learner:
    """A ReLU network on inputs 0 and 1 with PyTorch's start, two logits and cross-entropy, trained by Adam.

    >>> two_logits([128, 128], batch=10_000).optimiser.rates
    (1.0, 1.0, 2.0)
    """
    return Learner(MLP(widths, inputs="bits"), "logits torch", "logistic",
                   Adam(lr, rates=(*(1.0 for _ in widths), 2.0), eps=eps), batch)
