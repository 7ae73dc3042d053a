"""Training curves on a GPU: runs go from point to point, and are looked at where they stop."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from paritylab.engines.warps.device import Device
from paritylab.engines.warps.plan import Trace
from paritylab.engines.warps.pool import ACTIVE, EMPTY, WarpsPool
from paritylab.engines.work import Outcomes, Rows
from paritylab.later import jax
from paritylab.setups.setup import Setup


class WarpsTracer(WarpsPool):
    """A table of runs that are not judged but recorded at given steps, whose end each point is until it is reached."""

    def __init__(
        self, program: Setup, runs: int, trace: Trace, keep_params: bool, device: Device | None = None, **tuning: Any
    ) -> None:
        super().__init__(program, runs, False, device, trace, **tuning)
        self._points, self._stop = trace.points, trace.stop
        self._tasks = program.problem.tasks
        shape = (runs, len(trace.points))
        self._series: dict[str, np.ndarray] = {name: np.zeros(shape, np.float32) for name in ("accuracy", "loss")}
        tasks = [f"task_{name}" for name in self._series] if self._tasks else []
        train = [f"train_{name}" for name in self._series] if trace.train else []
        self._series |= {name: np.zeros((*shape, self._tasks), np.float32) for name in tasks}
        self._series |= {name: np.zeros(shape, np.float32) for name in train}
        self._series["task_skill"] = np.zeros((*shape, max(1, self._tasks)), np.float32)
        self._weights: Any = None
        self._keeps_weights = keep_params
        self._shape = shape
        self._at = np.zeros(self.slots, np.int64)  # the point that each row goes to

    def load(self, rows: Rows) -> None:
        self._at[self._status == EMPTY] = 0
        super().load(replace(rows, max_steps=np.full(len(rows), self._points[0])))

    def _collect(self, ended: np.ndarray, ends: np.ndarray) -> Outcomes:
        """Those that have reached a point go on to the next, unless it was the last or they have learned enough."""
        if len(ended):
            self._record(ended, ends)
        last = self._at[ended] == len(self._points) - 1
        if self._stop is not None:
            last |= self._series["train_loss"][self._tag[ended], self._at[ended]] < self._stop
        going = ended[~last]
        if len(going):
            self._at[going] += 1
            rows = self._device.array(going)
            self._table["max_steps"][rows] = self._device.array(self._points[self._at[going]].astype(np.int32))
            self._table["status"][rows] = self._device.array(np.full(len(going), ACTIVE, np.int32))
        return super()._collect(ended[last], ends)

    def _record(self, ended: np.ndarray, ends: np.ndarray) -> None:
        where = self._tag[ended], self._at[ended]
        rows = self._device.array(ended)
        self._series["accuracy"][where], self._series["loss"][where] = ends[2:, ended].view(np.float32)
        scores = self._device.numpy(self._table["scores"][rows])
        for i, name in enumerate(("accuracy", "loss")):
            if self._tasks:
                self._series[f"task_{name}"][where] = scores[:, i : 3 * self._tasks : 3]
            if f"train_{name}" in self._series:
                self._series[f"train_{name}"][where] = scores[:, i - 2]
        self._series["task_skill"][where] = scores[:, 2 : 3 * max(1, self._tasks) : 3]
        if self._keeps_weights:
            params = self._params(self._device.numpy(self._table["params"][rows]))
            if self._weights is None:
                self._weights = jax.tree.map(lambda leaf: np.zeros((*self._shape, *leaf.shape[1:]), np.float32), params)
            jax.tree.map(lambda kept, leaf: kept.__setitem__(where, leaf), self._weights, params)

    def take_trace(self) -> tuple[dict[str, np.ndarray], Any]:
        """The series by name, and the params if kept, with leading axes (runs, points)."""
        return self._series, self._weights
