"""What the claims share: one network on one problem, and what is kept of it along training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from paritylab import MLP, SGD, Learner, Parity, Protocol, Setup, curves, engines, rng
from paritylab.aliases import Arrays, Floats
from paritylab.claims import Lab, Trial, computation, size
from paritylab_grokking.merrill2023 import pruning

N, K, SAMPLE, WIDTH, BATCH = 40, 3, 1000, 1000, 32
STEPS = -(-SAMPLE // BATCH)
"""Updates of a pass, the last of which has 8 examples."""
TESTED = 1000
MEMORISED, GENERALISED = 0.98, 0.99
"""Accuracies: more than the first on the training sample, at least the second on test inputs."""
PRUNED, COMPARED = 10, 5
"""Units are pruned, and subnetworks compared, every so many passes."""
TOGETHER = 5
"""Runs of one computation: their weights at all passes are 250 MB."""
SHOWN = 16
"""Of so many units of a final subnetwork the weights are kept."""
PUBLISHED = 5
"""Runs in the paper."""


def setup() -> Setup:
    """Section 3, with what the released code adds: no output bias, passes with a short last batch."""
    learner = Learner(MLP(WIDTH, output_bias=False), optimiser=SGD(0.1, weight_decay=0.01), batch=BATCH)
    return Setup(Parity(N, K, sample=SAMPLE, short_last=True), learner, Protocol(eval_size=TESTED))


class Watched(Trial):
    """A trial on the runs that all empirical claims share."""

    runs = size(quick=6, full=100)
    passes = size(300)

    def work(self, lab: Lab) -> list[Arrays]:
        asked = setup()
        engine = engines.choose(asked, lab.engine, curves=True)
        lab.count(asked, engine, self.runs, self.runs * self.passes * STEPS)
        return lab.compute_each(watch, [
            {"engine": engine, "passes": self.passes, "first": first, "runs": min(TOGETHER, self.runs - first)}
            for first in range(0, self.runs, TOGETHER)])


# --- what is kept of a run --------------------------------------------------------------------------------------------


@computation
def watch(seed: int, engine: str, passes: int, first: int, runs: int) -> dict[str, Any]:
    """Accuracies, sizes, norms and agreements of runs along training; axes (runs, checks, ...)."""
    asked, numbers = setup(), range(first, first + runs)
    made = curves(asked, passes * STEPS, STEPS, numbers, seed=seed, engine=engine, weights=True, train=True,
                  progress=False)
    assert made.train_accuracy is not None
    keys = rng.run_keys(np.full(runs, seed), np.array(numbers))
    looked = [_look(at_run(made.weights, i), examples(asked, keys[i]), np.random.default_rng([seed, number]))
              for i, number in enumerate(numbers)]
    return {"train": made.train_accuracy, "test": made.accuracy,
            **{name: np.stack([each[name] for each in looked]) for name in looked[0]}}


def at_run(weights: Any, place: Any) -> Any:
    """The params at one place of the leading axis."""
    return jax.tree.map(lambda leaf: leaf[place], weights)


@dataclass(frozen=True)
class Examples:
    """A run's training sample and its test inputs."""

    x: Floats
    y: Floats
    test: Floats


def examples(asked: Setup, key: np.ndarray) -> Examples:
    """Those of the run with this key, as its engine draws them."""
    problem = asked.problem
    train = problem.draw(jax.random.fold_in(rng.stream(key, rng.SAMPLE), 0), SAMPLE)
    root = jax.random.fold_in(rng.stream(key, rng.EVALUATION), 0)
    test = problem.draw_block(root, 0, asked.protocol.eval_size)
    x, test = (np.asarray(problem.signs(each, problem.mask), np.float32) for each in (train, test))
    return Examples(x, np.asarray(problem.labels(train, problem.mask), np.float32), test)


def _look(weights: Any, seen: Examples, generator: np.random.Generator) -> Arrays:
    """What is kept of one run, whose weights have a leading axis of passes."""
    last = len(weights[0]["b"]) - 1
    sizes = np.array([pruning.fewest(at_run(weights, at), seen.x, seen.y) for at in range(0, last + 1, PRUNED)])
    final = at_run(weights, last)
    chosen = pruning.by_norm(final)[: pruning.fewest(final, seen.x, seen.y).accuracy]
    inside = np.isin(np.arange(WIDTH), chosen)
    random = np.isin(np.arange(WIDTH), generator.choice(WIDTH, len(chosen), replace=False))
    sets = np.stack([inside, ~inside, random])
    norms = pruning.norms(weights)
    return {
        "sizes": sizes,
        "norms": np.stack([norms[:, each].mean(axis=1) for each in sets], axis=1),
        "agreement": np.array([pruning.agreement(at_run(weights, at), seen.test, sets)
                               for at in range(0, last + 1, COMPARED)]),
        "units": _units(final, chosen[:SHOWN]),
    }


def _units(params: Any, chosen: np.ndarray) -> Floats:
    """Of these units the weights of the relevant bits, the norm of the others, the bias and the output weight."""
    layer, output = params
    rows = np.full((SHOWN, K + 3), np.nan)
    w = layer["w"][:, chosen]
    rows[: len(chosen)] = np.column_stack([w[:K].T, np.sqrt(np.sum(w[K:] ** 2, axis=0)), layer["b"][chosen],
                                           output["w"][chosen, 0]])
    return rows


# --- what it says -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Traces:
    """What was kept of all runs; checks of accuracy and norms are at every pass, before it.

    Of ``sizes`` the last axis is by equal accuracy and by equal predictions; of ``norms`` and ``agreement`` it is the
    final subnetwork, its complement and as many random units.
    """

    train: Floats
    test: Floats
    sizes: np.ndarray
    norms: Floats
    agreement: Floats
    units: Floats

    @classmethod
    def of(cls, blocks: Sequence[Mapping[str, np.ndarray]]) -> Traces:
        return cls(**{name: np.concatenate([block[name] for block in blocks]) for name in cls.__annotations__})

    def __len__(self) -> int:
        return len(self.train)

    @property
    def passes(self) -> np.ndarray:
        return np.arange(self.train.shape[1])

    @property
    def t_mem(self) -> Floats:
        """The first pass of each run with a training accuracy above 0.98; infinite where there is none."""
        return first(self.train > MEMORISED)

    @property
    def t_gen(self) -> Floats:
        """The first with a test accuracy of at least 0.99."""
        return first(self.test >= GENERALISED)

    @property
    def final_sizes(self) -> np.ndarray:
        return self.sizes[:, -1, 0]


def first(reached: np.ndarray, every: int = 1) -> Floats:
    """The first check of each run (runs, checks) that is reached, in passes; infinite where none is.

    >>> first(np.array([[False, True, True], [False, False, False]]), every=10)
    array([10., inf])
    """
    return np.where(reached.any(axis=1), reached.argmax(axis=1) * float(every), np.inf)


def known(value: float) -> float | None:
    """A number, or None where there is none."""
    return float(value) if np.isfinite(value) else None


def at(values: Floats, times: Floats, every: int = 1) -> Floats:
    """Values (runs, checks, ...) at the first check that is not before each run's time; NaN where there is none.

    >>> at(np.array([[5.0, 6.0, 7.0], [1.0, 2.0, 3.0]]), np.array([1.0, np.inf]))
    array([ 6., nan])
    """
    place = np.ceil(np.minimum(times, 1e9) / every).astype(int)
    known = place < values.shape[1]
    found = np.array(values[np.arange(len(values)), np.minimum(place, values.shape[1] - 1)], float)
    found[~known] = np.nan
    return found
