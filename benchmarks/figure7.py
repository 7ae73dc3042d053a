"""A part of barak2022's Figure 7 in full: settings (i)-(iv) and (xv), all degrees, batches 4, 32 and 128.

    python benchmarks/figure7.py [--runs 25] [--out out/figure7]

Prints every cell beside its published value and the root-mean-square log10 ratio; resumes where it was interrupted.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from paritylab import Store, figure7

SETTINGS = ("i", "ii", "iii", "iv", "xv")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=25)
    parser.add_argument("--out", type=Path, default=Path("out/figure7"))
    options = parser.parse_args()
    start = time.perf_counter()
    store = Store(options.out / "store")
    measured = []
    for cell in figure7.cells(SETTINGS, (2, 3, 4), (4, 32, 128)):
        measured.append(one := figure7.measure_cell(cell, options.runs, store=store))
        interval = "[{:.0f}, {:.0f}]".format(*one.interval)
        ratio = f"{one.log_ratio:+.2f}"
        print(f"{one.label:<20} lr {one.lr:<6g} {one.p10:>7.0f} {interval:>18} published {cell.p10:>6} {ratio}"
              f"  {time.perf_counter() - start:.0f} s", flush=True)
    rms = figure7.rms_log_ratio(measured)
    print(f"root-mean-square log10(measured/published) over {len(measured)} cells: {rms:.3f}")


if __name__ == "__main__":
    main()
