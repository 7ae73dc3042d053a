"""The rows of a program on a GPU: a table of runs, and launches that train those which are under way."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import numpy as np

from paritylab.engines.configuration import Configuration
from paritylab.engines.starts import initial_params
from paritylab.engines.warps import device as devices
from paritylab.engines.warps.plan import Trace, buckets, memories, param_count, plan, scratch_bytes, start_law
from paritylab.engines.work import Outcomes, Rows
from paritylab.setups import schedules
from paritylab.setups.setup import Setup
from paritylab.storage.records import SOLVED, Records

EMPTY, ACTIVE = -2, -1  # beside the final statuses
LAUNCH_SECONDS = 0.05  # at most, about; what other programs ask of the GPU may wait for it
MOST_ROWS, MOST_BYTES = 2**18, 2**31
MEMORY_SHARE = 16  # of the GPU's memory a program's table takes no more: programs train side by side
MOST_BLOCKS = 2**31 // schedules.BLOCK  # of a schedule
START_ROWS = 2**14  # whose params the host draws at a time
START_BLOCKS = 1024  # in which the GPU does
COLUMNS = ("params", "memory", "key", "lr", "noise", "flip", "mask", "max_steps", "step", "streak", "status",
           "accuracy", "loss", "schedule", "order", "counts", "scores", "taken", "idle")
"""In the order of ``struct Table`` of the kernels."""
ENDS = ("step", "status", "accuracy", "loss")
"""What a launch leaves of each run, as words."""


def entries(where: np.ndarray, rows: Rows) -> np.ndarray:
    """What the kernel ``start`` is told of each run that enters, as words: see ``start.cuh``."""
    words: list[Any] = [where, rows.key, rows.lr.view(np.uint32), rows.noise.view(np.uint32), rows.flip, rows.max_steps]
    return np.column_stack([np.asarray(each, np.uint32) for each in (*words, rows.mask)])


class WarpsPool:
    """A table of runs of one program. ``tuning`` is that of :func:`plan`."""

    def __init__(
        self,
        program: Setup,
        runs: int,
        keep_params: bool = False,
        device: devices.Device | None = None,
        trace: Trace | None = None,
        **tuning: Any,
    ) -> None:
        found = device or devices.current()
        assert found is not None, "choose() offers this engine only where there is a GPU"
        self._device = found
        self._program = program
        self._keep = keep_params
        self._configuration = Configuration.of(program)
        self._plan = plan(program, self._configuration, found.chip, trace=trace, **tuning)
        self._kernels = found.kernels(self._plan)
        params, kept = param_count(self._configuration), memories(self._configuration)
        most = min(MOST_BYTES, found.chip.memory // MEMORY_SHARE)
        self.slots = max(1, min(runs, MOST_ROWS, most // (4 * params * (1 + kept))))
        scores = 3 * max(1, program.problem.tasks) + 2 * trace.train if trace else 0
        self._make_table(params, kept, scores)
        self._make_scratch(most)
        addresses = [found.address(self._table[name]) for name in COLUMNS]
        self._addresses = found.array(np.array(addresses, np.uint64))
        self._status = np.full(self.slots, EMPTY, np.int32)
        self._step = np.zeros(self.slots, np.int32)
        self._tag = np.zeros(self.slots, np.int64)
        self.model_steps = 0
        self.kernel_seconds = 0.0

    def _make_table(self, params: int, kept: int, scores: int) -> None:
        rows, words = self.slots, self._program.problem.words
        shapes: dict[str, tuple[tuple[int, ...], Any]] = {
            "params": ((rows, params), np.float32),
            "memory": ((rows, kept * params), np.float32),
            "scores": ((rows, scores), np.float32),
            "key": ((rows, 2), np.uint32),
            "flip": ((rows,), np.uint32),
            "mask": ((rows, words), np.uint32),
            **dict.fromkeys(("lr", "noise"), ((rows,), np.float32)),
            **dict.fromkeys(("max_steps", "streak"), ((rows,), np.int32)),
        }
        self._table = {name: self._device.zeros(shape, dtype) for name, (shape, dtype) in shapes.items()}
        self._ends = self._device.zeros((len(ENDS), rows), np.int32)  # in one piece: every launch is followed by a copy
        self._table |= {name: self._ends[i] for i, name in enumerate(ENDS)}
        self._queue = self._device.zeros((2,), np.uint32)
        self._table |= {"taken": self._queue[:1], "idle": self._queue[1:]}
        self._blocks: dict[int, Any] = {}  # of the schedule, by number
        self._table["schedule"] = self._device.zeros((MOST_BLOCKS,), np.uint64)

    def _make_scratch(self, most: int) -> None:
        """Room for each team that is at work at once; there may be room for few, where samples are large."""
        configuration, teams = self._configuration, self._plan.teams
        each = teams * scratch_bytes(configuration)
        fit = max(1, most // each) if each else self._kernels.most
        self._most = min(self._kernels.most, fit, -(-self.slots // teams))
        examples = configuration.sample if each else 0
        self._table["order"] = self._device.zeros((self._most * teams * 2 * examples,), np.uint64)
        self._table["counts"] = self._device.zeros((self._most * teams * buckets(configuration),), np.uint32)

    @property
    def room(self) -> int:
        return int(np.sum(self._status == EMPTY))

    @property
    def busy(self) -> bool:
        return bool(np.any(self._status == ACTIVE))

    def load(self, rows: Rows) -> None:
        where = np.flatnonzero(self._status == EMPTY)[: len(rows)]
        told = self._device.array(entries(where, rows))
        self._kernels.start(min(START_BLOCKS, len(where)), self._addresses, told, len(where))
        if not start_law(self._program.learner.init):
            self._draw(where, rows.key)
        self._status[where], self._step[where], self._tag[where] = ACTIVE, 0, rows.tag

    def _draw(self, where: np.ndarray, keys: np.ndarray) -> None:
        """Initial params that the GPU cannot draw by itself."""
        names = ("w", "b") if self._configuration.bias else ("w",)
        for i in range(0, len(where), START_ROWS):
            part = slice(i, i + START_ROWS)
            layers, count = initial_params(self._program, keys[part]), len(keys[part])
            arrays = [np.asarray(layer[name], np.float32).reshape(count, -1) for layer in layers for name in names]
            rows = self._device.array(where[part])
            self._table["params"][rows] = self._device.array(np.concatenate(arrays, axis=1))

    def _bring_factors(self, steps: np.ndarray) -> None:
        """Have the schedule where runs are, and for a block of steps more, which outlasts a launch; nowhere else."""
        make = self._configuration.schedule
        if make is None:
            return
        here = np.unique(steps // schedules.BLOCK)
        wanted = {int(number) for number in (*here, *(here + 1)) if number < MOST_BLOCKS}
        if wanted == set(self._blocks):
            return
        self._blocks = {number: self._blocks[number] if number in self._blocks else self._device.array(make(number))
                        for number in wanted}
        addresses = np.zeros(MOST_BLOCKS, np.uint64)
        for number, block in self._blocks.items():
            addresses[number] = self._device.address(block)
        self._table["schedule"][:] = self._device.array(addresses)

    def advance(self, more: bool) -> Outcomes:
        active = np.flatnonzero(self._status == ACTIVE)
        begun = self._step[active] > 0
        order = np.concatenate([active[begun], active[~begun]])  # runs under way come first
        self._bring_factors(self._step[active])
        self._queue.fill(0)
        teams = self._plan.teams
        blocks = min(self._most, -(-len(order) // teams))
        quota = max(1, blocks * teams // 4) if more else 2**30
        start = time.perf_counter()
        rows = self._device.array(order.astype(np.int32))
        self._kernels.train(blocks, self._addresses, rows, len(order), round(1e6 * LAUNCH_SECONDS), quota)
        ends = self._device.numpy(self._ends)
        self.kernel_seconds += time.perf_counter() - start
        step, status, *_ = ends
        self.model_steps += int(np.sum(step[active] - self._step[active], dtype=np.int64))
        self._step = step
        return self._collect(active[status[active] >= 0], ends)

    def _collect(self, ended: np.ndarray, ends: np.ndarray) -> Outcomes:
        """The outcomes of these rows, which become empty."""
        step, status, accuracy, loss = ends[:, ended]
        self._status[ended] = EMPTY
        t_c = np.where(status == SOLVED, step, -1)
        records = Records(self._tag[ended], status, t_c, step, accuracy.view(np.float32), loss.view(np.float32))
        if not self._keep:
            return Outcomes(records)
        params = self._device.numpy(self._table["params"][self._device.array(ended)])
        return Outcomes(records, self._params(params))

    def _params(self, rows: np.ndarray) -> Any:
        """Rows of params in the network's own structure."""
        layers, at = [], 0
        for fan_in, fan_out in pairwise(self._configuration.sizes):
            layers.append({})
            for name, shape in (("w", (fan_in, fan_out)), ("b", (fan_out,))):
                if name == "w" or self._configuration.bias:
                    size = int(np.prod(shape))
                    layers[-1][name] = rows[:, at : at + size].reshape(-1, *shape)
                    at += size
        return layers
