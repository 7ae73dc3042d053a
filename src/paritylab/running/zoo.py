"""The zoo: ten thousand networks before, at and after their transition, of twelve settings.

Each setting is a Setup whose runs are all, or almost all, solved in some hundreds or thousands of steps. Its networks
are in one safetensors file, those at half of t_c first, then those at t_c and at twice t_c; an index says where.
"""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paritylab import __version__
from paritylab.errors import require, unknown
from paritylab.running.exports import saved
from paritylab.running.result import Result
from paritylab.running.sweeps import sweep
from paritylab.setups.networks import MLP, PolyNet
from paritylab.setups.optimisers import SGD, Adam, AdamW
from paritylab.setups.problems import Parity
from paritylab.setups.setup import Learner, Protocol, Setup
from paritylab.storage.files import write_atomically
from paritylab.storage.kept import digest_of, save_document
from paritylab.storage.store import Store
from paritylab.trained import TrainedNetworks

RUNS = 834
"""Of each of the twelve settings: 10,008 in all."""
MOMENTS = ("before", "solved", "after")
INPUTS = 1024
"""Fresh inputs on which the index has the accuracy of each network."""


@dataclass(frozen=True)
class Setting:
    """One kind of networks in the zoo."""

    name: str
    about: str
    setup: Setup


def _setting(name: str, about: str, problem: Parity, learner: Learner, threshold: float = 1.0) -> Setting:
    protocol = Protocol(max_steps=30_000, eval_size=2048, threshold=threshold)
    return Setting(name, about, Setup(problem, learner, protocol))


SETTINGS = (
    _setting("plain", "ReLU, hinge loss, SGD", Parity(30, 3), Learner(MLP(10), optimiser=SGD(0.3))),
    _setting("pair", "a parity of two among sixty", Parity(60, 2), Learner(MLP(10), optimiser=SGD(0.1))),
    _setting("four", "a parity of four", Parity(16, 4), Learner(MLP(40), optimiser=SGD(0.1))),
    _setting("wide", "ten times as wide", Parity(30, 3), Learner(MLP(100), optimiser=SGD(0.1))),
    _setting("deep", "two hidden layers", Parity(20, 3), Learner(MLP((20, 20)), optimiser=SGD(0.1))),
    _setting("gelu", "a smooth activation", Parity(20, 3), Learner(MLP(20, "gelu"), optimiser=SGD(0.3))),
    _setting("polynet", "a product of linear functions", Parity(20, 3),
             Learner(PolyNet(3), loss="square", optimiser=SGD(0.01))),
    _setting("adam", "Adam, logistic loss", Parity(30, 3), Learner(MLP(20), loss="logistic", optimiser=Adam(0.01))),
    _setting("momentum", "momentum, square loss", Parity(30, 3),
             Learner(MLP(20), loss="square", optimiser=SGD(0.02, momentum=0.9))),
    _setting("noise", "one label in ten is wrong", Parity(20, 3, noise=0.1), Learner(MLP(20), optimiser=SGD(0.1))),
    _setting("single", "batches of one", Parity(20, 2), Learner(MLP(10), optimiser=SGD(0.02), batch=1)),
    _setting("grokking", "a finite sample, fitted before it is understood", Parity(20, 3, sample=400),
             Learner(MLP(50), loss="logistic", optimiser=AdamW(0.01, weight_decay=0.3)), threshold=0.99),
)


def chosen(names: Sequence[str] | None) -> list[Setting]:
    """The settings with these names; all unless said."""
    known = {setting.name: setting for setting in SETTINGS}
    for name in names or ():
        if name not in known:
            raise unknown("setting", name, known)
    return [known[name] for name in dict.fromkeys(names)] if names else list(SETTINGS)


def build(
    folder: Path,
    runs: int = RUNS,
    settings: Sequence[Setting] = SETTINGS,
    *,
    seed: int = 0,
    threads: int | None = None,
    progress: bool | None = None,
    tell: Callable[[dict[str, Any]], object] = lambda entry: None,
) -> dict[str, Any]:
    """Write the networks of each setting and an index of them; what is there already is not made again.

    ``tell`` is told of each setting what the index says of it.
    """
    require(runs >= 1, f"a zoo has at least 1 run of each setting, not {runs}")
    start, cpu, store = time.perf_counter(), time.process_time(), Store(folder / "store")
    entries, table = [], io.StringIO()
    table.write("setting,file,place,run,moment,step,accuracy\n")
    for setting in settings:
        path = folder / f"{setting.name}.safetensors"
        (result,) = sweep([setting.setup], runs, seed=seed, threads=threads, store=store, progress=progress)
        networks = saved(result, path, at=MOMENTS, omit_missing=True, threads=threads, progress=progress)
        accuracy = _accuracy(networks)
        moments = _moments(result, networks)
        entries.append(_entry(setting, path, result, networks, moments, accuracy))
        for place, row in enumerate(zip(networks.runs, moments, networks.steps, accuracy, strict=True)):
            run, moment, step, right = row
            table.write(f"{setting.name},{path.name},{place},{run},{moment},{step},{right:.4f}\n")
        tell(entries[-1])
    write_atomically(folder / "zoo.csv", table.getvalue().encode())
    index = {"paritylab": __version__, "seed": seed, "runs": runs, "networks": sum(e["networks"] for e in entries),
             "bytes": sum(e["bytes"] for e in entries), "settings": entries}
    save_document(folder / "zoo.json", index)
    seconds, used = time.perf_counter() - start, time.process_time() - cpu
    return index | {"seconds": round(seconds, 1), "cpu_seconds": round(used, 1)}


def _entry(
    setting: Setting, path: Path, result: Result, networks: TrainedNetworks, moments: np.ndarray, accuracy: np.ndarray
) -> dict[str, Any]:
    data, summary = path.read_bytes(), result.summary
    return {
        "name": setting.name, "about": setting.about, "setup_id": setting.setup.id, "file": path.name,
        "bytes": len(data), "digest": digest_of(data), "engine": result.engine, "exact": networks.exact,
        "runs": len(result.records), "solved": summary.solved, "median_t_c": summary.to_dict()["median"],
        "networks": len(networks),
        "accuracy": {moment: round(float(np.median(accuracy[moments == moment])), 4) for moment in MOMENTS
                     if np.any(moments == moment)},
    }


def _moments(result: Result, networks: TrainedNetworks) -> np.ndarray:
    """Which moment each network is of: they come one after the other, of all runs that were solved."""
    t_c = dict(zip(result.records.run.tolist(), result.records.t_c.tolist(), strict=True))
    times = np.array([t_c[run] for run in networks.runs.tolist()])
    places = (networks.steps >= times).astype(int) + (networks.steps > times)
    return np.array(MOMENTS)[places]


def _accuracy(networks: TrainedNetworks) -> np.ndarray:
    """The share of fresh inputs that each network has right."""
    problem = networks.setup.problem
    x = np.where(np.random.default_rng(0).random((INPUTS, problem.n)) < 0.5, -1.0, 1.0)
    y = np.prod(x[:, list(problem.support)], axis=1)
    return np.mean(networks.apply(x) * y > 0, axis=1)
