"""What training takes of memory, by and large: what cannot fit is refused before it is tried."""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from paritylab.engines import sources
from paritylab.later import jax
from paritylab.memory import Part, require_room
from paritylab.setups.networks import MLP
from paritylab.setups.setup import Setup

if TYPE_CHECKING:
    from paritylab.engines.interface import Engine

LANES = 16  # networks that a thread of the native engine trains at a time
MOST_IN_LANES = 3584  # weights of those; of larger ones it trains one


def lanes_parts(program: Setup, runs: int, threads: int | None) -> dict[str, Part]:
    """What the slots of ``lanes`` hold: bytes for each weight and for each example of a finite sample.

    The factors here and for ``jax`` are those that were seen at the peaks of such programs: five numbers for each
    weight (at the start, now, its gradient and what these pass through). A batch goes through in blocks. A sample that
    is shuffled needs its order beside it: 4 bytes an example, and in each thread 20 to sort it by.
    """
    weights = weights_of(program)
    deep = isinstance(program.learner.network, MLP) and len(program.learner.network.widths) > 1
    lanes = 1 if deep or weights > MOST_IN_LANES else LANES
    slots = min(runs, lanes * (threads or os.cpu_count() or 1))
    kept = {"weights": Part(weights, 4 * 5 * slots)} | _sample(program, slots, 4 + 20 / lanes)
    words = sources.numbers(program.problem)
    return kept | ({"numbers of the problem": Part(words, 4 * 3)} if words else {})  # in NumPy, and two copies


def jax_parts(program: Setup, slots: int) -> dict[str, Part]:
    """What the slots of ``jax`` hold: also three numbers for what a unit makes of an example, and two passes at a time
    of a finite sample."""
    problem, learner, weights = program.problem, program.learner, weights_of(program)
    wide = weights > learner.batch  # which of the two is to blame for what units make of examples
    units, examples = (0, learner.batch) if wide else (weights // problem.n, 0)
    return {
        "weights": Part(weights, 4 * slots * (5 + 3 * examples / problem.n)),
        "examples of a batch": Part(learner.batch, 4 * slots * (problem.n + 3 * units)),
    } | _sample(program, 2 * slots, 16)


def _sample(program: Setup, slots: int, order: float) -> dict[str, Part]:
    """With so many bytes for the place of an example in a shuffled sample."""
    problem = program.problem
    if not problem.sample:
        return {}
    example = 4 * (problem.words + 1)  # packed inputs and a label
    return {"examples of the sample": Part(problem.sample, slots * (example + (0 if problem.replacement else order)))}


def require_room_for(engine: Engine, program: Setup, runs: int, threads: int | None = None) -> None:
    """Refuse a program that the memory of this machine does not hold; a GPU's own allocator says so by itself."""
    network, n, batch = type(program.learner.network).__name__, program.problem.n, program.learner.batch
    if parts := engine.parts(program, runs, threads):
        require_room(f"training {network} at n = {n}, batch {batch}", parts)


class _Sizes:
    """In place of an init: how many numbers each layer has."""

    raised = 0.0

    def layers(self, key: None, sizes: Sequence[int]) -> list[dict[str, int]]:
        return [{"w": fan_in * fan_out, "b": fan_out} for fan_in, fan_out in pairwise(sizes)]


def weights_of(program: Setup) -> int:
    """The numbers of one network."""
    if type(program.learner.network) is MLP:
        sizes: Any = _Sizes()
        layers = program.learner.network.init(None, program.problem.n, sizes)
        return sum(sum(layer.values()) for layer in layers)
    return sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(program.params, jax.random.key(0))))
