"""Callbacks: told of the beginning, of runs and points, and of the end; what they raise loses no run."""

from __future__ import annotations

import inspect
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import paritylab as pl
from paritylab.callbacks import CallbackFailed

PROTOCOL = pl.Protocol(max_steps=200, eval_size=128)
PARITY = pl.Parity(n=8, k=2)
SETUP = pl.Setup(PARITY, pl.Learner(), PROTOCOL)


class Notes(pl.callbacks.Callback):
    def __init__(self) -> None:
        self.events: list[tuple[str, Any]] = []

    def on_start(self, setups, runs):
        self.events.append(("start", (len(setups), runs)))

    def on_records(self, setup, records):
        self.events.append(("records", (setup.id, records)))

    def on_point(self, setup, step, values):
        self.events.append(("point", (step, values)))

    def on_end(self, outcome):
        self.events.append(("end", outcome))

    def of(self, kind: str) -> list[Any]:
        return [about for event, about in self.events if event == kind]


def test_a_sweep_is_told_as_it_goes(tmp_path):
    notes, store = Notes(), pl.Store(tmp_path)
    setups = pl.grid(problem=PARITY, protocol=PROTOCOL, lr=[0.1, 0.2])
    results = pl.sweep(setups, 20, store=store, callbacks=[notes])
    assert notes.events[0] == ("start", (2, 40))
    assert notes.events[-1][0] == "end"
    assert notes.events[-1][1] is results
    for result in results:
        told = [records for setup, records in notes.of("records") if setup == result.setup.id]
        assert pl.Records.concatenate(told).digest == result.records.digest
    again = Notes()
    pl.sweep(setups, 25, store=store, callbacks=[again])
    assert again.of("start") == [(2, 10)]
    assert sum(len(records) for _, records in again.of("records")) == 10


def test_points_of_curves_are_means_over_runs():
    notes = Notes()
    curves = pl.curves(SETUP, [0, 10, 30], runs=range(5), callbacks=[notes])
    assert notes.of("start") == [(1, 5)]
    assert [step for step, _ in notes.of("point")] == [0, 10, 30]
    np.testing.assert_allclose([values["loss"] for _, values in notes.of("point")], curves.loss.mean(axis=0))
    assert notes.of("end")[0] is curves


def test_a_callback_that_fails_loses_nothing():
    class Broken(Notes):
        def on_records(self, setup, records):
            super().on_records(setup, records)
            raise OSError("no space left")

    broken, whole = Broken(), Notes()
    with pytest.warns(CallbackFailed, match="Broken.on_records failed and is told nothing more: no space left"):
        result = pl.measure(PARITY, protocol=PROTOCOL, runs=20, callbacks=[broken, whole])
    assert len(result.records) == 20
    assert len(broken.of("records")) == 1
    assert broken.of("end") == []
    assert len(whole.of("end")) == 1


def test_the_end_is_told_after_an_interruption():
    class Impatient(Notes):
        def on_records(self, setup, records):
            raise KeyboardInterrupt

    impatient = Impatient()
    with pytest.raises(KeyboardInterrupt):
        pl.measure(PARITY, protocol=PROTOCOL, runs=5, callbacks=[impatient])
    assert impatient.of("end") == [None]


def test_what_is_no_callback_is_refused():
    for wrong, line in ((print, "callbacks must be a list"), ([print], "must be a pl.callbacks.Callback, not <b")):
        with pytest.raises(pl.InvalidInput, match=line):
            pl.measure(PARITY, runs=1, callbacks=wrong)


# --- loggers of others: their functions, with their arguments' names, that note what they are given -------------------


class SummaryWriter:
    """As tensorboardX and ``torch.utils.tensorboard`` have it."""

    made: list[SummaryWriter] = []  # noqa: RUF012

    def __init__(self, logdir=None, comment="", purge_step=None, max_queue=10, flush_secs=120, filename_suffix=""):
        self.logdir, self.suffix, self.scalars, self.texts, self.closed = logdir, filename_suffix, [], [], False
        self.made.append(self)

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None):
        self.scalars.append((tag, scalar_value, global_step))

    def add_text(self, tag, text_string, global_step=None, walltime=None):
        self.texts.append((tag, text_string))

    def flush(self):
        pass

    def close(self):
        self.closed = True


class MLflowModule(ModuleType):
    """The functions of the module ``mlflow`` that are used."""

    def __init__(self) -> None:
        super().__init__("mlflow")
        self.calls: list[Any] = []

    def set_tracking_uri(self, uri):
        self.calls.append(("uri", uri))

    def set_experiment(self, experiment_name=None, experiment_id=None):
        self.calls.append(("experiment", experiment_name))

    def active_run(self):
        return None

    def start_run(self, run_id=None, experiment_id=None, run_name=None, nested=False, parent_run_id=None, tags=None,
                  description=None, log_system_metrics=None):
        self.calls.append(("start", (run_name, nested)))

    def log_params(self, params, synchronous=None, run_id=None):
        self.calls.append(("params", params))

    def log_metrics(self, metrics, step=None, synchronous=None, run_id=None, timestamp=None):
        self.calls.append(("metrics", (metrics, step)))

    def end_run(self, status="FINISHED"):
        self.calls.append(("end", status))


class WandBRun:
    def __init__(self, options) -> None:
        self.options, self.logged, self.finished = options, [], False

    def log(self, data, step=None, commit=None):
        self.logged.append((data, step))

    def finish(self, exit_code=None, quiet=None):
        self.finished = True


class WandBModule(ModuleType):
    def __init__(self) -> None:
        super().__init__("wandb")
        self.runs: list[WandBRun] = []

    def init(self, entity=None, project=None, dir=None, id=None, name=None, notes=None, tags=None, config=None, **more):
        self.runs.append(WandBRun({"project": project, "name": name, "config": config, **more}))
        return self.runs[-1]


def test_tensorboard_has_the_numbers(monkeypatch, tmp_path):
    module = ModuleType("tensorboardX")
    module.SummaryWriter = SummaryWriter  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tensorboardX", module)
    result = pl.measure(PARITY, protocol=PROTOCOL, runs=20, callbacks=[pl.callbacks.TensorBoard(tmp_path)])
    writer = SummaryWriter.made[-1]
    assert writer.closed
    assert writer.logdir == str(tmp_path)
    assert "lr: 0.1" in writer.texts[0][1]
    assert ("runs", 20, 20) in writer.scalars
    assert ("solved_fraction", result.summary.solved_fraction, 20) in writer.scalars
    assert ("summary/median", result.summary.median, 20) in writer.scalars
    pl.curves(SETUP, [0, 10], callbacks=[pl.callbacks.TensorBoard(tmp_path)])
    assert [step for tag, _, step in SummaryWriter.made[-1].scalars if tag == "loss"] == [0, 10]
    assert SummaryWriter.made[-1].suffix != writer.suffix  # or it would write over the first one's file


def test_mlflow_has_the_numbers(monkeypatch):
    module = MLflowModule()
    monkeypatch.setitem(sys.modules, "mlflow", module)
    setups = pl.grid(problem=PARITY, protocol=PROTOCOL, lr=[0.1, 0.2])
    results = pl.sweep(setups, 20, callbacks=[pl.callbacks.MLflow("parities", name="rates", uri="file:here")])
    assert module.calls[:3] == [("uri", "file:here"), ("experiment", "parities"), ("start", ("rates", False))]
    params = module.calls[3][1]
    assert params["n"] == "8"
    assert "lr" not in params
    assert module.calls[-1] == ("end", "FINISHED")
    metrics = {name: value for kind, about in module.calls if kind == "metrics" for name, value in about[0].items()}
    assert metrics["runs"] == 40
    assert metrics["lr 0.2/median"] == results[1].summary.median


def test_wandb_has_the_numbers(monkeypatch):
    module = WandBModule()
    monkeypatch.setitem(sys.modules, "wandb", module)
    pl.measure(PARITY, protocol=PROTOCOL, runs=20, callbacks=[pl.callbacks.WandB("mine", mode="offline")])
    (run,) = module.runs
    assert run.options["project"] == "mine"
    assert run.options["mode"] == "offline"
    assert run.options["config"]["width"] == 10
    assert run.finished
    assert run.logged[-1][1] == 20
    assert all(isinstance(value, int | float) for values, _ in run.logged for value in values.values())


PACKAGES = {"TensorBoard": "tensorboardX", "MLflow": "mlflow", "WandB": "wandb"}


@pytest.mark.parametrize(("name", "package"), PACKAGES.items())
def test_what_is_not_installed_is_said_in_a_line(name, package, monkeypatch):
    for module in (package, "torch.utils.tensorboard"):
        monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(pl.InvalidInput, match=rf"pl.callbacks.{name} needs {package}: pip install {package}"):
        getattr(pl.callbacks, name)()


def test_all_that_measures_takes_callbacks():
    for function in (pl.measure, pl.sweep, pl.curves):
        assert "callbacks" in inspect.signature(function).parameters
