"""``paritylab paper export``: a claim's evidence as an archive for a reviewer."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from paritylab.cli.parser import Parser, add_common, print_json
from paritylab.errors import require


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "export",
        help="write a claim's evidence as an archive for a reviewer",
        description="Writes data, figure, claim, rules, code, environment, command and checksums of a claim's evidence"
        " as one archive that can be checked without paritylab ('sha256sum -c SHA256SUMS'). Work for other machines is"
        " another thing: 'paritylab reproduce ID --export FILE' writes that.",
    )
    parser.add_argument("claim", metavar="ID", help="the claim")
    parser.add_argument("--to", type=Path, metavar="FILE",
                        help="a .zip or .tar.gz file; unless said, export/ID.zip under --out")
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from paritylab.claims import archive
    from paritylab.claims.registry import find

    found = find([options.claim])
    require(len(found) == 1, f"one claim at a time: {options.claim} are {len(found)}")
    (claim,) = found
    path: Path = options.to or options.out / "export" / f"{claim.id}.zip"
    contents = archive.files(claim, options.out)
    archive.write(path, claim.id, contents)
    if options.json:
        sizes = {name: len(data) for name, data in contents.items()}
        print_json({"claim": claim.id, "file": str(path), "files": sizes})
    else:
        print(f"{len(contents)} files, {path.stat().st_size / 1000:.0f} kB: {path}")
