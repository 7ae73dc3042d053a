"""The GPU engine ``warps`` beside JAX and PyTorch on one GPU: ``python benchmarks/warps.py [section ...]``.

Sections: ``kernels`` (W1 to W3 over launch parameters), ``optimisers`` (W1 to W3 by each of them), ``problems`` (W1 on
finite samples, other laws of inputs and targets), ``deep`` (small deep networks, by ``jax`` too), ``large`` (W4 over
launch parameters), ``cache`` (compiling, and finding what was compiled), ``million`` (10^6 networks of (30, 3) from
nothing to Records), ``others`` (JAX, batched PyTorch, a PyTorch loop), which take about seven minutes. ``table`` times
W1 to W4, momentum, Adam, a finite sample, tasks, a small deep network and the Transformer by ``warps``, ``jax`` and
batched PyTorch and prints them as Markdown, in about four minutes; ``W1``, ``W2``, ``W3`` and ``W4`` alone are for
profilers. Prints one line of JSON for each result as it comes.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from workloads import DEEP, EVERY, IDLE_RATE, WORKLOADS

import paritylab as pl
from paritylab import laws
from paritylab.engines.configuration import Configuration
from paritylab.engines.warps import WarpsPool, device
from paritylab.engines.warps.plan import plan
from paritylab.engines.work import Job, Queue
from paritylab.setups.problems import Stage
from paritylab.storage.records import SOLVED, Records

ROWS = 2**16  # more than are trained at once
SECONDS = 0.5  # of a timing
SWEEP: dict[str, list[dict[str, Any]]] = {
    "W1": [
        *({"warps": 4, "blocks": blocks} for blocks in (1, 3, 4, 5, 6, 7, 8)),
        *({"warps": 2, "blocks": blocks} for blocks in (8, 10, 12)),
        *({"warps": 8, "blocks": blocks} for blocks in (2, 3)),
        *({"kernel": "threads", "samples": samples, "warps": 1} for samples in (2, 4, 6)),
    ],
    "W2": [
        *({"tiles": 4, "blocks": blocks} for blocks in (1, 4, 5, 6)),
        *({"tiles": 3, "blocks": blocks} for blocks in (1, 3, 4)),
        *({"tiles": 2, "blocks": blocks} for blocks in (1, 3, 4)),
        *({"tiles": 1, "blocks": blocks} for blocks in (1, 2, 3)),
    ],
    "W3": [
        *({"warps": 1, "blocks": blocks} for blocks in (1, 5)),
        *({"warps": warps} for warps in (2, 5)),
        {"kernel": "tiles", "warps": 4, "blocks": 5},
    ],
}
OTHERS = {
    "jax": [["W1", 2**14], ["W2", 2**14], ["W3", 2**16]],
    "torch-batched": [["W1", 2**16], ["W2", 2**14], ["W3", 2**16]],
    "torch-loop": [["W1", None]],
}
OPTIMISERS = {
    "sgd": pl.SGD(IDLE_RATE),
    "clipped": pl.SGD(IDLE_RATE, clip=1.0),
    "momentum": pl.SGD(IDLE_RATE, momentum=0.9),
    "nesterov": pl.SGD(IDLE_RATE, momentum=0.9, nesterov=True),
    "adam": pl.Adam(IDLE_RATE),
    "adamw": pl.AdamW(IDLE_RATE),
    "rmsprop": pl.RMSProp(IDLE_RATE),
    "sign-sgd": pl.SignSGD(IDLE_RATE),
    "lion": pl.Lion(IDLE_RATE),
}
OPTIMISERS_SWEEP: dict[str, list[dict[str, Any]]] = {
    **{f"W1 {rule}": [{"blocks": blocks} for blocks in (2, 3, 5)] for rule in ("clipped", "momentum", "adam")},
    "W2 momentum": [{"tiles": tiles} for tiles in (4, 3, 2, 1)],
    "W2 adam": [{"tiles": tiles} for tiles in (4, 3, 2, 1)],
    **{f"W3 {rule}": [{"kernel": "threads"}, {"kernel": "threads", "warps": 1}, {"kernel": "tiles", "blocks": 5},
                      {"kernel": "tiles", "blocks": 3}] for rule in ("clipped", "momentum", "adam")},
}
PROBLEMS: dict[str, Any] = {
    "fresh": pl.Parity(30, 3),
    "sample of 1,000, in passes": pl.Parity(30, 3, sample=1000),
    "sample of 20,000, in passes": pl.Parity(30, 3, sample=20_000),
    "sample of 1,000, short last": pl.Parity(30, 3, sample=1000, short_last=True),
    "sample of 1,000, with replacement": pl.Parity(30, 3, sample=1000, replacement=True),
    "label noise": pl.Parity(30, 3, noise=0.1),
    "biased inputs": pl.Problem(30, (0, 1, 2), "biased:0.3"),
    "mixed inputs": pl.Problem(30, (0, 1, 2), "mixture:0.2,biased:0.9"),
    "pairs of inputs": pl.Problem(30, (0, 1, 2), laws.Pairs([(i, i + 15) for i in range(15)], 0.3)),
    "leaky": pl.LeakyParity(30, 3, leak=0.1),
    "majority of 5": pl.Problem(30, "majority:5"),
    "sum of 3 terms": pl.Problem(30, "staircase:3"),
    "10 tasks": pl.Problem(30, pl.Tasks([(10 + i, 20, 21) for i in range(10)])),
    "stages": pl.Problem(30, (0, 1, 2), stages=[Stage(2**25, "biased:0.9", slide=True)]),
}
DEEP_SWEEP: dict[str, list[dict[str, Any]]] = {
    "D32": [*({"blocks": blocks} for blocks in (5, 7, 8, 9)),
            {"team": 1, "warps": 4, "blocks": 2},
            *({"tiles": 2, "warps": warps, "blocks": blocks} for warps, blocks in ((1, 11), (1, 8), (2, 5), (4, 2)))],
    "D64": [*({"blocks": blocks} for blocks in (2, 3, 4)), {"team": 2, "blocks": 4},
            *({"tiles": 2, "blocks": blocks} for blocks in (3, 4))],
    "D100": [{"blocks": 1}, {"team": 4}, {"tiles": 2}],
}
LARGE = {"kernel": "large"}
LARGE_SWEEP: list[dict[str, Any]] = [LARGE, *({**LARGE, "tiles": 1, "warps": warps} for warps in (16, 12, 8)),
                                     {**LARGE, "samples": 32}]
DEEP_RULES = {"momentum": pl.SGD(IDLE_RATE, momentum=0.9), "adam": pl.Adam(IDLE_RATE)}
DEEP_JAX = [["D32", 2**12], ["D32", 2**14], ["D32", 2**16], ["D64", 2**12], ["D64", 2**14], ["D100", 2**12],
            ["W4", 2**10]]
OTHERS_SECONDS = 75  # for each
TABLE = ("W1", "W2", "W3", "W4", "W1 momentum", "W1 adam", "W1 sample", "W1 tasks", "D32", "Transformer")
TABLE_SLOTS = {"W1": 2**14, "W2": 2**14, "W3": 2**16, "W4": 2**10, "D32": 2**16, "Transformer": 16}
TABLE_TORCH = {"W1": 2**16, "W1 momentum": 2**16, "W1 adam": 2**16, "W1 tasks": 2**16, "D32": 2**14, "W4": 2**8}
"""Models of PyTorch, where they are not as many as the slots of ``jax``."""
TABLE_SECONDS = 240  # for each engine


def show(**result: Any) -> None:
    print(json.dumps(result), flush=True)


def steady_rate(pool: Any) -> float:
    """Model-steps a second once the launches have found their length."""
    start = time.perf_counter()
    while time.perf_counter() - start < SECONDS:
        pool.advance(more=False)
    start, before = time.perf_counter(), pool.model_steps
    while time.perf_counter() - start < SECONDS:
        pool.advance(more=False)
    return (pool.model_steps - before) / (time.perf_counter() - start)


def kernels(only: str | None = None) -> None:
    """Every workload with every tuning, or one as it comes."""
    cases = [(name, tuning) for name, tunings in SWEEP.items() for tuning in [{}, *tunings]]
    chosen = [(only, {})] if only else cases
    time_each({name: work.setup() for name, work in WORKLOADS.items()}, chosen)


def large() -> None:
    """W4 over launch parameters and optimisers, and a network that fits into shared memory too."""
    setups = {name: EVERY[name].setup() for name in ("W4", "D100")}
    for rule, made in DEEP_RULES.items():
        setups[f"W4 {rule}"] = replace(setups["W4"], learner=replace(setups["W4"].learner, optimiser=made))
    cases = [("W4", tuning) for tuning in LARGE_SWEEP] + [(name, LARGE) for name in setups if name != "W4"]
    time_each(setups, cases)


def table() -> None:
    """Everything beside everything, from one run, as Markdown."""
    on_gpu = {name: EVERY[name].setup() for name in TABLE if name != "Transformer"}  # which ``warps`` does not take
    cases: list[tuple[str, dict[str, Any]]] = [(name, {}) for name in on_gpu]
    rates: dict[str, dict[str, float]] = {name: {} for name in TABLE}
    slots = [[name, TABLE_SLOTS[name if name in TABLE_SLOTS else "W1"]] for name in TABLE]
    models = [[name, TABLE_TORCH.get(name, count)] for name, count in slots]
    found = [("warps", time_each(on_gpu, cases)), ("jax", time_others("jax", slots, TABLE_SECONDS)),
             ("PyTorch", time_others("torch-batched", models, TABLE_SECONDS))]
    for engine, results in found:
        for result in results:
            of = rates[result["workload"]]
            of[engine] = max(of.get(engine, 0.0), result["rate"])
    print("| | `warps` | `jax` | PyTorch, batched | `warps` against `jax` | against PyTorch |")
    print("|---|---|---|---|---|---|")
    for name, of in rates.items():
        speeds = [f"{of[engine]:.3g}" if engine in of else "" for engine, _ in found]
        ratios = [f"{of['warps'] / of[other]:.3g}" if {"warps", other} <= set(of) else ""
                  for other in ("jax", "PyTorch")]
        print("|", " | ".join([name, *speeds, *ratios]), "|", flush=True)


def optimisers() -> None:
    """Every workload with every optimiser, and some of them with other tunings."""
    setups = {}
    for (name, work), (rule, made) in itertools.product(WORKLOADS.items(), OPTIMISERS.items()):
        setup = work.setup()
        if name in SWEEP:
            setups[f"{name} {rule}"] = replace(setup, learner=replace(setup.learner, optimiser=made))
    cases = [(name, {}) for name in setups]
    time_each(setups, cases + [(name, tuning) for name, tunings in OPTIMISERS_SWEEP.items() for tuning in tunings])


def problems() -> None:
    """W1 on finite samples and other problems, beside fresh batches of uniform inputs."""
    setup = WORKLOADS["W1"].setup(max_steps=2**25)  # what passes through samples allow, and more than are done here
    setups = {f"W1 {name}": replace(setup, problem=problem) for name, problem in PROBLEMS.items()}
    time_each(setups, [(name, {}) for name in setups])


def deep() -> None:
    """Small deep networks over launch parameters and optimisers, and by ``jax``."""
    setups = {name: work.setup() for name, work in DEEP.items()}
    for rule, made in DEEP_RULES.items():
        setups[f"D32 {rule}"] = replace(setups["D32"], learner=replace(setups["D32"].learner, optimiser=made))
    time_each(setups, [(name, tuning) for name in setups for tuning in [{}, *DEEP_SWEEP.get(name, [])]])
    time_others("jax", DEEP_JAX)


def cache() -> None:
    """What compiling W1's kernels takes in a new process: with an empty folder for CuPy's cache, then with that one."""
    script = ("import time, warps; from paritylab.engines.warps import device; gpu = device.current();"
              " program = warps.WORKLOADS['W1'].setup().program; start = time.perf_counter();"
              " gpu.kernels(warps.plan(program, warps.Configuration.of(program), gpu.chip));"
              " print(time.perf_counter() - start)")
    with tempfile.TemporaryDirectory() as folder:
        # the child finds what this process finds, also where PYTHONPATH is relative
        paths = os.pathsep.join(map(os.path.abspath, sys.path))
        environment = {**os.environ, "PYTHONPATH": paths, "CUPY_CACHE_DIR": folder}
        for name in ("empty", "filled"):
            done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
            if done.returncode:
                show(cache=name, failed=done.stderr[-2000:])
                return
            files = [path for path in Path(folder).rglob("*") if path.is_file()]
            show(cache=name, seconds=float(done.stdout), files=len(files), bytes=sum(f.stat().st_size for f in files))


def time_each(setups: dict[str, Any], cases: list[tuple[str, dict[str, Any]]]) -> list[dict[str, Any]]:
    """The steady rate of each Setup by each tuning; all kernels are compiled first, on all cores."""
    results = []
    gpu = device.current()
    assert gpu is not None

    def compiled(case: Any) -> Any:
        program = setups[case[0]].program
        try:
            return gpu.kernels(plan(program, Configuration.of(program), gpu.chip, **case[1]))
        except Exception as error:
            return error

    start = time.perf_counter()
    with ThreadPoolExecutor() as threads:
        found = list(threads.map(compiled, cases))
    show(compiled=len(found), seconds=time.perf_counter() - start)
    for (name, tuning), made in zip(cases, found, strict=True):
        try:
            if isinstance(made, Exception):
                raise made
            queue = Queue([Job(setups[name], 0, np.arange(ROWS))])
            pool = WarpsPool(setups[name].program, ROWS, **tuning)
            pool.load(queue.take(pool.room))
            results.append({"workload": name, "tuning": tuning, **made.facts, "rate": steady_rate(pool)})
            show(**results[-1])
        except Exception as error:
            show(workload=name, tuning=tuning, failed=str(error)[:300])
    return results


def million() -> None:
    """10^6 networks to 100 %, with the time by parts; once with few to compile, then in earnest."""
    setup = WORKLOADS["W1"].setup(lr=1.0, max_steps=100_000)
    for runs in (1000, 10**6):
        start = time.perf_counter()
        queue = Queue([Job(setup, 0, np.arange(runs))])
        pool = WarpsPool(setup.program, runs)
        seconds = dict.fromkeys(("keys", "load", "advance"), 0.0)
        parts = []
        while len(queue) or pool.busy:
            if len(queue) and pool.room:
                begun = time.perf_counter()
                rows = queue.take(pool.room)
                seconds["keys"] += time.perf_counter() - begun
                begun = time.perf_counter()
                pool.load(rows)
                seconds["load"] += time.perf_counter() - begun
            begun = time.perf_counter()
            parts.append(queue.named(pool.advance(more=len(queue) > 0).records))
            seconds["advance"] += time.perf_counter() - begun
        records = Records.concatenate(parts)
        total = time.perf_counter() - start
        t_c = np.where(records.status == SOLVED, records.t_c, 10**9)
        quantiles = np.percentile(t_c, [10, 50]).tolist()
        show(runs=runs, seconds=total, **seconds, kernel=pool.kernel_seconds, model_steps=pool.model_steps,
             solved=int(np.sum(records.status == SOLVED)), p10=quantiles[0], median=quantiles[1])


def others() -> None:
    for engine, cases in OTHERS.items():
        time_others(engine, cases)


def time_others(engine: str, cases: list[list[Any]], most: int = OTHERS_SECONDS) -> list[dict[str, Any]]:
    results = []
    worker = Path(__file__).with_name("worker.py")
    same = {"threads": 1, "cores": [], "device": "gpu", "seconds": 0.7, "runs": 0}
    for line in lines_of([sys.executable, str(worker), json.dumps({"engine": engine, "cases": cases, **same})], most):
        results.append(json.loads(line))
        show(engine=engine, **results[-1])
    return results


def lines_of(command: list[str], most: int) -> Iterator[str]:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=most)
        out, error = done.stdout, done.stderr
    except subprocess.TimeoutExpired as stopped:
        out, error = (stopped.stdout or b"").decode(), f"stopped after {most} s"
    yield from (line for line in out.splitlines() if line.startswith("{"))
    if error:
        print(error.strip().splitlines()[-1], file=sys.stderr)


SECTIONS = {each.__name__: each for each in (kernels, optimisers, problems, deep, large, cache, million, others)}
ALONE = {"table": table} | {name: functools.partial(kernels, name) for name in WORKLOADS}


def main() -> None:
    chosen = sys.argv[1:] or list(SECTIONS)
    gpu = device.current()
    known = SECTIONS | ALONE
    if gpu is None or not set(chosen) <= set(known):
        sys.exit("needs an NVIDIA GPU and CuPy" if gpu is None else f"sections are {', '.join(known)}")
    show(device=gpu.name)
    for name in chosen:
        start = time.perf_counter()
        known[name]()
        show(section=name, seconds=time.perf_counter() - start)


if __name__ == "__main__":
    main()
