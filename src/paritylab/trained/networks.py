"""One trained network, and many of one Setup."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from paritylab.errors import InvalidInput, require
from paritylab.notebooks import facts
from paritylab.setups.setup import Setup
from paritylab.setups.words import setups_in_words
from paritylab.trained import files
from paritylab.trained import params as arrays

if TYPE_CHECKING:
    from onnx import ModelProto
    from torch import nn


@dataclass(frozen=True, eq=False, repr=False)
class TrainedNetwork:
    """The network of one run after ``step`` updates.

    ``params`` are its arrays by their places in the network's own structure: ``0.w`` is the weights (inputs, units)
    of an MLP's first layer, ``0.b`` its biases. ``engine`` is the label of the engine that trained it. ``exact`` says
    whether these are, to the last bit, the params that the measured run had then. ``origin`` says which program, on
    which machine, made them.

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
    origin: Mapping[str, str] = field(default_factory=dict[str, str])

    def __post_init__(self) -> None:
        arrays.check(self.setup, self.params, ())

    @property
    def tree(self) -> Any:
        """The params in the network's own structure, as ``setup.learner.network.apply`` takes them."""
        return arrays.tree_of(self.setup, self.params)

    def apply(self, x: Any) -> np.ndarray:
        """The network's outputs at the rows of x, of +-1 each: (rows,), or (rows, outputs) where it has several."""
        return arrays.outputs(self.setup, {name: leaf[None] for name, leaf in self.params.items()}, x)[0]

    def to_torch(self) -> nn.Module:
        """The network as a PyTorch module of ``Linear`` layers and activations, from rows (rows, n) to outputs (rows,).

        Not of networks or activations that are functions of your own.
        """
        try:
            from paritylab.trained.torch_modules import module
        except ModuleNotFoundError as error:
            raise InvalidInput(f"to_torch needs PyTorch (pip install 'paritylab[torch]'): {error}") from error

        return module(self.setup.learner.network, self.params).eval()

    def to_onnx(self) -> ModelProto:
        """The network as an ONNX model, from ``x`` (rows, n) to ``f`` (rows,); where it comes from is in its metadata.

        ``onnx.save(network.to_onnx(), path)`` writes it. Not of functions of your own.
        """
        try:
            from paritylab.trained.onnx_models import model
        except ModuleNotFoundError as error:
            raise InvalidInput(f"to_onnx needs onnx (pip install 'paritylab[onnx]'): {error}") from error
        about = {"setup": self.setup.to_json(), "seed": self.seed, "run": self.run, "step": self.step,
                 "engine": self.engine, "exact": self.exact, "origin": dict(self.origin)}
        return model(self.setup.learner.network, self.params, self.setup.problem.n, about)

    def save(self, path: str | Path) -> None:
        """Write it as a safetensors file, with its Setup, seed, run, step and origin in the metadata."""
        runs, steps = np.array([self.run]), np.array([self.step])
        files.save(Path(path), files.Contents(
            self.setup, self.seed, runs, steps, dict(self.params), self.engine, self.exact, dict(self.origin), True))

    @classmethod
    def load(cls, path: str | Path, functions: Iterable[Any] = ()) -> TrainedNetwork:
        """The one in such a file; ``functions`` are those of your own that its Setup has."""
        found = files.load(Path(path), functions)
        require(found.one, f"{path} holds {len(found.runs)} networks; read it with TrainedNetworks.load")
        return cls(found.setup, found.seed, int(found.runs[0]), int(found.steps[0]), found.params, found.engine,
                   found.exact, found.origin)

    def __repr__(self) -> str:
        return f"<TrainedNetwork run {self.run}, step {self.step} {_about(self, self.params)}>"

    def _repr_html_(self) -> str:
        """For notebooks."""
        return _html(self, {"run": self.run, "step": self.step}, self.params)


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
    origin: Mapping[str, str] = field(default_factory=dict[str, str])

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

    def save(self, path: str | Path) -> None:
        """Write all of them as one safetensors file, with Setup, seed, runs, steps and origin in the metadata."""
        files.save(Path(path), self.contents())

    def contents(self) -> files.Contents:
        """What a file of them holds."""
        return files.Contents(self.setup, self.seed, self.runs, self.steps, dict(self.params), self.engine, self.exact,
                              dict(self.origin), False)

    @classmethod
    def load(cls, path: str | Path, functions: Iterable[Any] = (), setup: Setup | None = None) -> TrainedNetworks:
        """Those in such a file, of many or of one.

        ``functions`` are those of your own that their Setup has; or ``setup`` is the one that they must have.
        """
        found = files.load(Path(path), functions, setup)
        params = {name: leaf[None] for name, leaf in found.params.items()} if found.one else found.params
        return cls(found.setup, found.seed, found.runs, found.steps, params, found.engine, found.exact, found.origin)

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
        return made(self.setup, self.seed, runs, steps, params, self.engine, self.exact, self.origin)

    def __iter__(self) -> Iterator[TrainedNetwork]:
        return (self[i] for i in range(len(self)))

    def __repr__(self) -> str:
        one = {name: leaf[0] for name, leaf in self.params.items()} if len(self) else {}
        return f"<{len(self)} TrainedNetworks {_about(self, one)}>"

    def _repr_html_(self) -> str:
        """For notebooks."""
        ends = ({"steps": f"{self.steps.min()} to {self.steps.max()}, median {np.median(self.steps):g}"} if len(self)
                else {})
        return _html(self, {"networks": len(self), **ends}, self.params)


def _about(trained: TrainedNetwork | TrainedNetworks, params: Mapping[str, np.ndarray]) -> str:
    kind, count = type(trained.setup.learner.network).__name__, sum(leaf.size for leaf in params.values())
    exact = "" if trained.exact else ", not exact"
    return f"of {trained.setup.id}, {trained.engine}, seed {trained.seed}: {kind}, {count} params{exact}"


def _html(trained: TrainedNetwork | TrainedNetworks, which: dict[str, Any], params: Mapping[str, np.ndarray]) -> str:
    shapes = ", ".join(f"{name} {' x '.join(map(str, leaf.shape)) or 'one number'}" for name, leaf in params.items())
    return facts({"Setup": setups_in_words([trained.setup]), **which, "params": shapes,
                  "trained": f"by {trained.engine}, seed {trained.seed}{'' if trained.exact else ', not exact'}"})
