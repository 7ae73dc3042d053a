"""Where a number comes from: what blocks and evidence carry."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import paritylab as pl
from paritylab import provenance
from paritylab.storage.kept import digest_of_arrays
from paritylab.storage.records import COLUMNS, Records


@pytest.fixture(autouse=True)
def forget():
    yield
    provenance.commit.cache_clear()


def test_an_origin_names_program_engine_machine_libraries_and_time():
    origin = provenance.origin("lanes")
    assert origin["paritylab"] == pl.__version__
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", origin["time"])
    assert f"numpy {np.__version__}" in origin["libraries"]
    assert all(isinstance(text, str) and text and "\n" not in text for text in origin.values())
    if provenance.kernel() is not None:
        assert re.match(r"(GCC|Clang) \d", origin["build"])
        assert origin["build"].endswith(provenance.kernel().supported_isas()[0])


def test_of_jax_it_says_on_what_it_computes():
    import jax

    assert provenance.build("jax").endswith(f"on {jax.devices()[0].platform}")


def test_an_engine_that_nobody_knows_has_no_build():
    assert "build" not in provenance.origin("abacus")


def test_the_commit_is_that_of_the_checkout_and_says_whether_the_code_was_changed(monkeypatch):
    answers = {"ls-files": "provenance.py", "status": "", "rev-parse": "abc"}
    monkeypatch.setattr(provenance, "_git", lambda word, *_: answers[word])
    provenance.commit.cache_clear()
    assert provenance.commit() == "abc"
    answers["status"] = " M src/paritylab/rng.py"
    provenance.commit.cache_clear()
    assert provenance.commit() == "abc, with changes"


@pytest.mark.parametrize(("stamp", "told"), [("abc-dirty", "abc, with changes"), ("abc", "abc"), ("", "")])
def test_without_a_checkout_the_commit_is_what_the_build_was_stamped_with(monkeypatch, stamp, told):
    monkeypatch.setattr(provenance, "_git", lambda *_: None)
    monkeypatch.setattr(provenance, "kernel", lambda: SimpleNamespace(commit=stamp, supported_isas=lambda: ["avx2"]))
    provenance.commit.cache_clear()
    assert provenance.commit() == told
    assert provenance.origin().get("commit", "") == told


def test_a_checkout_of_something_else_around_an_installation_is_not_asked(tmp_path, monkeypatch):
    """A virtual environment within another project's checkout."""
    (tmp_path / "site-packages").mkdir()
    somebody = ["-c", "user.name=a", "-c", "user.email=b"]
    for words in (["init", "-q"], [*somebody, "commit", "-q", "--allow-empty", "-m", "c"]):
        if subprocess.run(["git", *words], cwd=tmp_path, capture_output=True).returncode:
            pytest.skip("git is not installed")
    monkeypatch.setattr(provenance, "FOLDER", tmp_path / "site-packages")
    monkeypatch.setattr(provenance, "kernel", lambda: None)
    provenance.commit.cache_clear()
    assert provenance.commit() == ""


def test_it_needs_neither_jax_nor_polars():
    code = "import sys; from paritylab import provenance; provenance.origin('jax'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=Path.home())
    assert not {"jax", "polars", "numpy"} & set(done.stdout.split())


# --- digests of records -----------------------------------------------------------------------------------------------


def records(count: int) -> Records:
    runs = np.arange(count)
    return Records(runs, runs % 2, np.where(runs % 2, -1, 10 * runs), 10 * runs + 5, runs / 100, np.full(count, np.nan))


@given(st.integers(2, 30), st.randoms())
def test_a_digest_does_not_depend_on_the_order_or_on_blocks(count, random):
    whole = records(count)
    order = list(range(count))
    random.shuffle(order)
    cut = random.randrange(count)
    parts = [whole.take(np.array(part, int)) for part in (order[:cut], order[cut:])]
    assert Records.concatenate(parts).digest == whole.digest


@pytest.mark.parametrize("name", COLUMNS)
def test_a_digest_depends_on_every_value(name):
    whole = records(9)
    changed = {each: getattr(whole, each).copy() for each in COLUMNS}
    changed[name][4] = 77
    assert Records(**changed).digest != whole.digest


def test_digests_of_arrays_tell_names_shapes_and_types_apart():
    a = np.arange(6)
    different = [{"a": a}, {"b": a}, {"a": a.reshape(2, 3)}, {"a": a.astype(np.int32)}, {"a": a[:5]}, {"a": a, "b": a}]
    assert len({digest_of_arrays(each) for each in different}) == len(different)
    assert digest_of_arrays({"a": a.astype(">i8")}) == digest_of_arrays({"a": np.asfortranarray(a)})
