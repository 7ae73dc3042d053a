"""``paritylab compare``: two learners on the same runs."""

from __future__ import annotations

import argparse
import copy
import shlex
from typing import Any

from paritylab.cli.crews import add_crew, hired, shows_script
from paritylab.cli.measure import add_engine, add_problem_and_learner, add_protocol, make_setup
from paritylab.cli.parser import Parser, add_common, add_seed, count, print_json
from paritylab.errors import InvalidInput, require


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "compare",
        help="two learners on the same runs: which is faster, and by how much",
        description="Train two learners on the same runs and say which is faster, by how much, and how many more runs"
        " would tell. The first is that of the options, the second the same but for what --against says.",
    )
    parser.add_argument("--against", metavar="OPTIONS",
                        help="what is other in the second learner, in quotes: --against '--lr 0.5 --width 20'")
    add_problem_and_learner(parser, several=False)
    protocol = parser.add_argument_group("protocol")
    protocol.add_argument("--runs", type=count, default=1000, help="number of networks of each learner")
    add_seed(protocol)
    add_protocol(protocol)
    engine = add_engine(parser)
    add_crew(engine)
    engine.add_argument("--figure", action="store_true", help="draw the times of both on each run, under --out")
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from paritylab import plots
    from paritylab.running.comparing import compare
    from paritylab.storage.store import Store

    require(options.threads is None or options.threads >= 1, f"--threads must be at least 1, not {options.threads}")
    require(options.against is not None, "--against is missing: what is other in the second, as --against '--lr 0.5'")
    if shows_script(options):
        return
    first, second = (make_setup(each, *each.lr) for each in (options, other(options)))
    require(first != second, "--against leaves the learner as it is: say what is other in the second")
    store = Store(options.out / "store")
    with hired(options):
        found = compare(first, second, options.runs, seed=options.seed, engine=options.engine,
                        threads=options.threads, store=store, progress=False if options.json else None)
    figures = plots.save(found.plot(), options.out / f"compare-{first.id}-{second.id}") if options.figure else []
    if options.json:
        print_json(found.to_dict() | ({"figures": [str(path) for path in figures]} if figures else {}))
        return
    from paritylab.setups.words import setups_in_words

    print(setups_in_words([first, second]))
    print(found)
    print(f"records: {store.root}" + "".join(f"\nfigure: {path}" for path in figures))


def other(options: argparse.Namespace) -> argparse.Namespace:
    """The options of the second learner: the first's, but for those in ``--against``."""
    try:
        words = shlex.split(options.against)
    except ValueError as error:
        raise InvalidInput(f"--against {options.against!r}: {error}") from None
    found = options.parser.parse_args(words, copy.copy(options))
    for name in ("runs", "seed", "engine", "threads", "out", "json", "against"):
        require(getattr(found, name) == getattr(options, name), f"--{name} is for both learners, not for --against")
    return found
