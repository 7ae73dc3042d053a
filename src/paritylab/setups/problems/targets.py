"""Targets: what is to be said of an input."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from paritylab.errors import InvalidInput, flag, real, require, whole
from paritylab.later import jnp
from paritylab.setups.problems import bits, functions


def positions(name: str, given: Any, n: int | None = None, ordered: bool = True) -> tuple[int, ...]:
    """Distinct positions among n inputs, in increasing order or as given."""
    try:
        found = tuple(whole(f"a position of {name}", j) for j in given)
    except TypeError:
        raise InvalidInput(f"{name} must be a list of positions, not {given!r}") from None
    found = tuple(sorted(found)) if ordered else found
    allowed = "at least 0" if n is None else f"in 0..{n - 1}"
    require(len(set(found)) == len(found) and all(0 <= j < (j + 1 if n is None else n) for j in found),
            f"{name} must hold distinct positions {allowed}, not {list(found)}")
    return found


class Target(ABC):
    """A function of packed inputs."""

    @property
    @abstractmethod
    def bits(self) -> tuple[int, ...]:
        """The positions it depends on."""

    @abstractmethod
    def values(self, packed: Any, n: int) -> Any:
        """Its values at packed inputs (..., words)."""


@dataclass(frozen=True)
class Product(Target):
    """The parity of the inputs in a support. Runs with different supports train together.

    >>> Product((0, 3)).bits
    (0, 3)
    """

    support: Sequence[int]

    def __post_init__(self) -> None:
        object.__setattr__(self, "support", positions("support", self.support))

    @property
    def bits(self) -> tuple[int, ...]:
        return tuple(self.support)

    def values(self, packed: Any, n: int) -> Any:
        return bits.parity(packed, bits.mask(self.support, n))


@dataclass(frozen=True)
class Sum(Target):
    """Several parities with coefficients, or the sign of their sum (+1 where it is 0).

    Args:
        terms: pairs (coefficient, support).
        sign: whether the target is the sign.

    >>> Sum([(0.5, (0, 1)), (-1.0, (2,))]).bits
    (0, 1, 2)
    """

    terms: Sequence[tuple[float, Sequence[int]]]
    sign: bool = False

    def __post_init__(self) -> None:
        try:
            pairs = [(c, support) for c, support in self.terms]
        except (TypeError, ValueError):
            raise InvalidInput(f"terms must be pairs (coefficient, support), not {self.terms!r}") from None
        place = "the support of a term"
        terms = tuple((real("a coefficient", c), positions(place, support)) for c, support in pairs)
        require(len(terms) > 0, "a sum of parities needs at least one term (coefficient, support)")
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "sign", flag("sign", self.sign))

    @property
    def bits(self) -> tuple[int, ...]:
        return tuple(sorted({j for _, support in self.terms for j in support}))

    def values(self, packed: Any, n: int) -> Any:
        total = sum(np.float32(c) * bits.parity(packed, bits.mask(support, n)) for c, support in self.terms)
        return jnp.where(total >= 0, 1.0, -1.0) if self.sign else total


@dataclass(frozen=True)
class Table(Target):
    """Any Boolean function of at most 20 inputs, by its values.

    Args:
        places: the positions of its bits.
        table: its 2^bits values +1 or -1, in the order in which bit i of an index is set where x at ``places[i]`` is
            -1; or the text of one hexadecimal digit for each four of them, lowest first, a set bit for -1.

    >>> majority = Table((4, 5, 6), [1, 1, 1, -1, 1, -1, -1, -1])
    >>> majority.table, majority.array.tolist()[:4]
    ('8e', [1.0, 1.0, 1.0, -1.0])
    """

    places: Sequence[int]
    table: Any

    def __post_init__(self) -> None:
        places = positions("places", self.places, ordered=False)
        most = functions.MOST_BITS
        require(1 <= len(places) <= most, f"a table has 1 to {most} bits, not {len(places)}")
        object.__setattr__(self, "places", places)
        size = 2 ** len(places)
        if isinstance(self.table, str):
            digits = -(-size // 4)
            require(len(self.table) == digits and all(c in "0123456789abcdef" for c in self.table),
                    f"a table of {len(places)} bits is {digits} hexadecimal digits")
            return
        values = np.asarray(self.table, float)
        require(values.shape == (size,) and bool(np.all(np.abs(values) == 1)),
                f"a table of {len(places)} bits has {size} values +1 or -1")
        padded = np.resize(np.append(values < 0, np.zeros(-size % 4, bool)), -(-size // 4) * 4).reshape(-1, 4)
        digits = padded @ (1 << np.arange(4))
        object.__setattr__(self, "table", "".join("0123456789abcdef"[d] for d in digits.tolist()))

    @property
    def bits(self) -> tuple[int, ...]:
        return tuple(self.places)

    @property
    def array(self) -> np.ndarray:
        """Its values, (2^bits,)."""
        digits = np.frombuffer(bytes(self.table, "ascii"), np.uint8).astype(np.int64)
        digits = np.where(digits >= 97, digits - 87, digits - 48)
        set_bits = (digits[:, None] >> np.arange(4) & 1).reshape(-1)[: 2 ** len(self.places)]
        return (1 - 2 * set_bits).astype(np.float32)

    def values(self, packed: Any, n: int) -> Any:
        index = sum(((packed[..., j // 32] >> np.uint32(j % 32)) & 1) << i for i, j in enumerate(self.places))
        return jnp.asarray(self.array)[index]


@dataclass(frozen=True)
class Tasks(Target):
    """One parity of several, chosen by control bits, the first inputs: those of the task are -1, the others are +1.

    Args:
        supports: of each of the T tasks, among the inputs behind the control bits.
        weights: how often each is trained; equally often unless said.
        solved: the tasks that must be learned for a run to be solved; all unless said.
        controls: the control bits that are -1 for each task, of inputs 0 to C-1, where C-1 is the largest of them; one
            bit for each task, in order, unless said. A task that is composed of others may have the bits of them all.
        in_turn: whether example e of a batch, or of a finite sample, is of task e mod T, in place of a task drawn by
            weight.

    Tasks are evaluated in turn, each equally often.

    >>> Tasks([(2, 3), (3, 4)]).bits
    (0, 1, 2, 3, 4)
    >>> Tasks([(2, 3), (4, 5), (2, 3, 4, 5)], controls=[(0,), (1,), (0, 1)]).control_bits
    2
    """

    supports: Sequence[Sequence[int]]
    weights: Sequence[float] | None = None
    solved: Sequence[int] | None = None
    controls: Any = None  # one or more positions for each task
    in_turn: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        supports = tuple(positions("the support of a task", support) for support in self.supports)
        require(len(supports) >= 1, "there must be at least one task")
        object.__setattr__(self, "supports", supports)
        object.__setattr__(self, "controls", _controls(self.controls, len(supports)))
        first = self.control_bits
        require(all(j >= first for support in supports for j in support),
                f"the supports of {len(supports)} tasks lie behind their control bits, from {first} on")
        object.__setattr__(self, "in_turn", flag("in_turn", self.in_turn))
        require(self.weights is None or not self.in_turn, "tasks are drawn by their weights or come in turn, not both")
        if self.weights is not None:
            weights = tuple(real("a weight", w) for w in self.weights)
            require(len(weights) == len(supports) and min(weights) >= 0 and sum(weights) > 0,
                    f"{len(supports)} tasks need as many weights, at least 0 and not all 0")
            object.__setattr__(self, "weights", weights)
        if self.solved is not None:
            object.__setattr__(self, "solved", positions("solved", self.solved, len(supports)))
            require(len(self.solved) > 0, "solved must name at least one task")

    @property
    def bits(self) -> tuple[int, ...]:
        return tuple(sorted({*range(self.control_bits), *(j for support in self.supports for j in support)}))

    @property
    def on(self) -> tuple[tuple[int, ...], ...]:
        """The control bits that are -1 for each task."""
        return tuple((t,) for t in range(len(self.supports))) if self.controls is None else self.controls

    @property
    def control_bits(self) -> int:
        """How many there are."""
        return 1 + max(j for each in self.on for j in each)

    @property
    def judged(self) -> tuple[int, ...]:
        """The tasks that decide whether a run is solved."""
        return tuple(range(len(self.supports))) if self.solved is None else tuple(self.solved)

    @property
    def cumulative(self) -> np.ndarray:
        """(T - 1,): task t is chosen by a word of at least number t - 1 and below number t."""
        weights = np.array(self.weights or (1.0,) * len(self.supports))
        shares = np.cumsum(weights)[:-1] / weights.sum()
        return np.minimum(np.round(shares * 2.0**32), 2**32 - 1).astype(np.uint32)

    def masks(self, n: int) -> np.ndarray:
        """(T, words)"""
        return np.stack([bits.mask(support, n) for support in self.supports])

    def control_masks(self, n: int) -> np.ndarray:
        """(T, words): the control bits of each task."""
        return np.stack([bits.mask(each, n) for each in self.on])

    def chosen(self, words: Any) -> Any:
        """The tasks that random words (count,), one for each example, choose."""
        if self.in_turn:
            return jnp.arange(len(words)) % len(self.supports)
        return jnp.searchsorted(jnp.asarray(self.cumulative), words, side="right")

    def controlled(self, packed: Any, task: Any, n: int) -> Any:
        """Packed inputs with the control bits of these tasks (count,)."""
        here = packed & ~bits.mask(range(self.control_bits), n)
        if self.controls is not None:
            return here | jnp.asarray(self.control_masks(n))[task]
        word = np.arange(bits.words(n), dtype=np.uint32)
        hot = jnp.where((task >> 5)[:, None] == word, (jnp.uint32(1) << (task & 31).astype(jnp.uint32))[:, None], 0)
        return here | hot.astype(jnp.uint32)

    def values(self, packed: Any, n: int) -> Any:
        """Those of the task that the control bits say, or of one with as many of them as can be."""
        controls = bits.unpack(packed, n)[..., : self.control_bits]
        if self.controls is None:
            task = jnp.argmin(controls, axis=-1)
        else:
            patterns = bits.unpack(self.control_masks(n), n)[:, : self.control_bits]
            task = jnp.argmax(controls @ patterns.T, axis=-1)
        return bits.parity(packed, jnp.asarray(self.masks(n))[task])


def _controls(given: Any, tasks: int) -> tuple[tuple[int, ...], ...] | None:
    """The control bits of each task; None where each has its own, in order."""
    if given is None:
        return None
    try:
        found = tuple(positions("the controls of a task", each) for each in given)
    except TypeError:
        raise InvalidInput(f"controls must be lists of positions, one for each task, not {given!r}") from None
    require(len(found) == tasks, f"{tasks} tasks need as many lists of controls, not {len(found)}")
    require(all(found), "the controls of a task must hold at least one position")
    require(len(set(found)) == tasks, "different tasks must have different controls")
    return None if found == tuple((t,) for t in range(tasks)) else found


@dataclass(frozen=True)
class Outputs(Target):
    """Several parities of the same inputs at once, one for each output of the network: ``MLP(..., outputs=J)``.

    Args:
        supports: of each of the J parities.
        counted: the share of the examples of a batch in which the loss of each output counts; all unless said.

    An input is right where all outputs are, and its loss is their mean. Of output j the first ``counted[j]`` times
    batch examples count, to the nearest whole number, half upwards; since a batch is drawn anew each step, or comes
    from a sample that is shuffled for each pass, they are others each time. Terms that do not count are 0, and the mean
    is still over all examples and outputs. Evaluation counts everything. Labels of one output have no axis for it.

    >>> Outputs([(0, 1), (2, 3)], counted=(1, 0.1)).counts(64)
    (64, 6)
    """

    supports: Sequence[Sequence[int]]
    counted: Sequence[float] | None = None

    def __post_init__(self) -> None:
        supports = tuple(positions("the support of an output", support) for support in self.supports)
        require(len(supports) >= 1, "there must be at least one output")
        object.__setattr__(self, "supports", supports)
        if self.counted is not None:
            shares = tuple(real("a share of examples that count", share) for share in self.counted)
            require(len(shares) == len(supports) and all(0 <= share <= 1 for share in shares) and max(shares) > 0,
                    f"{len(supports)} outputs need as many shares counted, from 0 to 1 and not all 0, not {shares}")
            object.__setattr__(self, "counted", None if min(shares) == 1 else shares)

    @property
    def bits(self) -> tuple[int, ...]:
        return tuple(sorted({j for support in self.supports for j in support}))

    def counts(self, batch: int) -> tuple[int, ...]:
        """In how many examples of a batch each output counts."""
        return tuple(int(share * batch + 0.5) for share in self.counted or (1.0,) * len(self.supports))

    def values(self, packed: Any, n: int) -> Any:
        found = [bits.parity(packed, bits.mask(support, n)) for support in self.supports]
        return found[0] if len(found) == 1 else jnp.stack(found, axis=-1)


def target(given: Any, places: Sequence[int] | None = None) -> Any:
    """A target from its name, on the first bits or these ``places``, from a support, or itself.

    >>> target("parity:3"), target("staircase:2", (5, 7))
    (Product(support=(0, 1, 2)), Sum(terms=((1.0, (5,)), (1.0, (5, 7))), sign=False))
    """
    if isinstance(given, Target) or callable(given):
        return given
    if not isinstance(given, str):
        return Product(given)
    values = functions.named(given)
    size = len(values).bit_length() - 1
    chosen = tuple(range(size)) if places is None else positions("places", places, ordered=False)
    require(len(chosen) == size, f"a target of {size} bits needs as many places, not {len(chosen)}")
    if given.startswith("parity"):
        return Product(chosen)
    if given.startswith(("staircase", "leap")):
        return Sum([(1.0, chosen[:size]) for size in functions.steps(given)])
    return Table(chosen, values)
