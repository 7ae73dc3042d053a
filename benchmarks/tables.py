"""Sums looked up in tables (layout `tables`) beside dense layouts of the native engine, in one run.

    python benchmarks/tables.py [--rounds 5] [--sweep] [--json FILE]

CPU time of one thread; every round times the layouts one after the other, and the best of the rounds counts: others may
use the machine. Cycles are those at which the FMA peak is 32 FLOP (AVX-512 on Zen 4), for one sample and 16 units. The
two bars of the packs follow from steps and checks: nam2024's Figure 1(a), and pearce2023's 1,125 networks. Steps are
those of networks at their start; later a sample whose loss is flat costs only the way forward. `--sweep` shows from
which batch on tables pay.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import paritylab as pl
from paritylab.engines import Job
from paritylab.engines.lanes import LanesPool
from paritylab.engines.starts import kernel
from paritylab.engines.work import Queue

DENSE = ("lanes", "within")
WIDTHS, SAMPLES, DECAYS, SEEDS = (16, 32, 64, 128, 258), (750, 1000, 1250, 1500, 1750), 5, 9


def setup(problem: Any, network: pl.MLP, batch: int, **learner: Any) -> pl.Setup:
    """A Setup that nothing ends, without checks."""
    return pl.Setup(problem, pl.Learner(network, batch=batch, **learner),
                    pl.Protocol(10**6, eval_every=10**6, eval_size=16, consecutive=10**6))


def nam() -> pl.Setup:
    """A step of nam2024's Figure 1(a)."""
    weights = [float(i) ** -1.9 for i in range(1, 6)]
    tasks = pl.Tasks([tuple(range(5 + 3 * i, 8 + 3 * i)) for i in range(5)], weights=weights)
    network = pl.MLP(1000, inputs="bits")
    return setup(pl.Problem(37, tasks, scale=5.0), network, 4000, loss="square", optimiser=pl.SGD(1e-6))


def pearce(width: int, sample: int) -> pl.Setup:
    """A step of one of pearce2023's networks."""
    network = pl.MLP(width, inputs="bits", output_bias=False)
    optimiser = pl.AdamW(3e-6, 0.1, b1=0.99, b2=0.98)
    return setup(pl.Parity(30, 3, sample=sample), network, sample, loss="clipped-logistic:1e-7", optimiser=optimiser)


def seconds(given: pl.Setup, layout: str) -> float:
    """CPU time of a step, of one thread."""
    pool = LanesPool(given.program, 1, layout=layout)
    runs = 16 if layout == "lanes" else 1
    pool.load(Queue([Job(given, 0, np.arange(runs))]).take(runs))
    native = pool._pool
    native.advance(0.01)
    steps, start = native.model_steps, time.process_time()
    native.advance(0.1)
    return (time.process_time() - start) / max(1, native.model_steps - steps)


def best(given: pl.Setup, layouts: tuple[str, ...], rounds: int) -> dict[str, float]:
    """The shortest time of a step by each layout."""
    found = [{layout: seconds(given, layout) for layout in layouts} for _ in range(rounds)]
    return {layout: min(row[layout] for row in found) for layout in layouts}


def evaluation(given: pl.Setup, size: int, rounds: int) -> float:
    """CPU time of a full check on so many inputs, from curves with and without it."""
    def taken(points: int) -> float:
        timed = replace(given, protocol=replace(given.protocol, eval_size=size))
        start = time.process_time()
        pl.curves(timed, steps=list(range(points)), engine="lanes", threads=1, progress=False)
        return time.process_time() - start

    return min(taken(12) - taken(2) for _ in range(rounds)) / 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--sweep", action="store_true", help="batches, widths and numbers of inputs")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    native = kernel()
    assert native is not None, "the native engine is not installed"
    hertz = max(native.fma_peak(0.001, 1) for _ in range(1000)) / 32  # in a moment in which others leave the core alone
    report: dict[str, Any] = {"cases": {}, "sweep": {}}

    def show(name: str, given: pl.Setup) -> dict[str, float]:
        times = best(given, ("tables", *DENSE), options.rounds)
        dense = min(times[layout] for layout in DENSE)
        per = given.learner.batch * math.ceil(given.learner.network.width / 16) / hertz
        report["cases"][name] = times | {"cycles": times["tables"] / per, "gain": dense / times["tables"]}
        print(f"{name:28} {times['tables'] * 1e6:8.0f} us a step, {times['tables'] / per:5.1f} cycles, "
              f"dense {dense / per:5.1f}: {dense / times['tables']:.2f} times as fast")
        return times

    checks = evaluation(nam(), 20_000, options.rounds) * 400
    step = show("nam2024, Figure 1(a)", nam())["tables"]
    report["nam2024"] = 10 * (20_000 * step + checks)
    total = 0.0
    for width in WIDTHS:
        for sample in SAMPLES if options.sweep else SAMPLES[::2]:
            step = show(f"pearce2023, {width} of {sample:,}", pearce(width, sample))["tables"]
            total += DECAYS * SEEDS * 20_000 * step * (1 if options.sweep else 5 / 3)
        total += len(SAMPLES) * DECAYS * SEEDS * 200 * evaluation(pearce(width, 1250), 6250, 2)
    report["pearce2023"] = total
    for name in ("nam2024", "pearce2023"):
        print(f"{name}: {report[name]:.0f} CPU-seconds, {report[name] / 2:.0f} s on two cores")
    for n in (10, 30, 60, 100, 200) if options.sweep else ():
        for width in (10, 16, 32, 100, 256, 1000):
            row = []
            for batch in (32, 64, 128, 256, 512, 1024, 4096):
                given = setup(pl.Parity(n, 2), pl.MLP(width), batch, optimiser=pl.SGD(1e-6))
                times = best(given, ("tables", *DENSE), 2)
                row.append(min(times[layout] for layout in DENSE) / times["tables"])
            report["sweep"][f"{n}, {width}"] = row
            print(f"n = {n:3}, width {width:4}: " + " ".join(f"{gain:5.2f}" for gain in row))
    if options.json:
        options.json.write_text(json.dumps(report, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
