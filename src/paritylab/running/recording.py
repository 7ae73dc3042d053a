"""Training curves by whoever trains now: the engines of this process, or a crew's workers."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any, Unpack

import numpy as np

from paritylab.callbacks import heard
from paritylab.engines import curves as engine_curves
from paritylab.engines.curves import Curves, Options, ToldOptions, how_many
from paritylab.engines.jax_engine import JaxEngine
from paritylab.engines.recorder import Recording
from paritylab.later import jax
from paritylab.progress import Bar
from paritylab.running import crews
from paritylab.setups.setup import Setup


@functools.wraps(engine_curves.curves)
def curves(
    setup: Setup,
    steps: int | Sequence[int],
    every: int | None = None,
    runs: Sequence[int] | None = None,
    **options: Unpack[ToldOptions],
) -> Curves:
    crew = crews.current()
    if crew is None:
        return engine_curves.curves(setup, steps, every, runs, **options)
    callbacks = options.pop("callbacks", ())
    parts = _parts(setup, runs, crew.size, options)
    sent: dict[str, Any] = dict(options) | {"progress": False, "threads": options.get("threads") or 1}
    calls = [(crews.portable(setup.now()), steps, every, part, sent) for part in parts]
    with heard(callbacks, [setup], how_many(runs, options.get("start"))) as listeners:
        with Bar("recording", len(parts), options.get("progress")) as bar:
            made: dict[int, Curves] = {}
            for place, found in crews.each(_recorded, calls):
                made[place] = found
                bar.show(len(made))
        joined = _joined([made[place] for place in range(len(parts))])
        listeners.tell_curves(setup, joined)
    return joined


def _parts(
    setup: Setup, runs: Sequence[int] | None, workers: int, options: Options
) -> list[list[int] | None]:
    """The runs that each worker records. Those of ``jax`` stay together: their number decides how it rounds."""
    recording = Recording(np.zeros(1), False, False, None, options.get("loss"), options.get("metrics") or {},
                          options.get("checkpoint", False), options.get("start"))
    numbers = None if runs is None else [int(run) for run in runs]
    if not numbers or recording.engine(setup, options.get("engine", "auto")) == JaxEngine.name:
        return [numbers]
    return [part.tolist() for part in np.array_split(numbers, min(len(numbers), workers))]


def _recorded(
    setup: bytes | str, steps: int | Sequence[int], every: int | None, runs: Sequence[int] | None, options: Options
) -> Curves:
    """On a worker."""
    return engine_curves.curves(crews.made(setup), steps, every, runs, **options)


def _joined(parts: Sequence[Curves]) -> Curves:
    """Curves of several runs after each other."""
    whole = {field.name: [getattr(part, field.name) for part in parts] for field in fields(Curves)}
    joined = {name: jax.tree.map(lambda *leaves: np.concatenate(leaves), *values)
              for name, values in whole.items() if name not in ("steps", "checkpoint")}
    return replace(parts[0], **joined) if len(parts) > 1 else parts[0]
