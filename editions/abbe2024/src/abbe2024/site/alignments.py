"""The exact alignments of the Alignment page: laws, units, degrees and dimensions, computed once and shipped."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paritylab.storage.files import write_atomically

SHIPPED = Path(__file__).with_name("alignments.json")
ATLAS = Path(__file__).parents[1] / "data" / "atlas.csv"
FORMAT = 1
DIMENSIONS = (7, 9, 11, 15, 21, 27, 35, 45, 51, 75, 101, 151, 201)
DEGREES: dict[str, int | None] = {"all bits": None, "all but two": -2, "3": 3, "5": 5}
UNITS: dict[str, dict[str, Any]] = {
    "threshold": {"unit": "threshold"},
    "ReLU with bias": {"unit": "relu", "bias": "same"},
}


@dataclass(frozen=True)
class Family:
    """Laws that differ in one number: what the family is called, in a legend too, and its members."""

    title: str
    short: str
    laws: dict[str, str]

    @property
    def labels(self) -> dict[str, str]:
        return {law: f"{self.short} {name}".strip() for name, law in self.laws.items()}


FAMILIES = (
    Family("Signs", "", {"±1 (Rademacher)": "rademacher"}),
    Family("Signs plus Gaussian noise of size s", "signs + Gaussian noise",
           {f"{s:g}": f"perturbed-rademacher:{s:g}" for s in (0.05, 0.1, 0.2, 0.3, 0.5, 1.0, 2.0)}),
    Family("Signs plus uniform noise of size s", "signs + uniform noise",
           {f"{s:g}": f"uniform-perturbed:{s:g}" for s in (0.3, 1.0)}),
    Family("Signs, zero with probability s", "sparse signs",
           {f"{s:.2g}": f"sparse-rademacher:{s!r}" for s in (0.2, 1 / 3, 0.5)}),
    Family("Uniform on a few values", "uniform on", {"±1, ±2": "discrete:-2,-1,1,2", "±1, ±3": "discrete:-3,-1,1,3"}),
    Family("Gaussian", "", {"Gaussian": "gaussian"}),
)


def record() -> Path:
    """Compute everything and make it what the package ships."""
    from paritylab import alignment, alignment_rate

    laws = [law for family in FAMILIES for law in family.laws.values()]
    table: dict[str, Any] = {}
    for law in laws:
        for unit, options in UNITS.items():
            for name, degree in DEGREES.items():
                logs = [alignment(law, d, degree=d + degree if degree and degree < 0 else degree, **options).log
                        for d in DIMENSIONS]
                table[f"{law} {unit} {name}"] = [round(v / math.log(10), 5) if math.isfinite(v) else None for v in logs]
    rates = {law: round(alignment_rate(law).rate, 9) for law in laws}
    document = {"format": FORMAT, "dimensions": DIMENSIONS, "log10": table, "rates": rates}
    write_atomically(SHIPPED, (json.dumps(document, allow_nan=False, separators=(",", ":")) + "\n").encode())
    return SHIPPED


def shipped() -> dict[str, Any]:
    """What the page draws: log10 of each alignment, None where it is zero; the rates."""
    return json.loads(SHIPPED.read_text(encoding="utf-8"))


def atlas() -> list[dict[str, str]]:
    """The rows of the initialisation atlas."""
    with ATLAS.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))
