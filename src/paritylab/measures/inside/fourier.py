"""Fourier coefficients of what a network computes: E f(x) chi_T(x) for its output f, or for the sign of f.

x is uniform on {-1, +1}^n, whatever law the network was trained on. To n = 20 coefficients are exact, up to the
single precision in which the network computes (those of a sign are exact); beyond, they are means over a sample, with
intervals that hold together.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from paritylab.aliases import Floats
from paritylab.errors import InvalidInput, require, unknown
from paritylab.measures.heavy import characters, heavy
from paritylab.measures.inside import intervals
from paritylab.measures.inside.outputs import MOST_EXACT, Places, each, outputs, over, uniform
from paritylab.measures.inside.subjects import Networks, Subjects, subjects
from paritylab.measures.inside.tables import Sampled, table
from paritylab.memory import Part, require_room
from paritylab.setups.problems.targets import positions

OUTPUT, SIGN = KINDS = ("output", "sign")
SAMPLES = 2**17
SETS_AT_ONCE = 64


@dataclass(frozen=True, eq=False, repr=False)
class Fourier(Sampled):
    """Some coefficients of each network, the largest first or as they were asked for.

    Arrays begin with the axes of the networks: ``members`` (..., sets, n) says which inputs a set has, ``coefficients``
    (..., sets) what the coefficient there is, ``low`` and ``high`` the ends of intervals that hold together for all
    sets of a network (equal to it where it is exact). ``power`` is E f^2, the sum of all squared coefficients, and
    ``weights`` (..., n + 1) its part at each degree (None where it is sampled).
    """

    of: str
    members: np.ndarray
    coefficients: Floats
    low: Floats
    high: Floats
    power: Any
    weights: Floats | None

    @property
    def sets(self) -> Any:
        """The sets as tuples, in lists of the shape of ``coefficients``."""
        def named(members: np.ndarray) -> Any:
            if members.ndim == 1:
                return tuple(np.flatnonzero(members).tolist())
            return [named(part) for part in members]

        return named(self.members)

    def to_frame(self) -> Any:
        """A row for each network and set."""
        shape = self.coefficients.shape
        names = [_word(row) for row in self.members.reshape(-1, self.members.shape[-1])]
        whole = table(self.about, {
            "set": np.array(names, object).reshape(shape), "degree": self.members.sum(-1),
            "coefficient": self.coefficients, "low": self.low, "high": self.high}, shape[:-1])
        return whole.filter(whole["coefficient"].is_not_nan())


def fourier(
    networks: Networks,
    *,
    of: str = OUTPUT,
    sets: Iterable[Iterable[int]] | None = None,
    largest: int = 10,
    samples: int | None = None,
    threshold: float = 0.2,
    queries: int = 2_000_000,
    level: float = intervals.LEVEL,
    seed: int = 0,
    progress: bool | None = None,
) -> Fourier:
    """Coefficients of the output of each network, or of its sign: those of named sets, or the largest.

    Args:
        networks: a TrainedNetwork, TrainedNetworks, or a pair (setup, params) with any leading axes.
        of: ``output``, or ``sign`` (-1, 0 or +1).
        sets: whose coefficients to find, the same for every network; the ``largest`` unless said.
        largest: so many of the largest by absolute value. Beyond n = 20 these are searched for (Goldreich-Levin), and
            there may be fewer: then coefficients of the others are NaN.
        samples: None for all inputs to n = 20 and 2^17 uniform ones beyond, or how many.
        threshold: of the search: all sets are to be found with a coefficient of at least this share of the root mean
            square of what is expanded; those down to 0.7 of it may be.
        queries: of the search, for each network.
        level: at which the intervals of all sets of one network hold together.
        seed: of the samples and of the search.
        progress: whether to show a progress bar; where someone is watching unless said.

    >>> import paritylab as pl
    >>> setup = pl.Setup(pl.Parity(n=4, k=2), pl.Learner(pl.MLP(2, output_bias=False)))
    >>> xor = [{"w": np.array([[1, -1], [1, -1], [0, 0], [0, 0]]), "b": np.array([-1, -1])}, {"w": np.ones((2, 1))}]
    >>> found = fourier((setup, xor), largest=2)
    >>> found.sets, found.coefficients
    ([(), (0, 1)], array([0.5, 0.5]))
    """
    require(largest >= 1, f"the largest coefficients must be at least 1, not {largest}")
    given = subjects(networks)
    places = uniform(given.n, samples, SAMPLES, seed)
    chosen = None if sets is None else _members(sets, given.n)
    kind = kind_of(of)
    if places.exact:
        many = min(largest, 2**given.n)
        parts = each(given, places, lambda _, f: _of_table(values_of(f, kind), chosen, many), progress)
    else:
        def sampled(i: int) -> tuple[Any, ...]:
            there = _searched(given, i, kind, largest, threshold, queries, seed) if chosen is None else chosen
            return _of_sample(values_of(outputs(given, i, places), kind), places, there, level)

        parts = over(range(len(given)), sampled, progress)
        if chosen is None:
            parts = [_padded(part, max(len(part[0]) for part in parts)) for part in parts]
    members, coefficients, low, high, power, weights = (
        None if column[0] is None else given.shaped(np.stack(column)) for column in zip(*parts, strict=True))
    return Fourier(kind, members, coefficients, low, high, power, weights,
                   samples=places.samples, level=level, about=given.about)


def coefficients(networks: Networks, *, of: str = OUTPUT) -> Floats:
    """All 2^n coefficients of each network, to n = 20: (..., 2^n); bit j of a place is set where the set has input j.

    Args:
        networks: as for :func:`fourier`.
        of: ``output`` or ``sign``.
    """
    given, kind = subjects(networks), kind_of(of)
    require(given.n <= MOST_EXACT, f"all coefficients are for n up to {MOST_EXACT}, not {given.n}; name some sets")
    require_room("all coefficients", {"networks": Part(len(given), 8 * 2**given.n)})
    return given.shaped(np.stack(each(given, Places(given.n), lambda _, f: transform(values_of(f, kind)))))


# --- exact --------------------------------------------------------------------------------------------------------


def transform(values: Floats) -> Floats:
    """The coefficients of a function from its 2^n values, in single precision; of signs to n = 20 exactly.

    >>> transform(np.array([1.0, 2.0, 4.0, 8.0])).tolist()
    [3.75, -1.25, -2.25, 0.75]
    """
    return np.asarray(_transform(np.asarray(values, np.float32)))


@jax.jit
def _transform(values: Any) -> Any:
    """Sums and differences, two bits in each pass: half of what it takes is reading and writing."""
    n, done, out = len(values).bit_length() - 1, 0, values
    while done < n:
        some = min(2, n - done)
        blocks = out.reshape(-1, 2**some, 2**done)
        parts = [blocks[:, place] for place in range(2**some)]
        for j in range(some):
            pairs = [(place, place | 1 << j) for place in range(2**some) if not place >> j & 1]
            for low, high in pairs:
                parts[low], parts[high] = parts[low] + parts[high], parts[low] - parts[high]
        out, done = jnp.stack(parts, axis=1).reshape(-1), done + some
    return out / 2**n


def _of_table(values: Floats, chosen: np.ndarray | None, largest: int) -> tuple[Any, ...]:
    """What is told of a network whose values are all known."""
    found, n = transform(values), len(values).bit_length() - 1
    if chosen is None:
        at = _largest(np.abs(found), largest)
        members = (at[:, None] >> np.arange(n) & 1).astype(bool)
    else:
        members, at = chosen, (chosen << np.arange(n)).sum(-1)
    told = found[at].astype(np.float64)
    weights = by_degree(found)
    return members, told, told, told, weights.sum(), weights


def _largest(sizes: Floats, count: int) -> np.ndarray:
    """The places of the largest numbers, the largest first.

    They lie in the rows with the largest maxima, of which there are few.
    """
    rows = sizes.reshape(2 ** (len(sizes).bit_length() // 2), -1)
    some = np.argsort(-rows.max(1), kind="stable")[:count]
    places = (some[:, None] * rows.shape[1] + np.arange(rows.shape[1])).reshape(-1)
    return places[np.lexsort((places, -sizes[places]))[:count]]


def by_degree(found: Floats) -> Floats:
    """The sum of squared coefficients at each degree.

    >>> by_degree(np.array([3.0, 1.0, 2.0, 0.5]))
    array([9.  , 5.  , 0.25])
    """
    n = len(found).bit_length() - 1
    return np.asarray(np.bincount(_degrees(n), np.square(found, dtype=np.float64), n + 1), np.float64)


@functools.cache
def _degrees(n: int) -> np.ndarray:
    return np.bitwise_count(np.arange(2**n, dtype=np.uint32)).astype(np.intp)


# --- sampled ------------------------------------------------------------------------------------------------------


def _of_sample(values: Floats, places: Places, members: np.ndarray, level: float) -> tuple[Any, ...]:
    """Means over a sample. Those of signs are shares, whose intervals are exact; others are nearly normal."""
    rows, count = places.rows, places.count
    assert rows is not None
    power = np.square(values, dtype=np.float64).mean()
    sums = np.concatenate([values.astype(np.float64) @ characters(rows, members[first : first + SETS_AT_ONCE])
                           for first in range(0, max(1, len(members)), SETS_AT_ONCE)])
    means, together = sums / count, max(1, len(members))
    if np.all(np.abs(values) == 1):
        low, high = (2 * end - 1 for end in intervals.of_shares(np.round((sums + count) / 2), count, level, together))
    else:
        spread = np.maximum(0.0, power - means**2) * count / (count - 1)
        low, high = intervals.of_means(means, spread, count, level, together)
    return members, means, low, high, power, None


def _searched(
    given: Subjects, i: int, kind: str, largest: int, threshold: float, queries: int, seed: int
) -> np.ndarray:
    """The sets that a search finds; their coefficients are then estimated from other inputs."""
    generator = np.random.default_rng([seed, i])
    first = uniform(given.n, 2**12, 2**12, seed + 1)
    size = float(np.sqrt(np.square(values_of(outputs(given, i, first), kind), dtype=np.float64).mean()))
    if size == 0:
        return np.zeros((0, given.n), bool)

    def scaled(x: np.ndarray) -> Floats:
        return values_of(outputs(given, i, Places(given.n, x.astype(np.float32))), kind) / size

    found = list(heavy(scaled, given.n, threshold, queries, generator))[:largest]
    return np.array([np.isin(np.arange(given.n), support) for support in found], bool).reshape(-1, given.n)


def _padded(part: tuple[Any, ...], size: int) -> tuple[Any, ...]:
    members, *columns, power, weights = part
    empty = size - len(members)
    columns = [np.pad(column, (0, empty), constant_values=np.nan) for column in columns]
    return (np.pad(members, ((0, empty), (0, 0))), *columns, power, weights)


# --- words --------------------------------------------------------------------------------------------------------


def kind_of(of: str) -> str:
    if of not in KINDS:
        raise unknown("kind of function", of, KINDS)
    return of


def values_of(f: Floats, kind: str) -> Floats:
    return np.sign(f) if kind == SIGN else f


def _members(sets: Iterable[Iterable[int]], n: int) -> np.ndarray:
    try:
        given: Sequence[Any] = list(sets)
    except TypeError:
        raise InvalidInput(f"sets are lists of positions, such as [(0, 1, 2)], not {sets!r}") from None
    require(len(given) > 0, "name at least one set, or none for the largest")
    return np.array([np.isin(np.arange(n), positions("a set", each, n)) for each in given])


def _word(members: np.ndarray) -> str:
    """A set in words."""
    return "{" + ", ".join(map(str, np.flatnonzero(members).tolist())) + "}"
