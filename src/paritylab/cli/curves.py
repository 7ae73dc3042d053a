"""``paritylab curves``: loss and accuracy of a few runs along the way."""

from __future__ import annotations

import argparse
import io
import json
from pathlib import Path
from typing import Any

from paritylab.cli.crews import add_crew, hired, shows_script
from paritylab.cli.measure import add_engine, add_problem_and_learner, make_setup
from paritylab.cli.parser import Parser, add_common, add_seed, count, print_json
from paritylab.errors import require

LEVELS = (0.55, 0.9, 1.0)
MOST_POINTS = 10**7
POINT_BYTES, VALUE_BYTES = 200, 64
"""What a point takes in tables and figures, and what a weight at a point does in theirs."""


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "curves",
        help="training curves: loss and accuracy of a few runs along the way",
        description="Train a few networks on a parity and record loss and accuracy along the way; runs go on when"
        " solved. Data (Parquet and CSV) and a figure are written under --out.",
    )
    add_problem_and_learner(parser, several=False)
    protocol = parser.add_argument_group("protocol")
    protocol.add_argument("--steps", type=count, default=5000, help="steps of each run")
    protocol.add_argument("--every", type=count, default=10, help="steps between points")
    protocol.add_argument("--runs", type=count, default=1, help="number of networks")
    add_seed(protocol)
    protocol.add_argument("--eval-size", type=count, default=8192, help="inputs per point")
    protocol.add_argument("--fresh", action="store_true", help="new evaluation inputs for every point")
    protocol.add_argument("--train", action="store_true", help="also accuracy and loss on the finite sample")
    engine = add_engine(parser)
    add_crew(engine)
    engine.add_argument("--weights", action="store_true", help="also write all params at each point (Parquet), and rho,"
                        " the farthest that a weight of the first layer has moved")
    protocol.add_argument("--within", type=float, help="an output is right if it is at most so far from its label")
    parser.set_defaults(max_steps=1, eval_every=1, threshold=1.0, consecutive=1)  # runs are not judged
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from paritylab import engines
    from paritylab.engines.room import weights_of
    from paritylab.memory import Part, require_room
    from paritylab.running.recording import curves

    require(options.threads is None or options.threads >= 1, f"--threads must be at least 1, not {options.threads}")
    require(options.steps >= 1, f"--steps must be at least 1, not {options.steps}")
    require(options.every >= 1, f"--every must be at least 1, not {options.every}")
    require(options.runs >= 1, f"--runs must be at least 1, not {options.runs}")
    points = options.runs * (options.steps // options.every + 1)
    require(points <= MOST_POINTS, f"{points:.1e} points over all runs are too many; allowed: {MOST_POINTS:.0e}")
    require(not options.train or options.sample is not None, "--train needs a finite sample; say --sample M")
    options.max_steps = options.steps
    setup = make_setup(options, options.lr[0])
    setup.check()
    values = {"points over all runs": Part(points, POINT_BYTES)}
    if options.weights:
        values["points times weights"] = Part(points * weights_of(setup), VALUE_BYTES)
    require_room("the table", values)
    engine = engines.choose(setup, options.engine, curves=True)
    if shows_script(options):
        return
    with hired(options):
        found = curves(setup, options.steps, options.every, range(options.runs), seed=options.seed, engine=engine,
                       threads=options.threads, weights=options.weights, train=options.train,
                       progress=False if options.json else None)
    files = write(found, options.out, setup)
    times = first_times(found)
    if options.json:
        print_json({"setup_id": setup.id, "engine": engine, "seed": options.seed, "steps": options.steps,
                    "every": options.every, "runs": times, "files": [str(path) for path in files]})
        return
    from paritylab.setups.words import problem_in_words

    print(f"{problem_in_words(setup.problem)}, {options.steps} steps, engine {engine}")
    print_table(times)
    for path in files:
        print(path)


def first_times(curves: Any) -> list[dict[str, Any]]:
    """For each run, the first recorded step with each of the accuracies; None where there is none."""
    columns = {f"t_{100 * level:.0f}": curves.first(level) for level in LEVELS}
    if curves.train_accuracy is not None:
        columns |= {f"train_{100 * level:.0f}": curves.first_train(level) for level in LEVELS}
    return [{"run": run, **{name: int(t[run]) if t[run] >= 0 else None for name, t in columns.items()}}
            for run in range(len(curves.accuracy))]


def print_table(times: list[dict[str, Any]]) -> None:
    titles = {name: name.replace("t_", "accuracy ").replace("train_", "train ") + " %" for name in times[0]}
    titles["run"] = "run"
    print("first step with")
    print("".join(f"{title:>16}" if name != "run" else f"{title:>5}" for name, title in titles.items()))
    for row in times:
        print("".join(f"{'never' if value is None else value:>{5 if name == 'run' else 16}}"
                      for name, value in row.items()))


def write(curves: Any, out: Path, setup: Any) -> list[Path]:
    """Data with one row for each run and point, the weights if there are any, the Setup, and a figure."""
    from paritylab import plots
    from paritylab.storage.files import write_atomically

    name = setup.id
    frames = {f"curves-{name}": tidy(curves)}
    if curves.weights is not None:
        frames[f"weights-{name}"] = tidy_weights(curves)
    out.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for stem, frame in frames.items():
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        contents = {"parquet": buffer.getvalue()}
        if stem.startswith("curves"):
            contents["csv"] = frame.write_csv().encode()
        for suffix, content in contents.items():
            written.append(out / f"{stem}.{suffix}")
            write_atomically(written[-1], content)
    made = {"setup_id": name, "setup": json.loads(setup.to_json())}
    return written + plots.save(figure(curves), out / f"curves-{name}", made)


def tidy(curves: Any) -> Any:
    import numpy as np
    import polars as pl

    from paritylab.measures.progress import displacement

    runs, points = curves.accuracy.shape
    columns = {"run": np.repeat(np.arange(runs), points), "step": np.tile(curves.steps, runs)}
    names = ("accuracy", "loss", "train_accuracy", "train_loss")
    columns |= {name: values.ravel() for name in names if (values := getattr(curves, name)) is not None}
    for name in ("accuracy", "loss", "skill"):
        by_task = getattr(curves, f"task_{name}")
        if by_task is not None and curves.task_accuracy is not None:  # there are several
            columns |= {f"task_{t}_{name}": by_task[:, :, t].ravel() for t in range(by_task.shape[2])}
    if isinstance(curves.weights, list):  # layers, as in all networks but a user's own
        path = np.moveaxis(curves.weights[0]["w"], 1, 0).reshape(points, runs, -1)
        columns["rho"] = displacement(path).T.ravel()
    return pl.DataFrame(columns).fill_nan(None)


def tidy_weights(curves: Any) -> Any:
    """One row for each run, point and number; ``index`` is its place in the param, such as ``12,0``."""
    import jax
    import numpy as np
    import polars as pl

    frames = []
    for path, leaf in jax.tree_util.tree_flatten_with_path(curves.weights)[0]:
        runs, points, *shape = leaf.shape
        places = [",".join(map(str, place)) for place in np.ndindex(*shape)]
        rows = runs * points * len(places)
        frames.append(pl.DataFrame({
            "run": np.repeat(np.arange(runs), rows // runs),
            "step": np.tile(np.repeat(curves.steps, len(places)), runs),
            "param": pl.Series([jax.tree_util.keystr(path)]).extend_constant(jax.tree_util.keystr(path), rows - 1),
            "index": pl.Series(places * (runs * points)),
            "value": leaf.ravel(),
        }))
    return pl.concat(frames).fill_nan(None)


def figure(curves: Any) -> Any:
    from paritylab import plots

    if len(curves.accuracy) == 1 and curves.train_accuracy is None:
        solved = int(curves.first(1.0)[0])
        return plots.training_curve_plot(curves.steps, curves.loss[0], curves.accuracy[0],
                                         solved if solved >= 0 else None)
    return plots.styled(overlay)(curves)


def overlay(curves: Any) -> Any:
    """Error and loss of every run; dashed on the training sample."""
    from itertools import cycle

    from paritylab import plots

    drawn = plots.blank(2.6)
    above, below = drawn.subplots(2, 1, sharex=True)
    both = ((1 - curves.accuracy, curves.loss, "solid", "test"),)
    if curves.train_accuracy is not None:
        both += ((1 - curves.train_accuracy, curves.train_loss, "dashed", "train"),)
    for errors, losses, line, label in both:
        for error, loss, colour in zip(errors, losses, cycle(plots.COLOURS), strict=False):
            above.plot(curves.steps, error, color=colour, linestyle=line, linewidth=0.8)
            below.plot(curves.steps, loss, color=colour, linestyle=line, linewidth=0.8)
        if len(both) > 1:
            above.plot([], [], color=plots.GREY, linestyle=line, label=label)
    if len(both) > 1:
        above.legend(loc="upper right")
    above.set(ylabel="error", ylim=(0, None))
    below.set(ylabel="loss", xlabel="steps")
    below.margins(x=0.02)
    below.locator_params(axis="x", nbins=6)
    drawn.align_ylabels()
    return drawn
