"""Kernels and random features: what a network can do if its features stay those of its initialisation.

Kernels are functions ``(x, z) -> matrix`` of inputs (count, n) and (other count, n). Classifiers are functions from
inputs to real scores, whose sign is the predicted label.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg  # pyright: ignore[reportMissingTypeStubs]

from paritylab.errors import require

Matrix = np.ndarray
Kernel = Callable[[Matrix, Matrix], Matrix]
Classifier = Callable[[Matrix], Matrix]
linalg: Any = scipy.linalg

ROWS = 1024
"""Rows of a Gram matrix that are made at a time, so that intermediate results stay small."""


def arc_cosine(x: Matrix, z: Matrix, degree: int = 1) -> Matrix:
    """The arc-cosine kernel of Cho and Saul: 2 E[step(w.x) step(w.z) (w.x)^degree (w.z)^degree] with w ~ N(0, I).

    >>> float(arc_cosine(np.ones((1, 4)), np.ones((1, 4)))[0, 0])
    4.0
    """
    return _angular(x, z, _arc_cosines(degree))


def ntk(x: Matrix, z: Matrix) -> Matrix:
    """The tangent kernel of an infinitely wide two-layer ReLU network without biases, both layers trained.

    E[x.z step(w.x) step(w.z) + relu(w.x) relu(w.z)] with w ~ N(0, I): half the arc-cosine kernel of degree 0 times x.z
    plus half that of degree 1.

    >>> float(ntk(np.ones((1, 4)), np.ones((1, 4)))[0, 0])
    4.0
    """
    step, ramp = _arc_cosines(0), _arc_cosines(1)
    return _angular(x, z, lambda rho, sizes: (sizes * rho * step(rho, sizes) + ramp(rho, sizes)) / 2)


def _arc_cosines(degree: int) -> Callable[[Matrix, Matrix], Matrix]:
    require(degree in (0, 1, 2), f"the degree of an arc-cosine kernel must be 0, 1 or 2, not {degree}")

    def kernel(rho: Matrix, sizes: Matrix) -> Matrix:
        left = np.pi - np.arccos(rho)
        if degree == 0:
            return left / np.pi
        sine = np.sqrt(1 - rho * rho)
        if degree == 1:
            return sizes * (sine + rho * left) / np.pi
        return sizes**2 * (3 * sine * rho + (1 + 2 * rho * rho) * left) / np.pi

    return kernel


def _angular(x: Matrix, z: Matrix, kernel: Callable[[Matrix, Matrix], Matrix]) -> Matrix:
    """A kernel of the cosine rho of the angle between two inputs and the product of their norms."""
    lengths, others = np.linalg.norm(x, axis=1), np.linalg.norm(z, axis=1)
    made = np.empty((len(x), len(z)), np.result_type(x, z, np.float32))
    for first in range(0, len(x), ROWS):
        rows = slice(first, first + ROWS)
        sizes = np.outer(lengths[rows], others)
        products = x[rows] @ z.T
        rho = np.divide(products, sizes, out=np.zeros_like(made[rows]), where=sizes > 0).clip(-1, 1)
        made[rows] = kernel(rho, sizes)
    return made


def gaussian(x: Matrix, z: Matrix, width: float) -> Matrix:
    """exp(-|x - z|^2 / (2 width^2)).

    >>> float(gaussian(np.zeros((1, 2)), np.ones((1, 2)), 1.0)[0, 0].round(4))
    0.3679
    """
    require(width > 0, f"the width of a Gaussian kernel must be positive, not {width:g}")
    squares = (x * x).sum(1)[:, None] + (z * z).sum(1)[None, :] - 2 * (x @ z.T)
    return np.exp(-np.maximum(squares, 0) / (2 * width**2))


def polynomial(x: Matrix, z: Matrix, degree: int, offset: float = 1.0) -> Matrix:
    """(offset + x.z / n)^degree for n inputs.

    >>> float(polynomial(np.ones((1, 4)), np.ones((1, 4)), 3)[0, 0])
    8.0
    """
    require(degree >= 1, f"the degree of a polynomial kernel must be at least 1, not {degree}")
    return (offset + x @ z.T / x.shape[1]) ** degree


def relu_features(
    inputs: int, count: int, generator: np.random.Generator, scale: float = 1.0, bias: float = 0.0,
    cap: float = math.inf,
) -> Callable[[Matrix], Matrix]:
    """A map to ``count`` random features min(relu(w.x + b), cap) / sqrt(count), w ~ N(0, scale^2), b ~ N(0, bias^2).

    ``cap=6`` gives ReLU6. With cap and bias left alone, their kernel tends to that of degree 1, halved, as count grows.

    >>> relu_features(3, 5, np.random.default_rng(0))(np.ones((2, 3))).shape
    (2, 5)
    """
    require(count >= 1, f"the number of features must be at least 1, not {count}")
    w = scale * generator.standard_normal((inputs, count))
    b = bias * generator.standard_normal(count)
    return lambda x: np.clip(x @ w + b, 0, cap) / math.sqrt(count)


def kernel_classifier(kernel: Kernel, x: Matrix, y: Matrix, ridge: float = 1e-6) -> Classifier:
    """Kernel ridge regression of labels y: scores kernel(., x) (kernel(x, x) + ridge I)^-1 y.

    >>> x = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    >>> kernel_classifier(ntk, x, x[:, 0] * x[:, 1])(x).round(3)
    array([ 1., -1., -1.,  1.])
    """
    _check(x, y, ridge)
    gram = kernel(x, x)
    gram[np.diag_indices_from(gram)] += ridge
    weights = linalg.solve(gram, y.astype(gram.dtype), assume_a="pos", overwrite_a=True)

    def scores(z: Matrix) -> Matrix:
        parts = [kernel(z[first : first + ROWS], x) @ weights for first in range(0, len(z), ROWS)]
        return np.concatenate(parts) if parts else np.zeros(0)

    return scores


def feature_classifier(
    features: Callable[[Matrix], Matrix], x: Matrix, y: Matrix, ridge: float = 1e-6, intercept: bool = False
) -> Classifier:
    """Ridge regression of labels y on features of x; the intercept, where asked for, is not penalised.

    >>> x = np.array([[1.0, 1], [1, -1], [-1, 1], [-1, -1]])
    >>> feature_classifier(lambda x: x, x, x[:, 0])(x).round(3)
    array([ 1.,  1., -1., -1.])
    """
    _check(x, y, ridge)
    phi = features(x).astype(np.float64)  # products of single precision can be singular in spite of a small ridge
    mean, level = (phi.mean(0), float(y.mean())) if intercept else (np.zeros(phi.shape[1]), 0.0)
    phi = phi - mean
    count, width = phi.shape
    if width <= count:
        weights = linalg.solve(phi.T @ phi + ridge * np.eye(width), phi.T @ (y - level), assume_a="pos")
    else:
        weights = phi.T @ linalg.solve(phi @ phi.T + ridge * np.eye(count), y - level, assume_a="pos")
    return lambda z: (features(z) - mean) @ weights + level


def _check(x: Matrix, y: Matrix, ridge: float) -> None:
    require(x.ndim == 2 and y.shape == (len(x),) and len(x) > 0,
            f"inputs must be (count, n) with as many labels, not {x.shape} and {y.shape}")
    require(ridge > 0, f"the ridge must be positive, not {ridge:g}")
