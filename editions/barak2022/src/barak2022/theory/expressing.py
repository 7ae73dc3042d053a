"""What output weights make of given features: the least ones with which a network has no hinge loss."""

from __future__ import annotations

import math

import numpy as np
from scipy import optimize

from barak2022.theory.two_stage import Layer
from paritylab.aliases import Floats
from paritylab.measures.fourier import cube

UNRESOLVED = 1e-9


def least_output(features: Floats, labels: Floats) -> Floats | None:
    """The output weights of least norm with y f >= 1 at every input, features (inputs, units); None if there are none.

    Least-distance programming by non-negative least squares (Lawson and Hanson, chapter 23).

    >>> least_output(np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([1.0, -1.0]))
    array([ 1. , -0.5])
    >>> least_output(np.array([[1.0], [1.0]]), np.array([1.0, -1.0])) is None
    True
    """
    margins = labels[:, None] * features
    system = np.concatenate([margins.T, np.ones((1, len(labels)))])
    target = np.append(np.zeros(features.shape[1]), 1.0)
    solution, _ = optimize.nnls(system, target)
    residual = system @ solution - target
    return None if abs(residual[-1]) < UNRESOLVED else -residual[:-1] / residual[-1]


def expresses_parity(layer: Layer, k: int) -> bool:
    """Whether a layer after its exact first step, the irrelevant weights left out, has the output that Lemma 4 says.

    No hinge loss on all patterns of the support, with |u| at most 8k for each unit and 8 k sqrt(k) together.
    """
    x = cube(k)
    found = least_output(np.maximum(x @ layer.w[:, :k].T + layer.b, 0), x.prod(1))
    if found is None:
        return False
    return bool(np.linalg.norm(found) <= 8 * k * math.sqrt(k) and np.abs(found).max() <= 8 * k)
