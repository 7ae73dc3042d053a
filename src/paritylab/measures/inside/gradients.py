"""The gradient alignment of a network as it is: |Gamma_f - Gamma_r|^2 of Abbe et al. (2024), at given params.

Gamma_f is the gradient of the mean loss with the target's labels, Gamma_r that with random ones. :func:`pl.alignment`
is the mean of this over random initial weights, with the correlation loss; along training it says how much of the
target the gradient sees.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from paritylab.aliases import Floats
from paritylab.errors import require
from paritylab.measures.inside import intervals
from paritylab.measures.inside.derivatives import derivatives, examples, row
from paritylab.measures.inside.outputs import judged, over
from paritylab.measures.inside.subjects import Networks, Subjects, subjects
from paritylab.measures.inside.tables import Sampled, table
from paritylab.measures.precision import double
from paritylab.setups.losses import LossLike

MOST_EXACT = 16
SAMPLES = 2**15
GROUPS = 16
PARTS = ("weights in S", "weights outside S", "biases", "later weights")


@dataclass(frozen=True, eq=False, repr=False)
class GradientAlignment(Sampled):
    """Of each network |Gamma_f - Gamma_r|^2: ``total``, and (..., parts) what it consists of, by the names ``names``.

    Those are the first layer's weights at inputs of the target S and at others, all biases, and the weights of later
    layers; other networks than perceptrons have their arrays. Of a sample, values are unbiased (and may be below 0),
    and ``low`` and ``high`` (..., parts + 1), of the parts and of the total, the ends of intervals, each by itself.
    """

    names: tuple[str, ...]
    total: Any
    parts: Floats
    low: Floats
    high: Floats

    def to_frame(self) -> Any:
        """A row for each network and part; the last is the total."""
        values = np.concatenate([self.parts, np.asarray(self.total)[..., None]], axis=-1)
        columns = {"part": np.array([*self.names, "total"], object), "alignment": values, "low": self.low,
                   "high": self.high}
        return table(self.about, columns, np.shape(self.total))


def alignment(
    networks: Networks,
    *,
    loss: LossLike | None = None,
    samples: int | None = None,
    level: float = intervals.LEVEL,
    seed: int = 0,
    progress: bool | None = None,
) -> GradientAlignment:
    """The squared length of the gradient on the target less that on random labels.

    Args:
        networks: a TrainedNetwork, TrainedNetworks, or a pair (setup, params) with any leading axes: the weights of
            ``pl.curves(..., weights=True)`` give it along training.
        loss: the loss, if not the one that is trained; ``correlation`` is that of the paper.
        samples: None for all inputs where they are uniform and n is at most 16, otherwise 2^15 by the problem's law;
            or how many.
        level: of the intervals, where it is sampled.
        seed: of the sample.
        progress: whether to show a progress bar; where someone is watching unless said.

    >>> import paritylab as pl
    >>> setup = pl.Setup(pl.Parity(n=5, k=2), pl.Learner(pl.MLP(1, output_bias=False)))
    >>> one = [{"w": np.ones((5, 1)), "b": np.zeros(1)}, {"w": np.array([[2.0]])}]
    >>> found = alignment((setup, one), loss="correlation")  # the gradient is that of pl.population_gradient
    >>> found.parts[:2].tolist()  # 2 (0.375)^2 and 3 (0.125)^2
    [0.28125, 0.046875]
    """
    given = subjects(networks)
    here = judged(given, samples, SAMPLES, seed, MOST_EXACT)
    count = here.places.count
    require(here.places.exact or count >= 2 * GROUPS, f"a sample must have at least {2 * GROUPS} inputs, not {count}")
    names, where = _parts(given)
    made = derivatives(given, loss)

    def look(i: int) -> tuple[Any, ...]:
        theta, place = row(given, i), where[i]
        groups = [None] if here.places.exact else np.array_split(np.arange(count // GROUPS * GROUPS), GROUPS)
        with double():
            found = np.array([np.asarray(made.excess(theta, theta, examples(here, i, group))) for group in groups])
        if here.places.exact:
            parts = np.bincount(place, np.square(found[0]), len(names))
            return parts.sum(), parts, *([np.append(parts, parts.sum())] * 2)
        every = _with_total(_products(found, place, len(names)))
        without = np.array([_with_total(_products(np.delete(found, group, 0), place, len(names)))
                            for group in range(GROUPS)])
        spread = (GROUPS - 1) * np.square(without - without.mean(0)).sum(0)  # the jackknife's variance, times GROUPS
        low, high = intervals.of_means(every, spread, GROUPS, level, 1)
        return every[-1], every[:-1], np.maximum(low, 0.0), high

    columns = zip(*over(range(len(given)), look, progress), strict=True)
    total, parts, low, high = (given.shaped(np.stack(column)) for column in columns)
    return GradientAlignment(names, total, parts, low, high, samples=here.places.samples, level=level,
                             about=given.about)


def _products(gradients: Floats, place: np.ndarray, parts: int) -> Floats:
    """The mean product of two different gradients, by parts: unbiased for the square of their mean."""
    count = len(gradients)
    pairs = (np.square(gradients.sum(0)) - np.square(gradients).sum(0)) / (count * (count - 1))
    return np.asarray(np.bincount(place, pairs, parts), np.float64)


def _with_total(parts: Floats) -> Floats:
    return np.append(parts, parts.sum())


def _parts(given: Subjects) -> tuple[tuple[str, ...], np.ndarray]:
    """The names of the parts, and for each network and param which part it is of."""
    leaves = jax.tree_util.tree_leaves_with_path(given.one(0))
    if given.mlp is None:
        names = tuple(jax.tree_util.keystr(path, simple=True, separator=".") or "params" for path, _ in leaves)
        place = np.repeat(np.arange(len(leaves)), [np.size(leaf) for _, leaf in leaves])
        return names, np.tile(place, (len(given), 1))
    inside, rows = given.supports(), []
    for own in inside:
        parts = []
        for (layer, name), leaf in ((_keys(path), leaf) for path, leaf in leaves):
            shape = np.shape(leaf)
            first = np.broadcast_to(np.where(own, 0, 1)[:, None], shape) if layer == 0 and name == "w" else None
            parts.append(np.full(shape, 2 if name == "b" else 3) if first is None else first)
        rows.append(np.concatenate([part.reshape(-1) for part in parts]))
    return PARTS, np.array(rows)


def _keys(path: Any) -> tuple[int, str]:
    layer, name = path
    return layer.idx, name.key
