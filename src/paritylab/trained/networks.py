"""One trained network, and many of one Setup."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload

import numpy as np

from paritylab.errors import require
from paritylab.setups.setup import Setup
from paritylab.trained import params as arrays


@dataclass(frozen=True, eq=False, repr=False)
class TrainedNetwork:
    """The network of one run after ``step`` updates.

    ``params`` are its arrays by their places in the network's own structure: ``0.w`` is the weights (inputs, units)
    of an MLP's first layer, ``0.b`` its biases. ``engine`` is the label of the engine that trained it. ``exact`` says
    whether these are, to the last bit, the params that the measured run had then.

    >>> import paritylab as pl
    >>> network = pl.measure(pl.Parity(n=8, k=2), runs=4).network(3)
    >>> sorted(network.params), network.params["0.w"].shape
    (['0.b', '0.w', '1.b', '1.w'], (8, 10))
    >>> network.apply([[1, 1, 1, 1, 1, 1, 1, 1], [-1, 1, 1, 1, 1, 1, 1, 1]]) > 0
    array([ True, False])
    """

    setup: Setup
    seed: int
    run: int
    step: int
    params: Mapping[str, np.ndarray] = field(repr=False)
    engine: str
    exact: bool = True

    @property
    def tree(self) -> Any:
        """The params in the network's own structure, as ``setup.learner.network.apply`` takes them."""
        return arrays.tree_of(self.setup, self.params)

    def apply(self, x: Any) -> np.ndarray:
        """The network's outputs at the rows of x, of +-1 each: (rows,), or (rows, outputs) where it has several."""
        return arrays.outputs(self.setup, {name: leaf[None] for name, leaf in self.params.items()}, x)[0]

    def __repr__(self) -> str:
        return f"<TrainedNetwork run {self.run}, step {self.step} {_about(self, self.params)}>"


@dataclass(frozen=True, eq=False, repr=False)
class TrainedNetworks:
    """Networks of many runs of one Setup: ``params`` have a leading axis of networks.

    ``runs`` and ``steps`` say of each which run it is, and after how many updates. ``networks[i]`` is the i-th as a
    :class:`TrainedNetwork`, ``networks[3:7]`` and ``networks[[2, 5]]`` are some of them.

    >>> import paritylab as pl
    >>> networks = pl.measure(pl.Parity(n=8, k=2), runs=20).networks(at="start")
    >>> len(networks), networks.params["0.w"].shape, networks[7].run
    (20, (20, 8, 10), 7)
    """

    setup: Setup
    seed: int
    runs: np.ndarray
    steps: np.ndarray
    params: Mapping[str, np.ndarray] = field(repr=False)
    engine: str
    exact: bool = True

    def __post_init__(self) -> None:
        for name in ("runs", "steps"):
            object.__setattr__(self, name, np.asarray(getattr(self, name), np.int64))
        require(self.runs.ndim == 1 and self.runs.shape == self.steps.shape,
                "networks have a run and a step each, as two rows of equal length")
        arrays.check(self.setup, self.params, self.runs.shape)

    @property
    def tree(self) -> Any:
        """The params in the network's own structure, with a leading axis of networks."""
        return arrays.tree_of(self.setup, self.params)

    def apply(self, x: Any) -> np.ndarray:
        """The outputs of each network at the rows of x, of +-1 each: (networks, rows)."""
        return arrays.outputs(self.setup, self.params, x)

    def __len__(self) -> int:
        return len(self.runs)

    @overload
    def __getitem__(self, which: int | np.integer) -> TrainedNetwork: ...
    @overload
    def __getitem__(self, which: slice | Sequence[int] | np.ndarray) -> TrainedNetworks: ...
    def __getitem__(self, which: Any) -> TrainedNetwork | TrainedNetworks:
        alone = isinstance(which, (int, np.integer))
        if not alone and not isinstance(which, slice):
            which = np.asarray(which)
            which = which if which.size else which.astype(int)
        params = {name: leaf[which] for name, leaf in self.params.items()}
        made: Any = TrainedNetwork if alone else TrainedNetworks
        runs, steps = self.runs[which], self.steps[which]
        if alone:
            runs, steps = int(runs), int(steps)
        return made(self.setup, self.seed, runs, steps, params, self.engine, self.exact)

    def __iter__(self) -> Iterator[TrainedNetwork]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        one = {name: leaf[0] for name, leaf in self.params.items()} if len(self) else {}
        return f"<{len(self)} TrainedNetworks {_about(self, one)}>"


def _about(trained: TrainedNetwork | TrainedNetworks, params: Mapping[str, np.ndarray]) -> str:
    kind, count = type(trained.setup.learner.network).__name__, sum(leaf.size for leaf in params.values())
    exact = "" if trained.exact else ", not exact"
    return f"of {trained.setup.id}, {trained.engine}, seed {trained.seed}: {kind}, {count} params{exact}"
