"""``paritylab barak2022 figure7``: a small part of barak2022's Figure 7, measured beside published, with figures."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from paritylab.cli.crews import add_crew, hired, shows_script
from paritylab.cli.parser import Parser, add_common, count, print_json
from paritylab.errors import require

SETTINGS = ("i", "ii", "iv", "vii", "xi", "xiv", "xv")
DEGREES = (2, 3)
BATCH = 32


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "figure7",
        help="some cells of Figure 7: thousands of networks, measured beside published",
        description="Train thousands of networks of barak2022's Figure 7 (n=30, k=2 and 3, batch 32), print measured"
        " beside published 10th percentiles, and draw survival curves and a comparison.",
    )
    parser.add_argument("--runs", type=count, default=500, help="networks per setting, degree and learning rate")
    parser.add_argument("--engine", default="auto", help="auto, jax, lanes or warps")
    parser.add_argument("--threads", type=count, default=None, help="cores for the native engine (all unless said)")
    add_crew(parser)
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from barak2022 import figure7
    from paritylab.progress import Bar
    from paritylab.site.build import report
    from paritylab.storage.store import Store

    require(options.runs >= 10, f"--runs must be at least 10, not {options.runs}")
    if shows_script(options):
        return
    start = time.perf_counter()
    store = Store(options.out / "store")
    chosen = list(figure7.cells(SETTINGS, DEGREES, (BATCH,)))
    measured = []
    with hired(options), Bar("training", len(chosen), False if options.json else None) as bar:
        for number, cell in enumerate(chosen):
            bar.show(number, f"setting ({cell.setting}), k={cell.k}")
            measured.append(
                figure7.measure_cell(
                    cell, options.runs, grid=(1.0, 0.1) if cell.setting not in figure7.SLOWER else (0.1,),
                    engine=options.engine, threads=options.threads, store=store, progress=False,
                )
            )
    figures = draw(measured, options.out)
    index = report(options.out)["index.html"]
    seconds = time.perf_counter() - start
    rms = figure7.rms_log_ratio(measured)
    if options.json:
        print_json({"table": [row(m) for m in measured], "rms_log10_ratio": rms, "seconds": round(seconds, 2),
                    "figures": [str(path) for path in figures], "site": str(index)})
        return
    print_table(measured)
    engine = measured[0].best.engine
    print(f"root-mean-square log10(measured/published): {rms:.3f}   ({seconds:.0f} s, engine {engine})")
    print("figures:")
    for path in figures:
        print(f"  {path}")
    print(f"records: {store.root}  (list them with: paritylab results --out {options.out})")
    print(f"site: {index}  (every claim, published beside measured, and your results; open it in a browser)")


def row(measured: Any) -> dict[str, Any]:
    cell = measured.cell
    return {"setting": cell.setting, "k": cell.k, "batch": cell.batch, "published_p10": cell.p10,
            **measured.best.to_dict()}


def print_table(measured: list[Any]) -> None:
    print("barak2022, Figure 7: steps until 10 % of networks are perfect (n = 30, batch 32)\n")
    print(f"{'setting':<10}{'k':>2}{'lr':>6}{'runs':>7}{'solved':>9}{'measured':>10}{'[95 %]':>14}{'published':>11}")
    for m in measured:
        summary = m.best.summary
        interval = "[{:.0f}, {:.0f}]".format(*m.interval)
        print(f"{'(' + m.cell.setting + ')':<10}{m.cell.k:>2}{m.lr:>6g}{summary.runs:>7}"
              f"{100 * summary.solved_fraction:>7.1f} %{m.p10:>10.0f}{interval:>14}{m.cell.p10:>11}")
    print()


def draw(measured: list[Any], out: Path) -> list[Path]:
    """Survival of the cells of degree 3, and all percentiles beside the published ones."""
    from barak2022.comparison_plots import comparison_plot
    from paritylab import plots

    cubic = {f"({m.cell.setting}), lr {m.lr:g}": m.best.records for m in measured if m.cell.k == 3}
    rows = [(f"({m.cell.setting}) k={m.cell.k}", m.p10, m.interval, m.cell.p10) for m in measured]
    return [*plots.save(plots.survival_plot(cubic), out / "survival"),
            *plots.save(comparison_plot(rows, "steps (10th percentile)"), out / "comparison")]
