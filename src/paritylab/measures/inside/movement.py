"""Movement: how far the weights of a network are from where they started, and whose weights moved.

The start is that of the network's own run, made again from seed and number, or params that are given.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import jax
import numpy as np

from paritylab import rng
from paritylab.aliases import Floats
from paritylab.engines.starts import initial_params
from paritylab.errors import InvalidInput, require
from paritylab.measures.inside.subjects import Networks, Subjects, subjects
from paritylab.measures.inside.tables import Tabular, table


@dataclass(frozen=True, eq=False, repr=False)
class Movement(Tabular):
    """How far each array of params is from its start, by the arrays' places (``0.w``, ``0.b``, ...).

    ``distance`` (..., arrays) is the Euclidean norm of the change, ``relative`` that divided by the norm at the start,
    ``farthest`` the largest change of one weight (rho of Barak et al., Section 5, over the whole array) and ``cosine``
    the cosine of the angle between then and now. ``by_input`` (..., n) is the root mean square change of the first
    layer's weights at each input, ``relevant`` and ``irrelevant`` that over the inputs of the target and over the
    others, and ``leads`` says whether each relevant input moved farther than every other one. These are None where
    a network has no first layer of weights (inputs, units), or the target's inputs are not known.
    """

    arrays: tuple[str, ...]
    distance: Floats
    relative: Floats
    farthest: Floats
    cosine: Floats
    by_input: Floats | None
    relevant: Any
    irrelevant: Any
    leads: Any
    about: dict[str, np.ndarray] = field(repr=False)

    def to_frame(self) -> Any:
        """A row for each network and array."""
        columns = {"array": np.array(self.arrays, object), "distance": self.distance, "relative": self.relative,
                   "farthest": self.farthest, "cosine": self.cosine}
        return table(self.about, columns, self.distance.shape[:-1])


def movement(networks: Networks, start: Any = None) -> Movement:
    """How far weights have moved from the start.

    Args:
        networks: a TrainedNetwork, TrainedNetworks, or a pair (setup, params) with any leading axes.
        start: the params to compare with: networks again, of the same number, or of one for all. Unless said, those
            with which the runs of trained networks began; of the weights of curves, their first point.

    >>> import paritylab as pl
    >>> setup = pl.Setup(pl.Parity(n=8, k=2))
    >>> curves = pl.curves(setup, steps=300, every=100, runs=range(2), weights=True)
    >>> found = movement((setup, curves.weights))
    >>> found.arrays, found.distance.shape, found.by_input.shape
    (('0.b', '0.w', '1.b', '1.w'), (2, 4, 4), (2, 4, 8))
    >>> bool((found.distance[:, 0] == 0).all())
    True
    """
    given = subjects(networks)
    before = _start(networks, given) if start is None else _given(subjects(start), given)
    names, pairs = [], []
    leaves = jax.tree_util.tree_leaves_with_path(given.params)
    for (path, now), then in zip(leaves, jax.tree.leaves(before), strict=True):
        names.append(jax.tree_util.keystr(path, simple=True, separator=".") or "params")
        pairs.append(tuple(np.asarray(each, np.float64).reshape(len(given), -1) for each in (then, now)))
    norm = [[np.sqrt(np.square(each).sum(1)) for each in (now - then, then, now)] for then, now in pairs]
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = [change / size for change, size, _ in norm]
        cosine = [(then * now).sum(1) / (one * other)
                  for (then, now), (_, one, other) in zip(pairs, norm, strict=True)]
    columns = [[change for change, _, _ in norm], relative, [np.abs(now - then).max(1) for then, now in pairs], cosine]
    distance, relative, farthest, cosine = (given.shaped(np.stack(column, axis=-1)) for column in columns)
    by_input, relevant, irrelevant, leads = _by_input(given, before)
    return Movement(tuple(names), distance, relative, farthest, cosine, by_input, relevant, irrelevant, leads,
                    given.about)


def _by_input(given: Subjects, before: Any) -> tuple[Any, Any, Any, Any]:
    """Root mean square change of the first layer at each input, on the target's, on others; whether those lead."""
    try:
        now, then = (np.asarray(params[0]["w"], np.float64) for params in (given.params, before))
    except (KeyError, IndexError, TypeError):
        return None, None, None, None
    if now.ndim != 3 or now.shape[1] != given.n:
        return None, None, None, None
    squares = np.square(now - then).mean(-1)
    by_input = given.shaped(np.sqrt(squares))
    support = given.setup.problem.support
    if support is None or not 0 < (inside := given.supports())[0].sum() < given.n:
        return by_input, None, None, None
    own, rest = (np.sqrt((squares * mask).sum(1) / mask.sum(1)) for mask in (inside, ~inside))
    leads = np.where(inside, squares, np.inf).min(1) > np.where(inside, -np.inf, squares).max(1)
    return by_input, given.shaped(own), given.shaped(rest), given.shaped(leads)


def _start(networks: Networks, given: Subjects) -> Any:
    """The params at the start of the same runs."""
    if "run" not in given.about:
        require(len(given.lead) == 2, "params alone do not say how they started: give start, or TrainedNetworks")
        return jax.tree.map(lambda leaf: np.repeat(leaf.reshape(*given.lead, *leaf.shape[1:])[:, 0], given.lead[1],
                                                   axis=0), given.params)
    runs = np.atleast_1d(given.about["run"])
    return initial_params(given.setup.program, rng.run_keys(np.full(len(runs), networks.seed), runs))


def _given(start: Subjects, given: Subjects) -> Any:
    if len(start) not in (1, len(given)):
        raise InvalidInput(f"the start must be of one network or of {len(given)}, not of {len(start)}")
    return jax.tree.map(lambda leaf: np.broadcast_to(leaf, (len(given), *leaf.shape[1:])), start.params)

