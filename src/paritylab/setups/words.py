"""Setups in words, as lists and pages show them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from paritylab.notebooks import facts

if TYPE_CHECKING:
    from paritylab.setups.problems import AnyProblem, Problem
    from paritylab.setups.setup import Setup


QUIET = {"consecutive": 1, "decay_form": "coupled", "schedule": "constant", "threshold": 1, "output_bias": True,
         "eps": 1e-8, "bias": True, "skip_satisfied": False}
"""What goes without saying; so do fields that are zero, false or not given."""
QUIET_OF = {"adam": {"b1": 0.9, "b2": 0.999}, "rmsprop": {"alpha": 0.99},
            "mlp": {"inputs": "signs", "outputs": 1}}
"""The same for parts of one type."""
LONGEST = 40
"""Characters of a text that is shown in full; tables and data can have millions. Names of functions always are."""
SHOWN = 6
"""So many values of one field are written out."""


def problem_in_words(problem: AnyProblem) -> str:
    """
    >>> from paritylab.setups.problems import LeakyParity, Parity, Polynomial
    >>> problem_in_words(Parity(30, 3)), problem_in_words(LeakyParity(30, 3))
    ('(30, 3) parity', '(30, 3) leaky parity')
    >>> problem_in_words(Polynomial(10, terms=[(1, [0, 1]), (0.5, [2])]))
    'sum of 2 parities of 10 bits'
    """
    from paritylab.setups.problems import Data, LeakyParity, Polynomial, Problem

    if isinstance(problem, Data):
        return f"{problem.sample} examples of {problem.n} inputs"
    if isinstance(problem, Problem):
        return composed_in_words(problem)
    if isinstance(problem, Polynomial):
        return f"sum of {len(problem.terms)} parities of {problem.n} bits"
    return f"({problem.n}, {problem.k}) {'leaky ' * isinstance(problem, LeakyParity)}parity"


def composed_in_words(problem: Problem) -> str:
    """
    >>> from paritylab.setups.problems import Problem, Stage
    >>> composed_in_words(Problem(30, "majority:5", "biased:0.3", stages=[Stage(100)]))
    'table of 5 of 30 bits, biased(p 0.3), 1 stage'
    """
    from paritylab.setups.problems import Outputs, Product, Sum, Table, Tasks, laws

    target = problem.target
    if isinstance(target, Product):
        said = f"({problem.n}, {problem.k}) parity"
    elif isinstance(target, Sum):
        said = f"{'sign of a ' * target.sign}sum of {len(target.terms)} parities of {problem.n} bits"
    elif isinstance(target, Table):
        said = f"table of {len(target.places)} of {problem.n} bits"
    elif isinstance(target, Outputs):
        said = f"{len(target.supports)} parities of {problem.n} bits, one for each output"
    elif isinstance(target, Tasks):
        said = f"{problem.tasks} tasks on {problem.n} bits"
    else:
        said = f"own target on {problem.n} bits"
    law = [] if problem.inputs == laws.Uniform() else [laws.in_words(problem.inputs)]
    stages = [f"{len(problem.stages)} stage{'s' * (len(problem.stages) > 1)}"] if problem.stages else []
    return ", ".join([said, *law, *stages])


def network_in_words(network: dict[str, Any]) -> str:
    """A network's JSON in a few words: ``mlp 10 relu``.

    >>> network_in_words({"type": "mlp", "width": 10, "activation": "relu", "output_bias": True})
    'mlp 10 relu'
    >>> network_in_words({"type": "graph", "steps": ["linear:8", "tanh", "linear:1"]})
    'graph linear:8 > tanh > linear:1'
    """
    words = [network["type"]]
    for name, value in sorted(network.items(), reverse=True):
        if name not in ("type", "output_bias"):
            words.append(_shown(value) if isinstance(value, list) else str(value))
    return " ".join(words)


def setups_in_words(setups: Sequence[Setup]) -> str:
    """What several Setups have in common, and in which fields they differ.

    >>> from paritylab.setups.problems import Parity
    >>> from paritylab.setups.setup import Setup
    >>> setups_in_words([Setup(Parity(n, 3)) for n in (20, 30)]).split("; ")[:3]
    ['parity: k 3, n 20 | 30', 'mlp: activation relu, width 10', 'batch 32, init torch, loss hinge']
    """
    texts = [json.loads(setup.to_json()) for setup in setups]
    learner = _learner([text["learner"] for text in texts])
    return "; ".join([_problem(texts), *learner.values(), _protocol([text["protocol"] for text in texts])])


class Shown:
    """A Setup, or a Learner, as a small table in a notebook."""

    def _repr_html_(self) -> str:
        from paritylab.setups.setup import Setup, named_in

        if not isinstance(self, Setup):
            return facts(_learner([named_in(self)]))
        text = json.loads(self.to_json())
        return facts({"problem": _problem([text]), **_learner([text["learner"]]),
                      "protocol": _protocol([text["protocol"]]), "id": self.id})


def part_in_words(part: dict[str, Any]) -> str:
    """A part of a Setup's JSON, its type first.

    >>> part_in_words({"type": "mlp", "width": 10, "activation": "relu", "output_bias": True})
    'mlp: activation relu, width 10'
    """
    return _part([part])


def _problem(texts: Sequence[dict[str, Any]]) -> str:
    return _part([_without(text["problem"], "support") for text in texts])


def _learner(parts: Sequence[dict[str, Any]]) -> dict[str, str]:
    return {
        "network": _part([part["network"] for part in parts]),
        "training": _part([_without(part, "network", "optimiser", "type") for part in parts]),
        "optimiser": _part([part["optimiser"] for part in parts]),
    }


def _protocol(parts: Sequence[dict[str, Any]]) -> str:
    steps, size, every = (_values([part[name] for part in parts]) for name in ("max_steps", "eval_size", "eval_every"))
    rest = _part([_without(part, "max_steps", "eval_size", "eval_every", "type") for part in parts])
    return f"at most {steps} steps, a check on {size} inputs every {every}{', ' * bool(rest)}{rest}"


def _part(parts: Sequence[dict[str, Any]]) -> str:
    """The fields of one part of Setups that are worth a word; its type, if it has one, comes first."""
    names = sorted({name for part in parts for name in part} - {"type"})
    told, quiet = [], QUIET | QUIET_OF.get(str(parts[0].get("type")), {})
    for name in names:
        values = [part.get(name, quiet.get(name)) for part in parts]
        if any(value and value != quiet.get(name) for value in values) or (name in quiet and not all(values)):
            told.append(f"{name} {_values(values)}")
    kinds = _values([part["type"] for part in parts]) if "type" in parts[0] else ""
    return ": ".join(filter(None, [kinds, ", ".join(told)]))


def _values(values: Sequence[Any]) -> str:
    """Different values, one after the other; only the ends of many."""
    shown = list(dict.fromkeys(_shown(value) for value in values))
    if len(shown) > SHOWN:
        return f"{shown[0]} | {shown[1]} | ... | {shown[-1]} ({len(shown)} values)"
    return " | ".join(shown)


def _shown(value: Any) -> str:
    if isinstance(value, list):
        steps = len(value) > 0 and all(isinstance(each, str) for each in value)
        return (" > " if steps else "x").join(map(_shown, value))
    if isinstance(value, str) and len(value) > LONGEST and "@" not in value:
        return f"{value[:12]}... {hashlib.sha256(value.encode()).hexdigest()[:8]}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _without(part: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in part.items() if name not in names}
