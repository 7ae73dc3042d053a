"""Times one engine, alone in its process: ``python worker.py '{"engine": "jax", ...}'``, one line of JSON a result.

The request holds engine, threads (1 or more), cores (to pin to), device ("cpu" or "gpu"), seconds (a timing) and
cases ([workload, slots or null]); ``runs``, if not 0, asks for that many runs of W1 trained to convergence as well.
"""

from __future__ import annotations

import itertools
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

from workloads import DEFAULT_SIZE, EVAL_SIZE, EVERY, WORKLOADS, Workload

PEAK_SECONDS = 0.15
WARM_CALLS = 4
FLOPS_OF_AN_OPERATION = 16  # a multiply-add of sixteen numbers has 32, and another operation begins beside it


def steady_rate(advance: Callable[[], int], seconds: float) -> tuple[float, float]:
    """Model-steps a second once compiled and warm, and how many cores that used (less than asked: others did)."""
    start, calls = time.perf_counter(), 0
    while calls < WARM_CALLS or time.perf_counter() - start < seconds / 2:
        advance()
        calls += 1
        if calls == 1:
            start = time.perf_counter()  # compilation is over
    start, used, done = time.perf_counter(), time.process_time(), 0
    while time.perf_counter() - start < seconds:
        done += advance()
    elapsed = time.perf_counter() - start
    return done / elapsed, (time.process_time() - used) / elapsed


def peak(threads: int) -> float | None:
    """The cores' multiply-add peak at this moment in FLOP/s, or None where the native kernel was not built."""
    try:
        from paritylab import _lanes  # type: ignore[attr-defined]
    except ImportError:
        return None
    return _lanes.fma_peak(PEAK_SECONDS, threads)


def queue_of(work: Workload, runs: int, **changes: Any) -> Any:
    import numpy as np

    from paritylab.engines.work import Job, Queue

    return Queue([Job(work.setup(**changes), 0, np.arange(runs))])


def engine_advance(work: Workload, engine: str, threads: int, slots: int | None) -> tuple[Callable[[], int], int]:
    """Real training by a paritylab engine, as ``advance()``, and the number of slots."""
    from paritylab.engines import loop, make_pool

    queue = queue_of(work, slots or 2**16)
    pool = make_pool(queue, engine, threads=threads, slots=slots)
    training = loop.train(queue, pool)
    marks = itertools.chain([0], (pool.model_steps for _ in training))
    steps = (after - before for before, after in itertools.pairwise(marks))
    return lambda: next(steps), slots or getattr(pool, "slots", None) or pool._pool.slots


def torch_advance(work: Workload, engine: str, threads: int, slots: int | None, device: str) -> Any:
    """A PyTorch baseline as ``advance()``, and the number of models it trains at once."""
    import torch
    import torch_baselines

    torch.set_num_threads(threads)
    name = "cuda" if device == "gpu" else "cpu"
    if engine == "torch-loop":
        return torch_baselines.one_model(work, name), 1
    models = slots or work.models
    if not work.widths:
        import torch_transformer

        return torch_transformer.many_transformers(work, name, models), models
    return torch_baselines.many_models(work, name, models), models


def converged_rate(engine: str, threads: int, runs: int, eval_size: int) -> float:
    """Runs of W1 at learning rate 1 trained to convergence per second, everything compiled."""
    from paritylab.engines import loop, make_pool

    def train(max_steps: int) -> float:
        queue = queue_of(WORKLOADS["W1"], runs, lr=1.0, max_steps=max_steps, eval_size=eval_size)
        start = time.perf_counter()
        ended = sum(len(part.records) for part in loop.train(queue, make_pool(queue, engine, threads=threads)))
        return ended / (time.perf_counter() - start)

    train(max_steps=10)  # compiles all that the real one needs: the step limit is no part of a program
    return train(max_steps=100_000)


def results(request: dict[str, Any]) -> Iterator[dict[str, Any]]:
    engine, threads, device = request["engine"], request["threads"], request["device"]
    for name, asked in request["cases"]:
        work = EVERY[name]
        if engine.startswith("torch"):
            advance, slots = torch_advance(work, engine, threads, asked, device)
        else:
            advance, slots = engine_advance(work, engine, threads, asked)
        before = peak(threads) if device == "cpu" else None
        rate, used = steady_rate(advance, request["seconds"])
        of_peak = of_least = None
        if before is not None:
            flops = (before + (peak(threads) or before)) / 2
            of_peak = rate * work.flops / flops
            if engine == "lanes" and work.least is not None:
                of_least = rate * work.least / (flops / FLOPS_OF_AN_OPERATION)
        yield {"workload": name, "slots": slots, "rate": rate, "used": used, "of_peak": of_peak, "of_least": of_least}
    for eval_size in (EVAL_SIZE, DEFAULT_SIZE) if request["runs"] else ():
        rate = converged_rate(engine, threads, request["runs"], eval_size)
        nothing = dict.fromkeys(("used", "of_peak", "of_least"))
        yield {"workload": "converged", "slots": eval_size, "rate": rate, **nothing}


def main() -> None:
    request = json.loads(sys.argv[1])
    if request["cores"] and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, request["cores"])
    for result in results(request):
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
