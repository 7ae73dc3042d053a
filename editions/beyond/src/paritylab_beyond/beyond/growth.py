"""How the parity grows in a two-layer network that starts from i.i.d. weights: a model of two units.

While all examples are within the hinge, SGD moves a unit with output weight a by a' = eta c, x' = eta a g: c is the
unit's Fourier coefficient at the parity, x its way along the gradient g of c by its hidden weights and bias. Near a
resonance u of the law c is a wave in x, of wavenumber k = u s sqrt(d) / 2, s the law's root mean square. Noise of the
batches moves every weight by a random walk and weakens c and g as ``alignment(..., moved=)`` says. Nothing is fitted.
See docs/robust-alignment.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from paritylab import alignment
from paritylab.aliases import Floats
from paritylab.claims import computation
from paritylab.errors import InvalidInput
from paritylab.measures.alignment.laws import law as law_of

MOVED = (0.0, 0.02, 0.05, 0.1, 0.2)
"""Movements at which alignments are computed; in between by interpolation of logarithms in the square."""
LEARNT = 0.75
SIGNAL = 1 / 3
"""The parity's coefficient at an accuracy of 0.75, beside a rest of deviation 1/2: P(N(0, 1) < 2/3) = 0.75."""
FARTHEST = 60.0
"""Resonances are sought up to here, in units of 1/s."""
TINY = 1e-200
STEPS = 3000


class Cell(NamedTuple):
    """A start and what trains from it."""

    law: str
    d: int
    width: int
    lr: float = 0.01
    batch: int = 64


def movement(cell: Cell, steps: float | Floats) -> Floats:
    """The random walk of a hidden weight, relative to its initial deviation 1/sqrt(d).

    A step adds (eta a / B) sum of y x_i 1[z > 0] over the batch: variance eta^2 a^2 / (2B), with a^2 = 1/width.

    >>> float(movement(Cell("gaussian", 100, 10_000), 12_800))
    0.01
    """
    return cell.lr * np.sqrt(cell.d * np.asarray(steps, float) / (2 * cell.batch * cell.width))


@computation
def moved_alignments(seed: int, law: str, d: int, moved: list[float]) -> dict[str, list[float]]:
    """Natural logarithms for one unit with weights of variance 1/d and a bias of their law, for each movement.

    ``hidden``: E |g|^2, gradients by weights and bias; ``bias``: the bias's share of it; ``output``: E c^2. NaN where a
    law is too fine to be summed as it is.
    """
    rows = []
    for each in moved:
        try:
            parts = alignment(law, d, unit="network", bias="same", scale="fan-in", moved=each).parts
        except InvalidInput:
            rows.append([math.nan] * 3)
            continue
        hidden = parts["weights in S"] + parts["biases"]
        rows.append([math.log(max(part, TINY)) for part in (hidden, parts["biases"], parts["output weights"])])
    return dict(zip(("moved", "hidden", "bias", "output"), [moved, *map(list, zip(*rows, strict=True))], strict=True))


def log_alignment(table: Mapping[str, Floats], name: str, moved: float | Floats) -> Floats:
    """A logarithm of :func:`moved_alignments` at any movement; beyond the last one as there."""
    values = np.asarray(table[name])
    known = np.isfinite(values)
    return np.interp(np.square(moved), np.square(table["moved"])[known], values[known])


def network_alignment(table: Mapping[str, Floats], width: int, moved: float) -> float:
    """log10 of the alignment of a network with output weights of variance 1/width: the parity grows at eta times it."""
    parts = [float(log_alignment(table, name, moved)) for name in ("hidden", "output")]
    return float(np.logaddexp(parts[0], parts[1] + math.log(width))) / math.log(10)


def neuron_alignment(spec: str, d: int, table: Mapping[str, Floats]) -> float:
    """log10 of the atlas's plain alignment of one ReLU neuron, weights of the law itself."""
    return (float(log_alignment(table, "output", 0.0)) + math.log(d * law_of(spec).second_moment)) / math.log(10)


def wavenumber(spec: str, d: int) -> float:
    """k of the resonance that carries most of the alignment: the largest ((1 - phi(u)) / 2)^d / u^2.

    >>> round(wavenumber("rademacher", 100) / (math.pi / 2 * math.sqrt(100)), 2)
    1.0
    """
    chosen = law_of(spec)
    s = math.sqrt(chosen.second_moment)
    u = np.linspace(0.3, FARTHEST, 60_000) / s
    size = d * np.log((1 - chosen.even(u)) / 2 + 1e-300) - 2 * np.log(u)
    return float(u[np.argmax(size)]) * s * math.sqrt(d) / 2


class Growth(NamedTuple):
    """The parity's coefficient of each cell along the way."""

    steps: Floats
    signal: Floats

    def first(self, level: float = SIGNAL) -> Floats:
        """The step at which each cell's signal passes a level; infinite if it never does."""
        above = self.signal >= level
        return np.where(above.any(axis=1), self.steps[above.argmax(axis=1)], np.inf)

    def score(self) -> Floats:
        """What orders cells: -log10 of the step at which the signal is there, less what it lacks at the horizon."""
        first, last = self.first(), self.signal.max(axis=1)
        late = -np.log10(self.steps[-1]) + np.log10(np.maximum(last, TINY) / SIGNAL)
        return np.where(np.isfinite(first), -np.log10(np.where(np.isfinite(first), first, 1.0)), np.minimum(late, 0.0))


def growth(
    cells: Sequence[Cell], tables: Sequence[Mapping[str, Floats]], horizon: float, *, noise: bool = True
) -> Growth:
    """Two units with a = +-1/sqrt(width) for each cell, by the midpoint rule; ``noise=False`` leaves the walk out.

    The start has E c^2 and E |g|^2 as they are; c = A sin(kx + phi). A way along a share r of bias and 1 - r of d
    weights counts as sqrt(r + (1 - r)/d) of itself in the wave, since each weight has a wave of its own.
    """
    width, lr = (np.array([getattr(cell, name) for cell in cells], float)[:, None] for name in ("width", "lr"))
    start = {name: np.exp([[log_alignment(table, name, 0.0)] for table in tables]) for name in ("hidden", "output")}
    share = np.array([[_share(table)] for table in tables])
    d = np.array([[cell.d] for cell in cells], float)
    k = np.array([[wavenumber(cell.law, cell.d)] for cell in cells]) * np.sqrt(share + (1 - share) / d)
    phase = np.arctan(k * np.sqrt(start["output"] / start["hidden"]))
    largest = np.sqrt(start["output"] + start["hidden"] / k**2)
    times = horizon * np.linspace(0, 1, STEPS + 1) ** 2
    left = np.array([_left(cell, table, times) if noise else np.ones(len(times))
                     for cell, table in zip(cells, tables, strict=True)])
    a = np.array([[1.0, -1.0]]) / np.sqrt(width)
    x, signal = np.zeros_like(a), np.zeros((len(cells), len(times)))
    for i, dt in enumerate([*np.diff(times), 0.0]):
        wave = left[:, i : i + 1] * largest
        c = wave * np.sin(k * x + phase)
        signal[:, i] = width[:, 0] * (a * c).mean(axis=1)
        lively = (signal[:, : i + 1].max(axis=1) < 3)[:, None]  # beyond, the hinge ends what is modelled here
        step = dt * lr * lively
        half_a, half_x = a + step / 2 * c, x + step / 2 * a * wave * k * np.cos(k * x + phase)
        a = a + step * wave * np.sin(k * half_x + phase)
        x = x + step * half_a * wave * k * np.cos(k * half_x + phase)
    return Growth(times, signal)


def _share(table: Mapping[str, Floats]) -> float:
    """The bias's share of the gradient after a small movement, which undoes ties."""
    small = float(table["moved"][1])
    return math.exp(float(log_alignment(table, "bias", small) - log_alignment(table, "hidden", small)))


def _left(cell: Cell, table: Mapping[str, Floats], times: Floats) -> Floats:
    """By what factor noise has weakened c and g."""
    logs = log_alignment(table, "hidden", movement(cell, times))
    return np.exp((logs - log_alignment(table, "hidden", 0.0)) / 2)
