"""What is looked at: networks of one Setup with their params, however they are given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from paritylab import rng
from paritylab.errors import InvalidInput, require
from paritylab.setups.networks import MLP
from paritylab.setups.setup import Setup

AXES: tuple[str, ...] = ("network", "point", "part")
"""What leading axes of params are called in tables."""
Networks = Any
"""A TrainedNetwork, TrainedNetworks, or a pair (setup, params), where params may have leading axes."""


@dataclass(frozen=True, eq=False)
class Subjects:
    """Networks of one Setup: ``params`` in its structure have one leading axis, ``masks`` are the support of each.

    ``lead`` is the shape in which measures are returned: () for one network, (count,) for many, (runs, points) for
    curves. ``about`` says which they are: arrays of that shape, by name.
    """

    setup: Setup
    params: Any
    lead: tuple[int, ...]
    masks: np.ndarray
    about: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.masks)

    @property
    def n(self) -> int:
        return self.setup.problem.n

    @property
    def mlp(self) -> MLP | None:
        """The network, if it is a perceptron."""
        network = self.setup.learner.network
        return network if type(network) is MLP else None

    def one(self, i: int) -> Any:
        """The params of one of them."""
        return jax.tree.map(lambda leaf: leaf[i], self.params)

    def supports(self) -> np.ndarray:
        """Which inputs the target of each reads: (count, n)."""
        support = self.setup.problem.support
        if support is None:
            raise InvalidInput("which inputs the target reads is not known: it is a function of your own")
        if isinstance(support, str):
            return np.array([_members(mask, self.n) for mask in self.masks])
        return np.tile(np.isin(np.arange(self.n), list(support)), (len(self), 1))

    def shaped(self, rows: Any) -> Any:
        """An array with an axis of networks, or one number for each, in the shape of what was given."""
        array = np.asarray(rows)
        made = array.reshape((*self.lead, *array.shape[1:]))
        return made[()] if made.ndim == 0 else made


def subjects(given: Networks) -> Subjects:
    """The networks meant by a TrainedNetwork, TrainedNetworks or a pair (setup, params).

    >>> import paritylab as pl
    >>> setup = pl.Setup(pl.Parity(n=8, k=2))
    >>> subjects((setup, pl.curves(setup, steps=20, every=10, runs=range(3), weights=True).weights)).lead
    (3, 3)
    """
    if isinstance(given, Subjects):
        return given
    setup, params, seed, about = _told(given)
    lead = _lead(setup, params)
    count = int(np.prod(lead, dtype=int))
    require(count > 0, "there is no network to look at")
    flat = jax.tree.map(lambda leaf: np.asarray(leaf).reshape(count, *np.shape(leaf)[len(lead):]), params)
    require(all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(flat)), "a network has params that are not finite")
    masks = _masks(setup, seed, about.get("run"), count)
    if not about:
        require(len(lead) <= len(AXES), f"params may have up to {len(AXES)} leading axes, not {len(lead)}")
        about = dict(zip(AXES, np.indices(lead), strict=False))
    return Subjects(setup, flat, lead, masks, about)


def _told(given: Any) -> tuple[Setup, Any, int | None, dict[str, np.ndarray]]:
    """Setup, params, seed and which runs and steps they are, as far as it is known."""
    if isinstance(given, tuple) and [isinstance(each, Setup) for each in given] == [True, False]:
        return given[0], given[1], None, {}
    trained: Any = given
    if not isinstance(getattr(trained, "setup", None), Setup) or not hasattr(trained, "tree"):
        raise InvalidInput("networks are a TrainedNetwork, TrainedNetworks or a pair (setup, params), not a"
                           f" {type(given).__name__}")
    many = hasattr(trained, "runs")
    runs, steps = (trained.runs, trained.steps) if many else (trained.run, trained.step)
    return trained.setup, trained.tree, trained.seed, {"run": np.asarray(runs), "step": np.asarray(steps)}


def _lead(setup: Setup, params: Any) -> tuple[int, ...]:
    """The axes that params have before those of one network."""
    wanted = jax.eval_shape(setup.params, jax.random.key(0))
    leads = set[tuple[int, ...] | None]()
    if jax.tree.structure(wanted) == jax.tree.structure(params):
        for own, leaf in zip(jax.tree.leaves(wanted), jax.tree.leaves(params), strict=True):
            extra = np.ndim(leaf) - own.ndim
            leads.add(np.shape(leaf)[:extra] if extra >= 0 and np.shape(leaf)[extra:] == own.shape else None)
    (lead,) = leads if len(leads) == 1 else (None,)
    if lead is None:
        raise InvalidInput("params must be those of the Setup's network, in its own structure and shapes, with the same"
                           " leading axes")
    return lead


def _masks(setup: Setup, seed: int | None, runs: Any, count: int) -> np.ndarray:
    if runs is None:
        require(not isinstance(setup.problem.support, str),
                "each run has its own support: give TrainedNetworks, which know their runs")
        return np.tile(setup.problem.mask, (count, 1))
    numbers = np.atleast_1d(runs)
    return setup.problem.masks(rng.run_keys(np.full(len(numbers), seed), numbers))


def _members(mask: np.ndarray, n: int) -> np.ndarray:
    """Which of n inputs packed words hold."""
    return (mask[np.arange(n) // 32] >> (np.arange(n) % 32).astype(np.uint32) & 1).astype(bool)
