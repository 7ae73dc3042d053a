"""``paritylab store verify``: check evidence and stored records once more."""

from __future__ import annotations

import argparse
import secrets
import sys
import time
from typing import Any

from paritylab.cli.parser import Parser, add_common, add_functions, print_json, seed


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "verify",
        help="check evidence and stored records once more",
        description="Compares digests; derives the words of evidence again from its numbers and rules; trains a random"
        " sample of the stored records, and of those that evidence lists; tries evidence that lists none as a whole."
        " Records are compared exactly where docs/explanation/engines.md promises equality, and by distribution"
        " elsewhere, such as those of an earlier version of an engine's arithmetic. Exit status 1 if anything differs."
        " Nothing is written.",
    )
    parser.add_argument("claims", nargs="*", metavar="ID", help="only the evidence of these claims, by id or glob;"
                        " without any, that of all, and the records under --out")
    much = parser.add_mutually_exclusive_group()
    much.add_argument("--share", type=share, default=0.01, metavar="S", help="of records and trials, from 0 to 1")
    much.add_argument("--minutes", type=minutes, metavar="M", help="as many as there is time for")
    parser.add_argument("--seed", type=seed, metavar="N", help="of the sample; another one each time unless said")
    add_functions(parser)
    add_common(parser, run)


def run(options: argparse.Namespace) -> int:
    from paritylab.claims.registry import find, registry
    from paritylab.claims.verifying import Verification
    from paritylab.functions import finding

    chosen = secrets.randbits(32) if options.seed is None else options.seed
    claims = find(options.claims) if options.claims else list(registry().values())
    verification = Verification(claims, options.out, options.share, options.minutes, chosen,
                                store=not options.claims, progress=False if options.json else None)
    report, start, interrupted = verification.report, time.monotonic(), False
    try:
        with finding.also_in(options.functions):
            verification.run()
    except KeyboardInterrupt:
        interrupted = True
    told = {"seed": chosen, "seconds": round(time.monotonic() - start, 1), "interrupted": interrupted}
    if options.json:
        print_json(report.to_dict() | told)
    else:
        print(report)
        ended = "; interrupted: this is what was checked until then" if interrupted else ""
        print(f"sample of --seed {chosen}, {told['seconds']:g} s{ended}", file=sys.stderr)
    return 1 if report.differences else 130 if interrupted else 0


def share(text: str) -> float:
    value = _number(text)
    if not 0 < value <= 1:
        raise argparse.ArgumentTypeError(f"share must be above 0 and at most 1, not {text}")
    return value


def minutes(text: str) -> float:
    value = _number(text)
    if not 0 < value < 1e6:
        raise argparse.ArgumentTypeError(f"minutes must be above 0 and below a million, not {text}")
    return value


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"not a number: {text!r}") from None
