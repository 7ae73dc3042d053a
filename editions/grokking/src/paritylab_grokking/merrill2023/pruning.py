"""Which hidden units matter: the fewest, in the order of their norms, and what some of them say alone.

Params are those of a perceptron with one hidden layer and no output bias. The norm of a unit is that of its incoming
weights, without the bias.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from paritylab.aliases import Floats


class Sizes(NamedTuple):
    """How many units, the largest first, are as good as all of them."""

    accuracy: int
    """As often right."""
    predictions: int
    """With the same predictions."""


def hidden(params: Any, x: Floats) -> Floats:
    """max(0, w_j . x + b_j) of every unit: (inputs, width)."""
    layer = params[0]
    sums = x @ layer["w"]
    sums += layer["b"]  # in place: most of the time would go into fresh memory
    return np.maximum(sums, 0, out=sums)


def norms(params: Any) -> Floats:
    """Of the incoming weights: (..., width) for params with leading axes."""
    return np.sqrt(np.sum(np.square(params[0]["w"]), axis=-2))


def by_norm(params: Any) -> np.ndarray:
    """The units, the one with the largest norm first."""
    return np.argsort(-norms(params), kind="stable")


def fewest(params: Any, x: Floats, y: Floats) -> Sizes:
    """The smallest numbers of units, the largest first, that are as often right as all on examples, or say the same.

    >>> w, b = np.array([[3.0, -2.0, 0.1], [3.0, -2.0, 0.0]]), np.array([-3.0, -2.0, 0.0])
    >>> xor = [{"w": w, "b": b}, {"w": np.array([[1.0], [1.0], [-1.0]])}]
    >>> x = np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]])
    >>> fewest(xor, x, x.prod(axis=1))
    Sizes(accuracy=3, predictions=3)
    """
    order = by_norm(params)
    parts = hidden(params, x)[:, order] * params[1]["w"][order, 0]
    signs = np.sign(np.cumsum(parts, axis=1, dtype=np.float64))
    right = np.sum(signs == y[:, None], axis=0)
    same = np.all(signs == signs[:, -1:], axis=0)
    return Sizes(1 + int(np.argmax(right == right[-1])), 1 + int(np.argmax(same)))


def agreement(params: Any, x: Floats, sets: np.ndarray) -> Floats:
    """For sets of units (sets, width): the share of inputs at which they alone have the sign of the whole network."""
    v = params[1]["w"][:, 0]
    alone = np.sign(hidden(params, x) @ np.concatenate([v[None], v * sets]).T)
    return np.mean(alone[:, 1:] == alone[:, :1], axis=0)
