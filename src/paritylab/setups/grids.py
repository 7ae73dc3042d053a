"""Grids: Setups from the values that their parameters take, by the names that tables have (setups/parameters.py)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from itertools import product
from typing import Any

from paritylab.errors import InvalidInput, require, unknown
from paritylab.memory import Part, require_room
from paritylab.setups.parameters import FIELDS, OWNER
from paritylab.setups.problems import Parity
from paritylab.setups.setup import Learner, Protocol, Setup

PARTS = ("problem", "learner", "protocol", "network", "optimiser")
SETUP_BYTES = 6000
"""What a Setup takes in memory."""


def grid(**values: Any) -> list[Setup]:
    """Setups with every combination of these values; the last one named varies fastest.

    Args:
        values: parameters by name (``n``, ``k``, ``width``, ``lr``, ``batch``, ``max_steps``, ...), and whole parts
            (``problem``, ``learner``, ``network``, ``optimiser``, ``protocol``), whose fields the others change. A list
            stands for several values, anything else (a tuple, too) for one. Where two parts have a field of one name,
            the second's has its part in front: ``optimiser_noise``.

    >>> from paritylab import MLP, Parity, SGD
    >>> setups = grid(problem=Parity(n=30, k=3), network=MLP(), width=[10, 100], lr=[0.1, 0.5, 1.0], max_steps=1000)
    >>> len(setups), setups[1].learner.optimiser.lr, setups[-1].learner.network.width
    (6, 0.5, 100)
    >>> [setup.problem.n for setup in grid(n=[20, 30], k=3)]
    [20, 30]
    """
    fields = {name: _field(name) for name in values}
    choices = {name: _several(name, value) for name, value in values.items()}
    count = 1
    for each in choices.values():
        count *= len(each)
    require_room("this grid", {"Setups": Part(count, SETUP_BYTES)})
    made: dict[tuple[Any, ...], Any] = {}

    def part(name: str, places: dict[str, int], **inner: Any) -> Any:
        """A part of one Setup; Setups with equal values share it."""
        mine = [each for each in values if fields[each][0] == name]
        key = (name, *(places[each] for each in mine), *map(id, inner.values()))
        if key not in made:
            chosen = {fields[each][1]: choices[each][places[each]] for each in mine}
            made[key] = _made(name, chosen.pop("", None), chosen, inner)
        return made[key]

    setups: list[Setup] = []
    for combination in product(*(range(len(each)) for each in choices.values())):
        places = dict(zip(choices, combination, strict=True))
        given = part("given learner", places)
        learner = part("learner", places, given=given, network=part("network", places, given=given),
                       optimiser=part("optimiser", places, given=given))
        setups.append(Setup(part("problem", places), learner, part("protocol", places)))
    return setups


def _field(name: str) -> tuple[str, str]:
    """The part that a name belongs to, and the field; no name of a field for the part itself."""
    if name == "learner":
        return "given learner", ""
    if name in PARTS:
        return name, ""
    if name in OWNER:
        return OWNER[name], name
    for part in FIELDS:
        if name.startswith(f"{part}_"):
            return part, name.removeprefix(f"{part}_")
    raise unknown("parameter", name, [*PARTS, *OWNER, "optimiser_noise"])


def _several(name: str, value: Any) -> Sequence[Any]:
    several = value if isinstance(value, (list, range)) else value.tolist() if hasattr(value, "tolist") else [value]
    several = several if isinstance(several, (list, range)) else [several]
    require(len(several) > 0, f"{name} has no values")
    return several


def _made(name: str, whole: Any, chosen: dict[str, Any], inner: dict[str, Any]) -> Any:
    if name == "given learner":
        return whole
    given = inner.pop("given", None)
    if whole is None and name in ("network", "optimiser"):
        whole = getattr(given or Learner(), name)
    elif whole is None:
        whole = {"problem": None, "learner": given or Learner(), "protocol": Protocol()}[name]
    try:
        if whole is None:
            return Parity(**chosen)
        return dataclasses.replace(whole, **chosen, **inner) if chosen or inner else whole
    except TypeError as error:
        kind = "a Parity" if whole is None else f"this {type(whole).__name__}"
        raise InvalidInput(f"{', '.join(map(str, chosen))} cannot be given to {kind}: {error}") from None
