"""What is compared, and the rule by which a rate is chosen: fixed before anything was measured.

- Each optimiser has a grid of twelve rates of its own, every one twice the one before. In each cell (an optimiser, a
  network, n and k) all rates train ``tuning`` runs, of a seed that is used for nothing else, up to a sixty-fourth, a
  sixteenth, a quarter and at last all of the cell's step limit; the first of these at which the median run of some
  rate is solved decides. The rate with the smallest median wins, the smaller rate of equals. All rates are followed
  equally far, so it is the one that would win if all were followed to the limit.
- If no rate solves its median run within the limit, the one that solves most runs wins; the smaller rate of equals.
- The winner is measured with runs of another seed, up to the limit. What is not solved by then is censored: a median
  that is not reached is said to be above the limit, and has no number.
- A winner at an end of its grid is marked: beyond it there may be a better one.

Everything else is as each optimiser's authors or PyTorch have it, and is not tuned.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from paritylab.errors import require, unknown
from paritylab.setups.networks import MLP, PolyNet
from paritylab.setups.optimisers import SGD, Adam, AdamW, Lion, Optimiser, RMSProp, SignSGD
from paritylab.setups.problems import Parity
from paritylab.setups.setup import Learner, Protocol, Setup
from paritylab_beyond.beyond.contest import rules

STAGES = (64, 16, 4, 1)
"""What the step limit is divided by while rates are compared."""
SEED = 0
"""Of the runs that are measured; rates are compared on runs of the next one."""
LIMITS = {2: 5_000, 3: 20_000, 4: 50_000}
"""Steps, by k."""
CHECKS = {2: 2, 3: 5, 4: 5}
"""Steps between two checks, by k: parities of two are learned in tens of steps."""
RATES = 12
BATCH = 32


@dataclass(frozen=True)
class Entrant:
    """An optimiser with the rates that are tried; ``make`` may need optax."""

    name: str
    title: str
    make: Callable[[], Optimiser]
    rates: tuple[float, ...]
    native: bool = True

    def at(self, rate: float) -> Optimiser:
        return replace(self.optimiser, lr=rate)

    @functools.cached_property
    def optimiser(self) -> Optimiser:
        return self.make()


def doubling(first: float, count: int = RATES) -> tuple[float, ...]:
    """
    >>> doubling(0.01, 3)
    (0.01, 0.02, 0.04)
    """
    return tuple(first * 2**i for i in range(count))


ENTRANTS = {entrant.name: entrant for entrant in (
    Entrant("sgd", "SGD", SGD, doubling(0.002)),
    Entrant("momentum", "SGD, momentum 0.9", lambda: SGD(momentum=0.9), doubling(0.0002)),
    Entrant("nesterov", "SGD, Nesterov's momentum 0.9", lambda: SGD(momentum=0.9, nesterov=True), doubling(0.0002)),
    Entrant("sign-sgd", "sign-SGD", SignSGD, doubling(0.0001)),
    Entrant("lion", "Lion", Lion, doubling(0.00005)),
    Entrant("adam", "Adam", Adam, doubling(0.0002)),
    Entrant("adamw", "AdamW, decay 0.01", AdamW, doubling(0.0002)),
    Entrant("rmsprop", "RMSProp", RMSProp, doubling(0.0001)),
    Entrant("muon", "Muon", rules.muon, doubling(0.0005), native=False),
    Entrant("shampoo", "Shampoo, one-sided", rules.shampoo, doubling(0.002), native=False),
    Entrant("schedule-free", "schedule-free AdamW", rules.schedule_free, doubling(0.0005), native=False),
    Entrant("adafactor", "Adafactor", rules.adafactor, doubling(0.001), native=False),
)}


@dataclass(frozen=True)
class Kind:
    """A network, with the loss it learns by."""

    title: str
    make: Callable[[int], Any]
    loss: str


NETWORKS = {
    "narrow": Kind("MLP, 10 ReLU units, hinge loss", lambda k: MLP(10), "hinge"),
    "wide": Kind("MLP, 100 ReLU units, hinge loss", lambda k: MLP(100), "hinge"),
    "polynet": Kind("PolyNet of degree k, square loss", PolyNet, "square"),
}
"""All with batches of 32 and PyTorch's initialisation."""
PROBLEMS = ((40, 2), (80, 2), (160, 2), (20, 3), (40, 3), (60, 3), (15, 4), (20, 4), (30, 4))
"""(n, k)."""


@dataclass(frozen=True)
class Size:
    """How much is measured: runs for the choice of a rate, runs for the table, and a divisor of the step limits."""

    tuning: int
    runs: int
    shorter: int
    networks: tuple[str, ...]
    problems: tuple[tuple[int, int], ...]


SIZES: dict[str, Size] = {
    "quick": Size(15, 60, 10, ("narrow",), ((40, 2),)),
    "full": Size(101, 1000, 1, tuple(NETWORKS), PROBLEMS),
}


@dataclass(frozen=True)
class Cell:
    """An optimiser on a network and a parity."""

    optimiser: str
    network: str
    n: int
    k: int

    @property
    def name(self) -> str:
        return f"{self.optimiser} {self.network} {self.n} {self.k}"


def cells(size: Size, optimisers: Sequence[str] = (), networks: Sequence[str] = (), n: Sequence[int] = (),
          k: Sequence[int] = ()) -> list[Cell]:
    """The cells of a size, or those of some optimisers, networks, n and k.

    >>> len(cells(SIZES["full"])), cells(SIZES["full"], ["adam"], ["wide"], [40], [3])[0].name
    (324, 'adam wide 40 3')
    """
    for what, given, known in (("optimiser", optimisers, ENTRANTS), ("network", networks, NETWORKS)):
        for name in given:
            if name not in known:
                raise unknown(what, name, known)
    found = [Cell(optimiser, network, *problem) for network in size.networks for problem in size.problems
             for optimiser in ENTRANTS
             if optimiser in (optimisers or ENTRANTS) and network in (networks or NETWORKS)
             and problem[0] in (n or (problem[0],)) and problem[1] in (k or (problem[1],))]
    require(bool(found), f"no such cell: (n, k) are {told(size.problems)}, networks {', '.join(size.networks)}")
    return found


def told(problems: Sequence[tuple[int, int]]) -> str:
    return ", ".join(f"({n}, {k})" for n, k in problems)


def limit(k: int, size: Size) -> int:
    """The steps after which a run is given up."""
    return LIMITS[k] // size.shorter


def setup(optimiser: Optimiser, network: str, n: int, k: int, steps: int) -> Setup:
    kind = NETWORKS[network]
    learner = Learner(kind.make(k), loss=kind.loss, optimiser=optimiser, batch=BATCH)
    return Setup(Parity(n, k), learner, Protocol(steps, CHECKS[k], eval_size=2048))
