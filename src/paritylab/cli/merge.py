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
        description="Adds the records and curves that 'python -m paritylab.offload' wrote to those under --out.",
    )
    parser.add_argument("records", type=Path, nargs="+", metavar="DIR", help="directories of record files")
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    import numpy as np

    from paritylab.files import load_arrays, save_arrays
    from paritylab.offload import read_records
    from paritylab.store import Store

    files = [path for directory in options.records for path in sorted(directory.glob("*.npz"))]
    if not files:
        raise InvalidInput(f"there are no record files in {', '.join(map(str, options.records))}")
    curves = [path for path in files if path.name.startswith("curves-")]
    kept = options.out / "kept"
    kept.mkdir(parents=True, exist_ok=True)
    for path in curves:
        save_arrays(kept / path.name, load_arrays(path))
    store, added = Store(options.out / "store"), 0
    for path in sorted(set(files) - set(curves)):
        setup, engine, records, seed = read_records(path)
        new = records.take(~np.isin(records.run, store.runs(setup.id, engine, seed)))
        if len(new):
            store.append(setup.id, setup.to_json(), engine, seed, new)
        added += len(new)
    if options.json:
        print_json({"files": len(files), "added": added, "curves": len(curves), "store": str(store.root)})
    else:
        print(f"{added} new records and {len(curves)} training curves from {len(files)} files: {options.out}")
