"""A crew of two, and commands that send it their work: they say what they say alone."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paritylab.cli import main
from paritylab.running import crews


@pytest.fixture(scope="module")
def hands() -> Iterator[crews.Crew]:
    with crews.crew(workers=2) as made:
        yield made


@contextlib.contextmanager
def alone() -> Iterator[None]:
    """As if there were no crew."""
    token = crews._CREW.set(None)
    try:
        yield
    finally:
        crews._CREW.reset(token)


def check_sent(
    command: str, hands: crews.Crew, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A command sends its work to the crew, and answers as it does without one."""
    sent: list[Any] = []
    through = hands._through
    monkeypatch.setattr(hands, "_through", lambda *arguments: sent.append(arguments) or through(*arguments))
    monkeypatch.setattr(crews, "crew", lambda *_: contextlib.nullcontext())  # the one that is there

    def said(name: str, *more: str) -> Any:
        assert main([*command.split(), *more, "--json", "--out", str(folder / name)]) == 0
        return but_times(json.loads(capsys.readouterr().out.replace(str(folder / name), "")))

    helped = said("helped", "--workers", "2")
    assert sent
    with alone():
        assert helped == said("alone")


def but_times(value: Any) -> Any:
    """A document less what it says of seconds."""
    if isinstance(value, dict):
        return {name: but_times(item) for name, item in value.items() if "second" not in name}
    return [but_times(item) for item in value] if isinstance(value, list) else value
