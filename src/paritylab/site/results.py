"""What the store holds, for the pages: finished sweeps, and those that are going on."""

from __future__ import annotations

import contextlib
import warnings
from pathlib import Path
from typing import Any

from paritylab.cli.results import describe


def summaries(out: Path) -> list[dict[str, Any]]:
    """One row for each Setup, engine and seed with records; what cannot be read is left out."""
    root = out / "store"
    if not root.is_dir():
        return []
    from paritylab.store import Store

    store, rows = Store(root), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for setup_id, setup in store.setups():
            with contextlib.suppress(KeyError, TypeError, AttributeError):  # not a Setup of this version
                rows += [row(store, setup_id, setup, *key) for key in _series(store, setup_id)]
    order = ("n", "k", "network", "batch", "lr", "engine", "seed", "setup_id")
    return sorted(rows, key=lambda each: [str(each[name]).rjust(24) for name in order])


def _series(store: Any, setup_id: str) -> list[tuple[str, int]]:
    return sorted(store.frame(setup_id).select("engine", "seed").unique().iter_rows())


def row(
    store: Any, setup_id: str, setup: dict[str, Any], engine: str, seed: int, runs: range | None = None
) -> dict[str, Any]:
    """A Setup in a few words, and what its records (of these runs) say."""
    from paritylab import statistics

    learner, problem = setup["learner"], setup["problem"]
    return {
        "setup_id": setup_id, "n": problem.get("n"), "k": problem.get("k"), "network": describe(learner["network"]),
        "batch": learner.get("batch"), "lr": learner.get("optimiser", {}).get("lr"), "engine": engine, "seed": seed,
        **statistics.summary(store.records(setup_id, engine, seed, runs)).to_dict(),
    }  # fmt: skip
