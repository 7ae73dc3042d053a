"""How long measures of trained networks take: of many networks of (20, 3), width 100, against what the machine can do.

Run: python benchmarks/inside.py [networks]
"""

from __future__ import annotations

import sys
import time
from typing import Any

import paritylab as pl
from paritylab.measures.inside import outputs
from paritylab.measures.inside.subjects import subjects
from paritylab.provenance import kernel

N, WIDTH = 20, 100
OPERATIONS = 3
"""For one unit at one input: add, rectify, add up."""


def peak(native: Any) -> float:
    """FLOP in a second of one core's own time, which others may interrupt."""
    wall, cpu = time.perf_counter(), time.process_time()
    found = native.fma_peak(0.1)
    return found * (time.perf_counter() - wall) / (time.process_time() - cpu)


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 100
    learner = pl.Learner(pl.MLP(WIDTH), optimiser=pl.SGD(0.1))
    networks = pl.measure(pl.Parity(N, 3), learner, pl.Protocol(max_steps=5000), runs=count).networks()
    few = networks[:1]
    native = kernel()
    assert native is not None, "the share of the peak needs the native kernel"
    limit = max(peak(native) for _ in range(10)) / 2  # a multiply-add is two operations there, and one here
    unit_inputs = WIDTH * 2**N
    print(f"{count} networks of n = {N}, width {WIDTH}, {outputs.cores()} cores; of CPU time, one core:")
    print(f"outputs at all inputs cannot take less than {1e3 * OPERATIONS * unit_inputs / limit:.1f} ms a network")
    measures = {
        "outputs": lambda given: outputs.each(subjects(given), outputs.Places(N), lambda _, f: f[0], False),
        "fourier": pl.inside.fourier, "influences": pl.inside.influences, "margins": pl.inside.margins,
        "subnetwork": pl.inside.subnetwork, "movement": pl.inside.movement, "alignment": pl.inside.alignment,
        "sharpness": pl.inside.sharpness,
    }
    for name, measure in measures.items():
        measure(few)  # compiles
        wall, cpu = time.perf_counter(), time.process_time()
        measure(networks)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        share = f", {OPERATIONS * unit_inputs * count / limit / cpu:.0%} of that" if name == "outputs" else ""
        print(f"{name:<12}{1e3 * cpu / count:8.1f} ms of CPU a network, {wall:7.1f} s in all{share}", flush=True)


if __name__ == "__main__":
    main()
