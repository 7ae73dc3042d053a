"""``paritylab demo``: thousands of small networks learn a parity, with figures and the site."""

from __future__ import annotations

import argparse
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paritylab.cli.crews import add_crew, hired, shows_script
from paritylab.cli.parser import Parser, add_common, count, print_json
from paritylab.errors import require

if TYPE_CHECKING:
    from paritylab import Store
    from paritylab.running.races import Entry

N, DEGREES, BATCH = 30, (2, 3), 32
RATES = (1.0, 0.1)


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "demo",
        help="a tour of a minute: thousands of networks, their times, figures and the site",
        description=f"Train thousands of small networks on parities of {N} bits (k = 2 and 3, batch {BATCH}), print"
        " after how many steps a tenth of them is perfect, draw survival curves, a histogram and a training curve, and"
        " write the site.",
    )
    parser.add_argument("--runs", type=count, default=500, help="networks of each kind, degree and learning rate")
    parser.add_argument("--engine", default="auto", help="auto, jax, lanes or warps")
    parser.add_argument("--threads", type=count, default=None, help="cores for the native engine (default: all)")
    add_crew(parser)
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from paritylab.cli import reference
    from paritylab.site.build import report
    from paritylab.storage.store import Store

    require(options.runs >= 10, f"--runs must be at least 10, not {options.runs}")
    if shows_script(options):
        return
    start = time.perf_counter()
    store = Store(options.out / "store")
    with hired(options):
        fastest = measured(options, store)
        figures = draw(fastest, options, store)
    index = report(options.out, reference.pages())["index.html"]
    seconds = time.perf_counter() - start
    if options.json:
        print_json({"table": [{"network": name, "k": k, **found.to_dict()} for (name, k), found in fastest.items()],
                    "seconds": round(seconds, 2), "figures": [str(path) for path in figures], "site": str(index)})
        return
    print_table(fastest)
    runs = sum(len(found.records) for found in fastest.values())
    print(f"{runs} networks in the table, {len(RATES)} learning rates tried for each row, {seconds:.0f} s")
    print("figures:", *figures, sep="\n  ")
    print(f"records: {store.root}  (list them with: paritylab results --out {options.out})")
    print(f"site: {index}  (open it in a browser)")


def measured(options: argparse.Namespace, store: Store) -> dict[tuple[str, int], Entry]:
    """By network and degree: the learning rate at which a tenth of the networks is perfect soonest."""
    from paritylab import MLP, SGD, Learner, Neuron, Parity, PolyNet, Protocol, Setup, race
    from paritylab.progress import Bar

    found: dict[tuple[str, int], Entry] = {}
    kinds = [(name, k, network) for k in DEGREES for name, network in (
        ("ReLU, width 10", MLP(10)), ("ReLU, width 100", MLP(100)), (f"x^{k}, width 10", MLP(10, f"power:{k}")),
        ("one sinusoid", Neuron(f"sinusoid:{k}")), ("PolyNet", PolyNet(k)),
    )]
    with Bar("training", len(kinds), False if options.json else None) as bar:
        for number, (name, k, network) in enumerate(kinds):
            bar.show(number, f"{name}, k={k}")
            setups = [Setup(Parity(N, k), Learner(network, optimiser=SGD(lr), batch=BATCH), Protocol(eval_size=128))
                      for lr in RATES]
            found[name, k] = race(setups, 10, options.runs, engine=options.engine,
                                  threads=options.threads, store=store, progress=False).best
    return found


def print_table(fastest: dict[tuple[str, int], Entry]) -> None:
    print(f"parities of {N} bits: steps until 10 % of the networks are perfect (batch {BATCH})\n")
    print(f"{'network':<18}{'k':>2}{'lr':>6}{'runs':>7}{'steps':>8}{'[95 %]':>16}")
    for (name, k), found in fastest.items():
        interval = "[{:.0f}, {:.0f}]".format(*found.interval)
        print(f"{name:<18}{k:>2}{found.setup.learner.optimiser.lr:>6g}{len(found.records):>7}"
              f"{found.percentile:>8.0f}{interval:>16}")
    print()


def draw(fastest: dict[tuple[str, int], Entry], options: argparse.Namespace, store: Store) -> list[Path]:
    """Survival curves, a histogram of times beside those of a blind search, a training curve."""
    from paritylab import MLP, SGD, Learner, Parity, Protocol, Setup, curves, measure, plots

    cubic = {name: found.records for (name, k), found in fastest.items() if k == 3}
    paths = plots.save(plots.survival_plot(cubic), options.out / "survival")

    many = measure(Parity(N, 3), Learner(MLP(10), optimiser=SGD(1.0), batch=BATCH), Protocol(eval_size=128),
                   runs=4 * options.runs, engine=options.engine, threads=options.threads, store=store)
    supports = math.comb(N, 3)  # how many a blind search has to choose from
    paths += plots.save(plots.histogram_plot({"ReLU, width 10": many.records}, reference=supports),
                        options.out / "histogram")

    curve = curves(Setup(Parity(50, 3), Learner(MLP(10), optimiser=SGD(0.5))), steps=2400, every=20)
    perfect = curve.accuracy[0] == 1.0
    t_c = int(curve.steps[perfect.argmax()]) if perfect.any() else None
    title = "(50, 3) parity, ReLU width 10, B = 32, lr 0.5"
    paths += plots.save(plots.training_curve_plot(curve.steps, curve.loss[0], curve.accuracy[0], t_c, title),
                        options.out / "training-curve")
    return paths
