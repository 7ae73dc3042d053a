"""``paritylab theory search``: how long random search would take."""

from __future__ import annotations

import argparse
from typing import Any

from paritylab.cli.parser import Parser, add_common, count, print_json

QUANTILES = (0.1, 0.5, 0.9)


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "search",
        help="how long random search for a parity would take",
        description="The law of blind search: at each step every searcher guesses one of the C(n, k) supports.",
    )
    parser.add_argument("--n", type=count, default=30, help="number of inputs")
    parser.add_argument("--k", type=count, default=3, help="size of the support")
    parser.add_argument("--searchers", type=count, default=1, help="how many guess at each step")
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from paritylab.baselines.search import RandomSearch

    law = RandomSearch(options.n, options.k, options.searchers)
    quantiles = {f"p{100 * q:.0f}": law.quantile(q) for q in QUANTILES}
    if options.json:
        shape = {name: getattr(options, name) for name in ("n", "k", "searchers")}
        print_json({**shape, "rate": law.rate, "mean": law.mean, **quantiles})
        return
    print(f"({options.n}, {options.k}) parity, {options.searchers} searchers: success {law.rate:.6g} a step")
    print(f"steps: mean {law.mean:.6g}, " + ", ".join(f"{name} {value}" for name, value in quantiles.items()))
