"""``paritylab barak2022 two-stage``: Theorem 10 of barak2022, tried."""

from __future__ import annotations

import argparse
from typing import Any

from paritylab.cli.crews import add_crew, hired, shows_script
from paritylab.cli.parser import Parser, add_common, add_seed, count, print_json
from paritylab.errors import require


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "two-stage",
        help="one large gradient step, then the top layer: barak2022's Theorem 10",
        description="From mirrored sign neurons, one gradient step finds the support of an even parity; then the output"
        " weights alone are trained. The first gradient is the population's, unless --samples says how many to take.",
    )
    parser.add_argument("--n", type=count, default=51, help="number of inputs, odd")
    parser.add_argument("--k", type=count, default=2, help="size of the support, even")
    parser.add_argument("--width", type=count, default=64, help="number of neurons, even")
    parser.add_argument("--samples", type=count, help="batch of the first step")
    parser.add_argument("--steps", type=count, default=2000, help="of the top layer")
    parser.add_argument("--rate", type=float, default=0.5, help="of the top layer")
    parser.add_argument("--batch", type=count, default=256, help="of the top layer")
    add_seed(parser)
    add_crew(parser)
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    import numpy as np

    from barak2022.theory import two_stage
    from paritylab.running import crews

    require(options.batch >= 1, f"--batch must be at least 1, not {options.batch}")
    if shows_script(options):
        return
    support, generator = range(options.k), np.random.default_rng(options.seed)
    start = two_stage.initialise(options.n, options.k, options.width, generator)
    layer = two_stage.first_step(start, support, options.samples, generator)
    good = two_stage.good_neurons(start, support)
    with hired(options):
        trained = crews.once(two_stage.train_top, layer, support, options.steps, options.rate, options.batch,
                             seed=generator)
    size = {"relevant": np.abs(layer.w[good, : options.k]), "irrelevant": np.abs(layer.w[good, options.k :])}
    means = {name: float(values.mean()) if good.any() else None for name, values in size.items()}
    if options.json:
        names = ("n", "k", "width", "samples", "steps", "rate", "batch", "seed")
        print_json({name: getattr(options, name) for name in names} | {
            "good_neurons": int(good.sum()), "mean_weight": means, "accuracy": float(trained.accuracy[-1]),
            "loss": float(trained.loss[-1]), "smallest_loss": float(trained.loss.min())})
        return
    print(f"({options.n}, {options.k}) parity, width {options.width}: {int(good.sum())} neurons agree with the support")
    if good.any():
        print(f"their mean |weight| after one step: {means['relevant']:.4g} on the support (theory:"
              f" {1 / (2 * options.k):.4g}), {means['irrelevant']:.4g} off it")
    print(f"after {options.steps} steps of the top layer: accuracy {trained.accuracy[-1]:.4f}, hinge loss"
          f" {trained.loss[-1]:.4f}")
