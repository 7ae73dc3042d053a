"""Theorem 4 of Abbe et al.: the output layer of a network of sign neurons learns the full parity in one step.

w.x depends on the number of agreeing signs only, so that the network's 2^d outputs are a convolution over the cube and
cost a few Walsh-Hadamard transforms, whatever the width. Inputs and weight vectors are numbered as in
``measures.fourier.cube``: bit j is set where entry j is -1.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from abbe2024.theory.high_degree import activation_moments, recommended_bias
from paritylab.aliases import Floats
from paritylab.errors import require
from paritylab.measures.coefficients import character, sums
from paritylab.measures.fourier import walsh_hadamard

Codes = NDArray[np.integer[Any]]
MOST_INPUTS = 22


def full_parity(d: int) -> Floats:
    """The product of all signs, for all numbered vectors.

    >>> full_parity(2)
    array([ 1., -1., -1.,  1.])
    """
    return character(np.ones(d, bool))


def cube_outputs(d: int, codes: Codes, bias: ArrayLike, v: ArrayLike, clip: float | None = None) -> Floats:
    """sum_i v_i relu(w_i.x + b_i) at all 2^d inputs x for sign weights w_i given by their numbers; clipped if asked.

    >>> cube_outputs(2, np.array([0, 3]), 0.0, [1.0, 10.0])
    array([ 2.,  0.,  0., 20.])
    """
    require(1 <= d <= MOST_INPUTS, f"all inputs can be visited for d from 1 to {MOST_INPUTS}, not {d}")
    biases = np.broadcast_to(np.asarray(bias, float), codes.shape)
    if clip is not None:
        return cube_outputs(d, codes, biases, v) - cube_outputs(d, codes, biases - clip, v)
    outputs, size = np.asarray(v, float), 2**d
    # w.x is the sum of the signs of the entrywise product, whose number is the exclusive or of theirs
    total = sums(np.ones(d))
    least = d - 2 * np.floor((d + biases) / 2)
    spectrum = np.zeros(size)
    for cut in np.unique(least):
        chosen = least == cut
        active = 1.0 * (total >= cut)
        pairs = (outputs[chosen], total * active), (outputs[chosen] * biases[chosen], active)
        for weights, kernel in pairs:
            if np.any(weights):
                measure = np.bincount(codes[chosen], weights, size)
                spectrum += walsh_hadamard(measure) * walsh_hadamard(kernel)
    return walsh_hadamard(spectrum) / size


def population_step(d: int, codes: Codes, bias: ArrayLike, clip: float | None = None) -> Floats:
    """Output weights after one step of rate 1 from 0 on the correlation loss: Delta_{d, b_i} prod_j w_ij (eq. 14).

    >>> population_step(4, np.array([0, 1]), 0.0)
    array([-0.25,  0.25])
    """
    biases = np.broadcast_to(np.asarray(bias, float), codes.shape)
    values, where = np.unique(biases, return_inverse=True)
    if len(values) <= 8:
        deltas = np.array([float(activation_moments(d, float(b), clip)[0]) for b in values])[where]
    else:
        deltas = _delta(d, biases) if clip is None else _delta(d, biases) - _delta(d, biases - clip)
    return deltas * full_parity(d)[codes]


def _delta(d: int, biases: Floats) -> Floats:
    negative = np.arange(d + 1)
    masses = np.array([(-1) ** m * math.comb(d, m) / 2**d for m in range(d + 1)])
    return np.maximum(0.0, np.add.outer(biases, d - 2.0 * negative)) @ masses


@dataclass(frozen=True)
class OneStep:
    """How a network with trained output weights does on all 2^d inputs.

    ``errors`` inputs are not classified rightly; ``margin`` is the smallest f(x) N(x) for output weights of norm 1.
    """

    d: int
    width: int
    errors: int
    margin: float
    v: Floats = field(repr=False)

    @property
    def accuracy(self) -> float:
        return 1 - self.errors / 2**self.d


def judge(d: int, codes: Codes, bias: ArrayLike, v: Floats, clip: float | None = None) -> OneStep:
    """Errors and margin over the whole cube; an output of 0 (to rounding) is an error."""
    signed = full_parity(d) * cube_outputs(d, codes, bias, v, clip)
    norm = float(np.linalg.norm(v))
    rounding = 1e-12 * d * float(np.abs(v).sum())
    errors = int(np.count_nonzero(signed <= rounding))
    return OneStep(d, len(codes), errors, float(signed.min()) / norm if norm else 0.0, v)


def one_step(
    d: int,
    width: int,
    bias: ArrayLike | None = None,
    tau: float = 0.0,
    clip: float | None = None,
    seed: int | np.random.Generator = 0,
) -> OneStep:
    """Theorem 4.1 and 4.2: one population step with gradient noise N(0, tau^2) from random sign neurons.

    ``bias`` is one number or one per neuron; None takes the recommended one.

    >>> one_step(8, 8**4).accuracy, one_step(8, 8**2).errors > 0
    (1.0, True)
    """
    generator = np.random.default_rng(seed)
    codes = generator.integers(0, 2**d, width)
    biases = recommended_bias(d) if bias is None else bias
    v = population_step(d, codes, biases, clip)
    if tau:
        v = v + tau * generator.standard_normal(width)
    return judge(d, codes, biases, v, clip)


def sgd_steps(
    d: int, width: int, steps: int, batch: int = 1, tau: float = 0.0, seed: int | np.random.Generator = 0
) -> OneStep:
    """Theorem 4.3: SGD of rate 1 on the output layer alone, correlation loss, noise N(0, tau^2) in each step.

    The loss is linear in the output weights: what counts is the sum over all samples, and the sum of the noise.

    >>> sgd_steps(6, 6**4, 16 * 6**5).accuracy
    1.0
    """
    require(steps >= 1 and batch >= 1, "training takes a step and a sample at least")
    generator = np.random.default_rng(seed)
    codes = generator.integers(0, 2**d, width)
    bias = recommended_bias(d)
    counts = generator.multinomial(steps * batch, np.full(2**d, 2.0**-d))
    # relu(w.x + b) is symmetric in w and x: the samples act as neurons, and the weights as the inputs they are seen at
    v = cube_outputs(d, np.arange(2**d), bias, full_parity(d) * counts / batch)[codes]
    if tau:
        v = v + tau * math.sqrt(steps) * generator.standard_normal(width)
    return judge(d, codes, bias, v)
