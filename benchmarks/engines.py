"""paritylab's engines beside PyTorch, in one run: model-steps a second, ratios to a PyTorch loop, share of the peak.

    python benchmarks/engines.py [--quick] [--json FILE] [--threads 1 2] [--device cpu|gpu]

Engines take turns, each in a process of its own pinned to as many cores as it has threads, for several rounds. A
printed rate is the median over rounds; so is a ratio, taken within each round. The PyTorch loop on T cores is T
processes. A missed bar is said, not an error: timings on a shared machine are noisy.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from table import Timings, bars, lines
from workloads import WORKLOADS

ENGINES = ("torch-loop", "torch-batched", "jax", "lanes")
CONVERGED_RUNS = {"jax": 1024, "lanes": 4096}
GPU_CONVERGED_RUNS = 2**19
GPU_CHILD_SECONDS = {"torch-loop": 40, "torch-batched": 50, "jax": 130}  # together below 4 minutes


def request(engine: str, threads: int, device: str, seconds: float) -> dict[str, Any]:
    """What one worker is asked to time, but for its cores."""
    runs = 0
    if device == "gpu":
        many = engine != "torch-loop"
        cases = [(name, slots) for name, w in WORKLOADS.items() for slots in (w.gpu_slots if many else (None,))]
        runs = GPU_CONVERGED_RUNS if engine == "jax" else 0
    else:
        cases = [(name, None) for name in WORKLOADS]
        runs = CONVERGED_RUNS.get(engine, 0)
    return {"engine": engine, "threads": threads, "device": device, "seconds": seconds, "cases": cases, "runs": runs}


def run_workers(requests: list[dict[str, Any]], limit: float | None) -> list[dict[str, Any]]:
    """Results of workers side by side, their rates added up; what a worker had printed by its limit counts."""
    worker = str(Path(__file__).with_name("worker.py"))
    children = [
        subprocess.Popen([sys.executable, worker, json.dumps(r)], text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE)
        for r in requests
    ]
    outputs = []
    for child in children:
        try:
            out, error = child.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            child.kill()
            out, error = child.communicate()
            error += f"stopped after {limit:.0f} s"
        if child.returncode:
            last = error.strip().splitlines()[-1:] or ["no message"]
            print(f"{requests[0]['engine']}: a worker ended early: {last[0]}")
        outputs.append([json.loads(line) for line in out.splitlines() if line.startswith("{")])
    total = ("rate", "used") if len(requests) > 1 else ()
    return [{**same[0], **{name: sum(r[name] for r in same) for name in total}} for same in zip(*outputs, strict=False)]


def rounds(engines: list[str], options: argparse.Namespace) -> Iterator[tuple[str, int, list[dict[str, Any]]]]:
    """(engine, threads, results) of one engine after the other, round after round."""
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    for number in range(options.rounds):
        turned = cores[number % len(cores) :] + cores[: number % len(cores)] if cores else []
        for threads in options.threads:
            for engine in engines:
                start = time.perf_counter()
                asked = request(engine, threads, options.device, options.seconds)
                if options.device == "gpu":
                    requests = [{**asked, "cores": []}]
                elif engine == "torch-loop":
                    requests = [{**asked, "threads": 1, "cores": turned[i : i + 1]} for i in range(threads)]
                else:
                    requests = [{**asked, "cores": turned[:threads]}]
                limit = GPU_CHILD_SECONDS[engine] if options.device == "gpu" else None
                yield engine, threads, run_workers(requests, limit)
                took = time.perf_counter() - start
                print(f"round {number + 1}: {engine}, {threads} thread(s), {took:.0f} s", file=sys.stderr)


def usable(device: str) -> list[str]:
    """The engines that can run here; a line for each that cannot."""
    engines = list(ENGINES if device == "cpu" else ENGINES[:3])
    if importlib.util.find_spec("torch") is None:
        print("PyTorch is not installed: no baselines, no ratios (pip install torch)")
        engines = [engine for engine in engines if not engine.startswith("torch")]
    if "lanes" in engines and importlib.util.find_spec("paritylab._lanes") is None:
        print("the native kernel was not built: no lanes engine, no share of the FMA peak")
        engines.remove("lanes")
    return engines


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one short round")
    parser.add_argument("--json", type=Path, help="write every timing to this file")
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="numbers of cores (CPU only)")
    parser.add_argument("--device", choices=("cpu", "gpu"), default="cpu")
    options = parser.parse_args()
    options.rounds = 1 if options.quick or options.device == "gpu" else 3
    options.seconds = 0.5 if options.quick else 1.5
    if options.device == "gpu":
        options.threads = [1]
    available = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    options.threads = [t for t in options.threads if t <= available]
    return options


def main() -> None:
    options = parse()
    timings = Timings()
    with tempfile.TemporaryDirectory() as cache:  # so that later rounds do not wait for JAX to compile the same again
        os.environ |= {"JAX_COMPILATION_CACHE_DIR": cache, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0.1"}
        for engine, threads, results in rounds(usable(options.device), options):
            timings.add(engine, threads, results)
    for line in [*lines(timings, options.device), *(bars(timings) if options.device == "cpu" else [])]:
        print(line)
    if options.json:
        options.json.write_text(json.dumps({"device": options.device, "timings": timings.to_list()}, indent=1) + "\n")


if __name__ == "__main__":
    main()
