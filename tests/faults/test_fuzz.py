"""Configuration fuzzing: a random Setup or command line works, or is refused in one line with status 2.

``PARITYLAB_SOAK=1`` (as ``make soak`` sets it) tries thousands, anew each time, and prints what became of them; without
it a few dozen, always the same, are tried.
"""

from __future__ import annotations

import json
import os
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from faults import child
from faults.command_lines import command_lines, single_faults
from faults.strategies import Part, setups
from hypothesis import HealthCheck, given, settings

import paritylab as pl
from paritylab import engines
from paritylab.errors import InvalidInput
from paritylab.running import cost
from paritylab.storage.records import DIVERGED, SOLVED

SOAK = os.environ.get("PARITYLAB_SOAK") == "1"
ONE_IN = 60 if SOAK else 400
"""Of the Setups that only JAX can train, so many are trained: compiling takes seconds."""
SECONDS = 3.0
"""What a command may take before it is interrupted."""


def fuzz(strategy: Any, few: int, many: int, case: Callable[[Any], str]) -> Counter[str]:
    """Try different cases; how many ended how."""
    counts: Counter[str] = Counter()
    seen: set[str] = set()

    @settings(max_examples=many if SOAK else few, deadline=None, derandomize=not SOAK,
              suppress_health_check=list(HealthCheck))
    @given(strategy)
    def tried(value: Any) -> None:
        if repr(value) not in seen:
            counts[case(value)] += 1
            seen.add(repr(value))

    tried()
    say(counts)
    return counts


def say(counts: Counter[str]) -> None:
    if SOAK:
        print(json.dumps({"cases": counts.total(), **counts}), flush=True)


# --- Setups -----------------------------------------------------------------------------------------------------


def test_a_setup_is_refused_in_one_line_or_comes_back_and_trains():
    counts = fuzz(setups(), few=40, many=6000, case=built)
    assert counts["refused"] > 0
    assert counts["trained by lanes" if engines.lanes.kernel() else "accepted"] > 0


def built(part: Part) -> str:
    """What becomes of a Setup."""
    setup = refused(part.build)
    if setup is None:
        return "refused"
    text = setup.to_json()
    again = refused(lambda: pl.Setup.from_json(text))
    assert again == setup or "@" in text  # a user's function cannot come back from its name
    assert again is None or again.id == setup.id
    if refused(lambda: setup.check() or setup) is None:
        return "refused by check"
    engine = engines.choose(setup)
    if not small(setup) or (engine == "jax" and int(setup.id, 16) % ONE_IN):
        return "accepted"
    trains(setup)
    return f"trained by {engine}"


def refused(make: Callable[[], Any]) -> Any:
    """What is made, or None where one line says why not."""
    try:
        return make()
    except InvalidInput as error:
        lines = str(error).splitlines()
    assert len(lines) == 1
    return None


def small(setup: pl.Setup) -> bool:
    step = cost.step_flops(setup)
    check = step / setup.learner.batch * setup.protocol.eval_size
    return step < 1e6 and check < 1e7 and (setup.problem.sample or 0) <= 10**4


def trains(setup: pl.Setup) -> None:
    """A few steps of two runs end in valid Records."""
    setup = replace(setup, protocol=replace(setup.protocol, max_steps=min(setup.protocol.max_steps, 20)))
    (result,) = pl.sweep([setup], runs=2, threads=1)
    records, size = result.records, setup.protocol.eval_size
    solved, finite = records.status == SOLVED, records.status != DIVERGED
    assert records.run.tolist() == [0, 1]
    assert set(records.status.tolist()) <= {0, 1, 2}
    assert np.all((records.steps >= 1) & (records.steps <= setup.protocol.max_steps))
    assert np.array_equal(records.t_c, np.where(solved, records.steps, -1))
    assert np.all((records.accuracy[finite] >= 0) & (records.accuracy[finite] <= 1))
    assert np.all(size * (1 - records.accuracy[solved]) <= setup.protocol.allowed_errors + 1e-3 * size)


# --- command lines ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.long
def test_a_command_line_is_refused_in_one_line_or_does_what_it_says(furnished, tmp_path):
    counts = fuzz(command_lines(), few=6, many=6000, case=lambda line: commanded(line, furnished, tmp_path))
    assert counts["refused"] > 0
    assert counts["ran"] > 0


@pytest.mark.slow
@pytest.mark.long
def test_every_option_with_every_odd_value_is_refused_or_does_what_it_says(furnished, tmp_path):
    lines = list(single_faults())[:: 1 if SOAK else 150]
    counts = Counter(commanded(line, furnished, tmp_path) for line in lines)
    assert counts["refused"] > 0
    say(counts)


def commanded(line: list[str], furnished: Path, folder: Path) -> str:
    """What becomes of a command line."""
    here = folder / "above" / "deep" / "here"
    shutil.rmtree(folder / "above", ignore_errors=True)
    shutil.copytree(furnished, here)
    before = listed(folder / "above")
    ended = child.run(line, here, SECONDS)
    after = listed(folder / "above")
    assert "Traceback" not in ended.err or (ended.late and "panicked" in ended.err), ended  # Polars, interrupted
    assert not [path for path in after if path.name.endswith(".tmp")]
    if ended.status == 2:
        (error,) = (line for line in ended.err.splitlines() if not line.startswith("paritylab: note: "))
        assert error.startswith("paritylab: error: "), ended.err
        assert ended.out == ""
        assert after == before
        return "refused"
    if ended.late:
        assert ended.status in (0, 130), ended
        return "interrupted"
    assert ended.status == 0, ended
    assert not [path for path in after - before if path.is_dir() and not any(path.iterdir())]
    if "--json" in line and not {"--help", "-h", "--version", "--dry-run"} & set(line):
        assert ended.out.count("\n") == 1, ended.out
        json.loads(ended.out, parse_constant=pytest.fail)
    return "ran"


def listed(folder: Path) -> set[Path]:
    """All below a folder, less what the command itself wrote to its streams."""
    return {path for path in folder.rglob("*") if path.name not in ("stdout", "stderr")}
