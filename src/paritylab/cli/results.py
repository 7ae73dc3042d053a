"""``paritylab results``: what the store holds."""

from __future__ import annotations

import argparse
import csv
import sys
import warnings
from typing import Any

from paritylab.cli.parser import Parser, add_common, count, print_json
from paritylab.errors import InvalidInput, require
from paritylab.setups.words import network_in_words

COLUMNS = ("setup_id", "n", "k", "network", "batch", "lr", "engine", "seed", "runs", "solved", "p10", "median", "p90")


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "results",
        help="list and query what the store holds",
        description="One line for each Setup, engine and seed in the store under --out; with --records, one line for"
        " each run. Runs that stopped with a stage of a race count as censored there.",
    )
    parser.add_argument("--setup", metavar="ID", help="only this Setup (the beginning of its id is enough)")
    parser.add_argument("--n", type=count, help="only problems with this many inputs")
    parser.add_argument("--k", type=count, help="only supports of this size")
    parser.add_argument("--engine", help="only this engine's records")
    parser.add_argument("--seed", type=count, help="only this seed")
    parser.add_argument("--records", action="store_true", help="every run instead of summaries")
    parser.add_argument("--csv", action="store_true", help="comma-separated values instead of a table")
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from paritylab.storage.store import Store

    require(not (options.json and options.csv), "--json and --csv exclude each other")
    root = options.out / "store"
    if not root.exists():
        raise InvalidInput(f"there is no store at {root}; 'paritylab measure --out {options.out}' makes one")
    rows = list(select(Store(root), options))
    if options.json:
        print_json({"store": str(root), "results": rows})
    elif options.csv:
        write_csv(rows)
    else:
        print_table(rows, tuple(rows[0]) if options.records and rows else COLUMNS)


def select(store: Any, options: argparse.Namespace) -> Any:
    """The rows asked for, as plain dictionaries."""
    from paritylab import statistics
    from paritylab.storage import stages

    def asked(setup_id: str, setup: dict[str, Any]) -> bool:
        wanted = {"n": options.n, "k": options.k}
        matching = all(value is None or setup["problem"].get(name) == value for name, value in wanted.items())
        return matching and setup_id.startswith(options.setup or "")

    setups = list(readable(store))
    if options.records:
        for setup_id, _ in (each for each in setups if asked(*each)):
            frame = store.frame(setup_id, options.engine, options.seed)
            yield from frame.with_columns(frame["accuracy", "loss"].fill_nan(None)).to_dicts()
        return
    found = [each for each in stages.series(store, setups, asked)
             if options.engine in (None, each.engine) and options.seed in (None, each.seed)]
    for each in sorted(found, key=lambda each: (each.setup_id, each.engine, each.seed)):
        problem, learner = each.setup["problem"], each.setup["learner"]
        yield {
            "setup_id": each.setup_id,
            "n": problem["n"],
            "k": problem.get("k"),
            "network": network_in_words(learner["network"]),
            "batch": learner["batch"],
            "lr": learner["optimiser"]["lr"],
            "engine": each.engine,
            "seed": each.seed,
            **statistics.summary(each.records).to_dict(),
            "setup": each.setup,
        }


def readable(store: Any) -> Any:
    """The Setups of this version that the store holds; others are noted."""
    from paritylab.storage.store import StoreWarning

    for setup_id, setup in store.setups():
        if setup.get("type") == "setup":
            yield setup_id, setup
        else:
            warnings.warn(f"not used: {setup_id} holds no Setup of this version", StoreWarning, stacklevel=2)


def write_csv(rows: list[dict[str, Any]]) -> None:
    flat = [{name: value for name, value in row.items() if name != "setup"} for row in rows]
    writer = csv.DictWriter(sys.stdout, list(flat[0]) if flat else list(COLUMNS))
    writer.writeheader()
    writer.writerows(flat)


def print_table(rows: list[dict[str, Any]], names: tuple[str, ...]) -> None:
    """Aligned columns, never cut: a narrow terminal wraps, a pipe gets everything."""
    if not rows:
        print("nothing matches")
        return
    cells = [names, *([shown(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[i]) for line in cells) for i in range(len(names))]
    for line in cells:
        print("  ".join(map(align, line, widths, names)).rstrip())


def align(text: str, width: int, name: str) -> str:
    return text.ljust(width) if name in ("setup_id", "network", "engine", "status", "state") else text.rjust(width)


def shown(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value)
