"""``paritylab theory alignment``: gradient alignment at initialisation, exactly."""

from __future__ import annotations

import argparse
import math
from typing import Any

from paritylab.cli.crews import add_crew, hired, shows_script
from paritylab.cli.parser import Parser, add_common, add_seed, count, print_json


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "alignment",
        help="gradient alignment of a unit or a two-layer network with a parity",
        description="Compute the initial gradient alignment of Abbe et al. (2024): the mean squared distance between"
        " the population gradients on a parity and on random labels, over random initial weights.",
    )
    parser.add_argument("--init", nargs="+", default=["rademacher"], help="law of a weight: rademacher, gaussian,"
                        " perturbed-rademacher:s, uniform-perturbed:s, sparse-rademacher:s, discrete:-2,-1,1,2;"
                        " or several")
    parser.add_argument("--d", type=count, nargs="+", default=[51], help="number of inputs, or several")
    parser.add_argument("--degree", type=count, help="degree of the parity (all inputs)")
    parser.add_argument("--term", action="append", metavar="C:J,J", help="a parity with its coefficient, such as"
                        " 0.5:0,1; again for each one of a sum")
    parser.add_argument("--unit", default="threshold", help="threshold, relu, network or hinge-neuron")
    parser.add_argument("--bias", help="a number, gaussian:0.7, any init, or same")
    parser.add_argument("--width", type=count, metavar="N", help="hidden units of a network (1)")
    parser.add_argument("--method", help="integral, lattice, pairs, enumerate or monte-carlo (chosen by the law)")
    parser.add_argument("--scale", help="factor of the weights: a number, hidden,output or fan-in (1)")
    parser.add_argument("--loss", default="correlation", help="of a network, for monte-carlo")
    parser.add_argument("--draws", type=count, default=1000, help="weights drawn by monte-carlo")
    parser.add_argument("--inputs", type=count, help="inputs for each draw (all up to d = 14, then 2048)")
    add_seed(parser)
    add_crew(parser)
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from paritylab.cli.problems import term
    from paritylab.measures.alignment import alignments

    if shows_script(options):
        return
    names = ("degree", "unit", "bias", "width", "method", "loss", "draws", "inputs", "seed")
    common = {name: getattr(options, name) for name in names}
    points = [{"init": init, "d": d, **common} for init in options.init for d in options.d]
    scale = options.scale.split(",") if options.scale and "," in options.scale else options.scale
    terms = [term(text) for text in options.term] if options.term else None
    with hired(options):
        found = alignments([{**point, "scale": scale, "terms": terms} for point in points])
    if options.json:
        rows = [{**point, "scale": options.scale, "terms": terms, **told(each)}
                for point, each in zip(points, found, strict=True)]
        print_json(rows[0] if len(rows) == 1 else {"points": rows})
        return
    if len(points) > 1:
        print(f"{'init':<26}{'d':>7}  {'value':<22}{'error':>9}  method")
        for point, each in zip(points, found, strict=True):
            print(f"{point['init']:<26}{point['d']:>7}  {shown(each.value, each.log):<22}{each.error:>9.2g}"
                  f"  {each.method}")
        return
    [point], [each] = points, found
    what = "a sum of parities" if terms else f"the degree-{options.degree or point['d']} parity"
    print(f"alignment of {options.unit} with {what} of {point['d']} inputs, {point['init']} weights")
    print(f"value: {shown(each.value, each.log)}")
    if each.exact is not None and len(str(each.exact)) < 60:
        print(f"exact: {each.exact}")
    print(f"error: {each.error:.2g}")
    for name, value in each.parts.items():
        print(f"{name}: {value:.10g}")
    print(f"method: {each.method}, {each.seconds:.3f} s")


def told(found: Any) -> dict[str, Any]:
    """An alignment as plain JSON values."""
    return {
        "value": found.value, "error": found.error, "method": found.method, "seconds": found.seconds,
        "log": found.log if math.isfinite(found.log) else None,
        "exact": None if found.exact is None else str(found.exact), "digits": found.digits, "parts": found.parts,
    }


def shown(value: float, log: float) -> str:
    """The value, or its power of ten where it is below the least float.

    >>> shown(0.0, -6938.9), shown(0.25, -1.386)
    ('10^-3013.526', '0.25')
    """
    return f"10^{log / math.log(10):.3f}" if value < 1e-300 and math.isfinite(log) else f"{value:.12g}"
