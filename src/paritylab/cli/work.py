"""``paritylab work``: do tasks that another machine exported. It needs JAX and NumPy alone."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from paritylab.cli.parser import Parser, add_common, add_functions, count, print_json
from paritylab.errors import InvalidInput, require


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "work",
        help="do tasks that --export wrote on another machine",
        description="Does the tasks of a file and keeps what comes of them in a folder, for 'paritylab store merge'"
        " where the file came from. Interrupted, the same command goes on. It needs JAX and NumPy alone.",
    )
    parser.add_argument("tasks", type=Path, help="what --export wrote")
    parser.add_argument("records", type=Path, help="the folder for the records; what is there is not repeated")
    parser.add_argument("--processes", type=count, default=1, help="programs that are compiled and trained at a time")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="stop after so long")
    add_functions(parser)
    add_common(parser, run, out=False)


def run(options: argparse.Namespace) -> None:
    from paritylab.functions import finding

    with finding.also_in(options.functions):
        do(options)


def do(options: argparse.Namespace) -> None:
    from paritylab.claims.resolving import rebuilt
    from paritylab.running.offload import batches_of, done_batches

    start, left = time.monotonic(), 0
    require(options.processes >= 1, f"--processes must be at least 1, not {options.processes}")
    require(options.seconds > 0, f"--seconds must be above 0, not {options.seconds:g}")
    try:
        text = options.tasks.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidInput(f"{options.tasks} cannot be read: {getattr(error, 'strerror', None) or error}") from error
    tasks, failures = rebuilt(text)
    batches = batches_of(tasks)
    for batch, missing in done_batches(batches, options.records, options.processes, start + options.seconds):
        left += missing
        if not options.json:
            chain = getattr(batch[0], "chain", "") or batch[0].name
            print(f"{time.monotonic() - start:7.1f} s  {chain}: {missing} tasks left", flush=True)
    files = len(list(options.records.glob("*.npz")))
    if options.json:
        print_json({"files": files, "left": left + len(failures), "seconds": round(time.monotonic() - start, 2)})
    else:
        print(f"{files} record files, {left + len(failures)} tasks left")
    require(not failures, f"{len(failures)} tasks cannot be done here: {next(iter(failures), '')}")
