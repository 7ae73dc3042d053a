"""What runs as Python is known by its code: of every file that it is made of, and of what its globals are."""

from __future__ import annotations

import importlib
import py_compile
import sys
import sysconfig
from pathlib import Path
from typing import Any

import pytest

import paritylab as pl
from paritylab import baselines
from paritylab.functions import code, sources

EXTENSION = f"fast{sysconfig.get_config_var('EXT_SUFFIX')}"
LAZY = "__getattr__, __dir__, __all__ = attach(__name__, {'_impl': ['f']})"

FILES: dict[str, tuple[str, dict[str, str], str]] = {
    "the module": ("", {}, "one/study.py"),
    "a module of the package": ("from one import a", {"one/a.py": ""}, "one/a.py"),
    "the first of two modules": ("from one import a\nfrom one import b", {"one/a.py": "", "one/b.py": ""}, "one/a.py"),
    "the second of two modules": ("from one import a\nfrom one import b", {"one/a.py": "", "one/b.py": ""}, "one/b.py"),
    "a module that a module imports": ("import one.a", {"one/a.py": "from . import b", "one/b.py": ""}, "one/b.py"),
    "the package": ("", {}, "one/__init__.py"),
    "an import within a function": ("def f():\n    from one.a import x", {"one/a.py": ""}, "one/a.py"),
    "an import that may fail": ("try:\n    from .a import x\nexcept ImportError: ...", {"one/a.py": ""}, "one/a.py"),
    "all that a package says": ("from one import *", {"one/a.py": ""}, "one/a.py"),
    "a module beside the package": ("import beside", {"beside.py": ""}, "beside.py"),
    "a package without __init__": ("import spaces.a", {"spaces/a.py": ""}, "spaces/a.py"),
    "a module by a name of Python's": ("import code", {"code.py": ""}, "code.py"),
    "a package by a name of Python's": ("from statistics import x", {"statistics/__init__.py": ""},
                                        "statistics/__init__.py"),
    "a module by a name that is made": ("import importlib\nx = getattr(importlib, 'import' + '_module')('one.a')",
                                        {"one/a.py": ""}, "one/a.py"),
    "a module among the loaded": ("import sys as s\nx = s.modules.get('one.a')", {"one/a.py": ""}, "one/a.py"),
    "a module that is imported late": ("from one.late import f", {"one/late/__init__.py": LAZY,
                                                                  "one/late/_impl.py": ""}, "one/late/_impl.py"),
    "a function of a module": ("from one import f", {"one/__init__.py": "def __getattr__(name): ...",
                                                     "one/_impl.py": ""}, "one/_impl.py"),
    "data": ("", {"one/data/numbers.csv": ""}, "one/data/numbers.csv"),
    "data in a package": ("", {"one/data/__init__.py": "", "one/data/numbers.csv": ""}, "one/data/numbers.csv"),
    "an extension": ("from one import fast", {f"one/{EXTENSION}": ""}, f"one/{EXTENSION}"),
    "an extension beside the package": ("import fast", {EXTENSION: ""}, EXTENSION),
}
"""The text of a module, the files beside it, and which one is edited."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A folder from which modules are imported first."""
    for name in ("code", "statistics", "optax"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    sources.is_of_python.cache_clear()
    yield tmp_path
    for name in [name for name in sys.modules if name.partition(".")[0] in ("one", "learners", "helper")]:
        del sys.modules[name]
    sources.is_of_python.cache_clear()


def written(place: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        (place / name).write_text(text)
    importlib.invalidate_caches()


@pytest.mark.parametrize("name", FILES)
def test_an_edited_file_is_other_code(name: str, place: Path) -> None:
    text, beside, edited = FILES[name]
    written(place, {"one/__init__.py": "", "one/study.py": text} | beside)
    before = sources.digest("one.study")
    written(place, {edited: (place / edited).read_text() + "\n# edited"})
    assert sources.digest("one.study") != before


def test_a_module_without_source_is_known_by_what_was_compiled(place: Path) -> None:
    written(place, {"one/__init__.py": "", "one/study.py": "import compiled\nfrom one import inner"})
    found = set[str]()
    for number in range(2):
        for name in ("compiled", "one/inner"):
            written(place, {"text": f"C = {number if name == 'compiled' else 0}"})
            py_compile.compile(str(place / "text"), cfile=str(place / f"{name}.pyc"))
        found.add(sources.digest("one.study"))
    assert len(found) == 2


@pytest.mark.parametrize("text", [
    "import sys as s\ns.path.insert(0, 'elsewhere')", "from sys import path\npath.insert(0, 'elsewhere')",
    "from one import a", "from runpy import run_path"])
def test_code_that_is_loaded_by_path_is_refused(text: str, place: Path) -> None:
    written(place, {"one/__init__.py": "", "one/study.py": text, "one/a.py": "import sys\nsys.path.append('there')"})
    with pytest.raises(pl.InvalidInput, match="loads code by path"):
        sources.digest("one.study")


def test_a_module_is_not_taken_for_an_installed_library_of_its_name(place: Path) -> None:
    written(place, {"one/__init__.py": "", "one/study.py": "import optax", "optax.py": ""})
    sources._version.cache_clear()
    try:
        before = sources.digest("one.study")
        written(place, {"optax.py": "# edited"})
        assert sources.digest("one.study") != before
    finally:
        sources._version.cache_clear()


# --- learners ---------------------------------------------------------------------------------------------------------

LEARNERS = """
import functools
import jax
import numpy as np
import helper

NUMBER, CONFIG, LIST, ARRAY = 1, {"a": {"b": 1}}, [1], np.ones(1)
SCALED = jax.jit(lambda x: x * NUMBER)
KEPT = functools.cache(lambda: NUMBER)

class Options:
    number = 1

class Finds:
    @property
    def number(self):
        return NUMBER

    def find(self, given):
        return self.number

OPTIONS = Options()
OPTIONS.own = 1

def number(given): return NUMBER
def config(given): return CONFIG["a"]["b"]
def listed(given): return LIST[0]
def array(given): return ARRAY[0]
def of_a_class(given): return Options.number
def of_an_object(given): return OPTIONS.own
def of_a_module(given): return helper.NUMBER
def of_its_table(given): return helper.TABLE["a"]
def by_its_function(given): return helper.function()
def imported_within(given):
    import helper as known
    return known.NUMBER
def called(given): return number(given)
def compiled(given): return SCALED(1)
def remembered(given): return KEPT()
def inner(given): return [NUMBER for _ in range(1)][0]
finds = Finds()
"""
HELPER = """
NUMBER, TABLE = 1, {"a": 1}
def function(): return NUMBER
"""
STATES: dict[str, tuple[str, ...]] = {
    "learners.NUMBER": ("number", "called", "compiled", "remembered", "inner", "finds"),
    "learners.CONFIG['a']['b']": ("config",),
    "learners.LIST[0]": ("listed",),
    "learners.ARRAY[0]": ("array",),
    "learners.Options.number": ("of_a_class",),
    "learners.OPTIONS.own": ("of_an_object",),
    "helper.NUMBER": ("of_a_module", "by_its_function", "imported_within"),
    "helper.TABLE['a']": ("of_its_table",),
}


@pytest.mark.parametrize(("state", "name"), [(state, name) for state, names in STATES.items() for name in names])
def test_a_learner_is_another_one_when_its_globals_are(state: str, name: str, place: Path) -> None:
    written(place, {"learners.py": LEARNERS, "helper.py": HELPER})
    modules = {each: importlib.import_module(each) for each in ("learners", "helper")}
    learner = getattr(modules["learners"], name)
    before = code.written(learner)
    exec(f"{state} = 2", modules)
    assert code.written(learner) != before
    exec(f"{state} = 1", modules)
    assert code.written(learner) == before


def test_what_is_no_value_among_the_globals_of_a_learner_is_refused(place: Path) -> None:
    written(place, {"learners.py": "import threading\nKEY = threading.Lock()\ndef learner(given): return KEY.locked()"})
    with pytest.raises(pl.InvalidInput, match="cannot be told from others: globals 'KEY' is a lock; vouch for it by"):
        code.written(importlib.import_module("learners").learner)


def test_the_loss_of_a_network_beside_other_learners_counts(tmp_path: Path) -> None:
    def compared(margin: float) -> list[str]:
        network = pl.Learner(pl.MLP(6), loss=lambda f, y: (margin - y * f) ** 2, batch=16)
        made = baselines.compare([pl.Parity(n=6, k=1)], ["sgd"], runs=1, limit=64, out=tmp_path, learner=network)
        assert len(made) == 1
        return sorted(path.name for path in tmp_path.glob("kept/compare-*.npz"))

    assert len(compared(1.0)) == len(compared(1.0)) == 1
    assert len(compared(2.0)) == 2
