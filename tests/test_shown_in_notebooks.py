"""What the values of cells look like, how progress is shown there, and that interrupting a cell costs nothing."""

from __future__ import annotations

import os
import tempfile
import time
from typing import Any

import numpy as np
import pytest

import paritylab as pl
from paritylab import notebooks, progress
from paritylab.storage.records import COLUMNS, Records

SETUP = pl.Setup(pl.Parity(n=8, k=2), protocol=pl.Protocol(max_steps=60, eval_size=128))


def html(value: object) -> str:
    """As a notebook asks for it."""
    return str(getattr(value, "_repr_html_")())  # noqa: B009


@pytest.fixture(scope="module")
def results() -> pl.Results:
    setups = pl.grid(n=8, k=2, lr=[1.0, 0.1], max_steps=60, eval_size=128)
    return pl.sweep(setups, runs=20, engine="jax")


def test_every_value_is_a_short_table(results):
    networks = results[0].networks([0, 1], at="start")
    values = [
        results, results[0].setup, results[0].setup.learner, results[0].records, networks, networks[0],
        pl.curves(SETUP, steps=40, every=10, runs=range(3), engine="jax"),
        pl.race(results_setups(results), runs=5, engine="jax"),
        pl.compare(results[0], results[1]),
    ]
    for value in values:
        shown = html(value)
        assert shown.count("<table>") == 1, type(value)
        assert len(shown) < 3000, type(value)
        assert len(repr(value)) < 3000, type(value)
        assert "color" not in shown, "light and dark are the notebook's own"


def results_setups(results: pl.Results) -> list[pl.Setup]:
    return [result.setup for result in results]


def test_results_are_told_apart_by_what_differs(results):
    shown = html(results)
    assert "<thead><tr><th>lr</th><th>runs</th><th>solved %</th>" in shown
    assert "<tr><td>1</td><td>20</td>" in shown
    assert "none" in html(pl.Results())


def test_networks_of_different_kinds_are_in_words():
    learners = [pl.Learner(network) for network in (pl.MLP(4), pl.PolyNet(2))]
    found = pl.sweep([pl.Setup(pl.Parity(6, 2), each) for each in learners], runs=0)
    assert "<td>mlp: activation relu, width 4</td>" in html(found)
    assert "<td>polynet: degree 2</td>" in html(found)


def test_many_results_are_cut(results):
    many = pl.Results(list(results) * 30)
    assert html(many).count("<tr>") == 25
    assert "the first 24 of 60" in html(many)


def test_records_say_how_runs_ended():
    records = Records(range(9), [0, 1, 2] * 3, [50, -1, -1] * 3, [50, 60, 20] * 3, np.ones(9), np.ones(9))
    shown = html(records)
    assert "9 Records: 3 solved, 3 censored, 3 diverged" in shown
    assert shown.count("<tr>") == 1 + 5 + 1
    assert all(f"<th>{name}</th>" in shown for name in COLUMNS)


def test_text_is_escaped():
    assert "<b>" not in notebooks.table(["<b>"], [["<b>"]], "<b>") + notebooks.facts({"<b>": "<b>"})

    def f(x):
        return x

    f.__qualname__ = f.__name__ = "<script>alert(1)</script>"
    assert "<script" not in html(pl.Learner(loss=lambda out, y: (out - y) ** 2, network=pl.MLP(4, activation=f)))


class Handle:
    """What IPython does with a line."""

    def __init__(self) -> None:
        self.seen: list[dict[str, str]] = []

    def display(self, data: dict[str, str], raw: bool) -> None:
        assert not self.seen, "displayed once, then updated"
        self.seen.append(data)

    def update(self, data: dict[str, str], raw: bool) -> None:
        assert self.seen
        self.seen.append(data)


@pytest.fixture
def handles(monkeypatch) -> list[Handle]:
    made: list[Handle] = []

    def new() -> Any:
        made.append(Handle())
        return made[-1]

    monkeypatch.setattr(notebooks, "shell", lambda: object())
    monkeypatch.setattr("IPython.display.DisplayHandle", new)
    monkeypatch.setattr(progress, "PATIENCE", 0)
    return made


def test_a_bar_is_one_line_of_the_cell_and_then_gone(handles, capsys):
    with progress.Bar("training <1>", 1000) as bar:
        bar.announce("long & hard")
        for done in range(1001):
            bar.show(done, "solved 3")
    (handle,) = handles
    assert [each["text/plain"] for each in (handle.seen[0], handle.seen[-1])] == ["long & hard", ""]
    assert len(handle.seen) < 20
    assert handle.seen[1]["text/plain"].startswith("training <1> 0/1000, solved 3, ")
    assert '<progress value="0" max="1000"></progress> training &lt;1&gt; 0/1000' in handle.seen[1]["text/html"]
    assert "long &amp; hard<br>" in handle.seen[1]["text/html"]
    assert capsys.readouterr() == ("", "")


def test_short_work_and_unwanted_bars_show_nothing(handles, monkeypatch):
    with progress.Bar("training", 10, wanted=False) as bar:
        bar.announce("x")
        bar.show(5)
    monkeypatch.setattr(progress, "PATIENCE", 100)
    with progress.Bar("training", 10) as bar:
        bar.show(5)
    assert handles == []


def test_no_notebook_is_seen_where_there_is_none():
    assert notebooks.shell() is None


SWEEP = """
import paritylab as pl
from paritylab.running import sweeps
sweeps.FLUSH_SECONDS = 0.1
learner = pl.Learner(pl.MLP(20), optimiser=pl.SGD(0.02))
setup = pl.Setup(pl.Parity(40, 3), learner, pl.Protocol(eval_size=1024))
[result] = pl.sweep([setup], runs={runs}, store=pl.Store("store"))
"""


@pytest.fixture
def kernel(tmp_path):
    """A real one: ``run(code)`` says what it printed, and by which error it ended."""
    from jupyter_client import KernelManager

    with tempfile.TemporaryDirectory() as folder:  # names of sockets must be short
        manager = KernelManager(transport="ipc", ip=f"{folder}/kernel")
        manager.start_kernel(cwd=tmp_path, env=os.environ | {"IPYTHONDIR": f"{folder}/ipython"})
        client = manager.client()
        client.start_channels()
        client.wait_for_ready(timeout=120)
        yield manager, client
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def printed(client: Any, asked: str) -> tuple[list[str], str | None]:
    """What a cell writes until it has ended, and its error."""
    texts, error = [], None
    while True:
        message = client.get_iopub_msg(timeout=120)
        if message["parent_header"].get("msg_id") != asked:
            continue
        content = message["content"]
        if message["msg_type"] == "stream":
            texts.append(content["text"])
        elif message["msg_type"] == "error":
            error = content["ename"]
        elif message["msg_type"] == "status" and content["execution_state"] == "idle":
            return texts, error


@pytest.mark.long
def test_an_interrupted_cell_leaves_a_kernel_that_goes_on_with_the_rest(kernel, tmp_path):
    manager, client = kernel
    asked = client.execute(SWEEP.format(runs=10_000))
    store, until = pl.Store(tmp_path / "store"), time.monotonic() + 120
    while time.monotonic() < until and not kept(store):
        time.sleep(0.05)
    manager.interrupt_kernel()
    assert printed(client, asked) == ([], "KeyboardInterrupt")
    before = kept(store)
    assert 0 < before < 10_000
    runs = before + 20
    again = SWEEP.format(runs=runs) + "print(result.reused, result.records.digest)"
    texts, error = printed(client, client.execute(again))
    assert error is None
    reused, digest = "".join(texts).split()
    assert 0 < int(reused) <= before
    learner = pl.Learner(pl.MLP(20), optimiser=pl.SGD(0.02))
    alone = pl.measure(pl.Parity(40, 3), learner, pl.Protocol(eval_size=1024), runs=runs)
    assert alone.records.digest == digest


def kept(store: pl.Store) -> int:
    """How many runs are on disk."""
    return store.gather().records.height if store.root.exists() else 0
