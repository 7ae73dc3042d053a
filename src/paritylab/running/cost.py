"""What training costs, in floating-point operations."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from paritylab.engines import lanes
from paritylab.engines.work import Job
from paritylab.later import jax
from paritylab.progress import duration
from paritylab.setups.networks import MLP, Neuron, PolyNet
from paritylab.setups.setup import Setup

RATE = 3e10
"""FLOP/s of two cores over a whole trial, checks and small networks included: for estimates only."""
LOOKED_UP, LARGE_BATCH, LANES = 3e11, 256, 16
"""The same where the native engine looks sums over inputs up in tables: from this batch on, few units padding lanes."""
COUNTED, LEAST_WORK = ("hinge", "correlation", "l1"), 4800
"""Losses whose gradients it counts, at the same rate, from this product of inputs, units and batch on."""
LONG_SECONDS = 60.0


def step_flops(setup: Setup) -> float:
    """FLOPs of one update, checks left out: products with weights forward, for the weights' gradient, and back.

    The gradient of the inputs is not needed, so a first layer counts twice, not three times. Networks other than MLPs,
    neurons and PolyNets are taken as 6 FLOPs for each weight and example.

    >>> from paritylab.setups.problems import Parity
    >>> step_flops(Setup(Parity(n=30, k=3)))  # 10 units, batch 32
    40320.0
    """
    network, n, batch = setup.learner.network, setup.problem.n, setup.learner.batch
    if isinstance(network, MLP):
        sizes = (n, *network.widths, network.outputs)
        layers = [a * b for a, b in itertools.pairwise(sizes)]
        return float(batch * (6 * sum(layers) - 2 * layers[0]))
    if isinstance(network, (Neuron, PolyNet)):
        return float(batch * 4 * n * (network.degree if isinstance(network, PolyNet) else 1))
    weights = sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(setup.params, jax.random.key(0))))
    return float(6 * weights * batch)


def step_seconds(setup: Setup) -> float:
    """About what one update takes on two cores, checks included: rather too much than too little.

    >>> from paritylab import Learner, MLP, Parity
    >>> [step_seconds(Setup(Parity(n=30, k=3), Learner(MLP(32), batch=batch))) for batch in (1, 100)]
    [1.344e-07, 1.344e-06]
    """
    network = setup.learner.network
    shallow = isinstance(network, MLP) and len(network.widths) == 1 and network.activation.spec == "relu"
    padded = shallow and 4 * network.widths[0] < 3 * (-(-network.widths[0] // LANES) * LANES)
    batch = setup.learner.batch
    looked_up = not padded and batch >= LARGE_BATCH
    work = setup.problem.n * network.widths[0] * batch if shallow else 0
    counted = setup.learner.loss.spec.partition(":")[0] in COUNTED and work >= LEAST_WORK
    fast = shallow and (looked_up or counted) and lanes.refusal(setup) is None
    return step_flops(setup) / (LOOKED_UP if fast else RATE)


def estimate(jobs: Sequence[Job]) -> str:
    """What training may take, if it may take long."""
    updates = [len(job.runs) * job.setup.protocol.max_steps for job in jobs]
    flops, seconds = (sum(count * of(job.setup) for count, job in zip(updates, jobs, strict=True))
                      for of in (step_flops, step_seconds))
    if seconds < LONG_SECONDS:
        return ""
    return (f"at most {sum(updates):.1e} updates, {flops:.1e} FLOP: {duration(seconds)} on two cores if no run is"
            " solved before its step limit; interrupted, the same command goes on")
