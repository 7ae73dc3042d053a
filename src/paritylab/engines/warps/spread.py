"""One program on several GPUs: a pool on each, in a thread of its own. Records do not depend on it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import numpy as np

from paritylab.engines.configuration import Configuration
from paritylab.engines.warps.device import Device
from paritylab.engines.warps.plan import plan
from paritylab.engines.warps.pool import WarpsPool
from paritylab.engines.work import Outcomes, Rows
from paritylab.later import jax
from paritylab.setups.setup import Setup
from paritylab.storage.records import Records

_turn = itertools.count()


class SpreadPool:
    """Pools of one program, as many as its runs fill GPUs; small programs get one GPU, each the next in turn.

    What is asked of a GPU is asked in one thread, which has it as its current device.
    """

    def __init__(self, program: Setup, runs: int, keep_params: bool, devices: Sequence[Device], **tuning: Any) -> None:
        first = next(_turn) % len(devices)
        devices = (*devices[first:], *devices[:first])
        threads = [ThreadPoolExecutor(1, initializer=device.use) for device in devices]
        full = threads[0].submit(trained_at_once, program, devices[0], **tuning).result()
        number = min(len(devices), -(-runs // full))
        self._threads = threads[:number]
        self._pools: list[WarpsPool] = _results([
            thread.submit(WarpsPool, program, -(-runs // number), keep_params, device, **tuning)
            for thread, device in zip(self._threads, devices, strict=False)
        ])

    @property
    def room(self) -> int:
        return sum(pool.room for pool in self._pools)

    @property
    def busy(self) -> bool:
        return any(pool.busy for pool in self._pools)

    @property
    def model_steps(self) -> int:
        return sum(pool.model_steps for pool in self._pools)

    def load(self, rows: Rows) -> None:
        """As evenly as there is room."""
        done, loads = 0, []
        order = np.argsort([pool.room for pool in self._pools], kind="stable")
        for place, i in enumerate(order):
            even = -(-(len(rows) - done) // (len(order) - place))
            count = min(even, self._pools[i].room)
            if count:
                part = Rows(**{name: column[done : done + count] for name, column in vars(rows).items()})
                loads.append(self._threads[i].submit(self._pools[i].load, part))
            done += count
        _results(loads)

    def advance(self, more: bool) -> Outcomes:
        asked = zip(self._threads, self._pools, strict=True)
        parts = _results([thread.submit(pool.advance, more) for thread, pool in asked if pool.busy])
        if len(parts) == 1:
            return parts[0]
        params = jax.tree.map(lambda *leaves: np.concatenate(leaves), *(part.params for part in parts))
        return Outcomes(Records.concatenate([part.records for part in parts]), params)


def _results(asked: Sequence[Future[Any]]) -> list[Any]:
    """What all have to say; they are waited for also where one fails."""
    for each in asked:
        each.exception()
    return [each.result() for each in asked]


def trained_at_once(program: Setup, device: Device, **tuning: Any) -> int:
    """How many runs fill a GPU."""
    made = plan(program, Configuration.of(program), device.chip, **tuning)
    return made.teams * device.kernels(made).most
