"""A stranger's pack: what it computes has one id wherever it is installed, and new code never shows an old number."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paritylab import places

CODE = '''
"""One claim of a stranger's paper."""
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from paritylab import MLP, Learner, Parity, Protocol, Setup
from paritylab.claims import Findings, Lab, Trial, between, claim, computation, size
from you2026.helpers import FACTOR


@dataclass(frozen=True)
class Wave:
    """A network of the stranger's own."""

    width: int = 4

    def init(self, key: Any, n: int, init: Any) -> Any:
        return jax.random.normal(key, (n, self.width))

    def apply(self, params: Any, x: Any) -> Any:
        return jnp.cos(x @ params).sum(axis=-1)


def clipped(margin: float) -> Any:
    return lambda f, y: jnp.maximum(0.0, margin - y * f)


@computation
def total(seed: int, n: int) -> dict[str, Any]:
    return {"total": np.array(FACTOR * sum(range(n)))}


@claim("you2026.study", where="Figure 1", kind="empirical", title="A study", statement="It can be trained.",
       published="yes")
class Study(Trial):
    runs = size(quick=8, full=16)

    accuracy = between("accuracy at the end", 0.0, 1.0)

    def work(self, lab: Lab) -> Any:
        protocol = Protocol(max_steps=20, eval_size=64)
        learners = [Learner(Wave()), Learner(MLP(4), loss=clipped(0.5))]
        results = lab.sweep([Setup(Parity(6, 2), learner, protocol) for learner in learners], self.runs)
        return results, lab.compute(total, n=10)

    def judge(self, got: Any) -> Findings:
        results, computed = got
        values = [float(result.records.accuracy.mean()) for result in results]
        return Findings([self.accuracy(values[0], (values[0], values[0]))], [{"accuracy": value} for value in values],
                        numbers={"wave": values[0], "clipped": values[1], "total": float(computed["total"])})
'''
PYPROJECT = '''
[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"
[project]
name = "paritylab-you2026"
version = "1.0"
[project.entry-points."paritylab.papers"]
you2026 = "you2026"
[tool.setuptools]
packages = ["you2026"]
[tool.setuptools.package-data]
you2026 = ["*.toml", "evidence/*"]
'''
PAPER = 'title = "You"\nauthors = "You"\nvenue = "Here"\nyear = 2026\nsummary = "A study."\nheadlines = []\n'


@pytest.fixture
def pack(tmp_path: Path) -> Path:
    """The source of the pack."""
    inner = tmp_path / "source" / "you2026"
    inner.mkdir(parents=True)
    for name, text in {"__init__.py": "", "study.py": CODE, "helpers.py": "FACTOR = 1\n", "paper.toml": PAPER,
                       "../pyproject.toml": PYPROJECT}.items():
        (inner / name).write_text(text)
    return inner


def installed(pack: Path, place: Path) -> dict[str, str]:
    """The environment in which a wheel of the pack, as it is now, is installed; the version stays the same."""
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    wheels = place / "wheels"
    subprocess.run([*pip, "wheel", "--no-index", "--no-deps", "--no-build-isolation", "-w", wheels, pack.parent],
                   check=True, capture_output=True)
    subprocess.run([*pip, "install", "--no-index", "--no-deps", "--upgrade", "--target", place / "site-packages",
                    *wheels.glob("*.whl")], check=True, capture_output=True)
    return {"PYTHONPATH": str(place / "site-packages")}


def paritylab(environment: dict[str, str], *arguments: Any, status: int = 0) -> Any:
    """What a command says with ``--json``."""
    others = {name: text for name, text in os.environ.items() if name not in (places.VARIABLE, "PYTHONPATH")}
    done = subprocess.run([sys.executable, "-m", "paritylab", *map(str, arguments), "--json"], capture_output=True,
                          text=True, timeout=240, env=others | environment, check=False)
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout) if status == 0 else done.stderr.splitlines()[-1]


def tried(environment: dict[str, str], out: Path, *options: Any) -> dict[str, Any]:
    (result,) = paritylab(environment, "reproduce", "you2026.study", "--quick", "--out", out, *options)["claims"]
    return result


def stood_on(out: Path) -> list[tuple[str, ...]]:
    """What the trial stood on, to the last bit: ids, engines and digests."""
    table = out / "claims" / "you2026.study" / "quick" / "records.csv.gz"
    return [(row["what"], row["id"], row["engine"], row["digest"])
            for row in csv.DictReader(io.StringIO(gzip.decompress(table.read_bytes()).decode()))]


@pytest.mark.long
def test_edited_and_installed_again_with_the_same_version_it_has_new_numbers(pack: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = tried(installed(pack, tmp_path), out)
    before = stood_on(out)
    (pack / "study.py").write_text(CODE.replace("jnp.cos", "jnp.tanh"))
    (pack / "helpers.py").write_text("FACTOR = 3\n")
    environment = installed(pack, tmp_path)
    second = tried(environment, out)
    assert (first["numbers"]["total"], second["numbers"]["total"]) == (45, 135)
    assert first["numbers"]["wave"] != second["numbers"]["wave"]
    assert first["numbers"]["clipped"] == second["numbers"]["clipped"]
    assert len(set(before) & set(stood_on(out))) == 1  # the loss and its network are as they were
    assert tried(environment, out)["numbers"] == second["numbers"]


@pytest.mark.long
def test_a_folder_a_wheel_workers_and_other_machines_agree_to_the_last_bit(pack: Path, tmp_path: Path) -> None:
    folder, wheel = {places.VARIABLE: str(pack)}, installed(pack, tmp_path)
    tried(folder, tmp_path / "folder")
    known = stood_on(tmp_path / "folder")
    assert len(known) == 3
    tried(wheel, tmp_path / "wheel")
    tried(folder, tmp_path / "workers", "--workers", 2)
    planned = paritylab(wheel, "reproduce", "you2026.study", "--quick", "--out", tmp_path / "merged", "--export",
                        tmp_path / "work.json")
    assert planned["tasks"] == 3
    assert paritylab(folder, "work", tmp_path / "work.json", tmp_path / "there", "--processes", 2)["left"] == 0
    assert paritylab({}, "store", "merge", tmp_path / "there", "--out", tmp_path / "merged")["conflicts"] == []
    merged = tried(wheel, tmp_path / "merged")
    assert (merged["reused_runs"], merged["recalled_arrays"]) == (16, 1)
    for name in ("wheel", "workers", "merged"):
        assert stood_on(tmp_path / name) == known
    said = paritylab(wheel, "reproduce", "you2026.study", "--quick", "--out", tmp_path / "wheel", "--record", status=2)
    assert "is installed in" in said
    tried(wheel | folder, tmp_path / "wheel", "--record")  # the folder is used, not what is installed
    assert (pack / "evidence" / "you2026.study.json").is_file()
    report = paritylab(folder, "store", "verify", "you2026.study", "--share", 1, "--out", tmp_path / "none")
    assert report["differences"] == []
    assert report["checked"]["listed runs (records), the same to the last bit"] == 16


@pytest.mark.long
def test_work_for_other_code_is_refused_and_the_rest_is_done(pack: Path, tmp_path: Path) -> None:
    folder = {places.VARIABLE: str(pack)}
    paritylab(folder, "reproduce", "you2026.study", "--quick", "--out", tmp_path / "out", "--export",
              tmp_path / "work.json")
    (pack / "study.py").write_text(CODE.replace("margin - y", "2 * margin - y"))
    said = paritylab(folder, "work", tmp_path / "work.json", tmp_path / "there", status=2)
    assert "cannot be done here" in said
    assert len(list((tmp_path / "there").glob("*.npz"))) == 1  # that of the network, which is as it was
