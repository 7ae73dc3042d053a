"""The papers' printed tables, as data."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True)
class Cell:
    """One cell of barak2022's Figure 7: the printed 10th percentile, None where the table is blank or lost a number."""

    setting: str
    k: int
    batch: int
    p10: int | None
    certain: bool


@cache
def barak2022_fig7() -> dict[tuple[str, int, int], Cell]:
    """Figure 7 by (setting, k, batch): 10th percentiles over 25 seeds at n = 30.

    >>> barak2022_fig7()["i", 3, 32].p10
    318
    """
    text = resources.files("barak2022").joinpath("data/fig7.csv").read_text(encoding="utf-8")
    cells = [
        Cell(row["setting"], int(row["k"]), int(row["batch"]), int(row["t_c_p10"]) if row["t_c_p10"] else None,
             row["uncertain"] == "0")
        for row in csv.DictReader(text.splitlines())
    ]
    return {(cell.setting, cell.k, cell.batch): cell for cell in cells}


@dataclass(frozen=True)
class Share:
    """One cell of barak2022's Figure 8: the percentage of runs that converged."""

    percent: int
    certain: bool


@cache
def barak2022_fig8() -> dict[tuple[str, int, int], Share]:
    """Figure 8 by (setting, k, batch), with the k = 4 entries of the last four rows moved back to where they belong.

    >>> barak2022_fig8()["i", 4, 1].percent
    56
    """
    text = resources.files("barak2022").joinpath("data/fig8.csv").read_text(encoding="utf-8")
    return {
        (row["setting"], int(row["k"]), int(row["batch"])):
            Share(int(row["percent_converged"]), row["uncertain"] == "0")
        for row in csv.DictReader(text.splitlines())
    }
