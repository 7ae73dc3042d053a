"""``paritylab merge``: bring records made on another machine into the store."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from paritylab.cli.parser import Parser, add_common, print_json
from paritylab.errors import InvalidInput


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "merge",
        help="bring records made on another machine into the store",
        description="Adds the record files that 'python -m paritylab.offload' wrote to the store under --out.",
    )
    parser.add_argument("records", type=Path, nargs="+", metavar="DIR", help="directories of record files")
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    import numpy as np

    from paritylab.offload import read_records
    from paritylab.store import Store

    files = [path for directory in options.records for path in sorted(directory.glob("*.npz"))]
    if not files:
        raise InvalidInput(f"there are no record files in {', '.join(map(str, options.records))}")
    store, added = Store(options.out / "store"), 0
    for path in files:
        setup, engine, records, seed = read_records(path)
        new = records.take(~np.isin(records.run, store.runs(setup.id, engine, seed)))
        if len(new):
            store.append(setup.id, setup.to_json(), engine, seed, new)
        added += len(new)
    if options.json:
        print_json({"files": len(files), "added": added, "store": str(store.root)})
    else:
        print(f"{added} new records from {len(files)} files: {store.root}")
