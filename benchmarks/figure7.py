"""barak2022's Figures 7 and 8 (without the Transformer): every cell at every rate, beside what was printed.

    python benchmarks/figure7.py [--settings i xv] [--k 2 3] [--batch 32] [--runs 25] [--out out/figure7]

Prints the cells, cheapest first, and the parts of the claim's criterion; resumes where it was interrupted. The winners'
runs are followed to 10^5 steps, or until they may have cost --budget FLOPs; the solved fraction says up to which step.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path

from barak2022 import figure7, settings

from paritylab import Store


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    names = [name for name in settings.BARAK2022 if name != "*iii"]
    parser.add_argument("--settings", nargs="+", default=names)
    parser.add_argument("--k", type=int, nargs="+", default=figure7.DEGREES)
    parser.add_argument("--batch", type=int, nargs="+", default=figure7.BATCHES)
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--budget", type=float, default=5e12)
    parser.add_argument("--out", type=Path, default=Path("out/figure7"))
    options = parser.parse_args()
    start = time.perf_counter()
    store = Store(options.out / "store")
    measured = []
    for cell in figure7.cheapest_first(figure7.cells(options.settings, options.k, options.batch)):
        one = figure7.measure_cell(cell, options.runs, store=store, budget=options.budget)
        measured.append(one)
        print(f"{one.label:<20} published {cell.p10 or '-':>6}  best {shown(one.best)}  as printed"
              f" {shown(one.as_printed)}  {one.seconds:.1f} s", flush=True)
    criteria = figure7.criteria(measured)
    plain = {name: value if math.isfinite(value) else None for name, value in criteria.items()}
    document = {"cells": [one.to_dict() for one in measured], "criteria": plain}
    (options.out / "figure7.json").write_text(json.dumps(document, allow_nan=False))
    for name, value in criteria.items():
        print(f"{name}: {value:.3f}")
    print(f"{len(measured)} cells in {time.perf_counter() - start:.0f} s")


def shown(entry: figure7.Entry) -> str:
    lr = entry.setup.learner.optimiser.lr
    return f"lr {lr:<5g} {entry.percentile:>7g}, solved {100 * entry.solved_fraction:>3.0f} % by {entry.horizon:>6}"


if __name__ == "__main__":
    main()
