"""Exact population gradients of XOR neurons: of the linearised loss, of phase 2's clean loss, and of small networks.

With x = z + xi, z = (x1, x2), all of them are made of m = E[c(z) 1(w.x > 0) x] with a number c(z) for each of the four
clusters: -grad_w = a m and -grad_a = w.m. The linearised loss L0 = E[-y f] has c = y (Lemma C.4), the clean loss of
equation 4.7 c = -l'(z). What the d - 2 other inputs do is the law of one number, w.xi.
"""

from __future__ import annotations

import itertools
import math

import numpy as np
from numpy.typing import ArrayLike

from glasgow2023.theory.xor import CLUSTERS, LABELS, Neurons, margins, slope
from paritylab.aliases import Floats
from paritylab.errors import require

MOST_EXACT = 36
"""Up to so many inputs the expectation is a sum over all inputs, arranged so that it costs 2^(d/2)."""
REACH = 400.0
"""How far the Fourier integral goes, in units of 1 / |w_perp|."""


def active_mean(w: ArrayLike, c: ArrayLike = LABELS) -> Floats:
    """m = E[c(z) 1(w.x > 0) x] of one neuron w (d,), c in the order of CLUSTERS.

    Exact up to 36 inputs. Beyond, by a Fourier integral, for weights spread over many inputs as those of a neuron that
    began on the sphere: its error is about 2^(-d/2) / 100, 1e-7 at d = 37 and 1e-11 at d = 64.

    >>> active_mean([1.0, 1.0, 0.1])
    array([ 0.25,  0.25, -0.25])
    """
    weights, values = np.asarray(w, np.float64), np.asarray(c, np.float64)
    require(weights.ndim == 1 and len(weights) >= 3, f"a neuron has 3 weights at least, not {weights.shape}")
    require(values.shape == (4,), f"c has a number for each of the four clusters, not {values.shape}")
    return _by_halves(weights, values) if len(weights) <= MOST_EXACT else _by_fourier(weights, values)


def _by_halves(w: Floats, c: Floats) -> Floats:
    """Every sum of one half of xi against the sorted sums of the other; how many exceed a threshold is looked up."""
    rest = w[2:]
    cut = len(rest) // 2
    left, right = (_signs(len(half)) for half in (rest[:cut], rest[cut:]))
    sums, others = left @ rest[:cut], right @ rest[cut:]
    order = np.argsort(others)
    others, right = others[order], right[order]
    # above[i] = sum of the rows i, i + 1, ... of the other half: of 1, and of its inputs
    above = np.concatenate([np.cumsum(right[::-1], axis=0)[::-1], np.zeros((1, right.shape[1]))])
    total = np.zeros(len(w))
    for z, value in zip(CLUSTERS, c, strict=True):
        first = np.searchsorted(others, -(sums + w[:2] @ z), side="right")  # strictly above: relu'(0) = 0
        count = len(others) - first
        total += value * np.concatenate([z * count.sum(), count @ left, above[first].sum(axis=0)])
    return total / (4 * len(sums) * len(others))


def _by_fourier(w: Floats, c: Floats) -> Floats:
    """P(w.xi > -u) = 1/2 + (1/pi) int sin(ut)/t phi(t) dt, and E[xi_i 1(w.xi > -u)] likewise, phi(t) = prod cos(w_i t).

    The trapezoidal rule is exact but for the law's mass beyond 2 pi / spacing (Poisson summation).
    """
    rest, u = w[2:], CLUSTERS @ w[:2]
    scale = np.linalg.norm(rest)
    require(bool(scale > 0), "w_perp must not vanish")
    spacing = 2 * math.pi / (14 * scale + 2 * np.abs(u).max())
    t = spacing * np.arange(int(REACH / scale / spacing) + 1)
    cosines = np.cos(np.outer(t, rest))
    ones = np.ones((len(t), 1))
    before = np.cumprod(np.concatenate([ones, cosines[:, :-1]], axis=1), axis=1)
    after = np.cumprod(np.concatenate([ones, cosines[:, :0:-1]], axis=1), axis=1)[:, ::-1]
    phi = before[:, -1] * cosines[:, -1]
    rule = np.full(len(t), spacing / math.pi)
    rule[0] /= 2
    above = 0.5 + (_sine_over(t, u) * (rule * phi)[:, None]).sum(axis=0)
    waves = np.cos(np.outer(t, u)) @ c / 4
    inputs = ((rule * waves)[:, None] * before * after * _sine_over(t, rest)).sum(axis=0)
    return np.concatenate([(c * above) @ CLUSTERS / 4, inputs])


def _sine_over(t: Floats, u: Floats) -> Floats:
    """sin(u t) / t, (len(t), len(u))."""
    return u * np.sinc(np.outer(t, u) / math.pi)


def _signs(n: int) -> Floats:
    """All of {-1, 1}^n, (2^n, n)."""
    return np.array(list(itertools.product([1.0, -1.0], repeat=n))).reshape(2**n, n)


def linear_gradients(neurons: Neurons) -> tuple[Floats, Floats]:
    """The gradients of L0 by w (p, d) and by a (p,), each neuron by itself."""
    means = np.stack([active_mean(w) for w in neurons.w])
    return -neurons.a[:, None] * means, -np.sum(neurons.w * means, axis=1)


def clean_gradients(neurons: Neurons) -> tuple[Floats, Floats]:
    """The gradients of equation 4.7: the loss's slope is taken at z, as if all else in x did not matter to f."""
    c = LABELS * slope(margins(neurons))
    means = np.stack([active_mean(w, c) for w in neurons.w])
    return -neurons.a[:, None] * means, -np.sum(neurons.w * means, axis=1)


def network_gradients(neurons: Neurons, x: Floats | None = None) -> tuple[Floats, Floats]:
    """The gradients, times p, of the loss 2 log(1 + exp(-y f)) over the inputs x, all of the cube unless said."""
    d = neurons.w.shape[1]
    require(x is not None or d <= 16, f"all inputs can be listed up to d = 16, not {d}")
    inputs = _signs(d) if x is None else x
    y, z = inputs[:, 0] * inputs[:, 1], inputs @ neurons.w.T
    pull = (-y * slope(y * np.mean(neurons.a * np.maximum(z, 0), axis=1)))[:, None] * (z > 0) / len(inputs)
    return neurons.a[:, None] * (pull.T @ inputs), np.sum(pull * z, axis=0)


def lemma_c4(neurons: Neurons) -> dict[str, tuple[Floats, Floats]]:
    """Both sides of B1-B4 for neurons of at most 16 inputs: -w_part . grad L0, and the lemma's formula for it.

    B3's printed prefactor is unreadable: it is 1/4. B4 is printed with the opposite sign, which contradicts B3, its sum
    over i; its intervals are sqrt(2) |w_sig| -+ |w_i| and sqrt(2) |w_opp| -+ |w_i|.
    """
    by_w, _ = linear_gradients(neurons)
    a, root = np.abs(neurons.a), math.sqrt(2)
    signs = np.where(neurons.a > 0, 1.0, -1.0)
    sig, opp = neurons.sig, neurons.opp
    along = {part: (by_w[:, 0] + sign * by_w[:, 1]) / root for part, sign in (("sig", signs), ("opp", -signs))}
    xi = _signs(neurons.w.shape[1] - 2)
    products = neurons.w[:, 2:] @ xi.T
    size = np.abs(products)
    near = {part: (size <= root * np.abs(value)[:, None]) for part, value in (("sig", sig), ("opp", opp))}
    between = near["opp"].astype(float) - near["sig"].astype(float)
    w = neurons.w[:, 2:, None]
    without = products[:, None, :] - w * xi.T  # (p, d - 2, inputs)

    def inside(part: Floats) -> Floats:
        centre = root * np.abs(part)[:, None, None]
        return np.mean((without >= centre - np.abs(w)) & (without <= centre + np.abs(w)), axis=2)

    return {
        "B1": (-sig * along["sig"], root / 4 * a * near["sig"].mean(axis=1) * np.abs(sig)),
        "B2": (-opp * along["opp"], -root / 4 * a * near["opp"].mean(axis=1) * np.abs(opp)),
        "B3": (-np.sum(neurons.w[:, 2:] * by_w[:, 2:], axis=1), a / 4 * np.mean(between * size, axis=1)),
        "B4": (-neurons.w[:, 2:] * by_w[:, 2:],
               a[:, None] * np.abs(w[..., 0]) / 4 * (inside(sig) - inside(opp))),
    }
