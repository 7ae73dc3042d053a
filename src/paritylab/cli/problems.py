"""The options that say what is learned, for all commands that train."""

from __future__ import annotations

import argparse
import tomllib
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paritylab.cli.parser import Parser, count
from paritylab.errors import InvalidInput, require, unknown

if TYPE_CHECKING:
    from paritylab.setups.problems import AnyProblem, Stage

TARGETS = ("parity:K, majority:K, mod:M,K, tribes:WIDTH,TRIBES, address:A, staircase:K, leap:K1,K2,..., random:K[,SEED]"
           " or table:FILE with 2^bits values +1 or -1")
LAWS = "uniform, biased:P[,P,...], active:BITS[,LAW] or mixture:RHO,LAW[,LAW]"


def add_problem(parser: Parser, several: bool = False) -> None:
    """The options of a problem, for one number of inputs or several."""
    problem = parser.add_argument_group("problem")
    if several:
        problem.add_argument("--n", type=count, nargs="+", default=[30], help="numbers of inputs")
    else:
        problem.add_argument("--n", type=count, default=30, help="number of inputs")
    problem.add_argument("--k", type=count, default=None, help="size of the support (3 unless --support is given)")
    problem.add_argument("--support", type=count, nargs="+", metavar="J",
                         help="the support itself, from 0; with --target the places of its bits")
    problem.add_argument("--leak", type=float, metavar="P", help="inputs that show the support with this probability")
    problem.add_argument("--term", action="append", metavar="C:J,J", help="a parity with its coefficient, such as"
                         " 0.5:0,1; several are added up")
    problem.add_argument("--target", help=f"a function by name: {TARGETS}")
    problem.add_argument("--inputs", metavar="LAW", help=f"law of inputs: {LAWS} (P: that an input is +1)")
    problem.add_argument("--evaluate-on", metavar="LAW", help="law of the inputs that runs are judged on, if another")
    problem.add_argument("--stages", type=Path, metavar="FILE.toml", help="a [[stage]] for each: until, inputs, slide,"
                         " lr, batch, noise")
    problem.add_argument("--tasks", type=count, metavar="T", help="so many parities of k of n bits, with control bits")
    problem.add_argument("--alpha", type=float, help="task t is drawn with frequency (t + 1)^-alpha (0 unless said)")
    problem.add_argument("--disjoint", action="store_true", help="tasks with disjoint supports")
    problem.add_argument("--scale", type=float, help="what labels are multiplied by (1 unless said)")
    problem.add_argument("--noise", type=float, default=0.0, help="probability that a label is flipped")
    problem.add_argument("--sample", type=count, metavar="M", help="size of a finite training sample")
    problem.add_argument("--replacement", action="store_true", help="draw from the sample with replacement")
    problem.add_argument("--short-last", action="store_true",
                         help="each pass over the sample ends with a batch of what is left")


def make_problem(options: argparse.Namespace) -> AnyProblem:
    """A Parity; leaky, a sum of several, or one put together, if the options say so."""
    from paritylab import LeakyParity, Parity, Polynomial

    given = {"noise": options.noise, "sample": options.sample, "replacement": options.replacement,
             "short_last": options.short_last}
    kinds = [name for name in ("leak", "term", "target", "tasks") if getattr(options, name) is not None]
    require(len(kinds) <= 1, f"say one of --{' and --'.join(kinds)}")
    for name in ("alpha", "disjoint"):
        require(not getattr(options, name) or options.tasks is not None, f"--{name} belongs to --tasks")
    composed = {"inputs": options.inputs, "evaluation": options.evaluate_on, "scale": options.scale,
                "stages": None if options.stages is None else read_stages(options.stages)}
    composed = {name: value for name, value in composed.items() if value is not None}
    if kinds in (["target"], ["tasks"]) or (composed and kinds != ["leak"]):
        return _composed(options, kinds, {**given, **composed})
    require(not composed, "--leak has its own law of inputs")
    if options.term:
        _no_support(options, "--term")
        return Polynomial(options.n, terms=[term(text) for text in options.term], **given)
    given |= {"k": _size(options), "support": options.support}
    return Parity(options.n, **given) if options.leak is None else LeakyParity(options.n, leak=options.leak, **given)


def _composed(options: argparse.Namespace, kinds: list[str], given: dict[str, Any]) -> AnyProblem:
    from paritylab import Problem, Sum, multitask

    if kinds == ["tasks"]:
        require(not options.support, "--tasks draws its supports; leave out --support")
        overlap = "disjoint" if options.disjoint else "random"
        return multitask(options.n, options.tasks, _size(options), alpha=options.alpha or 0.0, overlap=overlap, **given)
    if kinds == ["term"]:
        _no_support(options, "--term")
        return Problem(options.n, Sum([term(text) for text in options.term]), **given)
    if kinds == ["target"]:
        require(options.k is None, "--target says how many bits it has; leave out --k")
        return Problem(options.n, read_target(options.target, options.support), **given)
    support = options.support or range(_size(options))
    return Problem(options.n, tuple(support), **given)


def _size(options: argparse.Namespace) -> Any:
    return options.k if options.k is not None or options.support else 3


def _no_support(options: argparse.Namespace, name: str) -> None:
    require(options.k is None and not options.support, f"{name} has its own supports; leave out --k and --support")


def term(text: str) -> tuple[float, list[int]]:
    """A coefficient and a support.

    >>> term("0.5:0,1,2")
    (0.5, [0, 1, 2])
    """
    coefficient, _, support = text.partition(":")
    try:
        return float(coefficient), [int(place) for place in support.split(",") if place.strip()]
    except ValueError:
        raise InvalidInput(f"--term must be COEFFICIENT:J,J,... such as 0.5:0,1, not {text!r}") from None


def read_target(spec: str, places: list[int] | None) -> Any:
    """The target of this name or file, on these inputs or the first."""
    from paritylab import Table
    from paritylab.setups.problems.targets import target

    kind, _, path = spec.partition(":")
    if kind != "table":
        return target(spec, places)
    values = read_table(Path(path))
    return Table(places or range((len(values) - 1).bit_length()), values)


def read_table(path: Path) -> list[float]:
    """The values in a text file, with spaces or line ends between them."""
    try:
        return [float(word) for word in path.read_text(encoding="utf-8").split()]
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise InvalidInput(f"table:{path} must be a text of values +1 or -1: {why}") from None


def read_stages(path: Path) -> list[Stage]:
    """The stages of a TOML file."""
    from paritylab import Stage

    try:
        rows: Any = tomllib.loads(path.read_text(encoding="utf-8")).get("stage")
        names = [field.name for field in fields(Stage)]
        require(isinstance(rows, list) and bool(rows), "there is no table [[stage]]")
        for row in rows:
            require(isinstance(row, dict) and "until" in row, "a stage says until which step: until = 1000")
            if others := [name for name in row if name not in names]:
                raise unknown("value of a stage", others[0], names)
        return [Stage(**row) for row in rows]
    except (OSError, ValueError) as error:
        raise InvalidInput(f"--stages {path}: {getattr(error, 'strerror', None) or error}") from None
