"""A Setup's parameters as columns: one place that says what each is called in tables, filters, grids and figures.

A parameter has the short name of its field (``n``, ``width``, ``lr``); a part's type has the part's own (``network``,
``optimiser``, ``problem``). Where two parts have a field of one name, it is the first one's, and the other has its part
in front: ``noise`` is that of labels, ``optimiser_noise`` that of gradients.
"""

from __future__ import annotations

import functools
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

VERSION = 1
"""Of these names; tables that were written with others are made again from the Setups' JSON."""

FIELDS = {
    "problem": ("n", "k", "support", "noise", "sample", "replacement", "inputs", "short_last", "terms", "leak",
                "target", "scale", "stages", "evaluation", "x", "y", "eval_x", "eval_y"),
    "learner": ("network", "init", "loss", "optimiser", "batch"),
    "protocol": ("max_steps", "eval_every", "eval_size", "threshold", "consecutive", "fresh", "within", "until_loss"),
    "network": ("width", "activation", "output_bias", "bias", "degree", "d_emb", "d_attn", "heads", "d_mlp",
                "weights", "outputs", "make", "forward"),
    "optimiser": ("lr", "schedule", "rates", "clip", "weight_decay", "decay_form", "momentum", "nesterov", "b1", "b2",
                  "eps", "alpha", "skip_satisfied", "transformation"),
}
"""Which part of a Setup a short name belongs to."""
OWNER = {name: part for part, names in FIELDS.items() for name in names}

OTHERS = frozenset({
    "setup_id", "family", "json", "engine", "seed", "run", "status", "t_c", "steps", "accuracy", "origin", "runs",
    "solved", "censored", "diverged", "solved_fraction", "p10", "median", "p90", "fastest", "min_horizon",
    "max_horizon",
    *FIELDS,
})
"""Names that tables of records and of summaries need themselves."""

LONGEST = 100
"""Characters of a value that is a list; a longer one, such as given examples, is named by a digest."""

Value = str | float | int | bool | None


def flattened(setup: Mapping[str, Any]) -> dict[str, Value]:
    """The parameters of a Setup's JSON, by their names.

    >>> setup = {"problem": {"type": "parity", "n": 30, "noise": 0}, "learner": {"batch": 32,
    ...          "optimiser": {"type": "sgd", "lr": 0.1, "noise": 0.5}}, "protocol": {"fresh": False}}
    >>> flattened(setup)["optimiser"], flattened(setup)["lr"], flattened(setup)["optimiser_noise"]
    ('sgd', 0.1, 0.5)
    """
    found: dict[str, Value] = {}
    for part in ("problem", "learner", "protocol"):
        if isinstance(within := setup.get(part), Mapping):
            found.update(_part(part, within))
    return found


def ordered(names: Iterable[str]) -> list[str]:
    """Names of parameters as tables have them: those of the problem first.

    >>> ordered(["mine", "width", "lr", "n", "network"])
    ['n', 'network', 'width', 'lr', 'mine']
    """
    every = ("n", "k", "problem", *FIELDS["problem"], "network", *FIELDS["network"], "init", "loss", "optimiser",
             *FIELDS["optimiser"], "batch", *FIELDS["protocol"])
    place = {name: i for i, name in reversed(list(enumerate(every)))}
    return sorted(names, key=lambda name: (place.get(name, len(every)), name))


@functools.cache
def name_of(part: str, field: str) -> str:
    """What a field of a part of a Setup is called."""
    if OWNER.get(field, part) == part and field not in OTHERS - {part}:
        return field
    return f"{part}_{field}"


def _part(part: str, within: Mapping[str, Any]) -> Iterator[tuple[str, Value]]:
    for field, value in within.items():
        if field == "type":
            if part not in ("learner", "protocol"):
                yield part, _plain(value)
        elif isinstance(value, Mapping):
            inner = field if part == "learner" else name_of(part, field)
            yield from _part(inner, value)
        elif part == "learner" and field in ("network", "optimiser"):
            yield field, _plain(value)
        else:
            yield name_of(part, field), _plain(value)


def _plain(value: Any) -> Value:
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    text = json.dumps(value, sort_keys=True, separators=(",", ":"))
    if len(text) <= LONGEST:
        return text
    return f"{len(value)} values, {hashlib.sha256(text.encode()).hexdigest()[:8]}"


def family(setup: Mapping[str, Any]) -> str:
    """What Setups share that differ in nothing but their step limits.

    >>> family({"n": 1, "protocol": {"max_steps": 5}}) == family({"n": 1, "protocol": {"max_steps": 6}})
    True
    """
    protocol = setup.get("protocol")
    free = {"protocol": {**protocol, "max_steps": None}} if isinstance(protocol, Mapping) else {}
    text = json.dumps({**setup, **free}, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
