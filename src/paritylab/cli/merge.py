"""``paritylab store merge``: bring records made on other machines into the store."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from paritylab.cli.parser import Parser, add_common, print_json
from paritylab.errors import InvalidInput


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "merge",
        help="bring records made on other machines into the store",
        description="Adds the records, curves, counts and kept networks of other --out folders, stores, folders that"
        " 'paritylab work' wrote, or files that the page 'Play' wrote to those under --out. Records that contradict"
        " those already there are reported and left out; the exit status is then 2.",
    )
    parser.add_argument("sources", type=Path, nargs="+", metavar="SOURCE",
                        help="folders with records, or files of the page 'Play'")
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from paritylab.running.merging import merge, summary

    done = merge(options.out, options.sources)
    if options.json:
        print_json(done.to_dict() | {"store": str(options.out / "store")})
    else:
        more = f"{done.curves} training curves, {done.counts} counts"
        more += f", {done.networks} files of networks" if done.networks else ""
        new = f"{done.added} new records ({done.known} known before), {more}"
        print(f"{new}: {options.out}")
    if done.conflicts:
        raise InvalidInput(summary(done))
