"""Files of trained networks that are made once: one that is whole and of the same networks is not made again."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from paritylab.running.result import Result
from paritylab.storage.kept import recall
from paritylab.trained import TrainedNetworks, regenerating


def saved(
    result: Result,
    path: Path,
    runs: Iterable[int] | None = None,
    at: regenerating.At = "solved",
    *,
    omit_missing: bool = False,
    threads: int | None = None,
    progress: bool | None = None,
) -> TrainedNetworks:
    """The networks of :meth:`Result.networks`, which are in a safetensors file afterwards."""
    numbers = None if runs is None else list(runs)
    asked, steps = regenerating.planned(result.measured, numbers, at, omit_missing)
    there = recall(path, lambda path: TrainedNetworks.load(path, setup=result.setup)) if path.exists() else None
    if there is not None and (there.engine, there.seed) == (result.engine, result.seed) and (
            np.array_equal(there.runs, asked.run) and np.array_equal(there.steps, steps)):
        return there
    made = result.networks(numbers, at, omit_missing=omit_missing, threads=threads, progress=progress)
    made.save(path)
    return made
