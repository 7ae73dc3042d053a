"""``paritylab beyond optimisers``: which of twelve learns parities fastest, and where one of your own lands."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paritylab.cli.parser import Parser, add_common, count, print_json
from paritylab.errors import InvalidInput, require

AXES = ("steps", "examples", "flops")


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "optimisers",
        help="which of twelve optimisers learns parities fastest; and yours",
        description="Lists the published comparison: the median steps, examples or FLOPs to 100 % of each optimiser at"
        " its best rate, with 95 % intervals. --repeat measures the cells that the options choose again; interrupted,"
        " the same command goes on where it was. --own places an optimiser of yours in the table.",
    )
    chosen = parser.add_argument_group("cells (all unless said)")
    chosen.add_argument("--optimiser", nargs="+", default=[], metavar="NAME", help="sgd, adam, muon, ...")
    chosen.add_argument("--network", nargs="+", default=[], metavar="NAME", help="narrow, wide or polynet")
    chosen.add_argument("--n", type=count, nargs="+", default=[], help="numbers of inputs, from 15 to 160")
    chosen.add_argument("--k", type=count, nargs="+", default=[], help="degrees: 2, 3, 4")
    parser.add_argument("--axis", choices=AXES, default="steps", help="what is compared (steps)")
    parser.add_argument("--repeat", action="store_true", help="measure the chosen cells; what --out keeps is not"
                        " measured again")
    parser.add_argument("--quick", action="store_true", help="few short runs of one easy cell of each: about a minute"
                        " on two cores (not what the published table has)")
    parser.add_argument("--own", metavar="MODULE:NAME", help="an optimiser of yours in an importable module, measured"
                        " beside the published ones (any rate: --rates are tried)")
    parser.add_argument("--rates", type=float, nargs="+", default=None, help="for --own (0.0005, doubled eleven times)")
    parser.add_argument("--export", type=Path, metavar="FILE", help="measure nothing: write the cells that are missing"
                        " for 'paritylab work' elsewhere")
    parser.add_argument("--record", action="store_true", help="write what --out keeps as the table the package ships")
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from paritylab_beyond.beyond.contest import design, table

    require(options.rates is None or options.own, "--rates are those of --own")
    require(not (options.own and options.optimiser), "--own is compared with all: leave out --optimiser")
    require(not (options.own and (options.export or options.record)), "--own is measured here, and not recorded")
    size = design.SIZES["quick" if options.quick else "full"]
    cells = design.cells(size, options.optimiser, options.network, options.n, options.k)
    kept = options.out / "kept"
    if options.export:
        return export(cells, size, kept, options)
    if options.record:
        return record(size, kept, options)
    if options.repeat or options.quick:
        rows = repeat(cells, size, kept, None if not options.json else False)
    else:
        wanted = {(each.optimiser, each.network, each.n, each.k) for each in cells}
        rows = [each for each in table.shipped()["rows"]
                if (each["optimiser"], each["network"], each["n"], each["k"]) in wanted]
        require(bool(rows) or options.own is not None, "the shipped table has none of these cells yet: add --repeat")
    if options.own:
        rows = rows + own(options, cells, size)
    shown = table.ranked(rows, options.axis)
    if options.json:
        return print_json({"axis": options.axis, "rows": shown, "standings": table.standings(rows, options.axis)})
    print(told(shown, options.axis))


def repeat(cells: Sequence[Any], size: Any, kept: Path, progress: bool | None) -> list[dict[str, Any]]:
    """The rows of these cells; what is not kept is measured first."""
    from paritylab import engines
    from paritylab.progress import Bar
    from paritylab.running.offload import batches_of, done_batches
    from paritylab_beyond.beyond.contest import playing, table

    _, missing = table.gathered(cells, size, kept)
    tasks = [playing.task(cell, size) for cell in missing]
    with Bar("cells", len(tasks), progress) as bar:
        done = done_batches(batches_of(tasks), kept, engines.at_once())
        for number, (_, left) in enumerate(done, 1):
            require(left == 0, "a cell could not be measured")
            bar.show(number)
    return table.gathered(cells, size, kept)[0]


def own(options: argparse.Namespace, cells: Sequence[Any], size: Any) -> list[dict[str, Any]]:
    """The rows of the user's optimiser."""
    from paritylab.functions import finding
    from paritylab.setups.optimisers import Optimiser
    from paritylab.storage.store import Store
    from paritylab_beyond.beyond.contest import design, table

    module, _, name = options.own.partition(":")
    require(bool(module and name), f"--own is MODULE:NAME, not {options.own!r}")
    if "" not in sys.path:
        sys.path.insert(0, "")  # a module in the folder where one works
    rule = getattr(finding.imported(module), name, None)
    if not isinstance(rule, Optimiser):
        raise InvalidInput(f"{options.own} is no optimiser: write {name} = pl.Optax(transformation=...) in {module}.py")
    problems = list(dict.fromkeys((cell.network, cell.n, cell.k) for cell in cells))
    return table.place(options.own, rule, options.rates or design.doubling(0.0005), problems, size=size,
                       store=Store(options.out / "store"), progress=False if options.json else None)


def export(cells: Sequence[Any], size: Any, kept: Path, options: argparse.Namespace) -> None:
    from paritylab.running.tasks import to_text
    from paritylab.storage.files import write_atomically
    from paritylab_beyond.beyond.contest import playing, table

    missing = table.gathered(cells, size, kept)[1]
    options.export.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(options.export, to_text([playing.task(cell, size) for cell in missing]).encode())
    if options.json:
        return print_json({"file": str(options.export), "cells": len(missing)})
    print(f"{len(missing)} cells: {options.export}")


def record(size: Any, kept: Path, options: argparse.Namespace) -> None:
    """All cells that are kept, whatever others are chosen."""
    from paritylab_beyond.beyond.contest import design, table

    rows, missing = table.gathered(design.cells(size), size, kept)
    require(not options.quick, "--quick is not what the table ships")
    require(bool(rows), f"{kept} has no cell of the table")
    table.record(rows, size)
    if options.json:
        return print_json({"file": str(table.SHIPPED), "cells": len(rows), "missing": len(missing)})
    print(f"{len(rows)} cells, {len(missing)} missing: {table.SHIPPED}")


def told(rows: Sequence[dict[str, Any]], axis: str) -> str:
    """The rows as text, cell by cell, the best first."""
    from paritylab_beyond.beyond.contest import design, table

    lines: list[str] = []
    for (network, n, k), mine in table.by_problem(rows).items():
        lines.append(f"n = {n}, k = {k}, {design.NETWORKS[network].title}: median {axis} to 100 % [95 %]")
        for each in mine:
            place = "=" if each["level"] and each["place"] != 1 else " "
            rate = f"{each['rate']:g}" + ("*" if each["edge"] else "")
            lines.append(f"  {each['place'] or '-':>2}{place} {table.title(each['optimiser']):<30}{rate:>9}"
                         f"  {_median(each, axis):<34}{100 * each['solved_fraction']:5.1f} % of {each['runs']} solved")
    lines.append("= not told apart from the best; * a rate at an end of its grid; - the median run is not solved")
    return "\n".join(lines)


def _median(row: dict[str, Any], axis: str) -> str:
    def number(value: float | None) -> str:
        return "not reached" if value is None else f"{value:,.0f}" if value < 1e6 else f"{value:.3g}"

    if row[axis] is None:
        return f"above {row['limit']:,} steps"
    low, high = row[f"{axis}_interval"]
    return f"{number(row[axis])} [{number(low)}, {number(high)}]"
