"""Outputs of networks at all 2^n inputs, or at some: one network at a time, as many at once as there are cores.

All inputs come in the order of :func:`paritylab.measures.fourier.cube`. Of a perceptron with one hidden layer they
are found without a product of matrices: the sum w.x of a unit is one of 2^(n/2) sums over the first inputs plus one of
2^(n/2) over the others, so that a unit costs three operations (add, activate, add up) for each input.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from threadpoolctl import threadpool_limits

from paritylab import rng
from paritylab.aliases import Floats
from paritylab.engines.jax_engine import accurate_products
from paritylab.errors import require
from paritylab.measures.inside.subjects import Subjects
from paritylab.progress import Bar
from paritylab.setups.networks import MLP
from paritylab.setups.networks.activations import activation
from paritylab.setups.problems import Problem, bits
from paritylab.setups.problems.base import AnyProblem
from paritylab.setups.setup import Setup

T = TypeVar("T")
MOST_EXACT = 20
"""The most inputs of a network that is looked at everywhere."""
LOW_BITS, OUTER, UNITS = 8, 16, 25
"""A block has all values of so many inputs times so many of the others; one pass over it adds up so many units."""
ROWS = 2**13
"""Inputs of a block where a network is applied as it is."""


@dataclass(frozen=True, eq=False)
class Places:
    """Where networks are looked at: all inputs (``rows`` None), or rows of signs."""

    n: int
    rows: Floats | None = None

    @property
    def exact(self) -> bool:
        return self.rows is None

    @property
    def count(self) -> int:
        return 2**self.n if self.rows is None else len(self.rows)

    @property
    def samples(self) -> int | None:
        return None if self.rows is None else len(self.rows)


def uniform(n: int, samples: int | None, default: int, seed: int, most: int = MOST_EXACT) -> Places:
    """All inputs to n = ``most``, unless a number of samples is said; otherwise so many uniform ones."""
    require(samples is None or samples >= 2, f"a sample has at least 2 inputs, not {samples}")
    if samples is None and n <= most:
        return Places(n)
    generator = np.random.default_rng(seed)
    return Places(n, generator.integers(0, 2, (samples or default, n), np.int8).astype(np.float32) * 2 - 1)


def each(subjects: Subjects, places: Places, look: Callable[[int, Floats], T], progress: bool | None = None) -> list[T]:
    """``look(i, outputs)`` of every network i, where outputs are its values at these places."""
    return over(range(len(subjects)), lambda i: look(i, outputs(subjects, i, places)), progress)


def over(which: Iterable[int], look: Callable[[int], T], progress: bool | None = None) -> list[T]:
    """What a function returns for each of these numbers, on all cores; in their order.

    Each thread multiplies its matrices by itself: the threads of BLAS would wait for one another most of the time.
    """
    numbers = list(which)
    found: list[T] = []
    with (threadpool_limits(1, "blas"), ThreadPoolExecutor(cores()) as pool,
          Bar("networks", len(numbers), progress) as bar):
        for made in pool.map(look, numbers):
            found.append(made)
            bar.show(len(found))
    return found


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def outputs(subjects: Subjects, i: int, places: Places) -> Floats:
    """The values of network number i."""
    made, params = _made(subjects.setup.program), subjects.one(i)
    with accurate_products():
        if places.rows is None and made.everywhere is not None:
            found = np.asarray(made.everywhere(params))
        else:
            parts = [np.asarray(made.apply(params, block)) for block in blocks(places)]
            found = np.concatenate(parts)[: places.count]
    require(found.ndim == 1, "measures are of networks with one output")
    return found


class Judged(NamedTuple):
    """Where networks are judged, and the target of each network there; equal ones are one array."""

    places: Places
    labels: list[Floats]


def judged(subjects: Subjects, samples: int | None, default: int, seed: int, most: int = MOST_EXACT) -> Judged:
    """All inputs where they are uniform, to n = ``most``; otherwise inputs by the problem's own law."""
    problem, masks = subjects.setup.problem, subjects.masks
    require(problem.packed, "networks are judged on signs here; the inputs of this problem are real numbers")
    if _plain(problem):
        places = uniform(subjects.n, samples, default, seed, most)
        drawn = np.arange(2**subjects.n, dtype=np.uint32)[:, None] if places.rows is None else bits.pack(places.rows)
    else:
        require(samples is None or samples >= 2, f"a sample has at least 2 inputs, not {samples}")
        require(bool((masks == masks[0]).all()), "inputs that depend on the support need one support for all networks")
        drawn = problem.draw_block(rng.stream(rng.run_keys(np.array([seed]), np.zeros(1, int))[0], rng.EVALUATION), 0,
                                   samples or default)
        places = Places(subjects.n, np.asarray(problem.signs(drawn, masks[0])))
    known: dict[bytes, Floats] = {}
    for mask in masks:
        if mask.tobytes() not in known:
            known[mask.tobytes()] = np.asarray(problem.labels(drawn, mask), np.float32)
    require(all(labels.ndim == 1 for labels in known.values()), "measures are of networks with one output")
    return Judged(places, [known[mask.tobytes()] for mask in masks])


def _plain(problem: AnyProblem) -> bool:
    """Whether inputs are uniform signs."""
    return problem.simple if isinstance(problem, Problem) else problem.numbered == problem.words


def blocks(places: Places) -> Iterable[Floats]:
    """Places in blocks of one size: one shape is compiled."""
    size = min(ROWS, places.count)
    for first in range(0, places.count, size):
        if places.rows is not None:
            yield np.resize(places.rows[first : first + size], (size, places.n))
        else:
            yield np.asarray(signs(np.arange(first, first + size), places.n), np.float32)


def signs(numbers: np.ndarray, n: int) -> Floats:
    """Inputs by their places in binary counting."""
    return 1.0 - 2.0 * ((numbers[:, None] >> np.arange(n)) & 1)


# --- compiled -----------------------------------------------------------------------------------------------------


class Made(NamedTuple):
    apply: Any
    """From params and rows to outputs."""
    everywhere: Any
    """From params to the outputs at all inputs; None where ``apply`` does it."""


@functools.lru_cache(maxsize=32)
def _made(program: Setup) -> Made:
    network, n = program.learner.network, program.problem.n
    shallow = type(network) is MLP and len(network.widths) == 1 and network.outputs == 1
    everywhere = jax.jit(_everywhere(network, n)) if shallow else None
    return Made(jax.jit(lambda params, x: network.apply(params, x)), everywhere)


def split(network: MLP, layer: Any, n: int) -> tuple[Any, Any]:
    """The sums of all units over the first inputs, (units, 2^low), and over others with the bias, (2^rest, units)."""
    low = min(LOW_BITS, n)
    read = (np.asarray(network.read(signs(np.arange(2**size), size)), np.float32) for size in (low, n - low))
    first, rest = read
    outer = rest @ layer["w"][low:]
    return (first @ layer["w"][:low]).T, outer + layer["b"] if network.bias else outer


def _everywhere(network: MLP, n: int) -> Callable[[Any], Any]:
    """A perceptron with one hidden layer at all inputs."""
    act = activation(network.activation)

    def values(params: Any) -> Any:
        hidden, output = params
        width = len(output["w"])
        some = min(UNITS, width)
        empty = -width % some
        inner, outer = split(network, hidden, n)
        v = jnp.pad(output["w"][:, 0], (0, empty)).reshape(-1, some)
        inner = jnp.pad(inner, ((0, empty), (0, 0))).reshape(-1, some, 1, inner.shape[1])
        rows = min(OUTER, len(outer))
        outer = jnp.pad(outer, ((0, 0), (0, empty))).reshape(-1, rows, len(v), some).transpose(0, 2, 3, 1)[..., None]

        def block(sums: Any) -> Any:
            """The outputs at a block of inputs, given the sums of all units over the other ones."""

            def add(total: Any, part: Any) -> tuple[Any, None]:
                z, by, weights = part
                for unit in range(some):
                    total = total + weights[unit] * act(z[unit] + by[unit])
                return total, None

            return jax.lax.scan(add, jnp.zeros((rows, inner.shape[-1]), v.dtype), (inner, sums, v))[0]

        found = jax.lax.map(block, outer).reshape(-1)
        return found + output["b"][0] if network.output_bias else found

    return values
