"""As if there were little memory; and what commands say that would need more."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from commands import run

from paritylab import memory

THERE = 4e9  # bytes, in all these tests


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory, "free", lambda: THERE)


def check_refused(capsys: pytest.CaptureFixture[str], folder: Path, line: str, what: str) -> None:
    """A command is refused in one line that says how much of what would fit, before anything is allocated."""
    import resource

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    status, out, message = run(capsys, *line.split(), "--out", str(folder))
    assert (status, out, message.count("\n")) == (2, "", 1)
    found = re.search(r"about \S+ .B of memory, and there are 4.0 GB; allowed: (.*) up to (\S+), not (\S+)$", message)
    assert found is not None, message
    assert found[1] == what
    allowed, asked = (int(number.replace(",", "")) for number in (found[2], found[3]))
    assert 0 < allowed < asked
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # kB, for libraries
    assert not list(folder.rglob("*.parquet"))
