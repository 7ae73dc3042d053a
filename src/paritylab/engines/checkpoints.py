"""Checkpoints: runs at one step, to go on from."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from paritylab import rng
from paritylab.engines.slots import Slots
from paritylab.engines.starts import start_keys
from paritylab.errors import InvalidInput, in_a_line, require, whole
from paritylab.later import jax
from paritylab.setups.inits import InitLike
from paritylab.setups.inits import init as as_init
from paritylab.setups.setup import Setup
from paritylab.storage.kept import load_arrays, save_arrays

PARTS = ("params", "optimiser")
FIRST = "[0]['w']"
GROWING = ("mlp", "neuron", "polynet")
"""Networks whose first layer reads all inputs."""


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Runs after ``step`` updates: all that decides how they go on, beside their Setup.

    ``params`` and ``optimiser``, its state, hold arrays with a leading axis of ``runs`` by their places in the
    network's and the optimiser's own structures, such as ``[0]['w']``. ``setup`` is the JSON of the Setup they come
    from. Random numbers of later steps depend on seed, run and step alone, and a finite sample is drawn as it was.

    >>> import paritylab as pl
    >>> setup = pl.Setup(pl.Parity(n=8, k=2))
    >>> half = pl.curves(setup, [10], engine="jax", checkpoint=True).checkpoint
    >>> whole, later = pl.curves(setup, [20], engine="jax"), pl.curves(setup, [20], start=half)
    >>> bool(whole.loss == later.loss)
    True
    """

    step: int
    seed: int
    runs: tuple[int, ...]
    params: Mapping[str, np.ndarray] = field(repr=False)
    optimiser: Mapping[str, np.ndarray] = field(repr=False)
    setup: str = field(repr=False)

    def save(self, path: str | Path) -> None:
        """Write it as an ``.npz`` file."""
        arrays = {part + name: leaf for part in PARTS for name, leaf in getattr(self, part).items()}
        about = {"step": self.step, "seed": self.seed, "runs": self.runs, "setup": self.setup,
                 "kinds": {name: str(leaf.dtype) for name, leaf in arrays.items()}}
        save_arrays(Path(path), {**arrays, "about": np.array(json.dumps(about))})

    @classmethod
    def load(cls, path: str | Path) -> Checkpoint:
        """The one in such a file."""
        try:
            arrays = load_arrays(Path(path))
            about = json.loads(str(arrays.pop("about")))
            kinds = about.pop("kinds")
            typed = {name: leaf.view(jax.numpy.dtype(kinds[name])) for name, leaf in arrays.items()}
            parts: dict[str, Any] = {
                part: {name.removeprefix(part): leaf for name, leaf in typed.items() if name.startswith(part)}
                for part in PARTS}
            return cls(**about | {"runs": tuple(about["runs"])}, **parts)
        except FileNotFoundError:
            raise InvalidInput(f"no checkpoint at {path}") from None
        except InvalidInput:
            raise
        except Exception as error:  # another program's file may hold anything
            raise InvalidInput(f"{path} is no checkpoint: {in_a_line(error)}") from error

    def grown(self, n: int, init: InitLike = "torch", seed: int | None = None) -> Checkpoint:
        """The same runs with more inputs: old weights are kept, those of the new inputs start by a law.

        For MLPs, Neurons and PolyNets, whose first layer gets rows behind its own; what the optimiser remembers of
        these is 0. The Setup to go on with has n inputs and the same network.

        Args:
            n: the number of inputs from here on.
            init: the law of the new weights; its fan-in is n.
            seed: with which runs go on: that of their data, and of the new weights; theirs unless said.

        >>> import paritylab as pl
        >>> small, large = (pl.Setup(pl.Parity(n, 2), pl.Learner(optimiser=pl.Adam(0.01))) for n in (6, 9))
        >>> start = pl.curves(small, [50], engine="jax", checkpoint=True).checkpoint
        >>> more = start.grown(9, init="normal:0.01")
        >>> more.params["[0]['w']"].shape, pl.curves(large, [50, 60], start=more).steps
        ((1, 9, 10), array([50, 60]))
        """
        network = json.loads(self.setup)["learner"]["network"]["type"]
        require(network in GROWING, f"inputs can be added to networks of type {', '.join(GROWING)}, not to a {network}")
        old, (law, n) = self.params[FIRST], (as_init(init), whole("n", n))
        runs, fan_in, fan_out = old.shape
        require(n >= fan_in, f"n must be at least {fan_in}, the number of inputs there are, not {n}")
        seed = self.seed if seed is None else whole("seed", seed)
        keys = rng.fold_in(start_keys(law, rng.run_keys(np.full(runs, seed), np.array(self.runs))), n)
        new = jax.vmap(lambda key: law.dense(rng.wrap(key), n, fan_out)["w"])(keys)[:, fan_in:]

        def larger(part: Mapping[str, np.ndarray], rows: Any) -> dict[str, np.ndarray]:
            return {name: np.concatenate([leaf, rows], axis=1).astype(leaf.dtype)
                    if name.endswith(FIRST) and leaf.shape == old.shape else leaf for name, leaf in part.items()}

        return replace(self, seed=seed, params=larger(self.params, np.asarray(new)),
                       optimiser=larger(self.optimiser, np.zeros((runs, n - fan_in, fan_out))))

    @property
    def kind(self) -> str:
        """What kind of optimiser its state is of."""
        return json.loads(self.setup)["learner"]["optimiser"]["type"]

    def places(self, runs: Sequence[int] | None) -> np.ndarray:
        """Where these runs are among its own; all of them unless said."""
        chosen = self.runs if runs is None else tuple(int(run) for run in runs)
        missing = sorted(set(chosen) - set(self.runs))
        require(not missing, f"the checkpoint has no run {missing[0] if missing else ''}")
        return np.array([self.runs.index(run) for run in chosen])

    def check(self, setup: Setup) -> None:
        """Whether runs can go on so: the Setup must have params and a state of the optimiser like these."""
        kind = json.loads(setup.to_json())["learner"]["optimiser"]["type"]
        require(kind == self.kind, f"a checkpoint of {self.kind} cannot go on with {kind}")
        for part, shapes in _shapes(setup).items():
            wanted = {name: (leaf.shape, leaf.dtype) for name, leaf in named(shapes).items()}
            there = {name: (leaf.shape[1:], leaf.dtype) for name, leaf in getattr(self, part).items()}
            for name in {**wanted, **there}:
                require(wanted.get(name) == there.get(name),
                        f"the checkpoint does not fit: {part}{name} is {_said(there.get(name))} in it,"
                        f" {_said(wanted.get(name))} in the Setup")

    def enter(self, state: Slots, setup: Setup, places: np.ndarray) -> Slots:
        """Slots with the runs at these places, as they were."""
        made = {}
        for part, shapes in _shapes(setup).items():
            leaves = [getattr(self, part)[name][places] for name in named(shapes)]
            made[part] = jax.tree.unflatten(jax.tree.structure(shapes), leaves)
        return state._replace(**made, step=np.full(len(places), self.step, np.int32))


def of_states(states: Sequence[Slots], step: int, seed: int, runs: Sequence[int], setup: Setup) -> Checkpoint:
    """The checkpoint of runs whose slots, some after some, these are."""
    trees = ([getattr(state, part) for state in states] for part in PARTS)
    params, optimiser = (named(jax.tree.map(lambda *leaves: np.concatenate(leaves), *each)) for each in trees)
    return Checkpoint(step, seed, tuple(int(run) for run in runs), params, optimiser, setup.to_json())


def named(tree: Any) -> dict[str, Any]:
    """The arrays of a tree by their places."""
    leaves = jax.tree_util.tree_leaves_with_path(tree)
    found = {jax.tree_util.keystr(path): leaf for path, leaf in leaves}
    require(len(found) == len(leaves), "a checkpoint needs params and a state whose arrays have different places")
    return found


def _shapes(setup: Setup) -> dict[str, Any]:
    params = jax.eval_shape(setup.params, jax.random.key(0))
    return {"params": params, "optimiser": jax.eval_shape(setup.learner.optimiser.start, params)}


def _said(kind: tuple[Any, Any] | None) -> str:
    return "absent" if kind is None else f"{kind[1]} of shape {tuple(kind[0])}"
