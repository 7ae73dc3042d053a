"""The pages one plays with: Figure 7, alignment, recorded runs."""

from __future__ import annotations

import csv
import math
from typing import TYPE_CHECKING, Any

from paritylab.papers.barak2022.published import barak2022_fig7, barak2022_fig8
from paritylab.site import alignments, watch
from paritylab.site.content import Card

if TYPE_CHECKING:
    from paritylab.site.build import Site

RULES = ("fastest", "as_printed", "matched")
CHOSEN = ("rademacher", "perturbed-rademacher:0.1", "perturbed-rademacher:0.5", "gaussian")
"""The laws that are drawn at first."""


def figure7(site: Site, card: Card) -> None:
    """The table of barak2022's Figure 7."""
    published, shares = barak2022_fig7(), barak2022_fig8()
    columns = [{"k": k, "batch": batch} for k, batch in sorted({key[1:] for key in published})]
    cells: dict[str, dict[str, Any]] = {
        f"{setting} {k} {batch}": {
            "published": cell.p10, "certain": cell.certain,
            "share": share.percent if (share := shares.get((setting, k, batch))) else None,
        }
        for (setting, k, batch), cell in published.items()
    }
    for row in _rows(card):
        found = {"lr": row["lr"].removesuffix(".0"), "p10": _finite(row["p10"]), "low": _finite(row["low"]),
                 "high": _finite(row["high"]), "solved": float(row["solved"]),
                 "horizon": int(row["horizon"])}
        cell = cells[f"{row['setting']} {row['k']} {row['batch']}"]
        cell |= {rule: found for rule in RULES if row[rule] == "true"}
    settings = list(dict.fromkeys(setting for setting, _, _ in published))
    site.data("figure7", {"settings": settings, "columns": columns, "cells": cells})
    site.page("figure7.html", "figure7", "Figure 7", card=card)


def _rows(card: Card) -> list[dict[str, str]]:
    """The measured percentiles of every cell and rate; none where the evidence has no data with it."""
    paths = [path for path in card.data if path.suffix == ".csv"]
    return list(csv.DictReader(paths[0].read_text(encoding="utf-8").splitlines())) if paths else []


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def alignment(site: Site, threshold: Card) -> None:
    """Exact alignments, their rates, the atlas, and the threshold question."""
    table = alignments.shipped()
    labels = {law: label for family in alignments.FAMILIES for law, label in family.labels.items()}
    rows = [_point(row) for row in alignments.atlas()]
    networks: dict[str, dict[str, list[Any]]] = {}
    for row in rows:
        networks.setdefault(row["network"], {}).setdefault(row["law"], []).append(row)
    site.data("alignments", {name: table[name] for name in ("dimensions", "log10")})
    site.data("atlas", rows)
    site.files["data/atlas.csv"] = (alignments.ATLAS).read_bytes()
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


def watched(site: Site) -> None:
    """The recorded runs."""
    runs = watch.shipped()
    for name, run in runs.items():
        site.data(f"watch-{name}", run)
    site.page("watch.html", "watch", "Watch it learn", runs=runs)
