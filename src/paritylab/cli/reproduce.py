"""``paritylab reproduce``: try published claims."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paritylab.cli.crews import add_crew, hired, shows_script
from paritylab.cli.parser import Parser, add_common, add_seed, count, print_json
from paritylab.errors import InvalidInput, require

if TYPE_CHECKING:
    from paritylab.claims import Claim


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "reproduce",
        help="try published claims",
        description="Runs each claim, prints what holds and on what basis, with numbers and intervals, and writes"
        " figure, data and result under --out. Without --quick or --full it is the largest setup of about a quarter of"
        " an hour on two cores. Interrupted, the same command goes on where it was.",
    )
    parser.add_argument("claims", nargs="+", metavar="ID", help="claims, by id or glob: PAPER.fig3 'PAPER.*'")
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", dest="size", action="store_const", const="quick", default="standard",
                      help="at most a minute on two cores each")
    size.add_argument("--full", dest="size", action="store_const", const="full", help="the published setup")
    parser.add_argument("--record", action="store_true", help="add the result to the evidence the package ships")
    parser.add_argument("--export", type=Path, metavar="FILE",
                        help="train nothing; write the tasks that are missing, for 'paritylab work' elsewhere (an"
                        " archive for reviewers is what 'paritylab paper export' writes)")
    add_seed(parser)
    parser.add_argument("--engine", default="auto", help="auto, jax, lanes or warps")
    parser.add_argument("--threads", type=count, help="cores for the native engine; all unless said")
    add_crew(parser)
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from paritylab.claims import find
    from paritylab.claims.verdicts import RESULTS

    claims = able(find(options.claims))
    if options.export:
        return export(claims, options)
    if shows_script(options):
        return
    with hired(options):
        done = reproduce_all(claims, options)
    if options.json:
        print_json({"claims": done})
    elif len(done) > 1:
        results = [result for each in done for result in each["results"].values()]
        counted = ", ".join(f"{results.count(name)} {name}" for name in RESULTS if name in results)
        print(f"{len(done)} claims, {len(results)} parts: {counted}")


def able(claims: Sequence[Claim]) -> list[Claim]:
    """The claims whose code can be loaded; what is wrong with others is said, or raised where there are no more."""
    from paritylab.claims.library import PaperWarning

    found: list[Claim] = []
    for claim in claims:
        try:
            claim.trial  # noqa: B018
        except InvalidInput as error:
            if len(claims) == 1:
                raise
            warnings.warn(f"{claim.id} is left out: {error}", PaperWarning, stacklevel=2)
        else:
            found.append(claim)
    require(bool(found), "none of these claims can be tried")
    return found


def reproduce_all(claims: Sequence[Claim], options: argparse.Namespace) -> list[dict[str, Any]]:
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


def export(claims: Sequence[Claim], options: argparse.Namespace) -> None:
    """Write the tasks that these claims are waiting for."""
    from paritylab.claims.reproduction import plan
    from paritylab.running.tasks import AnyTask, runs_of, to_text
    from paritylab.storage.files import write_atomically

    tasks: dict[str, AnyTask] = {}
    more = 0
    asked = [{"claim": claim.id, "size": options.size, "seed": options.seed} for claim in claims]
    for claim in claims:
        missing, all_ = plan(claim, options.size, options.out, options.seed, options.engine)
        tasks |= {task.name: task for task in missing if task.name not in tasks}
        more += not all_
    options.export.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(options.export, to_text(list(tasks.values()), asked).encode())
    runs = sum(map(runs_of, tasks.values()))
    if options.json:
        print_json({"tasks": len(tasks), "runs": runs, "claims_to_be_continued": more, "file": str(options.export)})
        return
    print(f"{len(tasks)} tasks, {runs} runs: {options.export}")
    if more:
        print(f"{more} of {len(claims)} claims ask for more once these are done and merged: export again then")
