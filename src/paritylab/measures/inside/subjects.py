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

Networks = Any
"""A TrainedNetwork, TrainedNetworks, or a pair (setup, params), where params may have leading axes."""


@dataclass(frozen=True, eq=False)
class Subjects:
    """Networks of one Setup: ``params`` in the network's structure have one leading axis, ``masks`` the support of each.

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
    seed, runs = None, None
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[0], Setup):
        setup, params = given
    elif isinstance(getattr(given, "setup", None), Setup) and hasattr(given, "tree"):
        setup, params, seed = given.setup, given.tree, given.seed
        runs = getattr(given, "runs", None)
        runs = np.asarray(given.run if runs is None else runs)
    else:
        raise InvalidInput(f"networks are a TrainedNetwork, TrainedNetworks or a pair (setup, params), not a"
                           f" {type(given).__name__}")
    lead = _lead(setup, params)
    count = int(np.prod(lead, dtype=int))
    require(count > 0, "there is no network to look at")
    flat = jax.tree.map(lambda leaf: np.asarray(leaf).reshape(count, *np.shape(leaf)[len(lead):]), params)
    require(all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(flat)), "a network has params that are not finite")
    if runs is not None:
        steps = getattr(given, "steps", None)
        about = {"run": runs, "step": np.asarray(given.step if steps is None else steps)}
    else:
        about = {name: np.broadcast_to(np.expand_dims(np.arange(size), tuple(range(1, len(lead) - axis))), lead)
                 for axis, (name, size) in enumerate(zip(("network", "point", "third", "fourth"), lead, strict=False))}
    return Subjects(setup, flat, lead, _masks(setup, seed, runs, count), about)


def _lead(setup: Setup, params: Any) -> tuple[int, ...]:
    """The axes that params have before those of one network."""
    wanted = jax.eval_shape(setup.params, jax.random.key(0))
    try:
        leads = jax.tree.leaves(jax.tree.map(lambda one, leaf: _before(one.shape, np.shape(leaf)), wanted, params),
                                is_leaf=lambda each: isinstance(each, tuple))
    except (ValueError, TypeError, KeyError):
        leads = []
    require(len(set(leads)) == 1 and leads[0] is not None,
            "params must be those of the Setup's network, in its own structure and shapes, with the same leading axes")
    return leads[0]


def _before(own: tuple[int, ...], given: tuple[int, ...]) -> tuple[int, ...]:
    extra = len(given) - len(own)
    if extra < 0 or given[extra:] != own:
        raise ValueError
    return given[:extra]


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
