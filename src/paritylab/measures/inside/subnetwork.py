"""The active subnetwork: the fewest hidden units that keep most of the accuracy.

Few units are found by taking away, one after the other, the unit that is missed least, and then by exchanges: two units
out, one in. That is an upper bound. Sets of fewer units are then gone through, small ones first, as far as the effort
goes: a set is out if it has more inputs wrong among some of them than are allowed among all. What is left is a lower
bound; where both agree, the number is proven.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from paritylab.aliases import Floats
from paritylab.errors import require, unknown
from paritylab.measures.inside import intervals
from paritylab.measures.inside.outputs import judged, over
from paritylab.measures.inside.subjects import Networks, subjects
from paritylab.measures.inside.tables import Sampled, table
from paritylab.measures.inside.units import ABLATIONS, ZERO, Units, require_units, units

SAMPLES = 2**15
LOOKED_AT = 2**10
"""Inputs by which units are compared; the accuracy of what is chosen is then found on all."""
AT_ONCE = 2**23


@dataclass(frozen=True, eq=False, repr=False)
class Subnetwork(Sampled):
    """For each network the units (..., width) that are left, how many they are (``size``), and a lower bound.

    No set of fewer than ``at_least`` units keeps the accuracy; where ``minimal``, size and at_least are equal. With
    these units alone the network has the accuracy ``accuracy``, with all of them ``whole``. ``carried`` (..., width) is
    the part of each unit in the correlation E y f of output and target, of which it is the sum but for the output's
    bias. Of a sample, size and bounds are about the inputs of one sample, and ``accuracy`` with the interval from
    ``low`` to ``high`` is that on another.
    """

    units: np.ndarray
    size: Any
    at_least: Any
    accuracy: Any
    low: Any
    high: Any
    whole: Any
    carried: Floats
    keep: float
    ablation: str

    @property
    def minimal(self) -> Any:
        return self.size == self.at_least

    def to_frame(self) -> Any:
        """A row for each network."""
        columns = {name: getattr(self, name) for name in
                   ("size", "at_least", "minimal", "accuracy", "low", "high", "whole")}
        return table(self.about, columns, np.shape(self.size))


def subnetwork(
    networks: Networks,
    keep: float = 0.99,
    *,
    ablation: str = ZERO,
    samples: int | None = None,
    effort: float = 1e9,
    level: float = intervals.LEVEL,
    seed: int = 0,
    progress: bool | None = None,
) -> Subnetwork:
    """The fewest units of a perceptron's last hidden layer that keep a share of its accuracy.

    Args:
        networks: a TrainedNetwork, TrainedNetworks, or a pair (setup, params) with any leading axes, of ``pl.MLP``.
        keep: the share of the whole network's accuracy to keep.
        ablation: what takes the place of a unit that is left out: ``zero``, or its ``mean`` over the inputs.
        samples: None for all inputs where they are uniform and n is at most 20, otherwise 2^15 by the problem's law;
            or how many.
        effort: of going through smaller sets, over all networks: so many times one unit is added at one input.
        level: of the interval of the accuracy, where it is sampled.
        seed: of all that is drawn.
        progress: whether to show a progress bar; where someone is watching unless said.

    >>> import paritylab as pl
    >>> setup = pl.Setup(pl.Parity(n=4, k=2), pl.Learner(pl.MLP(3)))
    >>> xor = [{"w": np.array([[1, -1, 0], [1, -1, 0], [0, 0, 1], [0, 0, 0]]), "b": np.array([-1, -1, 0])},
    ...        {"w": np.array([[2.0], [2.0], [0.1]]), "b": np.array([-1.0])}]
    >>> found = subnetwork((setup, xor))
    >>> found.units.tolist(), bool(found.minimal), found.carried.tolist()
    ([True, True, False], True, [0.5, 0.5, 0.0])
    """
    require(0 < keep <= 1, f"the share to keep must be above 0 and at most 1, not {keep:g}")
    require(effort >= 0, f"the effort must be at least 0, not {effort:g}")
    if ablation not in ABLATIONS:
        raise unknown("ablation", ablation, ABLATIONS)
    given = subjects(networks)
    require_units(given)
    here = judged(given, samples, SAMPLES, seed)
    there = here if here.places.exact else judged(given, samples, SAMPLES, (seed + 1) % 2**32)

    def look(i: int) -> tuple[Any, ...]:
        own = units(given, i, here, ablation)
        wrong = own.errors(np.ones(own.width, bool))
        count = here.places.count
        allowed = count - math.ceil(keep * (count - wrong) - 1e-9)
        left = _few(own, allowed, np.random.default_rng([seed, i]))
        at_least, left = _fewest(own, left, allowed, effort / len(given), np.random.default_rng([seed, i, 1]))
        if here is there:
            right = (count - own.errors(left)) / count
            return left, left.sum(), at_least, right, right, right, 1 - wrong / count, own.carried
        other = Units(given, i, there, own.means, own.carried)
        right = count - other.errors(left)
        low, high = intervals.of_shares(right, count, level, 1)
        whole = 1 - other.errors(np.ones(own.width, bool)) / count
        return left, left.sum(), at_least, right / count, low, high, whole, own.carried

    columns = zip(*over(range(len(given)), look, progress), strict=True)
    left, size, at_least, accuracy, low, high, whole, carried = (given.shaped(np.stack(each)) for each in columns)
    return Subnetwork(left, size, at_least, accuracy, low, high, whole, carried, keep, ablation,
                      samples=here.places.samples, level=level, about=given.about)


# --- few ----------------------------------------------------------------------------------------------------------


def _few(own: Units, allowed: int, generator: np.random.Generator) -> np.ndarray:
    """Few units that have at most the allowed number of inputs wrong."""
    count, width = own.judged.places.count, own.width
    which = np.arange(count) if count <= LOOKED_AT else np.sort(generator.choice(count, LOOKED_AT, replace=False))
    parts, base = own.added(which)
    order, wrong = (np.asarray(each) for each in _taken_away(parts, base))
    few = allowed * len(which) / count
    first = int(np.flatnonzero(wrong[::-1] <= few)[0]) if (wrong <= few).any() else width
    left = np.ones(width, bool)
    for size in range(first, width + 1):  # what some inputs say need not hold for all
        left = np.isin(np.arange(width), order[width - size :])
        if own.errors(left) <= allowed:
            break
    while left.any() and (fewer := _exchanged(parts, base, left)) is not None and own.errors(fewer) <= allowed:
        left = fewer
    return left


@jax.jit
def _taken_away(parts: Any, base: Any) -> tuple[Any, Any]:
    """The units in the order in which they are taken away, and how many inputs are wrong before, between and after.

    The unit is taken whose absence leaves the fewest inputs wrong; among equals, the one after which margins fall short
    of the first ones' mean size the least.
    """
    total = base + parts.sum(0)
    scale = jnp.abs(total).mean() + 1e-30

    def take(state: Any, _: Any) -> tuple[Any, Any]:
        total, there = state
        without = total - parts
        short = jnp.maximum(0.0, 1 - without / scale).mean(1)
        cost = jnp.where(there, (without <= 0).sum(1) + short / (1 + short), jnp.inf)
        unit = jnp.argmin(cost)
        return (without[unit], there.at[unit].set(False)), (unit, (without[unit] <= 0).sum())

    _, (order, wrong) = jax.lax.scan(take, (total, jnp.ones(len(parts), bool)), None, len(parts))
    return order, jnp.concatenate([(total <= 0).sum()[None], wrong])


def _exchanged(parts: Floats, base: Floats, left: np.ndarray) -> np.ndarray | None:
    """One unit fewer: the best of all ways to take two out and put one in, or to take one out."""
    inside, outside = np.flatnonzero(left), np.flatnonzero(~left)
    total = base + parts[inside].sum(0)
    best: tuple[int, np.ndarray] | None = None
    for out in [(unit,) for unit in inside] + list(itertools.combinations(inside, 2)):
        rest = total - parts[list(out)].sum(0)
        wrong = (rest + parts[outside] <= 0).sum(1) if len(out) == 2 else np.array([(rest <= 0).sum()])
        if len(wrong) and (best is None or wrong.min() < best[0]):
            made = left.copy()
            made[list(out)] = False
            if len(out) == 2:
                made[outside[wrong.argmin()]] = True
            best = int(wrong.min()), made
    return None if best is None else best[1]


# --- fewest -------------------------------------------------------------------------------------------------------


def _fewest(
    own: Units, left: np.ndarray, allowed: int, effort: float, generator: np.random.Generator
) -> tuple[int, np.ndarray]:
    """A lower bound, and the fewest units known: those given, or fewer that going through all sets has found."""
    count, width = own.judged.places.count, own.width
    size = min(count, max(2**10, 4 * allowed))
    sizes = range(int(left.sum()))
    if not any(math.comb(width, few) * max(1, few) * size <= effort for few in sizes[:1]):
        return 0, left
    which = np.arange(count) if size == count else np.sort(generator.choice(count, size, replace=False))
    parts, base = own.added(which)
    for few in sizes:
        effort -= math.comb(width, few) * max(1, few) * size
        if effort < 0:
            return few, left
        for some in _combinations(width, few, max(1, AT_ONCE // size)):
            total = np.tile(base, (len(some), 1))
            for column in some.T:
                total += parts[column]
            for row in some[(total <= 0).sum(1) <= allowed]:
                made = np.isin(np.arange(width), row)
                if own.errors(made) <= allowed:
                    return few, made
    return len(sizes), left


def _combinations(width: int, few: int, size: int) -> Iterator[np.ndarray]:
    sets = itertools.combinations(range(width), few)
    while some := list(itertools.islice(sets, size)):
        yield np.array(some, np.intp).reshape(len(some), few)
