"""Influences: how much one input matters to what a network computes.

Of the sign of f, the influence of input j is the chance that flipping it flips the sign; of the output f it is
E ((f(x) - f(x with x_j flipped)) / 2)^2. Both are the sum of squared coefficients at the sets that hold j. x is
uniform.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from paritylab.aliases import Floats
from paritylab.measures.coefficients import first_order
from paritylab.measures.inside import intervals
from paritylab.measures.inside.fourier import OUTPUT, SIGN, kind_of, transform, values_of
from paritylab.measures.inside.outputs import Places, each, outputs, over, uniform
from paritylab.measures.inside.subjects import Networks, subjects
from paritylab.measures.inside.tables import Sampled, table

SAMPLES = 2**14


@dataclass(frozen=True, eq=False, repr=False)
class Influences(Sampled):
    """The influence of every input, (..., n), and the ends of intervals that hold together for all inputs of a network.

    ``total`` is their sum. Where all inputs were seen, intervals have no width and ``samples`` is None.
    """

    of: str
    values: Floats
    low: Floats
    high: Floats

    @property
    def total(self) -> Any:
        return self.values.sum(-1)

    def to_frame(self) -> Any:
        """A row for each network and input."""
        columns = {"input": np.arange(self.values.shape[-1]), "influence": self.values, "low": self.low,
                   "high": self.high}
        return table(self.about, columns, self.values.shape[:-1])


def influences(
    networks: Networks,
    *,
    of: str = SIGN,
    samples: int | None = None,
    level: float = intervals.LEVEL,
    seed: int = 0,
    progress: bool | None = None,
) -> Influences:
    """The influence of every input on the sign of each network's output, or on the output itself.

    Args:
        networks: a TrainedNetwork, TrainedNetworks, or a pair (setup, params) with any leading axes.
        of: ``sign`` or ``output``.
        samples: None for all inputs to n = 20 and 2^14 uniform ones beyond, or how many; each is looked at with every
            one of its n inputs flipped.
        level: at which the intervals of all inputs of one network hold together.
        seed: of the samples.
        progress: whether to show a progress bar; where someone is watching unless said.

    >>> import paritylab as pl
    >>> setup = pl.Setup(pl.Parity(n=4, k=2), pl.Learner(pl.MLP(2, output_bias=False)))
    >>> xor = [{"w": np.array([[1, -1], [1, -1], [0, 0], [0, 0]]), "b": np.array([-1, -1])}, {"w": np.ones((2, 1))}]
    >>> influences((setup, xor), of="output").values
    array([0.25, 0.25, 0.  , 0.  ])
    """
    given, kind = subjects(networks), kind_of(of)
    places = uniform(given.n, samples, SAMPLES, seed)
    if places.exact:
        found = each(given, places, lambda _, f: (_of_table(values_of(f, kind), given.n),) * 3, progress)
    else:
        def sampled(i: int) -> tuple[Any, ...]:
            base, count = values_of(outputs(given, i, places), kind), places.count
            changes = np.array([_changes(base, values_of(outputs(given, i, _flipped(places, j)), kind))
                                for j in range(given.n)])
            if kind == OUTPUT or not np.all(np.isin(changes, (0, 1))):  # an output of 0 has no sign
                means = changes.mean(-1)
                low, high = intervals.of_means(means, changes.var(-1, ddof=1), count, level, given.n)
                return means, np.maximum(low, 0.0), high
            counts = changes.sum(-1)
            return counts / count, *intervals.of_shares(counts, count, level, given.n)

        found = over(range(len(given)), sampled, progress)
    values, low, high = (given.shaped(np.stack(column)) for column in zip(*found, strict=True))
    return Influences(kind, values, low, high, samples=places.samples, level=level, about=given.about)


def _of_table(values: Floats, n: int) -> Floats:
    """From all values, by their coefficients: sum_T c_T^2 [j in T] = (sum_T c_T^2 - sum_T c_T^2 (-1)^[j in T]) / 2."""
    squares = np.square(transform(values), dtype=np.float64)
    return (squares.sum() - first_order(squares, n)) / 2


def _changes(one: Floats, other: Floats) -> Floats:
    return np.square((one.astype(np.float64) - other) / 2)


def _flipped(places: Places, j: int) -> Places:
    assert places.rows is not None
    rows = places.rows.copy()
    rows[:, j] *= -1
    return Places(places.n, rows)
