"""The page one plays with: Figure 7, every cell measured beside published."""

from __future__ import annotations

import csv
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from barak2022.published import barak2022_fig7, barak2022_fig8

if TYPE_CHECKING:
    from paritylab.site.build import Site
    from paritylab.site.content import Card

PAGES = {"figure7.html": ("Figure 7", "The table of 18 settings, every cell measured beside published.")}
RULES = ("fastest", "as_printed", "matched")
CELLS = Path(__file__).parents[1] / "data" / "figure7.csv"
"""Percentiles of every cell and rate over 25 runs, with intervals: what the claim's trial wrote before its rule was
changed (``history.toml``)."""


def add(site: Site, cards: Mapping[str, Card]) -> None:
    """The table of Figure 7."""
    card = cards["barak2022.fig7"]
    published, shares = barak2022_fig7(), barak2022_fig8()
    columns = [{"k": k, "batch": batch} for k, batch in sorted({key[1:] for key in published})]
    cells: dict[str, dict[str, Any]] = {
        f"{setting} {k} {batch}": {
            "published": cell.p10, "certain": cell.certain,
            "share": share.percent if (share := shares.get((setting, k, batch))) else None,
        }
        for (setting, k, batch), cell in published.items()
    }
    for row in csv.DictReader(CELLS.read_text(encoding="utf-8").splitlines()):
        found = {"lr": row["lr"].removesuffix(".0"), "p10": _finite(row["p10"]), "low": _finite(row["low"]),
                 "high": _finite(row["high"]), "solved": float(row["solved"]),
                 "horizon": int(row["horizon"])}
        cell = cells[f"{row['setting']} {row['k']} {row['batch']}"]
        cell |= {rule: found for rule in RULES if row[rule] == "true"}
    settings = list(dict.fromkeys(setting for setting, _, _ in published))
    site.data("figure7", {"settings": settings, "columns": columns, "cells": cells})
    site.page("figure7.html", "figure7", "Figure 7", card=card)


def _finite(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None
