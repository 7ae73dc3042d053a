"""Callbacks: whoever wants to know how a measurement goes on, such as TensorBoard, MLflow or Weights & Biases.

    pl.measure(problem, learner, callbacks=[pl.callbacks.TensorBoard("logs")])

None of these is required, or imported before it is asked for. A callback is told of the beginning, of runs that have
ended and points of curves, and of the end; derive from :class:`Callback` to write one. What a callback raises is a
warning, and it is told nothing more: no run is lost.
"""

from __future__ import annotations

import contextlib
import importlib
import itertools
import json
import math
import os
import re
import time
import warnings
from abc import ABC, abstractmethod
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from paritylab.errors import InvalidInput, in_a_line, require

if TYPE_CHECKING:
    from paritylab.setups.setup import Setup
    from paritylab.storage.records import Records

_NUMBERS = itertools.count()
EVERY = 1.0
"""Seconds between two reports on one sweep."""


class CallbackFailed(UserWarning):
    """What a callback raised. The measurement goes on without it."""


class Callback:
    """What is told as it happens. Override what you need; what is returned is not used."""

    def on_start(self, setups: Sequence[Setup], runs: int) -> None:
        """Training begins: so many runs in all, those that the store has left out."""

    def on_records(self, setup: Setup, records: Records) -> None:
        """Runs of a Setup have ended; a few times a second, for those since the last time."""

    def on_point(self, setup: Setup, step: int, values: Mapping[str, float]) -> None:
        """A point of :func:`paritylab.curves`, once all are recorded: means over the runs, by name."""

    def on_end(self, outcome: Any) -> None:
        """What was measured, Results or Curves; None if it was interrupted or failed."""


class Heard:
    """The callbacks of one measurement. One that fails is named in a warning and told nothing more."""

    def __init__(self, callbacks: Sequence[Callback]) -> None:
        require(isinstance(callbacks, Sequence), f"callbacks must be a list of them, not {callbacks!r:.60}")
        for each in callbacks:
            require(isinstance(each, Callback), f"a callback must be a pl.callbacks.Callback, not {each!r:.60}")
        self._callbacks = list(callbacks)
        self.outcome: Any = None

    def tell(self, event: str, *about: Any) -> None:
        for each in list(self._callbacks):
            try:
                getattr(each, event)(*about)
            except Exception as error:
                self._callbacks.remove(each)
                warnings.warn(f"{type(each).__name__}.{event} failed and is told nothing more: {in_a_line(error)}",
                              CallbackFailed, stacklevel=2)

    def tell_curves(self, setup: Setup, curves: Any) -> None:
        """Of each point the means over those runs that have not diverged; then, at the end, of all."""
        self.outcome = curves
        names = ("accuracy", "loss", "train_accuracy", "train_loss")
        series = {name: values for name in names if (values := getattr(curves, name)) is not None}
        series |= {name: values for name, values in (curves.metrics or {}).items() if values.ndim == 2}
        for i, step in enumerate(curves.steps.tolist() if self._callbacks else ()):
            good = {name: column[np.isfinite(column)] for name, values in series.items()
                    if (column := values[:, i]).size}
            self.tell("on_point", setup, step, {name: float(column.mean()) for name, column in good.items()
                                                if column.size})


@contextlib.contextmanager
def heard(callbacks: Sequence[Callback], setups: Sequence[Setup], runs: int) -> Generator[Heard, None, None]:
    """Tell callbacks of the beginning, and whatever happens of the end: of the ``outcome`` that is set meanwhile."""
    found = Heard(callbacks)
    found.tell("on_start", setups, runs)
    try:
        yield found
    finally:
        found.tell("on_end", found.outcome)


# --- those of other packages ------------------------------------------------------------------------------------------


class Logger(Callback, ABC):
    """What loggers share: the Setups' parameters at the beginning, numbers once a second, summaries at the end.

    ``runs``, ``solved_fraction`` and ``model_steps`` are logged at the number of runs that have ended, points of curves
    at their step, and for each Setup the summary of its Result: several Setups are told apart by what differs in them.
    """

    def __init__(self) -> None:
        self._done = self._solved = self._steps = 0
        self._last = -math.inf

    def on_start(self, setups: Sequence[Setup], runs: int) -> None:
        self._done = self._solved = self._steps = 0
        self._last = -math.inf
        rows = [_parameters(setup) for setup in setups]
        shared = {name: value for name, value in (rows[0] if rows else {}).items()
                  if all(row.get(name) == value for row in rows)}
        self._open(shared | {"setups": len(setups), "runs_to_train": runs})

    def on_records(self, setup: Setup, records: Records) -> None:
        self._done += len(records)
        self._solved += int((records.t_c >= 0).sum())
        self._steps += int(records.steps.sum())
        if time.perf_counter() - self._last >= EVERY:
            self._report()

    def on_point(self, setup: Setup, step: int, values: Mapping[str, float]) -> None:
        self._write(values, step)

    def on_end(self, outcome: Any) -> None:
        try:
            if self._done:
                self._report()
            if isinstance(outcome, list):
                self._summaries(outcome)
        finally:
            self._close()

    def _report(self) -> None:
        self._last = time.perf_counter()
        self._write({"runs": self._done, "solved_fraction": self._solved / self._done, "model_steps": self._steps},
                    self._done)

    def _summaries(self, results: Sequence[Any]) -> None:
        rows = [_parameters(result.setup) for result in results]
        differ = [name for name in rows[0] if any(row.get(name) != rows[0][name] for row in rows)] if rows else []
        for result, row in zip(results, rows, strict=True):
            label = re.sub(r"[^\w\-. ]", "-", " ".join(f"{name} {row.get(name)}" for name in differ))[:100]
            numbers = {f"{label or 'summary'}/{name}": value for name, value in result.summary.to_dict().items()
                       if isinstance(value, int | float)}
            self._write(numbers, self._done)

    @abstractmethod
    def _open(self, parameters: dict[str, Any]) -> None: ...

    @abstractmethod
    def _write(self, values: Mapping[str, float], step: int) -> None: ...

    @abstractmethod
    def _close(self) -> None: ...


class TensorBoard(Logger):
    """Event files in a folder, by ``tensorboardX`` or PyTorch's writer; ``tensorboard --logdir logs`` shows them."""

    def __init__(self, folder: str | Path = "logs") -> None:
        super().__init__()
        self._folder, self._writer = str(folder), None
        self._make: Any = _imported("TensorBoard", "tensorboardX", "torch.utils.tensorboard").SummaryWriter

    def _open(self, parameters: dict[str, Any]) -> None:
        suffix = f".{os.getpid()}.{next(_NUMBERS)}"  # names have seconds, and two measurements may share one
        writer = self._writer = self._make(self._folder, filename_suffix=suffix)
        writer.add_text("setup", "  \n".join(f"{name}: {value}" for name, value in parameters.items()))

    def _write(self, values: Mapping[str, float], step: int) -> None:
        assert self._writer is not None
        for name, value in values.items():
            self._writer.add_scalar(name, value, step)
        self._writer.flush()

    def _close(self) -> None:
        if self._writer is not None:
            self._writer.close()


class MLflow(Logger):
    """A run of MLflow, within the one that is active if there is one.

    ``uri`` is where to (``mlflow.set_tracking_uri``), ``experiment`` and ``name`` how it is called.
    """

    def __init__(self, experiment: str | None = None, name: str | None = None, uri: str | None = None) -> None:
        super().__init__()
        self._experiment, self._name, self._uri = experiment, name, uri
        self._mlflow: Any = _imported("MLflow", "mlflow")

    def _open(self, parameters: dict[str, Any]) -> None:
        if self._uri is not None:
            self._mlflow.set_tracking_uri(self._uri)
        if self._experiment is not None:
            self._mlflow.set_experiment(self._experiment)
        self._mlflow.start_run(run_name=self._name, nested=self._mlflow.active_run() is not None)
        self._mlflow.log_params({name: str(value)[:500] for name, value in parameters.items()})

    def _write(self, values: Mapping[str, float], step: int) -> None:
        self._mlflow.log_metrics({name: float(value) for name, value in values.items()}, step=step)

    def _close(self) -> None:
        self._mlflow.end_run()


class WandB(Logger):
    """A run of Weights & Biases; ``options`` go to ``wandb.init``: ``mode="offline"``, ``name``, ``tags``, ..."""

    def __init__(self, project: str = "paritylab", **options: Any) -> None:
        super().__init__()
        self._project, self._options, self._run = project, options, None
        self._wandb: Any = _imported("WandB", "wandb")

    def _open(self, parameters: dict[str, Any]) -> None:
        self._run = self._wandb.init(project=self._project, config=parameters, **self._options)

    def _write(self, values: Mapping[str, float], step: int) -> None:
        assert self._run is not None
        self._run.log(dict(values), step=step)

    def _close(self) -> None:
        if self._run is not None:
            self._run.finish()


def _parameters(setup: Setup) -> dict[str, Any]:
    from paritylab.setups import parameters

    return parameters.flattened(json.loads(setup.to_json()))


def _imported(called: str, *modules: str) -> Any:
    """The first of these modules that is installed."""
    for name in modules:
        with contextlib.suppress(ImportError):
            return importlib.import_module(name)
    raise InvalidInput(f"pl.callbacks.{called} needs {modules[0]}: pip install {modules[0]}")
