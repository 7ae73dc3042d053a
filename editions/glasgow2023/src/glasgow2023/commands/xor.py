"""``paritylab glasgow2023 xor``: watch a network learn XOR in glasgow2023's two phases."""

from __future__ import annotations

import argparse
import math
from typing import Any

from paritylab.cli.crews import add_crew, hired, shows_script
from paritylab.cli.parser import Parser, add_common, add_seed, count, print_json
from paritylab.errors import require

SHOWN = ("sig", "opp", "perp", "a", "accuracy", "loss", "zeta", "relaxed")


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "xor",
        help="watch a network learn XOR in two phases: glasgow2023",
        description="Trains both layers of a mean-field ReLU network on the XOR of 2 of d bits and follows the signal,"
        " opposite and orthogonal parts of its neurons, the margins of the four clusters, the signal-heavy condition"
        " and the accuracy. A figure of both phases and a table are written under --out.",
    )
    parser.add_argument("--d", type=count, default=64, help="number of inputs")
    parser.add_argument("--width", type=count, default=256, help="number of neurons")
    parser.add_argument("--theta", type=float, default=0.1, help="initial size of the weights")
    parser.add_argument("--eta", type=float, default=0.1, help="learning rate")
    parser.add_argument("--batch", type=count, help="samples of a step; 8 d unless said")
    parser.add_argument("--time", type=float, help="train until eta times steps is this; 4 ln(d) + 8 unless said")
    parser.add_argument("--every", type=count, help="steps between two looks; about 200 looks unless said")
    parser.add_argument("--frozen", action="store_true", help="do not train the second layer")
    parser.add_argument("--gaussian", action="store_true", help="Gaussian inputs, not bits")
    add_seed(parser)
    parser.add_argument("--engine", default="auto", help="auto, jax, lanes or warps")
    add_crew(parser)
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    import numpy as np

    from glasgow2023.theory import xor
    from glasgow2023.theory.xor import phases as xor_phases
    from paritylab import Parity, Protocol, Setup, plots
    from paritylab.storage.files import save_table

    d, eta = options.d, options.eta
    require(3 <= d <= 2**14, f"--d must be from 3 to {2**14}, not {d}")
    require(1 <= options.width <= 2**14, f"--width must be from 1 to {2**14}, not {options.width}")
    require(0 < options.theta < math.inf, f"--theta must be positive, not {options.theta:g}")
    require(0 < eta < math.inf, f"--eta must be positive, not {eta:g}")
    batch = 8 * d if options.batch is None else options.batch
    until = 4 * math.log(d) + 8 if options.time is None else options.time
    require(eta <= until < math.inf, f"--time must be at least one step, {eta:g}, not {until:g}")
    require(until / eta <= 10**7, f"{until / eta:.3g} steps are more than 10000000; raise --eta or lower --time")
    steps = math.ceil(until / eta - 1e-9)
    every = max(1, steps // 200) if options.every is None else options.every
    require(every >= 1, f"--every must be at least 1, not {every}")
    problem = Parity(d, 2, inputs=xor.gaussian_inputs if options.gaussian else None)
    learner = xor.learner(options.width, options.theta, eta, batch, options.frozen)
    setup = Setup(problem, learner, Protocol(eval_size=2000))
    if shows_script(options):
        return
    with hired(options):
        phases = xor_phases.track(setup, steps, every, seed=options.seed, engine=options.engine,
                                  progress=False if options.json else None)
    options.out.mkdir(parents=True, exist_ok=True)
    figure = plots.save(xor_phases.phases_plot(phases), options.out / "xor-phases")[0]
    table = options.out / "xor-phases.csv"
    columns = {"steps": phases["steps"], "time": phases["time"]}
    columns |= {name: phases[name][0] for name in SHOWN}
    columns |= {f"margin_{i + 1}": phases["margins"][0][:, i] for i in range(4)}
    save_table(table, np.stack(list(columns.values()), axis=1), columns)
    report(options, setup, phases, batch, [str(figure), str(table)])


def report(options: argparse.Namespace, setup: Any, phases: Any, batch: int, files: list[str]) -> None:
    import numpy as np

    from glasgow2023.theory import xor
    from glasgow2023.theory.xor import phases as xor_phases

    d, eta, time = options.d, options.eta, phases["time"]
    sig, perp, margins = (phases[name][0] for name in ("sig", "perp", "margins"))
    reached = np.flatnonzero(phases["accuracy"][0] >= 0.99)
    solved = int(phases["steps"][reached[0]]) if len(reached) else None
    turned = np.flatnonzero(sig > perp)
    small = int(np.searchsorted(-(sig <= 0.3 * options.theta).astype(int), 0))
    rate = xor_phases.growth_rate(time, sig, 0.3 * options.theta)[0] if small >= 3 else None
    results = {
        "d": d, "width": options.width, "theta": options.theta, "eta": eta, "batch": batch, "seed": options.seed,
        "kappa": batch / (eta * d), "setup_id": setup.id, "growth_rate": rate, "predicted_rate": xor.RATE,
        "phase_2_from": float(time[turned[0]]) if len(turned) else None,
        "steps_to_99": solved, "samples_to_99": None if solved is None else solved * batch,
        "accuracy": float(phases["accuracy"][0][-1]), "loss": float(phases["loss"][0][-1]),
        "margins": [float(value) for value in margins[-1]], "files": files,
    }
    if options.json:
        print_json(results)
        return
    print(f"XOR of 2 of {d} bits, width {options.width}, batch {batch}: kappa = m/(eta d) = {results['kappa']:.3g}")
    if rate is not None:
        print(f"phase 1: |w_sig| grows at the rate {rate:.4f} (theory: {xor.RATE:.4f} as w_sig -> 0)")
    if len(turned):
        print(f"phase 2: |w_sig| exceeds |w_perp| from t = {time[turned[0]]:.3g} on")
    print("99 % accuracy " + (f"after {solved} steps, {solved * batch} samples" if solved else "not reached"))
    print(f"at t = {time[-1]:.3g}: accuracy {results['accuracy']:.4f}, loss {results['loss']:.4f}, margins "
          + ", ".join(f"{value:.3f}" for value in margins[-1]))
    print(*files, sep="\n")
