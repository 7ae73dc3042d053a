"""Margins: the distribution of y f(x), where y is the target; raw, or normalised by the size of outputs or weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from paritylab.aliases import Floats
from paritylab.errors import require, unknown
from paritylab.measures.inside import intervals
from paritylab.measures.inside.outputs import each, judged
from paritylab.measures.inside.subjects import Networks, Subjects, subjects
from paritylab.measures.inside.tables import Sampled, table

SAMPLES = 2**17
LEVELS = (0.01, 0.1, 0.5, 0.9)
NORMS = ("output", "weights")


@dataclass(frozen=True, eq=False, repr=False)
class Margins(Sampled):
    """Of each network: ``accuracy``, the share of margins above 0; ``mean``; the ``smallest`` that was seen; and
    ``quantiles`` (..., levels) at the shares ``levels``.

    Of a sample, ``low`` and ``high`` (..., levels) are the ends of intervals of all quantiles that hold together,
    whatever the distribution, and ``accuracy_low`` and ``accuracy_high`` those of the accuracy (exact, each by itself);
    the smallest is an upper bound of the smallest of all inputs. ``output_norm`` is the root mean square of the
    output, ``weight_norm`` the product of the Euclidean norms of the layers (None where they are not known).
    """

    levels: tuple[float, ...]
    accuracy: Any
    accuracy_low: Any
    accuracy_high: Any
    mean: Any
    smallest: Any
    quantiles: Floats
    low: Floats
    high: Floats
    output_norm: Any
    weight_norm: Any

    def normalised(self, by: str = "output") -> Floats:
        """The quantiles divided by a norm: ``output``, or ``weights``, the scale of a network without biases whose
        activation is relu."""
        if by not in NORMS:
            raise unknown("norm", by, NORMS)
        norm = self.output_norm if by == "output" else self.weight_norm
        require(norm is not None, "the norms of layers are those of a perceptron; normalise by 'output'")
        return self.quantiles / np.asarray(norm)[..., None]

    def to_frame(self) -> Any:
        """A row for each network."""
        columns = {"accuracy": self.accuracy, "mean": self.mean, "smallest": self.smallest}
        columns |= {f"q{100 * share:g}": self.quantiles[..., i] for i, share in enumerate(self.levels)}
        columns |= {"output_norm": self.output_norm}
        if self.weight_norm is not None:
            columns |= {"weight_norm": self.weight_norm}
        return table(self.about, columns, np.shape(self.accuracy))


def margins(
    networks: Networks,
    *,
    levels: Sequence[float] = LEVELS,
    samples: int | None = None,
    level: float = intervals.LEVEL,
    seed: int = 0,
    progress: bool | None = None,
) -> Margins:
    """The distribution of y f(x) over all inputs, or a sample of the problem's own.

    Args:
        networks: a TrainedNetwork, TrainedNetworks, or a pair (setup, params) with any leading axes.
        levels: which quantiles: the least margin that at least this share of the inputs does not exceed.
        samples: None for all inputs where they are uniform and n is at most 20, otherwise 2^17 by the problem's law;
            or how many.
        level: of the intervals of a sample.
        seed: of the sample.
        progress: whether to show a progress bar; where someone is watching unless said.

    >>> import paritylab as pl
    >>> setup = pl.Setup(pl.Parity(n=4, k=2), pl.Learner(pl.MLP(2)))
    >>> xor = [{"w": np.array([[1, -1], [1, -1], [0, 0], [0, 0]]), "b": np.array([-1, -1])},
    ...        {"w": np.full((2, 1), 2.0), "b": np.array([-1.0])}]
    >>> found = margins((setup, xor))
    >>> float(found.accuracy), float(found.smallest), found.quantiles.tolist()
    (1.0, 1.0, [1.0, 1.0, 1.0, 1.0])
    """
    shares = np.array([float(share) for share in levels])
    require(len(shares) > 0 and bool(np.all((shares > 0) & (shares < 1))), "levels must be shares between 0 and 1")
    given = subjects(networks)
    places, labels = judged(given, samples, SAMPLES, seed)
    count = places.count
    ranks = np.ceil(shares * count).astype(int) - 1

    def look(i: int, f: Floats) -> tuple[Any, ...]:
        found = labels[i] * f
        size = np.sqrt(np.square(f, dtype=np.float64).mean())
        right = int((found > 0).sum())
        told = right / count, found.mean(dtype=np.float64), found.min().astype(np.float64), size
        if places.exact:
            quantiles = np.partition(found, ranks)[ranks].astype(np.float64)
            return *told, quantiles, quantiles, quantiles, right / count, right / count
        ordered = np.sort(found).astype(np.float64)
        ends = intervals.of_quantiles(ordered, shares, level, len(shares))
        return *told, ordered[ranks], *ends, *intervals.of_shares(right, count, level, 1)

    columns = (given.shaped(np.stack(column)) for column in zip(*each(given, places, look, progress), strict=True))
    accuracy, mean, smallest, size, quantiles, low, high, accuracy_low, accuracy_high = columns
    return Margins(tuple(shares.tolist()), accuracy, accuracy_low, accuracy_high, mean, smallest, quantiles, low, high,
                   size, _weight_norm(given), samples=places.samples, level=level, about=given.about)


def _weight_norm(given: Subjects) -> Any:
    """The product over layers of the norm of all its weights and biases."""
    if given.mlp is None:
        return None
    squares = [sum(np.square(leaf, dtype=np.float64).reshape(len(given), -1).sum(1) for leaf in jax.tree.leaves(layer))
               for layer in given.params]
    return given.shaped(np.sqrt(np.prod(squares, axis=0)))
