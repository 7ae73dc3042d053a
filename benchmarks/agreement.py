"""How often another order of sums moves t_c: ``python benchmarks/agreement.py [--runs N]``.

Trains the same runs by the layouts `samples` and `lanes` (or `within`) of the native engine. Prints the share of runs
with equal t_c, with one at most a check apart, the quartiles of both, and the largest distance of their distributions.
"""

from __future__ import annotations

import argparse

import numpy as np

import paritylab as pl
from paritylab.engines import loop
from paritylab.engines.lanes import LanesPool
from paritylab.engines.work import Job, Queue

SHAPES = {
    "width 10, batch 32, lr 1": (10, 32, 1.0, "lanes"),
    "width 100, batch 32, lr 0.1": (100, 32, 0.1, "lanes"),
    "width 10, batch 64, lr 1": (10, 64, 1.0, "lanes"),
    "width 32, batch 32, lr 0.5": (32, 32, 0.5, "lanes"),
    "width 100, batch 256, lr 0.1": (100, 256, 0.1, "tables"),
}
N, K, MAX_STEPS = 30, 3, 20_000


def convergence_times(setup: pl.Setup, runs: int, layout: str) -> np.ndarray:
    """t_c of each run; runs that are not solved have -1."""
    queue = Queue([Job(setup, 0, np.arange(runs))])
    found = np.empty(runs, np.int64)
    for outcomes in loop.train(queue, LanesPool(setup.program, threads=1, layout=layout)):
        found[outcomes.records.run] = outcomes.records.t_c
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=2000)
    runs = parser.parse_args().runs
    for name, (width, batch, lr, other) in SHAPES.items():
        learner = pl.Learner(pl.MLP(width), batch=batch, optimiser=pl.SGD(lr))
        setup = pl.Setup(pl.Parity(N, K), learner, pl.Protocol(max_steps=MAX_STEPS, eval_size=128))
        counted, dense = (convergence_times(setup, runs, layout) for layout in ("samples", other))
        grid = np.unique(np.concatenate([counted, dense]))
        below = [np.searchsorted(np.sort(times), grid, side="right") / runs for times in (counted, dense)]
        print(f"{name}: {runs} runs, equal t_c {np.mean(counted == dense):.1%}, at most one check apart"
              f" {np.mean(abs(counted - dense) <= setup.protocol.eval_every):.1%}, quartiles"
              f" {np.quantile(counted, [0.25, 0.5, 0.75])} and {np.quantile(dense, [0.25, 0.5, 0.75])}, distributions"
              f" {abs(below[0] - below[1]).max():.4f} apart", flush=True)


if __name__ == "__main__":
    main()
