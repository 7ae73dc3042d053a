"""``paritylab store compact``: tidy the store."""

from __future__ import annotations

import argparse
from typing import Any

from paritylab.cli.parser import Parser, add_common, print_json
from paritylab.errors import InvalidInput


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "compact",
        help="merge small files of the store",
        description="Merges small files of the store under --out into larger ones. Every sweep does so when it has"
        " written; any number of processes may go on"
        " reading and writing meanwhile. It may be interrupted at any moment; the same command goes on.",
    )
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from paritylab.storage.store import Store

    root = options.out / "store"
    if not root.exists():
        raise InvalidInput(f"there is no store at {root}; 'paritylab measure --out {options.out}' makes one")
    store = Store(root)
    written = store.compact()
    files = sorted(path for folder in ("blocks", "setups") for path in (root / folder).glob("*.parquet"))
    size = sum(path.stat().st_size for path in files)
    if options.json:
        print_json({"store": str(root), "written": len(written), "files": len(files), "bytes": size})
    else:
        print(f"{len(files)} files, {size / 1e6:.1f} MB, {len(written)} of them new: {root}")
