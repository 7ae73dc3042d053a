"""What users' functions read from outside: globals, modules, libraries; and what cannot be followed is refused."""

from __future__ import annotations

import functools
import importlib
import logging
import subprocess
import sys
import threading
import types
from pathlib import Path

import jax
import jax.numpy as jnp
import optax
import pytest

import paritylab as pl
from paritylab.errors import InvalidInput
from paritylab.functions import homes
from paritylab.functions.fingerprints import fingerprint
from paritylab.setups import inits
from paritylab.theory.xor import gaussian_inputs

# --- globals and modules ----------------------------------------------------------------------------------------

MODULE = """
import helpers, math, helpers.deep as below
P = 0.5
TABLE = {"a": [1.0]}
def helper(x): return P * x
def plain(x): return P * x
def through(x): return helper(x)
def nested(x): return [(lambda: P)() * y for y in x]
def table(x): return TABLE["a"][0] * x
def attribute(x): return helpers.Q * x
def deeper(x): return helpers.deep.R * x
def renamed(x): return below.R * x
def local(x):
    import helpers
    from helpers.deep import R
    return helpers.Q * R * x
def captured():
    import helpers as h
    return lambda x: h.Q * x
def passed(x): return getattr(helpers, "Q") * x
def unrelated(x): return math.pi * x
def computed(x): return globals()["P"] * x
def evaluated(x): return eval("P") * x
"""


@pytest.fixture
def mine(tmp_path, monkeypatch):
    """A module of the user's, which uses others."""
    (tmp_path / "helpers").mkdir()
    (tmp_path / "helpers" / "__init__.py").write_text("from helpers import deep\nQ = 1.0\nUNUSED = 1.0\n")
    (tmp_path / "helpers" / "deep.py").write_text("R = 1.0\n")
    (tmp_path / "mine.py").write_text(MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("mine")
    for name in ("mine", "helpers", "helpers.deep"):
        sys.modules.pop(name, None)


READERS = {
    "plain": "mine.P", "through": "mine.P", "nested": "mine.P", "table": "mine.TABLE", "attribute": "mine.helpers.Q",
    "deeper": "mine.helpers.deep.R", "renamed": "mine.helpers.deep.R", "local": "mine.helpers.deep.R",
}


def change(mine, path, value):
    *way, last = path.split(".")[1:]
    setattr(functools.reduce(getattr, way, mine), last, value)


@pytest.mark.parametrize("name", READERS)
def test_a_global_that_a_function_reads_enters_its_fingerprint(mine, name):
    function = getattr(mine, name)
    before = fingerprint(function)
    change(mine, READERS[name], {"a": [2.0]} if name == "table" else 2.0)
    assert fingerprint(function) != before
    change(mine, READERS[name], {"a": [1.0]} if name == "table" else 0.5 if READERS[name] == "mine.P" else 1.0)
    assert fingerprint(function) == before


def test_a_module_in_a_closure_is_followed_as_a_global_one(mine):
    function = mine.captured()
    before = fingerprint(function)
    mine.helpers.UNUSED = 2.0
    assert fingerprint(function) == before
    mine.helpers.Q = 2.0
    assert fingerprint(function) != before


def test_a_global_that_a_function_does_not_read_does_not_matter(mine):
    before = fingerprint(mine.unrelated)
    mine.P = 0.05
    mine.helpers.Q = 2.0
    assert fingerprint(mine.unrelated) == before


@pytest.mark.parametrize(
    ("name", "says"),
    [("passed", "module helpers is passed around"), ("computed", "calls `globals`"), ("evaluated", "calls `eval`")],
)
def test_what_cannot_be_followed_is_refused_in_a_line_that_says_what_to_do(mine, name, says):
    advice = r"pl\.named\('my-function v1', function\)"
    with pytest.raises(InvalidInput, match=rf"mine\.{name} .*{says}.*{advice}") as caught:
        pl.Learner(loss=getattr(mine, name))
    assert "\n" not in str(caught.value)


LOCK = threading.Lock()
CACHED = functools.lru_cache(lambda: 1.0)
LOG = logging.getLogger(__name__)


def locked(f, y):
    with LOCK:
        return f * y


def remembering(f, y):
    return CACHED() * f * y


def logged(f, y):
    LOG.debug("called")
    return f * y


def opened(stream):
    return lambda f, y: f * y * len(stream)


@pytest.mark.parametrize(
    ("loss", "says"),
    [
        (locked, r"global `LOCK` of .*\.locked from others: a lock has no description"),
        (remembering, r"global `CACHED` of .*\.remembering from others: a functools cache"),
        (opened(x for x in ()), r"closure variable `stream` of .*<lambda> from others: a generator"),
        (opened([{"a": threading.Lock()}]), r"item 'a' of item 0 of closure variable `stream` of .*: a lock"),
        (functools.partial(opened, LOCK), "item 0 of .*: a lock"),
    ],
)
def test_what_has_no_description_is_refused_with_the_way_to_it(loss, says):
    with pytest.raises(InvalidInput, match=says) as caught:
        pl.Learner(loss=loss)
    assert "\n" not in str(caught.value)


def test_what_is_only_traced_is_refused():
    def traced(x):
        fingerprint(lambda y: x * y)
        return x

    with pytest.raises(InvalidInput, match=r"closure variable `x` of .* JAX is only tracing"):
        jax.make_jaxpr(traced)(1.0)


def test_a_logger_is_no_hindrance():
    assert fingerprint(logged) == fingerprint(logged)


# --- libraries --------------------------------------------------------------------------------------------------


def test_a_library_is_known_by_its_version(monkeypatch):
    def sine(z):
        return jnp.sin(z)

    samples = [jnp.sin, jax.nn.relu, sine, optax.adam(0.1), jax.jit(sine), jax.random.normal]
    before = [fingerprint(each) for each in samples]
    versions = {"jax": "9.9", "optax": "9.9"}
    monkeypatch.setattr(homes, "_version", versions.get)
    homes._of_file.cache_clear()
    after = [fingerprint(each) for each in samples]
    homes._of_file.cache_clear()
    assert all(first != second for first, second in zip(before, after, strict=True))


def test_a_function_under_the_name_of_another_is_described_by_its_own_code():
    def imposter(scale):
        return functools.wraps(jnp.sin)(lambda z: scale * z)

    assert fingerprint(imposter(1.0)) != fingerprint(imposter(2.0))
    assert fingerprint(imposter(1.0)) != fingerprint(jnp.sin)


WHEREVER = """
import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if "editable" not in type(finder).__module__]
sys.path.insert(0, sys.argv[1])
import jax, paritylab, paritylab.setups.inits as inits
from paritylab.functions.fingerprints import fingerprint
from paritylab.theory.xor import gaussian_inputs
assert paritylab.__file__.startswith(sys.argv[1]), paritylab.__file__
print(fingerprint(gaussian_inputs), inits.custom(jax.random.normal, scale=inits.fan_in_scale(2.0)).spec)
"""


def test_our_own_functions_have_one_fingerprint_wherever_they_are_installed(tmp_path):
    there = tmp_path / "lib" / "python3" / "site-packages"
    there.mkdir(parents=True)
    (there / "paritylab").symlink_to(Path(pl.__file__).parent)
    command = [sys.executable, "-c", WHEREVER, str(there)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    here = inits.custom(jax.random.normal, scale=inits.fan_in_scale(2.0)).spec
    assert done.stdout.split() == [fingerprint(gaussian_inputs), here]


def test_a_module_made_by_hand_is_the_users():
    made = types.ModuleType("made_by_hand")
    exec("P = 1.0\ndef f(x): return P * x", vars(made))
    before = fingerprint(made.f)
    made.P = 2.0
    assert fingerprint(made.f) != before


def test_a_library_that_a_function_imports_by_itself_need_not_be_loaded():
    code = (
        "import sys, paritylab.functions.fingerprints as f\n"
        "def mine(z):\n    import optax\n    from scipy.special import erf\n    return erf(z)\n"
        "first = f.fingerprint(mine)\n"
        "assert 'optax' not in sys.modules\n"
        "import optax, scipy.special\n"
        "assert f.fingerprint(mine) == first\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
