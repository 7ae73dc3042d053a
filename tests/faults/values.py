"""Faults of numbers: weights that are none, rates that explode, settings at the edge of what makes sense."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from faults.bench import ENGINE, Bench, Outcome, differing

import paritylab as pl
from paritylab import rng
from paritylab.engines.starts import initial_params
from paritylab.storage.records import DIVERGED

ENGINES = sorted({ENGINE, "jax"})
RUNS = 40


def sound(key: Any, shape: tuple[int, ...]) -> Any:
    return jax.random.rademacher(key, shape, jnp.float32)  # exact: no compiler rounds it otherwise


def some_broken(value: float, share: float) -> Any:
    """The same law, but each weight is ``value`` with a small probability."""

    def sample(key: Any, shape: tuple[int, ...]) -> Any:
        broken = jax.random.uniform(jax.random.fold_in(key, 1), shape) < share
        return jnp.where(broken, value, sound(key, shape))

    return sample


def start(law: Any) -> pl.Setup:
    return pl.Setup(pl.Parity(8, 2), pl.Learner(pl.MLP(5), law, batch=8), pl.Protocol(100, eval_size=16))


def broken_weights(engine: str, value: float, compare: bool = True) -> Outcome:
    """Runs that start with a weight that is NaN or infinite diverge at once; the others do not notice."""
    outcome = Outcome(faults=1)
    setup = start(some_broken(value, 0.01))
    found = pl.sweep([setup], RUNS, engine=engine, threads=1)[0].records
    params = initial_params(setup.program, rng.run_keys(np.zeros(RUNS, np.int64), np.arange(RUNS)))
    broken = np.zeros(RUNS, bool)
    for leaf in jax.tree.leaves(params):
        broken |= ~np.isfinite(np.asarray(leaf)).reshape(RUNS, -1).all(1)
    outcome.expect(0 < broken.sum() < RUNS, f"{broken.sum()} of {RUNS} runs start broken: no test")
    outcome.expect(bool((found.status[broken] == DIVERGED).all()), f"{engine}, {value}: {found.status[broken]}")
    outcome.records, outcome.lost = len(found), RUNS - len(found)
    if compare:
        undisturbed = pl.sweep([start(sound)], RUNS, engine=engine, threads=1)[0].records
        outcome.different = differing(found.take(~broken), undisturbed)
    return outcome


def weights_of_nan(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """The same with one engine and one kind of non-number."""
    return broken_weights(moments.choice(ENGINES), moments.choice([np.nan, np.inf, -np.inf]))


# --- through the command line ---------------------------------------------------------------------------------------

USUAL = {"n": 8, "k": 2, "runs": 3, "max-steps": 20, "eval-size": 32, "batch": 8, "width": 4, "lr": 0.1, "threads": 1}
DEGENERATE: dict[str, dict[str, Any]] = {
    "nothing to learn": {"k": 0},
    "all inputs": {"k": 8},
    "one input": {"n": 1, "k": 1},
    "one input, nothing to learn": {"n": 1, "k": 0},
    "one example a step": {"batch": 1},
    "one unit": {"width": 1},
    "no runs": {"runs": 0},
    "one step": {"max-steps": 1, "eval-every": 1000},
    "one check input": {"eval-size": 1},
    "labels that are coins": {"noise": 0.5},
    "labels that are all wrong": {"noise": 1},
    "a sample of one": {"sample": 1},
    "a rate of nought": {"lr": 0},
    "as many inputs as there may be": {"n": 2**20, "width": 1, "batch": 1, "max-steps": 2, "eval-size": 2, "runs": 1},
}
REFUSED: dict[str, dict[str, Any]] = {
    "no inputs": {"n": 0, "k": 0},
    "too many inputs": {"n": 2**20 + 1},
    "a larger support": {"k": 9},
    "no batch": {"batch": 0},
    "no units": {"width": 0},
    "too many runs": {"runs": "1e10"},
    "more runs than fit": {"runs": "4e9"},
    "a rate that is none": {"lr": "nan"},
    "a rate without end": {"lr": "inf"},
    "a rate beyond single precision": {"lr": "1e39"},
    "more units than fit": {"width": "1e9"},
}
MEMORY = "import resource; resource.setrlimit(resource.RLIMIT_AS, (8 << 30, 8 << 30))"


def arguments(engine: str, **changes: Any) -> list[str]:
    options = USUAL | {"engine": engine} | changes
    return ["measure", "--json", *(text for name, value in options.items() for text in (f"--{name}", str(value)))]


def measured(command: list[str], status: int, out: str, err: str) -> Outcome:
    """Whether a command ended well, with all its runs accounted for."""
    outcome = Outcome(faults=1)
    outcome.expect(status == 0 and not err, f"{' '.join(command)}: status {status}: {err}")
    if status == 0:
        told = json.loads(out)
        outcome.records = told["runs"]
        outcome.lost = int(command[command.index("--runs") + 1]) - told["runs"]
        outcome.expect(told["solved"] + told["censored"] + told["diverged"] == told["runs"], out)
    return outcome


def refused(command: list[str], status: int, out: str, err: str) -> Outcome:
    """Whether a command was refused in one line."""
    outcome = Outcome(faults=1)
    said = err.startswith("paritylab: error: ") and err.count("\n") == 1 and not out
    outcome.expect(status == 2 and said, f"{' '.join(command)}: status {status}: {err}")
    return outcome


def apart(command: list[str], folder: Path, bench: Bench) -> tuple[int, str, str]:
    """The status and the words of a command in a process of its own, with a limit on its memory."""
    child = bench.start(folder, command=command, first=MEMORY)
    return child.wait(), child.out, child.err


def degenerate_setting(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """One of all such settings, on one of the engines."""
    engine, name = moments.choice(ENGINES), moments.choice([*DEGENERATE, *REFUSED])
    command = arguments(engine, **(DEGENERATE | REFUSED)[name])
    return (refused if name in REFUSED else measured)(command, *apart(command, folder, bench))


def exploding_loss(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """Rates up to the largest number there is."""
    changes = {"lr": 10 ** moments.uniform(4, 38.5), "loss": moments.choice(["square", "hinge", "logistic", "l1"])}
    command = arguments(moments.choice(ENGINES), **changes)
    return measured(command, *apart(command, folder, bench))
