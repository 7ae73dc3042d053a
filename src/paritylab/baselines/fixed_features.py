"""Ridge regression with kernels and random features as learners: they predict, and name no support."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from paritylab.baselines import kernels
from paritylab.baselines.sources import Examples, Guess

FEATURES = 4096


def find_ntk(examples: Examples) -> Guess:
    """The tangent kernel of a wide ReLU network with biases as strong as all inputs together.

    Without biases, parities of odd k above 1 would be orthogonal to the kernel.
    """
    scale = 2 * examples.x.shape[1]
    return _regression(examples, lambda x, z: kernels.ntk(_biased(x), _biased(z)) / scale)


def find_gaussian(examples: Examples) -> Guess:
    """The Gaussian kernel of width sqrt(n)."""
    width = math.sqrt(examples.x.shape[1])
    return _regression(examples, lambda x, z: kernels.gaussian(x, z, width))


def find_polynomial(examples: Examples) -> Guess:
    """The kernel (1 + x.z / n)^k, divided by 2^k."""
    degree = max(1, examples.k)
    return _regression(examples, lambda x, z: kernels.polynomial(x, z, degree) / 2**degree)


def find_features(examples: Examples) -> Guess:
    """4096 random ReLU features with biases."""
    n = examples.x.shape[1]
    features = kernels.relu_features(n, FEATURES, examples.generator, scale=n**-0.5, bias=1.0)
    x, y = examples.x.astype(float), examples.y.astype(float)
    return _predictor(kernels.feature_classifier(features, x, y, _ridge(examples)))


def _regression(examples: Examples, kernel: kernels.Kernel) -> Guess:
    x, y = examples.x.astype(float), examples.y.astype(float)
    return _predictor(kernels.kernel_classifier(kernel, x, y, _ridge(examples)))


def _ridge(examples: Examples) -> float:
    """The variance of the labels' noise, as for a Gaussian process whose kernel is 1 on the diagonal."""
    return max(1e-6, 4 * examples.noise * (1 - examples.noise))


def _predictor(scores: Callable[[np.ndarray], np.ndarray]) -> Guess:
    return Guess(predict=lambda x: scores(x.astype(float)))


def _biased(x: np.ndarray) -> np.ndarray:
    return np.column_stack([x, np.full(len(x), math.sqrt(x.shape[1]))])
