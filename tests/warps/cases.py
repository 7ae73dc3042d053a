"""What the kernels of the engine ``warps`` are tried on, and how: the same for the emulator and a GPU.

``python cases.py [name ...]`` tries cases (all unless said) on the GPU without pytest, say under compute-sanitizer.
"""

from __future__ import annotations

import itertools
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import numpy as np

import paritylab as pl
from paritylab.engines import Job, loop
from paritylab.engines.configuration import Configuration
from paritylab.engines.starts import initial_params
from paritylab.engines.warps import WarpsPool, device
from paritylab.engines.warps.plan import H200, Chip, Plan, plan
from paritylab.engines.work import Outcomes, Queue
from paritylab.rng import run_keys
from paritylab.setups.problems import Stage
from paritylab.storage.records import Records

sys.path.insert(0, str(Path(__file__).parents[1]))
import oracle
from native_problems import PROBLEMS, TURNS

SEED, RUN = 3, 11
POINTS = (1, 2, 3, 7, 33)  # updates after which params are compared
TOLERANCE = 1e-4  # relative to the largest param, in float32

NEVER = pl.Protocol(eval_every=2, eval_size=40, consecutive=10**6)  # is a run solved

Case = tuple[pl.Setup, dict[str, Any]]  # and the plan's tuning


def case(
    network: Any, n: int, batch: int, loss: str = "hinge", flips: float = 0.0, by: Any = pl.SGD,
    data: dict[str, Any] | None = None, **numbers: Any,
) -> pl.Setup:
    learner = pl.Learner(network, loss=loss, optimiser=by(**{"lr": 0.05, **numbers}), batch=batch)
    return pl.Setup(pl.Parity(n, min(n, 2), noise=flips, **data or {}), learner)


EVERYTHING = {"flips": 0.3, "schedule": "steps:2,0.5,20,2", "rates": (2, 0.5), "weight_decay": 0.1, "noise": 0.1}
FROZEN = {"schedule": "cosine:40", "rates": (1, 0), "weight_decay": 0.02, "decay_form": "plain"}
OPTIMISED: dict[str, Case] = {
    "lane: clipped, everything": (case(pl.MLP(5, "gelu"), 9, 5, "square", clip=0.3, **EVERYTHING),
                                  {"kernel": "threads"}),
    "lane: adam, two passes": (case(pl.MLP(5, "gelu"), 9, 13, "logistic", by=pl.Adam, lr=0.01), {"kernel": "threads"}),
    "polynet, momentum": (case(pl.PolyNet(2), 33, 6, momentum=0.9, lr=0.01), {}),
    "polynet, adam, everything": (case(pl.PolyNet(2), 9, 6, by=pl.Adam, clip=0.5,
                                       **{**EVERYTHING, "lr": 0.003, "rates": (2,)}), {}),
    "warp: momentum": (case(pl.MLP(10), 31, 32, momentum=0.9), {}),
    "warp: nesterov, batch 100": (case(pl.MLP(10, "relu6"), 20, 100, "square", momentum=0.8, nesterov=True), {}),
    "warp: adam, batch 5": (case(pl.MLP(10, "gelu"), 33, 5, "logistic", by=pl.Adam, lr=0.01), {}),
    "warp: adamw, batch 40": (case(pl.MLP(17, "gelu"), 30, 40, by=pl.AdamW, lr=0.01, weight_decay=0.1), {}),
    "warp: adam without eps": (case(pl.MLP(5, "gelu"), 9, 16, "square", by=pl.Adam, lr=0.01, eps=0.0), {}),
    "warp: rmsprop": (case(pl.MLP(10, "gelu"), 20, 32, "logistic", by=pl.RMSProp, lr=0.003), {}),
    "warp: rmsprop with momentum": (case(pl.MLP(5, "gelu"), 9, 20, by=pl.RMSProp, lr=0.001, momentum=0.9), {}),
    "warp: sign": (case(pl.MLP(5, "gelu"), 9, 17, "logistic", by=pl.SignSGD, lr=0.001), {}),
    "warp: lion": (case(pl.MLP(5, "gelu"), 9, 17, "logistic", by=pl.Lion, lr=0.001, weight_decay=0.1), {}),
    "warp: clipped, everything": (case(pl.MLP(10, "gelu"), 32, 20, "square", clip=0.3, **EVERYTHING), {}),
    "warp: clipped momentum, a frozen layer": (case(pl.MLP(10), 9, 16, clip=0.05, momentum=0.9, **FROZEN), {}),
    "warp: momentum, coupled decay, noise": (case(pl.MLP(10), 30, 40, momentum=0.5, **EVERYTHING), {}),
    "neuron, adam": (case(pl.Neuron("sinusoid:3"), 31, 32, "logistic", by=pl.Adam, lr=0.003), {}),
    "team: adam, width 100": (case(pl.MLP(100, "gelu"), 30, 32, "logistic", by=pl.Adam, lr=0.003, eps=1e-4), {}),
    "team: two, clipped adam": (case(pl.MLP(20, "gelu"), 20, 32, "square", by=pl.Adam, clip=0.2, noise=0.1,
                                     lr=0.003), {"tiles": 1}),
}
REPLACED = {"sample": 50, "replacement": True}
FINITE: dict[str, Case] = {
    "lane: sample with replacement": (case(pl.MLP(5), 33, 6, flips=0.3, data=REPLACED), {}),
    "polynet, sample in passes": (case(pl.PolyNet(2), 9, 6, flips=0.3, data={"sample": 7}), {}),
    "polynet, short last batches": (case(pl.PolyNet(2), 9, 6, data={"sample": 40, "short_last": True}), {}),
    "warp: sample with replacement": (case(pl.MLP(10), 20, 40, flips=0.3, data=REPLACED), {}),
    "warp: sample in passes": (case(pl.MLP(10), 31, 32, flips=0.3, data={"sample": 1000}), {}),
    "warp: sample in passes, batch 5": (case(pl.MLP(5), 9, 5, data={"sample": 12}), {}),
    "warp: sample of a batch": (case(pl.MLP(5), 9, 40, data={"sample": 40}), {}),
    "warp: sample of one": (case(pl.MLP(5), 9, 1, data={"sample": 1}), {}),
    "warp: short last batches": (case(pl.MLP(5, "gelu"), 9, 16, "square", momentum=0.5,
                                      data={"sample": 50, "short_last": True}), {}),
    "warp: one short batch": (case(pl.MLP(5), 9, 40, data={"sample": 20, "short_last": True}), {}),
    "team: sample in passes": (case(pl.MLP(20), 9, 32, data={"sample": 70}), {"tiles": 1}),
}
LOSSES = {"sum": "square", "product, scaled": "hinge:0.3", "sign of a sum": "correlation", "polynomial": "l1",
          "staircase": "logistic"}
WITHIN = {"sum": 0.5, "product, scaled": 0.3, "sample of a law": 0.7}


def posed(name: str, kind: str) -> Case:
    """A problem of some kind, by a kernel."""
    network, batch, kernel = (pl.MLP(5, "gelu"), 11, "threads") if kind == "lane" else (pl.MLP(10), 20, "tiles")
    learner = pl.Learner(network, loss=LOSSES.get(name, "hinge"), optimiser=pl.SGD(0.05), batch=batch)
    return pl.Setup(PROBLEMS[name], learner, pl.Protocol(within=WITHIN.get(name))), {"kernel": kernel}


KNOWN = [name for name in PROBLEMS if "random" not in name]  # to the oracle
STAGES = (Stage(8, "biased:0.9", slide=True), Stage(13, batch=34, noise=0.2))
POSED: dict[str, Case] = {
    **{f"{kind}: {name}": posed(name, kind) for name, kind in zip(KNOWN, itertools.cycle(["lane", "warp"]))},
    "warp: sum": posed("sum", "warp"),
    "warp: staged, batch 70": (
        pl.Setup(replace(PROBLEMS["staged"], stages=STAGES), pl.Learner(pl.MLP(10), batch=70)), {}),
    "team: many tasks": (pl.Setup(PROBLEMS["many tasks"], pl.Learner(pl.MLP(20), batch=16)), {"tiles": 1}),
    "polynet: pairs": (pl.Setup(PROBLEMS["pairs"], pl.Learner(pl.PolyNet(2), optimiser=pl.SGD(0.05), batch=6)), {}),
}
DEEP: dict[str, Case] = {
    "deep: 30-32-32": (case(pl.MLP((32, 32)), 30, 32), {}),
    "deep: a team of one": (case(pl.MLP((20, 9), "gelu"), 33, 20, "logistic"), {"team": 1, "warps": 2}),
    "deep: four layers, everything": (case(pl.MLP((17, 40, 5, 16), "zigzag:2"), 9, 32, "square",
                                           **{**EVERYTHING, "rates": (2, 0.5, 1, 3, 0.5)}), {}),
    "deep: no biases, batch 70": (case(pl.MLP((16, 33, 8), bias=False), 64, 70, "square",
                                       **{**EVERYTHING, "rates": (2, 0.5, 1, 3)}), {}),
    "deep: a frozen layer": (case(pl.MLP((10, 10), "clipped-relu"), 1, 5, "l1", **{**FROZEN, "rates": (1, 0, 2)}), {}),
    "deep: adam": (case(pl.MLP((12, 20), "gelu"), 31, 32, "logistic", by=pl.Adam, lr=0.003, eps=1e-4), {}),
    "deep: clipped, everything": (case(pl.MLP((10, 12, 7), "gelu"), 20, 40, "square", clip=0.3,
                                       **{**EVERYTHING, "rates": (2, 0.5, 1, 3)}), {}),
    "deep: rmsprop without eps": (case(pl.MLP((5, 7), "gelu"), 9, 16, "square", by=pl.RMSProp, lr=0.001, eps=0.0,
                                       momentum=0.9), {}),
    "deep: sample in passes": (case(pl.MLP((10, 10)), 20, 32, momentum=0.5, flips=0.3, data={"sample": 70}), {}),
    "deep: two tiles, a team of one": (case(pl.MLP((32, 20)), 30, 32, "logistic"), {"tiles": 2, "team": 1}),
    "deep: two tiles": (case(pl.MLP((33, 30), "gelu"), 30, 40, momentum=0.5), {"tiles": 2}),
    "deep: width 100": (case(pl.MLP((100, 60)), 30, 32), {}),
}
LARGE: dict[str, Case] = {
    "large: 50-80-96-20, batch 64": (case(pl.MLP((80, 96, 20)), 50, 64), {}),
    "large: four layers, everything": (case(pl.MLP((17, 40, 5, 16), "gelu"), 9, 32, "square",
                                            **{**EVERYTHING, "rates": (2, 0.5, 1, 3, 0.5)}), {"tiles": 1, "warps": 2}),
    "large: no biases, batch 70": (case(pl.MLP((16, 33, 8), bias=False), 64, 70, "square",
                                        **{**EVERYTHING, "rates": (2, 0.5, 1, 3)}), {"tiles": 1, "warps": 4}),
    "large: a frozen layer": (case(pl.MLP((10, 10), "clipped-relu"), 1, 5, "l1", **{**FROZEN, "rates": (1, 0, 2)}),
                              {"warps": 2}),
    "large: adam": (case(pl.MLP((12, 40), "gelu"), 31, 40, "logistic", by=pl.Adam, lr=0.003, eps=1e-4), {"warps": 4}),
    "large: clipped, everything": (case(pl.MLP((10, 12, 7), "gelu"), 20, 40, "square", clip=0.3,
                                        **{**EVERYTHING, "rates": (2, 0.5, 1, 3)}), {"tiles": 1, "warps": 4}),
    "large: rmsprop without eps": (case(pl.MLP((5, 7), "gelu"), 9, 16, "square", by=pl.RMSProp, lr=0.001, eps=0.0,
                                        momentum=0.9), {"warps": 1}),
    "large: sample in passes": (case(pl.MLP((10, 10)), 20, 32, momentum=0.5, flips=0.3, data={"sample": 70}),
                                {"tiles": 1, "warps": 2}),
    "large: batch 130": (case(pl.MLP((40, 20)), 33, 130, "logistic"), {"warps": 4}),
    "large: 32 at once, batch 64": (case(pl.MLP((40, 20)), 33, 64, "logistic", momentum=0.5), {"samples": 32}),
}
LARGE = {name: (setup, {"kernel": "large", **tuning}) for name, (setup, tuning) in LARGE.items()}


def bits(width: Any, n: int, batch: int, activation: str = "relu", **more: Any) -> pl.Setup:
    """A network that reads bits."""
    shape = {name: more.pop(name) for name in ("bias", "output_bias") if name in more}
    return case(pl.MLP(width, activation, inputs="bits", **shape), n, batch, **more)


BITS: dict[str, Case] = {
    "lane: bits": (bits(5, 33, 6, flips=0.2), {"kernel": "threads"}),
    "warp: bits": (bits(10, 31, 32), {}),
    "warp: bits, the bias in a word of its own": (bits(10, 32, 32, loss="square"), {}),
    "warp: bits, no biases, batch 40": (bits(10, 33, 40, bias=False, noise=0.1), {}),
    "warp: bits, gelu, adam": (bits(17, 64, 20, "gelu", loss="logistic", by=pl.Adam, lr=0.01), {}),
    "warp: bits, zigzag": (bits(10, 20, 16, "zigzag:2", loss="square"), {}),
    "warp: bits, a sample, clipped logistic": (
        bits(10, 20, 32, loss="clipped-logistic:0.45", data={"sample": 50}, weight_decay=0.1, lr=0.2), {}),
    "team: bits": (bits(40, 20, 32, momentum=0.5), {"tiles": 1}),
    "deep: bits": (bits((20, 9), 33, 20, "gelu", loss="logistic"), {}),
    "large: bits": (bits((20, 9), 33, 40, loss="square"), {"kernel": "large", "warps": 2}),
    "lane: clipped logistic": (case(pl.MLP(5, "gelu"), 9, 6, "clipped-logistic:0.48", lr=0.2), {"kernel": "threads"}),
    "warp: tasks in turn, bits": (
        pl.Setup(pl.Problem(40, TURNS, "biased:0.4", noise=0.1), pl.Learner(pl.MLP(10, inputs="bits"), batch=20)), {}),
}
CASES: dict[str, Case] = {
    "lane: one input": (case(pl.MLP(1), 1, 1), {}),
    "lane: 31 inputs, batch 1": (case(pl.MLP(10), 31, 1), {}),
    "lane: 33 inputs, batch 8": (case(pl.MLP(10, "gelu"), 33, 8, "logistic:2"), {}),
    "lane: no biases, everything": (case(pl.MLP(7, bias=False), 32, 5, **EVERYTHING), {}),
    "lane: everything": (case(pl.MLP(7), 9, 5, **EVERYTHING), {}),
    "lane: a frozen layer": (case(pl.MLP(5), 9, 3, **FROZEN), {}),
    "lane: batch in parts": (case(pl.MLP(16, "zigzag:3"), 20, 13, "square"), {"samples": 4}),
    "neuron relu6": (case(pl.Neuron("relu6"), 7, 6), {}),
    "neuron power": (case(pl.Neuron("power:3"), 7, 6, "square", lr=0.01), {}),
    "neuron oscillating": (case(pl.Neuron("oscillating:3"), 40, 6, "l1", lr=0.01), {}),
    "neuron infinite-zigzag": (case(pl.Neuron("infinite-zigzag:2"), 100, 32, "correlation"), {}),
    "neuron sinusoid": (case(pl.Neuron("sinusoid:3,2"), 256, 6, "logistic", lr=1e-3), {}),
    "neuron, batch 32": (case(pl.Neuron("sinusoid:3"), 31, 32, "logistic", lr=0.01), {}),
    "neuron, batch 40, everything": (case(pl.Neuron("zigzag:2"), 33, 40, **{**EVERYTHING, "rates": (2,)}), {}),
    "neuron, one lane, batch 32": (case(pl.Neuron("infinite-zigzag:2"), 100, 32, "square"), {"kernel": "threads"}),
    "polynet": (case(pl.PolyNet(3), 64, 33, "hinge:0.3"), {}),
    "polynet, gradient noise": (case(pl.PolyNet(2), 9, 6, noise=0.1), {}),
    "warp: one input": (case(pl.MLP(1), 1, 16), {}),
    "warp: batch 1": (case(pl.MLP(5, "clipped-relu"), 7, 1, "l1"), {"kernel": "tiles"}),
    "warp: 31 inputs, batch 32": (case(pl.MLP(10), 31, 32), {}),
    "warp: 32 inputs, batch 33": (case(pl.MLP(16, "relu6"), 32, 33, "correlation"), {}),
    "warp: two tiles, 33 inputs, batch 100": (case(pl.MLP(17, "zigzag:3"), 33, 100, "square"), {}),
    "warp: 8 inputs": (case(pl.MLP(10), 8, 16, "logistic"), {}),
    "warp: 100 inputs": (case(pl.MLP(10, "sinusoid:2"), 100, 32, "square", lr=0.01), {}),
    "warp: power": (case(pl.MLP(10, "power:2"), 12, 32, "l1", lr=0.01), {}),
    "warp: oscillating, batch 8": (case(pl.MLP(10, "oscillating:3"), 12, 8, lr=0.01), {"kernel": "tiles"}),
    "warp: no biases, everything": (case(pl.MLP(10, bias=False), 32, 20, **EVERYTHING), {}),
    "warp: everything": (case(pl.MLP(10), 20, 20, **EVERYTHING), {}),
    **OPTIMISED,
    **FINITE,
    **POSED,
    **DEEP,
    **LARGE,
    **BITS,
    "team: three, 64 inputs": (case(pl.MLP(40, "infinite-zigzag:2"), 64, 32, "hinge:0.3"), {"tiles": 1}),
    "team: two, width 100": (case(pl.MLP(100), 30, 32), {}),
    "team: more warps than have room": (case(pl.MLP(520), 5, 16), {}),
    "team: several products": (case(pl.MLP(40, "gelu"), 20, 40, "logistic"), {"tiles": 2}),
    "team: a frozen layer": (case(pl.MLP(20), 9, 16, **FROZEN), {"tiles": 1}),
}


def train(jobs: Sequence[Job], where: Any, **options: Any) -> Outcomes:
    """The outcomes of all runs, in order, through a pool on this device."""
    queue = Queue(jobs)
    pool = WarpsPool(jobs[0].setup.program, len(queue), keep_params=True, device=where, **options)
    parts = [part for part in loop.train(queue, pool) if len(part.records)]
    records = Records.concatenate([part.records for part in parts])
    order = records.run.argsort()
    params = jax.tree.map(lambda *leaves: np.concatenate(leaves)[order], *(part.params for part in parts))
    assert pool.model_steps == records.steps.sum()
    return Outcomes(queue.named(records.take(order)), params)


def start(setup: pl.Setup) -> Any:
    params = initial_params(setup.program, run_keys(np.array([SEED]), np.array([RUN])))
    return jax.tree.map(lambda leaf: np.asarray(leaf[0]), params)


def unsolved(setup: pl.Setup) -> pl.Setup:
    """The same by a protocol that never ends before its time."""
    return replace(setup, protocol=replace(NEVER, within=setup.protocol.within))


def assert_follows_oracle(name: str, where: Any) -> None:
    """Runs of several lengths that share one seed and number have the params, accuracy and loss of the oracle."""
    setup, tuning = CASES[name]
    setup = unsolved(setup)
    lengths = [replace(setup, protocol=replace(setup.protocol, max_steps=t)) for t in POINTS]
    outcomes = train([Job(each, SEED, np.array([RUN])) for each in lengths], where, **tuning)
    assert outcomes.records.steps.tolist() == list(POINTS)
    expected = oracle.train(setup, SEED, RUN, start(setup), max(POINTS))
    for i, t in enumerate(POINTS):
        got = jax.tree.map(lambda leaf, i=i: leaf[i], outcomes.params)
        scale = max(np.abs(leaf).max() for leaf in oracle.leaves(expected[t - 1]))
        for g, w in zip(oracle.leaves(got), oracle.leaves(expected[t - 1]), strict=True):
            np.testing.assert_allclose(g, w, rtol=0, atol=TOLERANCE * scale, err_msg=f"after {t} updates")
        accuracy, loss = oracle.evaluate(setup, SEED, RUN, got, t)
        assert abs(outcomes.records.accuracy[i] - accuracy) < 1e-6
        assert abs(outcomes.records.loss[i] - loss) < 1e-5 * max(1, abs(loss))


def plan_of(setup: pl.Setup, tuning: dict[str, Any], chip: Chip = H200) -> Plan:
    """The plan that :func:`assert_follows_oracle` will need."""
    program = unsolved(setup).program
    return plan(program, Configuration.of(program), chip, **tuning)


def main() -> None:
    gpu = device.current()
    assert gpu is not None, "no GPU, or no CuPy"
    names, failed = sys.argv[1:] or list(CASES), 0
    with ThreadPoolExecutor() as threads:  # compiling takes seconds, most of the time
        list(threads.map(lambda name: gpu.kernels(plan_of(*CASES[name], gpu.chip)), names))
    for name in names:
        try:
            assert_follows_oracle(name, gpu)
            print("ok    ", name, flush=True)
        except AssertionError as error:
            failed += 1
            print("FAILED", name, "".join(str(error).splitlines(keepends=True)[:8]), flush=True)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
