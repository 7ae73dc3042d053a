"""``paritylab measure``: how long networks take to learn a parity."""

from __future__ import annotations

import argparse
import math
from pathlib import Path
from typing import Any

from paritylab.cli.crews import add_crew, hired, shows_script
from paritylab.cli.parser import Parser, add_common, add_seed, count, print_json
from paritylab.cli.problems import add_problem, make_problem
from paritylab.errors import InvalidInput, require, unknown

NETWORKS = ("mlp", "neuron", "polynet", "disjoint-polynet", "transformer")
OPTIMISERS = ("sgd", "adam", "adamw", "rmsprop", "sign-sgd", "lion")


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "measure",
        help="train many networks on a parity and report how long they took",
        description="Train many networks on a parity and report how long they took. Runs already in the store under"
        " --out are not repeated; an interrupted command goes on where it stopped.",
    )
    add_problem_and_learner(parser)
    protocol = parser.add_argument_group("protocol")
    protocol.add_argument("--runs", type=count, default=1000, help="number of networks per learning rate")
    protocol.add_argument("--race", action="store_true",
                          help="train each learning rate only until the best 10th percentile is certain")
    add_seed(protocol)
    add_protocol(protocol)
    engine = add_engine(parser)
    engine.add_argument("--any-arithmetic", action="store_true", help="use stored runs of earlier versions of the"
                        " engine's arithmetic too, and do not train them again")
    add_crew(engine)
    engine.add_argument("--figure", action="store_true", help="write the survival curves under --out")
    add_common(parser, run)


def add_problem_and_learner(parser: Parser, several: bool = True) -> None:
    """The options that say what is trained, at one learning rate or several."""
    add_problem(parser)
    learner = parser.add_argument_group("learner")
    learner.add_argument("--setting", metavar="PAPER:NAME", help="a paper's learner by name")
    learner.add_argument("--network", default=None, help=f"one of {', '.join(NETWORKS)} (mlp unless said)")
    learner.add_argument("--width", type=count, nargs="+", help="hidden widths of an MLP (10 unless said)")
    learner.add_argument("--degree", type=count, help="degree of a PolyNet (k unless said)")
    learner.add_argument("--activation", default=None, help="such as relu, zigzag:3, sinusoid:3 (relu unless said)")
    learner.add_argument("--bits", action="store_true", default=None, help="an MLP reads +1 as 0 and -1 as 1")
    learner.add_argument("--init", default="torch", help="such as torch, gaussian, normal:0.01, unbiased kaiming")
    learner.add_argument("--loss", default="hinge", help="hinge[:margin], square, logistic[:scale],"
                         " clipped-logistic:c, correlation, l1")
    learner.add_argument("--optimiser", default=None, help=f"one of {', '.join(OPTIMISERS)} (sgd unless said)")
    learner.add_argument("--lr", type=float, nargs="+" if several else 1, default=[0.1],
                         help="learning rates; several are compared" if several else "learning rate")
    learner.add_argument("--schedule", default="constant", help="linear:T, cosine:T, inverse-sqrt:T, steps:...,"
                         " warmup:W, warmup-linear:W,T, warmup-cosine:W,T")
    learner.add_argument("--momentum", type=float, default=None, help="of sgd, rmsprop or sign-sgd (0 unless said)")
    learner.add_argument("--nesterov", action="store_true", help="Nesterov's momentum (sgd)")
    learner.add_argument("--betas", type=float, nargs=2, default=None, metavar=("B1", "B2"),
                         help="of adam, adamw (0.9 0.999 unless said) or lion (0.9 0.99)")
    learner.add_argument("--eps", type=float, default=None, help="of adam, adamw or rmsprop (1e-8 unless said)")
    learner.add_argument("--clip", type=float, default=None, help="the largest norm of a gradient")
    learner.add_argument("--weight-decay", type=float, default=None, help="weight decay (0; 0.01 of adamw)")
    learner.add_argument("--decay-form", default=None,
                         help="coupled (in the gradient), decoupled (lr times decay, beside the step) or plain:"
                         " (1 - decay) theta; coupled unless said, decoupled of adamw and lion")
    learner.add_argument("--skip-satisfied", action="store_true",
                         help="a batch whose gradient is exactly zero changes nothing, decay included")
    learner.add_argument("--gradient-noise", type=float, default=0.0, help="standard deviation added to gradients")
    learner.add_argument("--batch", type=count, default=32, help="batch size")


def add_protocol(protocol: Any) -> None:
    """The options that say how a run is judged."""
    protocol.add_argument("--max-steps", type=count, default=100_000, help="steps after which a run is censored")
    protocol.add_argument("--eval-every", type=count, default=10, help="steps between checks")
    protocol.add_argument("--eval-size", type=count, default=8192, help="inputs per check")
    protocol.add_argument("--threshold", type=float, default=1.0, help="accuracy that counts as solved")
    protocol.add_argument("--consecutive", type=count, default=1, help="checks in a row that must reach it")
    protocol.add_argument("--fresh", action="store_true", help="new evaluation inputs for every check")
    protocol.add_argument("--within", type=float, help="an output is right if it is at most so far from its label"
                          " (if it has its sign unless said)")


def add_engine(parser: Parser) -> Any:
    """The options that say how, in a group to which others may be added."""
    engine = parser.add_argument_group("engine and output")
    engine.add_argument("--engine", default="auto", help="auto, jax, lanes or warps")
    engine.add_argument("--threads", type=count, default=None, help="cores for the native engine (all unless said)")
    return engine


def run(options: argparse.Namespace) -> None:
    from paritylab.running.races import race
    from paritylab.running.sweeps import sweep
    from paritylab.storage.store import Store

    require(options.threads is None or options.threads >= 1, f"--threads must be at least 1, not {options.threads}")
    require(len(set(options.lr)) == len(options.lr), "--lr values must differ")
    if shows_script(options):
        return
    setups = [make_setup(options, lr) for lr in options.lr]
    store = Store(options.out / "store")
    common = {
        "runs": options.runs,
        "seed": options.seed,
        "engine": options.engine,
        "threads": options.threads,
        "store": store,
        "progress": False if options.json else None,
        "any_arithmetic": options.any_arithmetic,
    }
    with hired(options):
        if options.race:
            raced = race(setups, **common)
            results, best, seconds = list(raced.rates), raced.best, raced.seconds
        else:
            results = sweep(setups, **common)
            best = min(results, key=rank)
            seconds = best.seconds
    figures = draw(results, options.out) if options.figure else []
    if options.json:
        document = best.to_dict()
        if len(results) > 1:
            document["by_lr"] = [result.to_dict() for result in results]
        if figures:
            document["figures"] = [str(path) for path in figures]
        print_json(document)
        return
    from paritylab.setups.words import problem_in_words

    told = " and ".join((best.engine, *best.earlier))
    print(f"{problem_in_words(best.setup.problem)}, {options.runs} runs, engine {told}, {seconds:.1f} s")
    for result in results:
        head = f"lr {result.setup.learner.optimiser.lr:g}: " if len(results) > 1 else ""
        tail = "  <- best 10th percentile" if len(results) > 1 and result is best else ""
        print(f"{head}{result}{tail}")
    print(f"records: {store.root}" + "".join(f"\nfigure: {path}" for path in figures))


def rank(result: Any) -> tuple[float, ...]:
    """Learning rates compare by 10th percentile, then median, then solved fraction."""
    summary = result.summary
    p10, median = (math.inf if math.isnan(value) else value for value in (summary.p10, summary.median))
    return (p10, median, -summary.solved)


def make_setup(options: argparse.Namespace, lr: float) -> Any:
    """The Setup that the options describe, at one learning rate."""
    from paritylab import Learner, Protocol, Setup

    problem = make_problem(options)
    protocol = Protocol(
        options.max_steps,
        options.eval_every,
        options.eval_size,
        options.threshold,
        options.consecutive,
        options.fresh,
        options.within,
    )
    if options.setting:
        learner = from_setting(options, problem.degree, lr)
    else:
        network = make_network(options, problem.degree)
        learner = Learner(network, options.init, options.loss, make_optimiser(options, lr), options.batch)
    return Setup(problem, learner, protocol)


def from_setting(options: argparse.Namespace, k: int, lr: float) -> Any:
    from dataclasses import replace

    from paritylab import Adam
    from paritylab.claims.library import papers

    for name in ("network", "width", "degree", "activation", "bits", "optimiser"):
        require(getattr(options, name) is None, f"--setting fixes the network and optimiser; leave out --{name}")
    known = {paper.id: part for paper in papers().values() if (part := paper.part("settings"))}
    paper, colon, name = options.setting.partition(":")
    if paper not in known or not colon:
        allowed = "; ".join(f"{each}:NAME with NAME in {', '.join(part.NAMES)}" for each, part in known.items())
        raise InvalidInput(f"--setting must be {allowed}, not {options.setting!r}")
    learner = known[paper].learner(name, k, lr, options.batch)
    optimiser = make_optimiser(options, lr, kind="adam" if isinstance(learner.optimiser, Adam) else "sgd")
    return replace(learner, init=options.init, loss=options.loss, optimiser=optimiser)


def make_network(options: argparse.Namespace, k: int) -> Any:
    from paritylab import MLP, DisjointPolyNet, Neuron, PolyNet, Transformer

    kind = options.network or "mlp"
    if kind not in NETWORKS:
        raise unknown("network", kind, NETWORKS)
    uses = {"mlp": ("width", "activation", "bits"), "neuron": ("activation",), "polynet": ("degree",),
            "disjoint-polynet": ("degree",), "transformer": ()}[kind]
    for name in ("width", "activation", "bits", "degree"):
        require(name in uses or getattr(options, name) is None, f"a {kind} has no --{name}")
    if kind == "mlp":
        return MLP(options.width or 10, options.activation or "relu", inputs="bits" if options.bits else "signs")
    if kind == "neuron":
        return Neuron(options.activation or f"sinusoid:{k}")
    if kind == "transformer":
        return Transformer()
    return (PolyNet if kind == "polynet" else DisjointPolyNet)(k if options.degree is None else options.degree)


def make_optimiser(options: argparse.Namespace, lr: float, kind: str | None = None) -> Any:
    from paritylab import SGD, Adam, AdamW, Lion, RMSProp, SignSGD

    kind = str(kind or options.optimiser or "sgd")
    if kind not in OPTIMISERS:
        raise unknown("optimiser", kind, OPTIMISERS)
    makers = {"sgd": SGD, "adam": Adam, "adamw": AdamW, "rmsprop": RMSProp, "sign-sgd": SignSGD, "lion": Lion}
    owners = {"momentum": ("sgd", "rmsprop", "sign-sgd"), "nesterov": ("sgd",), "betas": ("adam", "adamw", "lion"),
              "eps": ("adam", "adamw", "rmsprop")}
    for name, allowed in owners.items():
        require(getattr(options, name) in (None, False) or kind in allowed,
                f"--{name} belongs to {', '.join(allowed)}, not {kind}")
    given: dict[str, Any] = {"clip": options.clip, "weight_decay": options.weight_decay, "eps": options.eps,
                             "nesterov": options.nesterov or None, "skip_satisfied": options.skip_satisfied or None}
    if options.betas is not None:
        given |= {"b1": options.betas[0], "b2": options.betas[1]}
    if options.momentum is not None:
        given |= {"b1": options.momentum, "b2": options.momentum} if kind == "sign-sgd" else {
            "momentum": options.momentum}
    require(options.decay_form is None or kind not in ("adamw", "lion") or options.decay_form == "decoupled",
            f"{kind} decays by --decay-form decoupled, not {options.decay_form}")
    if kind not in ("adamw", "lion"):
        given["decay_form"] = options.decay_form
    told = {name: value for name, value in given.items() if value is not None}
    return makers[kind](lr=lr, schedule=options.schedule, noise=options.gradient_noise, **told)


def draw(results: list[Any], out: Path) -> list[Path]:
    from paritylab import plots

    figure = plots.survival_plot({f"lr {r.setup.learner.optimiser.lr:g}": r.records for r in results})
    return plots.save(figure, out / f"survival-{results[0].setup.id}")
