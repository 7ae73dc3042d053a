"""The page one plays with: exact alignments, their rates, the atlas, and the threshold question."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from abbe2024.site import alignments

if TYPE_CHECKING:
    from paritylab.site.build import Site
    from paritylab.site.content import Card

PAGES = {"alignment.html": ("Alignment", "What a random start knows about the target, exactly, for many laws.")}
CHOSEN = ("rademacher", "perturbed-rademacher:0.1", "perturbed-rademacher:0.5", "gaussian")
"""The laws that are drawn at first."""


def record() -> list[Path]:
    """Compute what the page draws and make it what the package ships."""
    return [alignments.record()]


def add(site: Site, cards: Mapping[str, Card]) -> None:
    threshold = cards["abbe2024.open-threshold"]
    table = alignments.shipped()
    labels = {law: label for family in alignments.FAMILIES for law, label in family.labels.items()}
    rows = [_point(row) for row in alignments.atlas()]
    networks: dict[str, dict[str, list[Any]]] = {}
    for row in rows:
        networks.setdefault(row["network"], {}).setdefault(row["law"], []).append(row)
    site.data("alignments", {name: table[name] for name in ("dimensions", "log10")})
    site.data("atlas", rows)
    site.files["data/atlas.csv"] = alignments.ATLAS.read_bytes()
    site.page("alignment.html", "alignment", "Alignment", threshold=threshold, families=alignments.FAMILIES,
              labels=labels, chosen=CHOSEN, degrees=alignments.DEGREES, units=alignments.UNITS,
              dimensions=len(table["dimensions"]), rates=table["rates"], atlas=networks, networks=list(networks),
              atlas_dimensions=sorted({row["d"] for row in rows}))


def _point(row: dict[str, str]) -> dict[str, Any]:
    """A row of the atlas as the page needs it."""
    names = {"log10": "log10_alignment", "rate": "rate", "accuracy": "accuracy", "low": "low", "high": "high"}
    numbers = {name: float(row[column]) for name, column in names.items()}
    return {"law": _law(row["init"]), "d": int(row["d"]), "network": row["network"], **numbers}


def _law(init: str) -> str:
    """An initialisation's spec in words.

    >>> _law("sparse-rademacher:0.3333333333333333"), _law("discrete:-2,-1,1,2")
    ('sparse signs 1/3', '{-2, -1, 1, 2}')
    """
    name, _, numbers = init.partition(":")
    if name == "sparse-rademacher":
        return f"sparse signs 1/{round(1 / float(numbers))}"
    shown = {"rademacher": "±1 (Rademacher)", "gaussian": "Gaussian", "discrete": f"{{{numbers.replace(',', ', ')}}}",
             "perturbed-rademacher": f"signs + Gaussian {numbers}",
             "uniform-perturbed": f"signs + uniform {numbers}"}
    return shown.get(name, init)
