"""Problems of the native engine beside plain parities of the same size, on W1, in one run.

    python benchmarks/problems.py [--rounds 5] [--threads 2] [--json FILE]

Every round times a problem and its plain parity (uniform inputs, the same n, width and batch) one after the other; a
ratio of costs is taken within its round, and the median over rounds is printed. Time is that of the processor, so that
others on the machine disturb little.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np
from workloads import EVAL_EVERY, EVAL_SIZE, WORKLOADS

import paritylab as pl
from paritylab import engines, laws
from paritylab.engines import Job
from paritylab.engines.starts import kernel
from paritylab.setups.problems import AnyProblem, Stage

W1 = WORKLOADS["W1"]
N, TASKS = W1.n, 16
LATER = 10**6  # no run gets there
CONTROLLED = pl.Tasks([(TASKS + i, TASKS + i + 5, TASKS + i + 9) for i in range(TASKS)])
VALUES = np.random.default_rng(0).choice([-1, 1], 2**10)


PROBLEMS: dict[str, AnyProblem] = {
    "sample of 1,000, in passes": pl.Parity(N, 3, sample=1000),
    "sample of 1,000, with replacement": pl.Parity(N, 3, sample=1000, replacement=True),
    "sample of biased inputs, in passes": pl.Problem(N, (0, 1, 2), "biased:0.3", sample=1000),
    "biased 0.3": pl.Problem(N, (0, 1, 2), "biased:0.3"),
    "mixture of biased and uniform": pl.Problem(N, (0, 1, 2), "mixture:0.2,biased:0.9"),
    "correlated pairs": pl.Problem(N, (0, 1, 2), laws.Pairs([(0, 10), (1, 11)], 0.5)),
    "leaky parity": pl.LeakyParity(N, 3),
    "stage of biased inputs": pl.Problem(N, (0, 1, 2), stages=[Stage(LATER, "biased:0.3")]),
    "sliding from biased to uniform": pl.Problem(N, (0, 1, 2), stages=[Stage(LATER, "biased:0.3", slide=True)]),
    "stages that change twice": pl.Problem(N, (0, 1, 2), stages=[Stage(1000, "biased:0.3"), Stage(2000, noise=0.1)]),
    "table of 10 bits": pl.Problem(N, pl.Table(tuple(range(10)), VALUES)),
    "table of 10 scattered bits": pl.Problem(N, pl.Table(tuple(range(0, 30, 3)), VALUES)),
    "sum of 4 parities": pl.Problem(N, "staircase:4"),
    "16 tasks": pl.Problem(TASKS + N, CONTROLLED),
}


def rate(problem: AnyProblem, runs: int, steps: int, threads: int) -> float:
    """Model-steps a second of processor time, of runs that nothing ends."""
    protocol = pl.Protocol(max_steps=steps, eval_every=EVAL_EVERY, eval_size=EVAL_SIZE, consecutive=10**6)
    setup = pl.Setup(problem, pl.Learner(pl.MLP(W1.widths), optimiser=pl.SGD(1e-6), batch=W1.batch), protocol)
    start = time.process_time()
    for _ in engines.train([Job(setup, 0, np.arange(runs))], engine="lanes", threads=threads):
        pass
    return runs * steps / (time.process_time() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    assert kernel() is not None, "the native engine is not installed"
    runs, steps = 32 * options.threads, 8000
    rates: dict[str, list[float]] = {}
    costs: dict[str, list[float]] = {}
    for round_ in range(options.rounds + 1):
        for name, problem in PROBLEMS.items():
            plain = rate(pl.Parity(problem.n, 3), runs, steps, options.threads)
            found = rate(problem, runs, steps, options.threads)
            if round_:  # the first one warms up
                rates.setdefault(name, []).append(found)
                costs.setdefault(name, []).append(plain / found)
    table = {name: {"steps a CPU-second": statistics.median(rates[name]), "cost": statistics.median(costs[name])}
             for name in PROBLEMS}
    print(f"{'':36} {'steps/s':>9} {'cost':>6}")
    for name, row in table.items():
        print(f"{name:36} {row['steps a CPU-second']:9.2e} {row['cost']:6.2f}")
    if options.json:
        options.json.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
