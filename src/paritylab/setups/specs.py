"""Specs: the one-line names of activations, initialisations, losses and schedules, such as ``zigzag:3``.

A spec is a name, optionally followed by a colon and comma-separated numbers. The same spelling is used in
Python, on the command line and in files.
"""

from __future__ import annotations

from collections.abc import Mapping

from paritylab.errors import InvalidInput, single, unknown


def parse(kind: str, text: str, arities: Mapping[str, tuple[int, int]]) -> tuple[str, tuple[float, ...]]:
    """Split a spec into its name and its numbers; ``arities`` maps each known name to (fewest, most) numbers.

    >>> parse("activation", "zigzag:3", {"relu": (0, 0), "zigzag": (1, 1)})
    ('zigzag', (3.0,))
    """
    name, colon, tail = str.__str__(text).partition(":")  # of a subclass, too, its text
    if name not in arities:
        raise unknown(kind, name, arities)
    try:
        numbers = tuple(float(part) for part in tail.split(",")) if colon else ()
    except ValueError:
        raise InvalidInput(f"{kind} {text!r}: what follows the colon must be numbers separated by commas") from None
    fewest, most = arities[name]
    if not fewest <= len(numbers) <= most:
        count = f"{fewest}" if fewest == most else f"{fewest} to {'any number' if most > 99 else most}"
        raise InvalidInput(f"{kind} {name!r} takes {count} number(s) after a colon, not {len(numbers)}")
    return name, tuple(single(f"{kind} {name!r}: what follows the colon", number) for number in numbers)


def render(name: str, numbers: tuple[float, ...] = ()) -> str:
    """The canonical spelling of a spec: whole numbers without a decimal point.

    >>> render("perturbed-rademacher", (0.10,)), render("zigzag", (3.0,))
    ('perturbed-rademacher:0.1', 'zigzag:3')
    """
    if not numbers:
        return name
    return name + ":" + ",".join(str(int(x)) if x == int(x) and abs(x) < 1e15 else repr(x) for x in numbers)
