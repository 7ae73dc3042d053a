"""``paritylab barak2022 adaptive``: Theorem 13 of barak2022, tried."""

from __future__ import annotations

import argparse
from typing import Any

from paritylab.cli.crews import add_crew, hired, shows_script
from paritylab.cli.parser import Parser, add_common, add_seed, count, print_json
from paritylab.errors import require


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "adaptive",
        help="SGD with the adaptive rates of barak2022's Theorem 13",
        description="Train disjoint-PolyNets from random signs for the theorem's number of steps, at its rates, and"
        " report their exact errors. The theorem speaks about starts with a positive product of relevant weights.",
    )
    parser.add_argument("--block", type=count, default=3, metavar="N", help="inputs of each block")
    parser.add_argument("--k", type=count, default=2, help="number of blocks")
    parser.add_argument("--batch", type=count, default=1, help="samples a step, 1 to 32")
    parser.add_argument("--nets", type=count, default=50, help="how many to train")
    parser.add_argument("--epsilon", type=float, default=0.05, help="the error to reach")
    parser.add_argument("--delta", type=float, default=0.1, help="the probability of failure allowed")
    add_seed(parser)
    add_crew(parser)
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    import numpy as np

    from barak2022.theory.adaptive_sgd import horizon, train
    from paritylab.running import crews
    from paritylab.statistics import solved_fraction

    require(options.nets <= 10**6, f"--nets must be at most 10^6, not {options.nets}")
    if shows_script(options):
        return
    steps = horizon(options.block, options.k, options.epsilon, options.delta)
    with hired(options):
        trained = crews.once(train, options.block, options.k, options.nets, options.batch, options.epsilon,
                             options.delta, steps, options.seed)
    shares = {}
    for name, which in (("promising", trained.promising), ("others", ~trained.promising)):
        share, interval = solved_fraction(np.where(trained.error[which] <= options.epsilon, 0, 1))
        shares[name] = {"nets": int(which.sum()), "solved_fraction": share if which.any() else None,
                        "solved_interval": list(interval)}
    largest = float(trained.largest_irrelevant.max())
    if options.json:
        shape = {name: getattr(options, name) for name in ("block", "k", "batch", "nets", "epsilon", "delta", "seed")}
        print_json({**shape, "steps": steps, **shares, "largest_irrelevant": largest})
        return
    print(f"{options.k} blocks of {options.block}, batch {options.batch}, {steps} steps")
    for name, title in (("promising", "positive product"), ("others", "negative product")):
        found = shares[name]
        if found["nets"]:
            low, high = found["solved_interval"]
            print(f"{title}: error <= {options.epsilon:g} in {100 * found['solved_fraction']:.1f} % [{100 * low:.1f},"
                  f" {100 * high:.1f}] of {found['nets']}")
    print(f"largest irrelevant weight on the way: {largest:.4g} (the theorem's bound is 1.5)")
