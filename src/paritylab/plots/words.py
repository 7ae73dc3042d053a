"""What parameters and statistics are called on axes and in legends."""

from __future__ import annotations

import re
from typing import Any

LETTERS = frozenset("nkdmw")
"""Parameters that papers write in italics."""
AXES = {
    "n": "number of inputs $n$",
    "k": "size of the parity $k$",
    "lr": "learning rate",
    "batch": "batch size",
    "noise": "label noise",
    "sample": "size of the sample",
    "max_steps": "step limit",
    "median": "median steps",
    "fastest": "steps of the fastest run",
    "solved_fraction": "fraction solved",
}


def axis(name: str) -> str:
    """The label of an axis.

    >>> axis("n"), axis("p10"), axis("weight_decay"), axis("p2.5")
    ('number of inputs $n$', '10th percentile of steps', 'weight decay', '2.5th percentile of steps')
    """
    if found := re.fullmatch(r"p(\d+(?:\.\d+)?)", name):
        ending = {"1": "st", "2": "nd", "3": "rd"}.get(found[1][-1], "th") if not found[1].endswith(
            ("11", "12", "13")) and "." not in found[1] else "th"
        return f"{found[1]}{ending} percentile of steps"
    return AXES.get(name, name.replace("_", " "))


def curve(name: str | None, value: Any) -> str:
    """The label of a curve, or of a panel.

    >>> curve("k", 3), curve("lr", 0.10), curve("optimiser", "adam"), curve("k", None)
    ('$k = 3$', 'lr = 0.1', 'adam', 'no $k$')
    """
    if name is None:
        return "all"
    if value is None:
        return f"no ${name}$" if name in LETTERS else f"no {name.replace('_', ' ')}"
    if isinstance(value, str):
        return value
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return f"${name} = {shown}$" if name in LETTERS else f"{name.replace('_', ' ')} = {shown}"
