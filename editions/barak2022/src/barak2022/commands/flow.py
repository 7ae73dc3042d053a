"""``paritylab barak2022 flow``: how long gradient flow keeps a disjoint-PolyNet near chance."""

from __future__ import annotations

import argparse
from typing import Any

from paritylab.cli.crews import add_crew, hired, shows_script
from paritylab.cli.parser import Parser, add_common, add_seed, count, print_json
from paritylab.errors import require, unknown

STARTS = ("ones", "sign", "gaussian")
MOST_WEIGHTS = 10**8


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "flow",
        help="how long gradient flow keeps a disjoint-PolyNet near chance",
        description="Solve gradient flow of a disjoint-PolyNet on a parity: the time T(1/2 - gamma) until its exact"
        " error is below 1/2 - gamma, the time T(0) until it is 0, and their ratio (Barak et al., Theorem 7). Starts"
        " have a positive product of relevant weights. One row for each start is written under --out.",
    )
    parser.add_argument("--k", type=count, default=3, help="number of blocks, 2 or more")
    parser.add_argument("--block", type=count, default=100, metavar="N", help="inputs of each block")
    parser.add_argument("--init", default="ones", help=f"the start: {', '.join(STARTS)}")
    parser.add_argument("--gamma", type=float, default=0.01, help="how far below 1/2 the error must be")
    parser.add_argument("--draws", type=count, default=200, help="number of gaussian starts")
    add_seed(parser)
    add_crew(parser)
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    import numpy as np

    from barak2022.theory.flow import plateau
    from paritylab.running import crews
    from paritylab.storage.files import save_table

    k, block, gamma = options.k, options.block, options.gamma
    require(2 <= k <= 64, f"--k must be from 2 to 64, not {k}")
    require(2 <= block <= 10**4, f"--block must be from 2 to 10000, not {block}")
    require(0 <= gamma < 0.5, f"--gamma must be at least 0 and below 1/2, not {gamma:g}")
    most = MOST_WEIGHTS // (k * block)
    require(1 <= options.draws <= most, f"--draws must be from 1 to {most} at this size, not {options.draws}")
    if shows_script(options):
        return
    drawn = starts(options.init, k, block, options.draws, options.seed)
    with hired(options):
        found = dict(crews.each(plateau, [(start, gamma) for start in drawn]))
    times = np.array([found[place] for place in range(len(drawn))])
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "flow-times.csv"
    names = ("level_time", "zero_time", "fraction")
    save_table(path, times, names)
    medians = {name: median(column) for name, column in zip(names, times.T, strict=True)}
    if options.json:
        settings = {name: getattr(options, name) for name in ("k", "block", "init", "gamma", "draws", "seed")}
        print_json({**settings, **medians, "starts": len(times), "times": str(path)})
        return
    print(f"disjoint-PolyNet, {k} blocks of {block}, {options.init} start, draws: {len(times)}")
    labels = (f"T({0.5 - gamma:g})", "T(0)", "their ratio")
    for label, value in zip(labels, medians.values(), strict=True):
        print(f"{label}: {shown(value, len(times))}")
    print(f"times: {path}")


def starts(init: str, k: int, block: int, draws: int, seed: int) -> Any:
    """Weights (draws, k, block). Signs only matter by the product's, so every sign start is the all-ones one."""
    import numpy as np

    if init not in STARTS:
        raise unknown("start", init, STARTS)
    if init != "gaussian":
        return np.ones((1, k, block))
    weights = np.random.default_rng(seed).standard_normal((draws, k, block))
    weights[:, 0, 0] *= np.sign(weights[:, :, 0].prod(1))  # the law conditioned on a positive product
    return weights


def median(values: Any) -> dict[str, Any]:
    """The median and its 95 % interval from order statistics; no interval where the sample is too small for one."""
    import math

    import numpy as np
    import scipy.stats  # pyright: ignore[reportMissingTypeStubs]

    stats: Any = scipy.stats
    middle = float(np.median(values))
    interval = stats.quantile_test(values, q=middle, p=0.5).confidence_interval(0.95)
    ends = [float(interval.low), float(interval.high)]
    known = all(map(math.isfinite, ends))
    return {"median": middle if math.isfinite(middle) else None, "interval": ends if known else None}


def shown(value: dict[str, Any], starts: int) -> str:
    if value["median"] is None:
        return "not defined"
    interval = value["interval"]
    if starts == 1 or interval is None:
        return f"{value['median']:.6g}"
    return f"{value['median']:.6g} [{interval[0]:.6g}, {interval[1]:.6g}] (median)"
