"""The second phase of daniely2020's Theorem 2 in reduced coordinates.

After the first step a unit is relu6(slope z + bias) of z, the sum of the k signs on A, up to weights off A that are 0
for good units and known exactly for the others (``Reduced.noise``). So the population's gradient descent on 2q units is
one on k + 1 values of z. As q grows, units move less and less and the output g follows a flow dg/ds = K (y c) in the
time s = 2 q rate steps, with a kernel K on these values and c the probability of each that is below margin 1; it is
piecewise linear in s and is found exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.optimize  # pyright: ignore[reportMissingTypeStubs]
from numpy.typing import NDArray

from daniely2020.theory.leaky import Leaky, Units, first_gradient
from paritylab.aliases import Floats
from paritylab.errors import require

optimize: Any = scipy.optimize


@dataclass(frozen=True)
class Reduced:
    """Units after the first step, twins included, as relu6(slope z + bias) with output weight u.

    ``noise`` is the standard deviation of what a unit's weights off A add to its pre-activation.
    """

    slope: Floats
    bias: Floats
    u: Floats
    noise: Floats

    def features(self, sizes: Leaky) -> Floats:
        """(units, k + 1): the units at each value of z."""
        return np.clip(self.slope[:, None] * sizes.values + self.bias[:, None], 0, sizes.upper)


def reduced(sizes: Leaky, units: Units, u: Floats) -> Reduced:
    """Drawn units and their twins after the first step; what depends on single signs of A is left out.

    That is of size n^(-(k-1)/2) u/n, 10^-27 in the theorem's regime, and 0 for units with more than one zero on A.
    """
    gradient = first_gradient(sizes, units)
    sign = np.concatenate([u, -u])
    twice = {name: np.tile(getattr(gradient, name), 2) for name in ("relevant", "bias", "output", "off")}
    noise = np.abs(sign * twice["off"]) / sizes.n * np.sqrt(np.tile(units.others, 2))
    return Reduced(sign * twice["relevant"] / sizes.n, sizes.bias + sign * twice["bias"], twice["output"], noise)


# --- q -> infinity --------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Limit:
    """Means over the law of one unit after the first step.

    ``kernel`` is E[h(z) h(z')] of its features h, ``start`` E[u h(z)] and ``spread`` E[u^2 (h + twin)(h + twin)'] / 2,
    so that the output of 2q units starts with mean 2q ``start`` and covariance 2q ``spread``; ``output`` is E[u^2].
    """

    kernel: Floats
    start: Floats
    spread: Floats
    output: float


def limit(sizes: Leaky, counts: int = 15) -> Limit:
    """The exact means: over the sum W of w on A, over ``counts`` equally likely numbers of non-zeros off A, and over u.

    Features are piecewise linear in u, so Simpson's rule between their kinks is exact.

    >>> limit(Leaky(7**10, 7)).kernel.shape
    (8, 8)
    """
    z, k = sizes.values, sizes.k
    totals = np.zeros((k + 1, k + 1)), np.zeros(k + 1), np.zeros((k + 1, k + 1)), 0.0
    kernel, start, spread, output = totals
    others = _typical(sizes, counts)
    for plus in range(k + 1):
        for minus in range(k + 1 - plus):
            chance = math.comb(k, plus) * math.comb(k - plus, minus) / 3**k / counts
            units = Units(np.full(counts, plus), np.full(counts, minus), others)
            gradient = first_gradient(sizes, units)
            for relevant, shift, u in zip(gradient.relevant, gradient.bias, gradient.output, strict=True):
                lines = relevant * z / sizes.k + shift * sizes.reach  # of the argument in u/reach, which is in [-1, 1]
                nodes, weights = _simpson(sizes, lines)
                h, twin = (np.clip(np.outer(side * nodes, lines) + sizes.bias, 0, sizes.upper) for side in (1, -1))
                kernel += chance * (weights[:, None] * h).T @ h
                start += chance * u * (weights @ h)
                spread += chance * u**2 / 2 * (weights[:, None] * (h + twin)).T @ (h + twin)
                output += chance * u**2
    return Limit(kernel, start, spread, output)


def _typical(sizes: Leaky, counts: int) -> NDArray[np.int64]:
    """Quantiles of the number of non-zeros off A, Binomial(n - k, 2/3)."""
    from scipy import stats

    levels = (np.arange(counts) + 0.5) / counts
    return np.asarray(stats.binom(sizes.n - sizes.k, 2 / 3).ppf(levels)).astype(np.int64)


def _simpson(sizes: Leaky, lines: Floats) -> tuple[Floats, Floats]:
    """Nodes and weights for means over [-1, 1] of what is quadratic between the kinks of relu6(line t + b)."""
    with np.errstate(divide="ignore"):
        kinks = np.concatenate([(level - sizes.bias) / lines for level in (0.0, sizes.upper)])
    kinks = kinks[np.abs(kinks) < 1]
    edges = np.unique(np.concatenate([[-1.0, 1.0], kinks, -kinks]))
    low, high = edges[:-1], edges[1:]
    width = (high - low) / 12
    return np.concatenate([low, (low + high) / 2, high]), np.concatenate([width, 4 * width, width])


@dataclass(frozen=True)
class Flow:
    """The output g at each value of z (events, k + 1) at the times s of events; linear in between.

    ``pull`` (events, k + 1) is y c from each event on: dg/ds = K pull. The last event is the end.
    """

    times: Floats
    outputs: Floats
    pull: Floats

    def at(self, times: Any) -> Floats:
        """The outputs at any times, (times, k + 1); constant after the end."""
        return np.stack([np.interp(times, self.times, column) for column in self.outputs.T], axis=-1)


def hinge_flow(sizes: Leaky, kernel: Floats, start: Floats | None = None, most: int = 10_000) -> Flow:
    """Gradient flow of E max(0, 1 - y g) in the kernel's geometry, from event to event.

    An output below margin 1 pulls with its whole probability, one above with none, one at the margin with the share
    that makes the total pull smallest (the flow of a non-smooth loss slides along the margin).

    >>> flow = hinge_flow(Leaky(101, 3), np.eye(4))
    >>> flow.times.round(3), flow.outputs[-1]
    (array([0.   , 3.2  , 5.333]), array([-1.,  1., -1.,  1.]))
    """
    y, law = sizes.labels, sizes.law
    root = np.linalg.cholesky(kernel).T * y
    margin = np.zeros(len(y)) if start is None else y * start
    place = np.sign(margin - 1)  # below, at or above the margin
    times, outputs, pulls = [0.0], [y * margin], []
    while len(times) < most:
        share = np.where(place < 0, law, 0.0)
        at = place == 0
        if at.any():
            target = -root @ share
            share[at] = optimize.lsq_linear(root[:, at], target, (0, law[at]), method="bvls", tol=1e-15).x
        pulls.append(y * share)
        speed = y * (kernel @ (y * share))
        slides = at & (share > 0) & (share < law)
        place = np.where(at & ~slides, np.sign(np.where(share > 0, np.minimum(speed, 0), np.maximum(speed, 0))), place)
        speed[slides | (place == 0)] = 0.0
        arrives = (place * speed < 0) & (np.abs(speed) > 1e-15)
        if not (place < 0).any() or not arrives.any():
            break
        waits = np.where(arrives, (1 - margin) / np.where(arrives, speed, 1.0), np.inf)
        wait = waits.min()
        margin = margin + wait * speed
        reached = waits <= wait * (1 + 1e-12)
        margin[reached], place = 1.0, np.where(reached, 0, place)
        times.append(times[-1] + wait)
        outputs.append(y * margin)
    pulls += [np.zeros(len(y))] * (len(times) - len(pulls))
    return Flow(np.array(times), np.array(outputs), np.array(pulls))


def errors(sizes: Leaky, outputs: Floats) -> tuple[Floats, Floats]:
    """P[sign g != f] on D_A and on its uniform half, for outputs (..., k + 1); g = 0 is an error."""
    wrong = ~(outputs * sizes.labels > 0)
    return wrong @ sizes.law, wrong @ sizes.uniform_law


def loss(sizes: Leaky, outputs: Floats) -> Floats:
    """The hinge loss on D_A."""
    return np.maximum(1 - outputs * sizes.labels, 0) @ sizes.law


def separator_norm(sizes: Leaky, kernel: Floats) -> float:
    """The smallest squared norm of an output with margin 1 everywhere: 2q |u*|^2 of Lemma 10's separator.

    >>> separator_norm(Leaky(101, 3), np.eye(4))
    4.0
    """
    root = np.linalg.cholesky(kernel).T * sizes.labels
    # the dual: half its squared norm less the sum of weights a >= 0 is smallest where |root a - e| is, e = root^-T 1
    e = np.linalg.solve(root.T, np.ones(len(kernel)))
    a, _ = optimize.nnls(root, e)
    return float(np.sum((root @ a) ** 2))


# --- finite q -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Descent:
    """Gradient descent on both layers: at each check the step, errors on D_A and its uniform half, and the loss.

    ``moved`` are the largest changes of an output weight, of the norm of a unit's weights and of a bias since the first
    step; ``noise`` bounds the standard deviation of what the weights off A, left out here, add to the final output.
    """

    steps: NDArray[np.int64]
    error: Floats
    uniform_error: Floats
    loss: Floats
    moved: tuple[float, float, float]
    noise: float


def descend(
    sizes: Leaky,
    layer: Reduced,
    steps: int,
    rate: float,
    decay: float = 0.0,
    checks: int = 100,
    show: Callable[[int], None] | None = None,
) -> Descent:
    """``steps`` population steps on slopes, biases and output weights; ``decay`` is the theorem's lambda.

    Units that are at 0 for every z never move; those that are saturated for every z move together.

    >>> sizes = Leaky(10**6, 3)
    >>> layer = Reduced(np.array([-0.1, 0.1]), np.array([0.1, 0.1]), np.zeros(2), np.zeros(2))
    >>> float(descend(sizes, layer, 2, 0.1).error[-1].round(6))
    0.375
    """
    require(steps >= 1 and rate > 0, "descent needs at least one step and a positive rate")
    y, law, z = sizes.labels, sizes.law, sizes.values.astype(float)
    inputs = layer.features(sizes)
    moving = ((inputs > 0) & (inputs < sizes.upper)).any(1)
    fixed = ~moving & (inputs > 0).all(1)
    slope, bias, u = layer.slope[moving], layer.bias[moving], layer.u[moving]
    constant, saturated = float(layer.u[fixed].sum()), int(fixed.sum())
    keep = 1 - 2 * rate * decay
    at, found = [], []
    marks = set(np.unique(np.linspace(0, steps, checks + 1).astype(int)).tolist())
    for t in range(steps + 1):
        argument = np.multiply.outer(slope, z) + bias[:, None]
        h = np.clip(argument, 0, sizes.upper)
        g = u @ h + sizes.upper * constant
        if t in marks:
            at.append(t)
            found.append((*errors(sizes, g), loss(sizes, g)))
            if show is not None:
                show(t)
        if t == steps:
            break
        pull = np.where(y * g < 1, y * law, 0.0)
        active = ((argument > 0) & (argument < sizes.upper)) * pull
        step_slope, step_bias = u * (active @ z) / (sizes.k * sizes.n), u * active.sum(1)
        u = keep * u + rate * (h @ pull)
        slope = keep * slope + rate * step_slope
        bias = bias + rate * step_bias
        constant = keep * constant + rate * saturated * sizes.upper * pull.sum()
    error, uniform, hinge = (np.array(column) for column in zip(*found, strict=True))
    moved = (float(np.abs(u - layer.u[moving]).max(initial=0)),
             float(np.abs(slope - layer.slope[moving]).max(initial=0) * math.sqrt(sizes.n * sizes.k)),
             float(np.abs(bias - layer.bias[moving]).max(initial=0)))
    return Descent(np.array(at), error, uniform, hinge, moved, float(np.abs(u) @ layer.noise[moving]))
