"""Whatever leaf of whatever users build is changed, its id changes; built again in another process, it does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import grown
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paritylab.functions.fingerprints import fingerprint

positive = st.floats(1e-3, 0.9)
steps = st.integers(1, 1000)
rates = st.recursive(
    st.one_of(
        positive,
        st.tuples(st.just("constant"), positive),
        st.tuples(st.just("linear"), positive, positive, steps),
        st.tuples(st.just("cosine"), positive, steps),
        st.tuples(st.just("warmup"), positive, positive, steps, steps),
    ),
    lambda inner: st.tuples(st.just("joined"), inner, inner, steps),
    max_leaves=3,
)
rules = st.recursive(
    st.one_of(
        st.tuples(st.just("sgd"), rates),
        st.tuples(st.just("adam"), rates, positive),
        st.tuples(st.just("adamw"), rates, positive),
        st.tuples(st.just("clip"), positive),
        st.tuples(st.just("scale"), positive),
    ),
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map(lambda chosen: ("chain", *chosen)),
        st.tuples(st.just("finite"), inner, steps),
        st.tuples(st.just("masked"), inner, st.sampled_from([0.0, 1.0])),
    ),
    max_leaves=5,
)
leaves = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5))
containers = st.sampled_from(["list", "tuple", "dict", "array", "set", "function"])
values = st.recursive(
    leaves, lambda inner: st.tuples(containers, st.lists(inner, max_size=3)).map(lambda made: [made[0], *made[1]]),
    max_leaves=6,
)
RECIPES = {
    "rule": rules,
    "closure": st.lists(values, min_size=1, max_size=3).map(lambda found: ["closure", *found]),
    "partial": st.tuples(st.just("partial"), values, values, values),
    "hierarchy": st.lists(st.tuples(values, values, values, values), min_size=1, max_size=3).map(
        lambda levels: ["hierarchy", *levels]
    ),
}


def leaves_of(recipe, path=()):
    """The ways to all leaves; the first item of a row says what it is."""
    if not isinstance(recipe, (list, tuple)):
        return [path]
    named = bool(recipe) and isinstance(recipe[0], str) and recipe[0] in NAMED
    return [way for i, item in enumerate(recipe) if i or not named for way in leaves_of(item, (*path, i))]


NAMED = {*grown.RULES, *grown.SCHEDULES, *grown.KINDS, "list", "tuple", "dict", "array", "set", "function"}


def changed(recipe, path, new):
    if not path:
        return new
    return [changed(item, path[1:], new) if i == path[0] else item for i, item in enumerate(recipe)]


def leaf_at(recipe, path):
    for i in path:
        recipe = recipe[i]
    return recipe


def other(data, old, kind):
    """Another leaf in place of one; that of a transformation is of the same type, so that it can be built."""
    if kind == "rule" and old in (0.0, 1.0) and isinstance(old, float):
        return 1.0 - old
    drawn = data.draw((steps if isinstance(old, int) else positive) if kind == "rule" else leaves)
    same = type(drawn) is type(old) and (drawn == old and str(drawn) == str(old))
    return (old + 1 if isinstance(old, int) else old / 2) if same and kind == "rule" else ["list"] if same else drawn


@pytest.mark.parametrize("kind", RECIPES)
@settings(max_examples=50, deadline=None)
@given(st.data())
def test_any_leaf_that_is_changed_changes_the_fingerprint(kind, data):
    recipe = data.draw(RECIPES[kind])
    ways = leaves_of(recipe)
    if not ways:
        return
    path = data.draw(st.sampled_from(ways))
    second = changed(recipe, path, other(data, leaf_at(recipe, path), kind))
    first = fingerprint(grown.grown(kind, recipe))
    assert fingerprint(grown.grown(kind, second)) != first
    assert fingerprint(grown.grown(kind, recipe)) == first


AGAIN = """
import json, sys
sys.path.insert(0, sys.argv[1])
from grown import setup_id
for kind, recipe in json.load(sys.stdin):
    print(setup_id(kind, recipe))
"""


def test_built_again_in_another_process_everything_keeps_its_id():
    recipes: list = []

    @settings(max_examples=60, deadline=None, derandomize=True, database=None)
    @given(st.sampled_from(list(RECIPES)), st.data())
    def collect(kind, data):
        recipes.append((kind, json.loads(json.dumps(data.draw(RECIPES[kind])))))

    collect()
    assert {kind for kind, _ in recipes} == set(RECIPES)
    environment = {**os.environ, "PYTHONHASHSEED": "7"}
    command = [sys.executable, "-c", AGAIN, str(Path(__file__).parent)]
    done = subprocess.run(
        command, input=json.dumps(recipes), env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    assert done.stdout.split() == [grown.setup_id(kind, recipe) for kind, recipe in recipes]


@settings(max_examples=50, deadline=None)
@given(st.sampled_from(list(RECIPES)), st.data())
def test_what_is_sent_to_a_worker_keeps_its_fingerprint(kind, data):
    cloudpickle = pytest.importorskip("cloudpickle")
    made = grown.grown(kind, data.draw(RECIPES[kind]))
    assert fingerprint(cloudpickle.loads(cloudpickle.dumps(made))) == fingerprint(made)
