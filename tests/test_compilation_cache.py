"""Compiled programs on disk: where they lie, who has the last word, and that they change no record."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from paritylab import compilation_cache

SCRIPT = """
import json, warnings
warnings.simplefilter("error")
import paritylab as pl
mine = lambda f, y: (f - y) ** 2
result = pl.measure(pl.Parity(n=8, k=2), pl.Learner(loss=mine), pl.Protocol(max_steps=500, eval_size=128), runs=5)
import jax
print(json.dumps([result.engine, result.records.digest, jax.config.jax_compilation_cache_dir]))
"""
VARIABLES = "PARITYLAB_CACHE", "XDG_CACHE_HOME", "JAX_COMPILATION_CACHE_DIR", "JAX_ENABLE_COMPILATION_CACHE"


def measured(home: Path, **variables: str) -> list[str]:
    """Engine, digest of the records and JAX's cache folder, of a fresh process of a user with this home folder."""
    plain = {name: value for name, value in os.environ.items() if name not in VARIABLES} | {"HOME": str(home)}
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=True,
                          env=plain | {"JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"} | variables)
    assert done.stderr == ""
    return json.loads(done.stdout)


def programs(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*-cache"))


def test_a_second_process_reads_what_the_first_one_compiled_and_makes_the_same_records(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    first = measured(tmp_path, XDG_CACHE_HOME=str(shared))
    kept = programs(shared)
    assert any("jit_advance" in name for name in kept)
    assert measured(tmp_path, XDG_CACHE_HOME=str(shared)) == first
    assert programs(shared) == kept
    assert first[1] == measured(tmp_path, PARITYLAB_CACHE="off")[1]


@pytest.mark.skipif(sys.platform != "linux", reason="the folder of this system")
def test_programs_lie_in_the_home_folder_by_version_and_processor(tmp_path: Path) -> None:
    *_, folder = measured(tmp_path)
    version, processor = Path(folder).relative_to(tmp_path / ".cache" / "paritylab").parts
    assert version.startswith("0.")
    assert processor == compilation_cache.processor()


@pytest.mark.parametrize("variables", [{"PARITYLAB_CACHE": "off"}, {"JAX_ENABLE_COMPILATION_CACHE": "false"}])
def test_nothing_is_kept_where_the_user_says_so(tmp_path: Path, variables: dict[str, str]) -> None:
    measured(tmp_path, **variables)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_jax_was_told_of_stays_the_one(tmp_path: Path) -> None:
    *_, folder = measured(tmp_path, JAX_COMPILATION_CACHE_DIR=str(tmp_path / "jax"))
    assert folder == str(tmp_path / "jax")
    assert not (tmp_path / ".cache").exists()


def test_a_folder_that_cannot_be_made_is_left_alone_in_silence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    *_, folder = measured(tmp_path, PARITYLAB_CACHE=str(tmp_path / "file" / "inside"))
    assert folder is None


def test_damaged_programs_are_compiled_again_in_silence(tmp_path: Path) -> None:
    first = measured(tmp_path, PARITYLAB_CACHE=str(tmp_path / "kept"))
    for path in (tmp_path / "kept").rglob("*-cache"):
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert measured(tmp_path, PARITYLAB_CACHE=str(tmp_path / "kept")) == first


def test_the_folder_is_the_one_that_is_named_or_the_users(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PARITYLAB_CACHE", str(tmp_path / "named"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert compilation_cache.folder() == tmp_path / "named"
    monkeypatch.setenv("PARITYLAB_CACHE", "off")
    assert compilation_cache.folder() is None
    monkeypatch.delenv("PARITYLAB_CACHE")
    assert compilation_cache.folder() == tmp_path / "xdg" / "paritylab"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")  # which the specification says to ignore
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", "linux")
    assert compilation_cache.folder() == tmp_path / ".cache" / "paritylab"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert compilation_cache.folder() == tmp_path / "Library" / "Caches" / "paritylab"


def test_a_processor_with_other_instructions_has_another_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    names: set[str] = set()
    for instructions in (["avx2", "fma"], ["avx2"], []):
        monkeypatch.setattr(compilation_cache, "_instructions", lambda has=instructions: has)
        names.add(compilation_cache.processor())
    assert len(names) == 3


def test_the_older_half_is_deleted_where_there_is_too_much(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for age, name in enumerate("dcba"):
        (tmp_path / name).write_bytes(b"12345")
        os.utime(tmp_path / name, (1000 - age, 1000 - age))
    compilation_cache.tidy(tmp_path)
    assert len(list(tmp_path.iterdir())) == 4
    monkeypatch.setattr(compilation_cache, "MOST_BYTES", 19)
    compilation_cache.tidy(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c", "d"]
