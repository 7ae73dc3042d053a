"""``paritylab zoo``: ten thousand networks before, at and after their transition."""

from __future__ import annotations

import argparse
from typing import Any

from paritylab.cli.parser import Parser, add_common, add_seed, count, print_json
from paritylab.errors import require


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "zoo",
        help="ten thousand networks before, at and after their transition",
        description="Train networks of twelve settings (depth, width, activation, loss, optimiser, noise, a finite"
        " sample) and write them as they are at half of t_c, at t_c and at twice t_c: a safetensors file of each"
        " setting under --out/zoo, with an index (zoo.json, zoo.csv). An interrupted command goes on where it stopped.",
    )
    parser.add_argument("settings", nargs="*", metavar="SETTING", help="some of the twelve; all unless said")
    parser.add_argument("--runs", type=count, default=None, help="runs of each setting (834, so 10,008 in all)")
    add_seed(parser)
    parser.add_argument("--threads", type=count, default=None, help="cores for the native engine (all unless said)")
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from paritylab.memory import shown
    from paritylab.running import zoo

    require(options.threads is None or options.threads >= 1, f"--threads must be at least 1, not {options.threads}")
    folder = options.out / "zoo"

    def tell(entry: dict[str, Any]) -> None:
        accuracy = ", ".join(f"{moment} {share:.3f}" for moment, share in entry["accuracy"].items())
        print(f"{entry['name']:<10}{entry['about']:<50}{entry['solved']:>6} solved, median t_c"
              f" {_step(entry['median_t_c'])}, accuracy {accuracy}", flush=True)

    index = zoo.build(
        folder, zoo.RUNS if options.runs is None else options.runs, zoo.chosen(options.settings), seed=options.seed,
        threads=options.threads, progress=False if options.json else None,
        tell=(lambda entry: None) if options.json else tell)
    if options.json:
        print_json(index | {"folder": str(folder)})
        return
    took = f"{index['seconds']:.0f} s ({index['cpu_seconds']:.0f} s of CPU)"
    print(f"{index['networks']} networks, {shown(index['bytes'])}, {took}: {folder}")


def _step(t_c: float | None) -> str:
    return "not reached" if t_c is None else f"{t_c:.0f}"
