"""Optimisers of the native engine on W1, beside plain SGD and beside `jax`, in one run.

    python benchmarks/optimisers.py [--rounds 5] [--threads 1] [--json FILE]

Every round times plain SGD and each optimiser one after the other; a ratio is taken within its round, and the median
over rounds is printed. The share of the peak counts the FLOPs of the gradient alone: what an optimiser does beside it
is its price.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
from pathlib import Path

import numpy as np

import paritylab as pl
from paritylab import engines
from paritylab.engines import Job
from paritylab.engines.starts import kernel
from paritylab.running.cost import step_flops

OPTIMISERS = {
    "sgd": pl.SGD(1e-5), "momentum": pl.SGD(1e-5, momentum=0.9), "nesterov": pl.SGD(1e-5, momentum=0.9, nesterov=True),
    "clipped": pl.SGD(1e-5, clip=0.1), "adam": pl.Adam(1e-6), "adamw": pl.AdamW(1e-6), "rmsprop": pl.RMSProp(1e-6),
    "sign-sgd": pl.SignSGD(1e-6), "lion": pl.Lion(1e-6),
}
ON_JAX = ("sgd", "momentum", "adam", "sign-sgd")


def rate(name: str, engine: str, runs: int, steps: int, threads: int) -> float:
    """Model-steps a second of W1 (n = 30, width 10, batch 32) that nothing ends."""
    protocol = pl.Protocol(max_steps=steps, eval_every=1000, eval_size=64, consecutive=10**6)
    setup = pl.Setup(pl.Parity(30, 3), pl.Learner(pl.MLP(10), optimiser=OPTIMISERS[name], batch=32), protocol)
    start = time.perf_counter()
    for _ in engines.train([Job(setup, 0, np.arange(runs))], engine=engine, threads=threads):
        pass
    return runs * steps / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    native = kernel()
    assert native is not None, "the native engine is not installed"
    rates: dict[str, list[float]] = {}
    shares: dict[str, list[float]] = {}
    for round_ in range(options.rounds + 1):
        plain = rate("sgd", "lanes", 128, 4000, options.threads)
        for name in OPTIMISERS:
            found = rate(name, "lanes", 128, 4000, options.threads)
            if round_:  # the first one warms up
                rates.setdefault(name, []).append(found)
                shares.setdefault(name, []).append(found / plain)
    for name in ON_JAX:
        rate(name, "jax", 128, 200, options.threads)  # compiles
    jax = {name: rate(name, "jax", 128, 2000, options.threads) for name in ON_JAX}
    flops = step_flops(pl.Setup(pl.Parity(30, 3), pl.Learner(pl.MLP(10), batch=32)))
    peak = native.fma_peak(0.5, options.threads)
    table = {
        name: {"steps/s": statistics.median(rates[name]), "of sgd": statistics.median(shares[name]),
               "of the FMA peak": statistics.median(rates[name]) * flops / peak,
               "times jax": statistics.median(rates[name]) / jax[name] if name in jax else None}
        for name in OPTIMISERS
    }
    print(f"{'':10} {'steps/s':>9} {'of sgd':>7} {'of peak':>8} {'x jax':>6}")
    for name, row in table.items():
        times = f"{row['times jax']:6.1f}" if row["times jax"] else ""
        print(f"{name:10} {row['steps/s']:9.2e} {row['of sgd']:7.2f} {row['of the FMA peak']:8.2f} {times}")
    if options.json:
        options.json.write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
