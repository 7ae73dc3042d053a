"""``paritylab barak2022 campaign``: very many runs of every cell of barak2022's table."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from paritylab.cli.crews import add_crew, hired, shows_script
from paritylab.cli.parser import Parser, add_common, add_seed, count, print_json
from paritylab.errors import InvalidInput, require, unknown

DEFAULT_RUNS = 100_000


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "campaign",
        help="distributions of convergence times over barak2022's table, from as many runs as you like",
        description="Finds the fastest rate of each cell (settings x n x k x batch sizes), gives each cell so many runs"
        " that all take about the same work, and keeps how many were solved at each step: DIR/campaign/*.parquet."
        " Interrupted, the same command goes on. --published shows the campaign that comes with the package.",
    )
    parser.add_argument("--runs", type=count, default=DEFAULT_RUNS, help="runs over all cells")
    parser.add_argument("--settings", nargs="+", metavar="NAME", help="of barak2022, say i iv xv; all but the"
                        " Transformer unless said")
    parser.add_argument("--n", type=count, nargs="+", default=[10, 20, 30], help="numbers of inputs")
    parser.add_argument("--k", type=count, nargs="+", default=[2, 3, 4], help="degrees")
    parser.add_argument("--batch", type=count, nargs="+", default=[1, 4, 32, 128, 1024], help="batch sizes")
    parser.add_argument("--export", type=Path, metavar="FILE",
                        help="do not train: write what is missing for 'paritylab work' elsewhere")
    parser.add_argument("--published", action="store_true", help="show what comes with the package")
    add_seed(parser)
    add_crew(parser)
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from barak2022 import campaign as campaigns
    from paritylab.plots import save
    from paritylab.storage.store import Store

    if options.published:
        _show_published(options.json)
        return
    names = options.settings or list(campaigns.SETTINGS)
    for name in names:
        if name not in campaigns.SETTINGS:
            raise unknown("setting", name, campaigns.SETTINGS)
    require(max(options.k) <= min(options.n), f"--k must be at most --n, not {max(options.k)} for n={min(options.n)}")
    if shows_script(options):
        return
    directory, progress = options.out / "campaign", False if options.json else None
    cells = campaigns.cells(names, options.n, options.k, options.batch)
    with hired(options):
        shares = campaigns.plan(cells, options.runs, options.seed, Store(options.out / "store"), progress)
        campaigns.save_plan(shares, options.seed, directory)
        left = campaigns.missing(shares, options.seed, directory)
        if options.export:
            _export(left, options)
            return
        _train(left, directory, progress)
    found = campaigns.Campaign.read(directory)
    files = found.write(directory) + save(campaigns.luck_plot(found.cells()), directory / "campaign")
    if options.json:
        print_json(found.to_dict() | {"files": [str(path) for path in files]})
        return
    print(summary(found.to_dict()))
    for path in files:
        print(path)


def _export(left: list[Any], options: argparse.Namespace) -> None:
    from paritylab.running.tasks import to_text
    from paritylab.storage.files import write_atomically

    write_atomically(options.export, to_text(left).encode())
    runs = sum(task.runs for task in left)
    if options.json:
        print_json({"file": str(options.export), "tasks": len(left), "runs": runs})
    else:
        print(f"{len(left)} tasks, {runs} runs: {options.export}")


def _train(left: list[Any], directory: Path, progress: bool | None) -> None:
    from paritylab import engines
    from paritylab.progress import Bar
    from paritylab.running import crews
    from paritylab.running.offload import batches_of, counted, done_batches

    done, at_once = 0, engines.at_once()
    with Bar("campaign", sum(task.runs for task in left), progress) as bar:
        if crews.current() is not None:
            for task in counted(left, directory):
                done += task.runs
                bar.show(done)
            return
        for batch, missing in done_batches(batches_of(left), directory, at_once):
            done += sum(getattr(task, "runs", 0) for task in batch)
            if missing:
                raise InvalidInput(f"{missing} blocks of {batch[0].name} could not be trained")
            bar.show(done)


def summary(totals: Any) -> str:
    rate = totals["runs_per_second"]
    return (
        f"{totals['cells']} cells, {totals['runs']} networks, {100 * totals['solved'] / max(totals['runs'], 1):.1f} %"
        f" solved\n{totals['model_steps']:.3g} model-steps, {totals['flops']:.3g} FLOP\n{totals['seconds']:.1f} s,"
        f" {totals['seconds'] / 3600:.3g} hours of this machine, {rate:.3g} networks a second, on"
        f" {', '.join(totals['engines'])}"
    )


def _show_published(as_json: bool) -> None:
    from barak2022.campaign import published

    cells, _ = published()
    if as_json:
        print_json([{name: None if value == float("inf") else value for name, value in row.items()}
                    for row in cells.to_dicts()])
        return
    print(f"{len(cells)} cells, {cells['runs'].sum()} networks; 10th percentile and median of steps, 95 % intervals")
    for row in cells.iter_rows(named=True):
        at = f"({row['setting']}) n={row['n']} k={row['k']} B={row['batch']} lr={row['lr']:g}"
        ends = [f"{row[q]:g} [{row[f'{q}_low']:g}, {row[f'{q}_high']:g}]" for q in ("p10", "p50")]
        print(f"{at:34} {row['runs']:8} runs  {100 * row['solved'] / row['runs']:6.2f} %  {'  '.join(ends)}")
