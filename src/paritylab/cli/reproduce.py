"""``paritylab reproduce``: try published claims."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from paritylab.cli.crews import add_crew, hired, shows_script
from paritylab.cli.parser import Parser, add_common, add_seed, count, print_json
from paritylab.errors import InvalidInput


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "reproduce",
        help="try published claims",
        description="Runs each claim, prints its verdict with numbers and intervals, and writes figure, data and result"
        " under --out. Without --quick or --full it is the largest setup of about a quarter of an hour on two cores."
        " Interrupted, the same command goes on where it was.",
    )
    parser.add_argument("claims", nargs="+", metavar="ID", help="claims, by id or glob: barak2022.fig3 'barak2022.*'")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", dest="size", action="store_const", const="quick", default="standard",
                      help="at most a minute on two cores each")
    size.add_argument("--full", dest="size", action="store_const", const="full", help="the published setup")
    parser.add_argument("--record", action="store_true", help="add the result to the evidence the package ships")
    parser.add_argument("--export", type=Path, metavar="FILE",
                        help="train nothing; write what is missing, for 'paritylab work' elsewhere")
    add_seed(parser)
    parser.add_argument("--engine", default="auto", help="auto, jax, lanes or warps")
    parser.add_argument("--threads", type=count, help="cores for the native engine; all unless said")
    add_crew(parser)
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from paritylab.claims import find
    from paritylab.claims.registry import method

    claims = find(options.claims)
    able = [claim for claim in claims if method(claim)]
    if not able:
        raise InvalidInput(f"{claims[0].id} cannot be run by this version of paritylab")
    if options.export:
        return export(able, options)
    if shows_script(options):
        return
    with hired(options):
        done = reproduce_all(able, options)
    verdicts = [result["verdict"] for result in done]
    if options.json:
        print_json({"claims": done})
    elif len(done) > 1:
        print(f"{len(done)} claims: " + ", ".join(f"{verdicts.count(name)} {name}" for name in sorted(set(verdicts))))


def reproduce_all(claims: list[Any], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Try one claim after the other, saying what comes of each; their results."""
    from paritylab.claims import Lab, reproduce
    from paritylab.claims.reproduction import estimate

    done = []
    for number, claim in enumerate(claims, 1):
        lab = Lab(options.size, options.out, options.seed, options.engine, options.threads,
                  False if options.json else None)
        print(f"[{number}/{len(claims)}] {claim.id}: {claim.title}; {estimate(claim, options.size, options.out)}",
              file=sys.stderr, flush=True)
        result = reproduce(claim, lab, options.record)
        done.append({**result.result, "files": [str(path) for path in result.files]})
        if not options.json:
            print(result, *(f"  {path}" for path in result.files), sep="\n", flush=True)
    return done


def export(claims: list[Any], options: argparse.Namespace) -> None:
    """Write the tasks that these claims are waiting for."""
    from paritylab.claims.lab import Lab, Planned
    from paritylab.claims.registry import method
    from paritylab.running.tasks import CurveTask, Task, to_text
    from paritylab.storage.files import write_atomically

    tasks: list[Task | CurveTask] = []
    for claim in claims:
        plan: list[Task | CurveTask] = []
        lab = Lab(options.size, options.out, options.seed, options.engine, options.threads, False, plan)
        try:
            tries = method(claim)
            assert tries is not None
            tries(lab)
        except Planned:
            known = {task.name for task in tasks}
            tasks += [task for task in plan if task.name not in known]
    options.export.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(options.export, to_text(tasks).encode())
    runs = sum(len(task.how.runs) if isinstance(task, CurveTask) else task.runs for task in tasks)
    document = {"tasks": len(tasks), "runs": runs, "file": str(options.export)}
    if options.json:
        print_json(document)
    else:
        print(f"{document['tasks']} tasks, {document['runs']} runs: {document['file']}")
