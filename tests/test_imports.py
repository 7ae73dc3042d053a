"""What is imported by work that computes nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import paritylab as pl
from paritylab.engines import backend

HEAVY = "jax", "scipy", "sklearn", "matplotlib", "rich"
ASKED = "pl.measure(pl.Parity(n=8, k=2), protocol=pl.Protocol(eval_size=128), runs=20, store=pl.Store({!r}))"
COMMAND = "from paritylab.cli import main; main({!r})"


def imported(code: str, *names: str, **variables: str) -> set[str]:
    """Which of these libraries a fresh process has imported after running the code."""
    script = f"import sys\n{code}\nprint(*set({names!r}) & set(sys.modules), sep=',', file=sys.stderr)"
    plain = {name: value for name, value in os.environ.items() if name not in backend.VARIABLES}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True,
                          env=plain | variables)
    return set(filter(None, done.stderr.strip().split(",")))


def test_listing_claims_imports_no_heavy_library(tmp_path: Path) -> None:
    assert imported(COMMAND.format(["claims", "--out", str(tmp_path)]), *HEAVY, "numpy", "polars") == set()


def test_a_stored_measurement_is_told_again_without_jax_and_scipy(tmp_path: Path) -> None:
    protocol = pl.Protocol(eval_size=128)
    pl.measure(pl.Parity(n=8, k=2), protocol=protocol, runs=20, store=pl.Store(tmp_path / "store"), engine="jax")
    asked = ASKED.format(str(tmp_path / "store")).replace("runs=20", "runs=20, engine='jax'")
    assert imported(f"import paritylab as pl\nassert {asked}.reused == 20", *HEAVY) == set()
    command = ["measure", "--n", "8", "--k", "2", "--eval-size", "128", "--runs", "20", "--engine", "jax",
               "--out", str(tmp_path)]
    assert imported(COMMAND.format(command), *HEAVY) == set()


def test_a_stored_measurement_of_the_fastest_engine_is_told_again_without_jax(tmp_path: Path) -> None:
    store = str(tmp_path / "store")
    eval(ASKED.format(store), {"pl": pl})
    assert imported(f"import paritylab as pl\nassert {ASKED.format(store)}.reused == 20", *HEAVY) == set()


@pytest.mark.parametrize("name", backend.VARIABLES)
def test_jax_is_asked_where_a_variable_may_have_it_compute_elsewhere(name: str) -> None:
    asked = "from paritylab.engines.backend import _has_cpu_alone as alone; assert alone() is {}"
    assert imported(asked.format(True), "jax") == set()
    assert imported(asked.format(False), "jax", **{name: "elsewhere"}) == set()


def test_jax_is_asked_where_a_plugin_is_installed(tmp_path: Path) -> None:
    (tmp_path / "jax_plugins").mkdir()
    code = "from paritylab.engines import backend; assert backend.is_cpu()"
    assert imported(code, "jax") == set()
    assert imported(code, "jax", PYTHONPATH=str(tmp_path)) == {"jax"}
