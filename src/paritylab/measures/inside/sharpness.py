"""Sharpness: the largest eigenvalue of the Hessian of the loss by all params, by Lanczos in double precision.

The loss is the mean over all inputs (to n = 12) or over a sample, with clean labels and without weight decay. Lanczos
keeps all its vectors orthogonal and stops when the residual |H v - a v| of the largest Ritz value a is below a share of
the largest eigenvalue by size: an eigenvalue is then at most that far from a. That it is the largest one is certain but
for an event of probability 0, that the random first vector is orthogonal to its eigenspace.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from paritylab.aliases import Floats
from paritylab.errors import require
from paritylab.measures.inside import intervals
from paritylab.measures.inside.derivatives import derivatives, examples, row
from paritylab.measures.inside.outputs import judged, over
from paritylab.measures.inside.subjects import Networks, subjects
from paritylab.measures.inside.tables import Sampled, table
from paritylab.measures.precision import double
from paritylab.setups.losses import LossLike

MOST_EXACT = 12
SAMPLES = 2**11
PARTS = 8
"""Parts of a sample by which the interval is found."""


@dataclass(frozen=True, eq=False, repr=False)
class Sharpness(Sampled):
    """Of each network the largest eigenvalue (``value``) and the ``smallest`` Ritz value, an upper bound of the
    smallest eigenvalue; how many ``products`` with the Hessian it took, and the ``residual``, which bounds the error.

    Of a sample the value is that of the mean over the sample. The true one lies between ``low`` and ``high``: the
    curvature, at other inputs, of a direction found at some of them is below it, and the mean over parts of the sample
    of their largest eigenvalues above, both but for chance.
    """

    value: Any
    low: Any
    high: Any
    smallest: Any
    residual: Any
    products: Any

    def to_frame(self) -> Any:
        """A row for each network."""
        columns = {name: getattr(self, name) for name in ("value", "low", "high", "smallest", "residual", "products")}
        return table(self.about, columns, np.shape(self.value))


def sharpness(
    networks: Networks,
    *,
    loss: LossLike | None = None,
    samples: int | None = None,
    tolerance: float = 1e-4,
    level: float = intervals.LEVEL,
    seed: int = 0,
    progress: bool | None = None,
) -> Sharpness:
    """The largest eigenvalue of the Hessian of each network's loss.

    Args:
        networks: a TrainedNetwork, TrainedNetworks, or a pair (setup, params) with any leading axes.
        loss: the loss, if not the one that is trained.
        samples: None for all inputs where they are uniform and n is at most 12, otherwise 2^11 by the problem's law;
            or how many.
        tolerance: the residual at which Lanczos stops, as a share of the largest eigenvalue by size.
        level: of the interval, where it is sampled.
        seed: of the sample, and of the first vector.
        progress: whether to show a progress bar; where someone is watching unless said.

    >>> import paritylab as pl
    >>> setup = pl.Setup(pl.Parity(n=4, k=2), pl.Learner(pl.MLP(1, bias=False), loss="square"))
    >>> one = [{"w": np.array([[1.0], [0], [0], [0]])}, {"w": np.array([[1.0]])}]  # f = max(0, x_0)
    >>> round(float(sharpness((setup, one)).value), 6)  # 1 + sqrt(5)
    3.236068
    """
    require(0 < tolerance < 1, f"the tolerance must be between 0 and 1, not {tolerance:g}")
    given = subjects(networks)
    here = judged(given, samples, SAMPLES, seed, MOST_EXACT)
    count = here.places.count
    require(here.places.exact or count >= 4 * PARTS, f"a sample must have at least {4 * PARTS} inputs, not {count}")
    made = derivatives(given, loss)

    def look(i: int) -> tuple[Any, ...]:
        theta = row(given, i)
        start = np.random.default_rng([seed, i]).standard_normal(len(theta))

        def top(which: np.ndarray | None, begin: Floats) -> Top:
            some = examples(here, i, which)
            return lanczos(lambda v: np.asarray(made.product(theta, v, some)), begin, tolerance)

        with double():
            found = top(None, start)
            low = high = found.value
            if not here.places.exact:
                parts = np.array_split(np.arange(count), PARTS)
                half = top(np.concatenate(parts[: PARTS // 2]), start)
                curvature = [half.vector @ np.asarray(made.product(theta, half.vector, examples(here, i, part)))
                             for part in parts[PARTS // 2 :]]
                low, _ = _mean(curvature, level)
                near = found.vector + 0.1 * start / np.linalg.norm(start)  # nearer than chance, and no less random
                _, high = _mean([top(part, near).value for part in parts], level)
        return found.value, low, high, found.smallest, found.residual, found.products

    columns = zip(*over(range(len(given)), look, progress), strict=True)
    value, low, high, smallest, residual, products = (given.shaped(np.stack(column)) for column in columns)
    return Sharpness(value, low, high, smallest, residual, products, samples=here.places.samples, level=level,
                     about=given.about)


def _mean(values: list[Any], level: float) -> tuple[float, float]:
    low, high = intervals.of_means(np.mean(values), np.var(values, ddof=1), len(values), level, 1)
    return float(low), float(high)


class Top(NamedTuple):
    value: float
    smallest: float
    residual: float
    products: int
    vector: Floats


def lanczos(product: Callable[[Floats], Floats], start: Floats, tolerance: float) -> Top:
    """The largest eigenvalue of a symmetric matrix, from its products with vectors.

    >>> matrix = np.diag([3.0, -1.0, 2.0, 0.5])
    >>> found = lanczos(lambda v: matrix @ v, np.ones(4), 1e-12)
    >>> round(found.value, 9), round(found.smallest, 9), found.products
    (3.0, -1.0, 4)
    """
    basis: list[Floats] = [start / np.linalg.norm(start)]
    diagonal: list[float] = []
    beside: list[float] = []
    while True:
        made = product(basis[-1])
        diagonal.append(float(made @ basis[-1]))
        known = np.array(basis)
        for _ in range(2):  # once leaves what rounding made of the first time
            made = made - known.T @ (known @ made)
        left = float(np.linalg.norm(made))
        matrix = np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1)
        values, vectors = np.linalg.eigh(matrix)
        largest = float(np.abs(values).max())
        residual = left * abs(float(vectors[-1, -1]))
        done = residual <= tolerance * largest or left <= 1e-14 * largest or len(basis) == len(start)
        if done or largest == 0:
            vector = known.T @ vectors[:, -1]
            return Top(float(values[-1]), float(values[0]), residual, len(basis), vector)
        beside.append(left)
        basis.append(made / left)
