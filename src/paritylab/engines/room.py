"""What training takes of memory, by and large: what cannot fit is refused before it is tried."""

from __future__ import annotations

import os

import jax

from paritylab.engines.jax_engine import default_slots
from paritylab.memory import Part, require_room
from paritylab.setups.networks import MLP
from paritylab.setups.setup import Setup

LANES = 16  # networks that a thread of the native engine trains at a time
MOST_IN_LANES = 3584  # weights of those; of larger ones it trains one


def require_room_for(program: Setup, engine: str, runs: int, threads: int | None = None) -> None:
    """Refuse a program that the memory of this machine does not hold; a GPU's own allocator says so by itself."""
    if engine == "lanes" or (engine == "jax" and jax.default_backend() == "cpu"):
        network, n, batch = type(program.learner.network).__name__, program.problem.n, program.learner.batch
        require_room(f"training {network} at n = {n}, batch {batch}", parts(program, engine, runs, threads))


def parts(program: Setup, engine: str, runs: int, threads: int | None = None) -> dict[str, Part]:
    """What the slots hold: bytes for each weight, for each example of a batch and for each of a finite sample.

    The factors are those that were seen at the peaks of such programs: five numbers for each weight (at the start, now,
    its gradient and what these pass through), three for what a unit makes of an example. On ``lanes`` a batch goes
    through in blocks. A sample that is shuffled needs its order beside it: a key of 8 bytes and as much to sort it by,
    on ``jax`` for two passes at a time.
    """
    problem, learner = program.problem, program.learner
    weights, slots = weights_of(program), slots_of(program, engine, runs, threads)
    example = 4 * (problem.words + 1)  # packed inputs and a label
    shuffled = 0 if problem.replacement else 16
    if engine == "lanes":
        sizes = {"weights": Part(weights, 4 * 5 * slots)}
        sample = slots * (example + shuffled)
    else:
        wide = weights > learner.batch  # which of the two is to blame for what units make of examples
        units, examples = (0, learner.batch) if wide else (weights // problem.n, 0)
        sizes = {
            "weights": Part(weights, 4 * slots * (5 + 3 * examples / problem.n)),
            "examples of a batch": Part(learner.batch, 4 * slots * (problem.n + 3 * units)),
        }
        sample = slots * (2 * example + 2 * shuffled)
    return sizes | ({"examples of the sample": Part(problem.sample, sample)} if problem.sample else {})


def weights_of(program: Setup) -> int:
    """The numbers of one network."""
    return sum(leaf.size for leaf in jax.tree.leaves(jax.eval_shape(program.params, jax.random.key(0))))


def slots_of(program: Setup, engine: str, runs: int, threads: int | None) -> int:
    """How many networks are held at a time, at least."""
    if engine == "jax":
        return default_slots(program, runs)
    deep = isinstance(program.learner.network, MLP) and len(program.learner.network.widths) > 1
    lanes = 1 if deep or weights_of(program) > MOST_IN_LANES else LANES
    return min(runs, lanes * (threads or os.cpu_count() or 1))
