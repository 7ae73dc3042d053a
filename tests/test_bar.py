"""The progress bar while a program is compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import paritylab as pl
from paritylab import notebooks, progress


class AtOnce:
    """A timer that does not wait."""

    daemon = False

    def __init__(self, seconds: float, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        self.start = lambda: function(*arguments)

    def cancel(self) -> None: ...
    def join(self) -> None: ...


@pytest.fixture
def lines(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the bar shows, in turn."""
    shown: list[str] = []
    monkeypatch.setattr(notebooks, "shell", lambda: object())
    monkeypatch.setattr(notebooks.Line, "write", lambda self, text, html=None: shown.append(text))
    return shown


def test_compiling_stands_in_the_bar_before_the_first_run_has_ended(
    lines: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress.threading, "Timer", AtOnce)
    asked = pl.Setup(pl.Parity(n=8, k=2), protocol=pl.Protocol(max_steps=300, eval_size=128))
    pl.sweep([asked], 3, engine="jax", progress=True)
    assert lines[0].startswith("training 0/3, compiling ...")
    lines.clear()
    pl.curves(asked, 20, every=10, engine="jax", progress=True)
    assert lines[0].startswith("model-steps 0/20, compiling ...")


def test_an_engine_that_compiles_nothing_does_not_say_so(lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("paritylab._lanes")
    monkeypatch.setattr(progress.threading, "Timer", AtOnce)
    pl.measure(pl.Parity(n=8, k=2), protocol=pl.Protocol(max_steps=300, eval_size=128), runs=3, engine="lanes",
               progress=True)
    assert not any("compiling" in line for line in lines)


def test_what_takes_less_than_half_a_second_shows_nothing(lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "SOON", 1000)
    with progress.Bar("training", 3, True) as bar:
        bar.wait("compiling ...")
        bar.show(1)
        bar.wait("compiling ...")
    assert lines == []


def test_the_line_says_what_comes_next_once_the_wait_is_over(lines: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress.threading, "Timer", AtOnce)
    monkeypatch.setattr(progress, "BETWEEN", 0)
    with progress.Bar("training", 3, True) as bar:
        bar.wait("compiling ...")
        bar.show(1, "solved 1")
        bar.wait("compiling ...")
    assert [line.split(", ")[:2] for line in lines] == [
        ["training 0/3", "compiling ..."], ["training 1/3", "solved 1"], ["training 1/3", "compiling ..."]]
