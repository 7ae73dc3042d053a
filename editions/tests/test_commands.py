"""The commands of editions: helped by a crew, and answered whatever is asked of them."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from faults import command_lines
from faults.test_fuzz import SOAK, commanded, fuzz, say
from sent_to_crews import check_sent

from paritylab.places import places

SMALL = {
    "barak2022 adaptive": "--block 2 --k 2 --nets 5 --epsilon 0.4 --delta 0.9",
    "abbe2024 atlas": "--quick",
    "barak2022 campaign": "--published",
    "barak2022 flow": "--k 2 --block 4 --draws 5",
    "daniely2020 leaky": "--k 3 --n 59049 --q 4 --steps 20",
    "beyond optimisers": "--published",
    "barak2022 two-stage": "--n 7 --k 2 --width 8 --steps 20 --batch 8",
    "glasgow2023 xor": "--d 4 --width 8 --batch 8 --time 1",
}


@pytest.mark.parametrize("command", [
    "barak2022 adaptive --nets 4",
    "daniely2020 leaky --k 3",
    *(pytest.param(command, marks=pytest.mark.long) for command in (
        "barak2022 flow --block 20 --init gaussian --draws 4",
        "barak2022 campaign --settings i --n 10 --k 2 --batch 32 --runs 100",
        "barak2022 two-stage --n 11 --steps 20",
        "daniely2020 leaky --k 3 --q 10 --steps 20",
        "glasgow2023 xor --d 8 --width 16 --time 0.3")),
])
def test_whatever_takes_long_goes_to_the_crew_and_comes_back_the_same(command, hands, tmp_path, monkeypatch, capsys):
    pytest.importorskip("distributed", reason="the extra 'cluster' is not installed")
    check_sent(command, hands, tmp_path, monkeypatch, capsys)


@pytest.fixture
def papers_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the commands that papers bring alone."""
    known = command_lines.parsers()
    brought = {place.name for place in places()}
    chosen = {name: known[name] for name in sorted(known) if name.split()[0] in brought}
    assert set(SMALL) <= set(chosen)
    monkeypatch.setattr(command_lines, "parsers", lambda: chosen)
    monkeypatch.setattr(command_lines, "SMALL", SMALL)


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.usefixtures("papers_only")
def test_a_command_line_is_refused_in_one_line_or_does_what_it_says(furnished, tmp_path):
    lines = command_lines.command_lines()
    counts = fuzz(lines, few=6, many=2000, case=lambda line: commanded(line, furnished, tmp_path))
    assert counts["refused"] > 0


@pytest.mark.slow
@pytest.mark.long
@pytest.mark.usefixtures("papers_only")
def test_every_option_with_every_odd_value_is_refused_or_does_what_it_says(furnished, tmp_path):
    lines: list[Any] = list(command_lines.single_faults())[:: 1 if SOAK else 150]
    counts = Counter(commanded(line, furnished, tmp_path) for line in lines)
    assert counts["refused"] > 0
    say(counts)
