"""``paritylab report``: the site, every claim published beside measured."""

from __future__ import annotations

import argparse
import sys
import time
from typing import Any

from paritylab.cli.parser import Parser, add_common, print_json


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "report",
        help="build the site: every claim, published beside measured",
        description="Builds a static site under --out, in the folder 'site', from the evidence that the package ships"
        " and the results and records under --out. It opens from disk and needs no network.",
    )
    parser.add_argument("--record", action="store_true", help="first train the runs of 'Watch it learn', measure the"
                        " experiments of 'Play' and compute the alignments that the package ships")
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from paritylab.claims.library import papers
    from paritylab.cli import reference
    from paritylab.site import build, play, watch

    if options.record:
        for paper in papers().values():
            if record := getattr(paper.part("site"), "record", None):
                print(*record(), sep="\n", file=sys.stderr)
        for path, recording in watch.recordings():
            print(watch.record(recording, path), file=sys.stderr)
        for path, experiment in play.experiments():
            print(play.measure(experiment, path), file=sys.stderr)
    start = time.perf_counter()
    written = build.report(options.out, reference.pages())
    seconds = time.perf_counter() - start
    index = written["index.html"]
    size = sum(path.stat().st_size for path in written.values())
    if options.json:
        print_json({"index": str(index), "files": len(written), "bytes": size, "seconds": round(seconds, 2)})
        return
    print(f"{len(written)} files, {size / 1e6:.1f} MB, {seconds:.1f} s\nopen {index}")
