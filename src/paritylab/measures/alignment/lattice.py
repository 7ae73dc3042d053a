"""Alignment of a unit for weights on a lattice: a finite sum, without any discretisation error.

On the integers |m| <= d M a unit u(m + b) is a trigonometric polynomial sum_j [A_j cos(t_j m) + B_j sin(t_j m)],
t_j = 2 pi j / N, N = 2 d M + 2 (on the odd or the even ones, half as many terms do). A set of k inputs sees the sines
if k is odd and the cosines if it is even, so that G = sum_{j,l} g_j g_l K^k C^(d-k) with K and C as in ``integral``.
Ties are in u, so they are right by construction.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from scipy.special import erf  # pyright: ignore[reportMissingTypeStubs, reportAttributeAccessIssue]

from paritylab.aliases import Floats
from paritylab.errors import require
from paritylab.measures.alignment.found import Found
from paritylab.measures.alignment.laws import Law
from paritylab.measures.alignment.units import Unit

MOST_POINTS = 60_000
BLOCK = 2**20
NEGLIGIBLE = 40.0


def lattice_sum(law: Law, bias: Law, d: int, k: int, unit: Unit) -> Found:
    """G for d weights of a discrete law and a set of k inputs."""
    spacing = law.spacing
    size = int(max(abs(a) for a in law.atoms) / spacing) * d
    require(size <= MOST_POINTS, f"sums of {d} such weights take {2 * size + 1} values, more than"
            f" {2 * MOST_POINTS}; use 'monte-carlo'")
    points, mass = bias_points(bias.scaled(1 / spacing), unit.rescaled(spacing))
    # Odd weights only give sums of one parity; the other half of the lattice would but cancel.
    step = 2 if all((a / spacing) % 2 == 1 for a in law.atoms) else 1
    coefficients = unit_waves(points, unit.rescaled(spacing), size, step, k)
    phi = law.scaled(1 / spacing).even(math.pi * np.arange(2 * size + 3) / (size + 1))  # at t_0, t_1, ...
    node = np.arange(coefficients.shape[1])
    # |E S_s S_t|^2 <= E S_s^2 E S_t^2 bounds each entry by those on the diagonal.
    diagonal = _logs(phi[0], phi[2 * node], d, k)
    top = float(diagonal.max())
    node = node[diagonal > top - 2 * NEGLIGIBLE]
    g = coefficients[:, node]
    weighted = mass @ g
    total = absolute = 0.0
    start = 0
    while start < len(node):
        rows = slice(start, start + max(1, BLOCK // (len(node) - start)))
        here, there = node[rows, None], node[None, start:]
        x, y = phi[np.abs(here - there)], phi[here + there]
        values = np.exp(_logs(x, y, d, k) - top)
        if k % 2:
            values *= np.sign(x - y)
        if (d - k) % 2:
            values *= np.sign(x + y)
        values *= weighted[:, rows].T @ g[:, start:]
        # Entries right of this block's square stand for their mirror images too.
        square = values[:, : values.shape[0]]
        total += 2 * float(values.sum()) - float(square.sum())
        absolute += 2 * float(np.abs(values).sum()) - float(np.abs(square).sum())
        start = rows.stop
    factor = float(spacing) ** 2 if unit.power == 2 else 1.0
    error = (20 + d) * np.finfo(np.float64).eps * absolute
    return Found.scaled(factor * total, factor * error, top)


def _logs(x: Floats | float, y: Floats, d: int, k: int) -> Floats:
    with np.errstate(divide="ignore"):
        found = k * np.log(np.abs(x - y) / 2) if k else np.zeros(np.broadcast(x, y).shape)
        return found + (d - k) * np.log(np.abs(x + y) / 2) if d > k else found


def unit_waves(points: Floats, unit: Unit, size: int, step: int, k: int) -> Floats:
    """B_j (odd k) or A_j of m -> u(m + b) for each point b, on all integers or those of size's parity.

    From the second differences, which are few and exact where u is steps and ramps. Degrees above 1 do not see linear
    functions; without theirs, ramps have small coefficients.
    """
    odd = k % 2 == 1
    slope = float(sum(height for height, _ in unit.jumps)) / 2 if unit.power == 2 and k > 1 else 0.0
    period = 2 * size + 2
    first = size % step
    m = first + step * np.arange(period // step)
    m = np.where(m > size + 1, m - period, m)
    values, mirrored = (unit(z) - slope * z for z in (points[:, None] + m, points[:, None] - m))
    part = (values - mirrored) * (m != size + 1) / 2 if odd else (values + mirrored) / 2
    second = np.roll(part, 1, axis=1) + np.roll(part, -1, axis=1) - 2 * part
    spectrum = np.fft.rfft(second, axis=1)
    t = 2 * math.pi * np.arange(1, spectrum.shape[1]) / period
    shifted = spectrum[:, 1:] * np.exp(-1j * t * first)
    found = np.zeros(spectrum.shape)
    found[:, 1:] = (shifted.imag if odd else -shifted.real) / (4 * np.sin(t * step / 2) ** 2) * (2 * step / period)
    if not odd:
        found[:, 0] = part.mean(1)
    if len(m) % 2 == 0:
        found[:, -1] /= 2  # it is its own partner
    return found


def bias_points(bias: Law, unit: Unit) -> tuple[Floats, Floats]:
    """Biases and a matrix M with E f(b) g(b) = f(points) M g(points) for all that integer sums can tell of a bias.

    Coefficients are constant (steps) or linear (ramps) in b while no sum crosses a threshold.
    """
    if bias.discrete:
        points = {a: Fraction(0) for a in bias.atoms}
        for atom, p in zip(bias.atoms, bias.probabilities, strict=True):
            points[atom] += p
        return np.array([float(a) for a in points]), np.diag([float(p) for p in points.values()])
    require(bias.init is None, "weights on a lattice need a bias law with a known formula; or use 'monte-carlo'")
    reach = max(abs(float(a)) for a in bias.atoms) + 9 * bias.normal + bias.uniform
    require(reach < 2000, "the bias is too wide for the lattice of the weights; use 'monte-carlo'")
    whole = np.arange(-math.ceil(reach) - 1, math.ceil(reach) + 2)
    fractions = {float(threshold % 1) for _, threshold in unit.jumps}
    edges = np.unique(np.concatenate([whole + fraction for fraction in fractions]))
    zero, first, second = _moments(bias, edges)
    if unit.power == 1:
        return (edges[1:] + edges[:-1]) / 2, np.diag(zero)
    mass = np.zeros((len(edges), len(edges)))
    at = np.arange(len(edges) - 1)
    mass[at, at] += zero - 2 * first + second
    mass[at + 1, at + 1] += second
    mass[at, at + 1] = mass[at + 1, at] = first - second
    return edges, mass


def _moments(bias: Law, edges: Floats) -> tuple[Floats, Floats, Floats]:
    """P, E tau and E tau^2 over each cell, tau running from 0 to 1 across it."""
    require(not (bias.normal and bias.uniform), "a bias has normal or uniform noise, not both")
    low, width = edges[:-1], np.diff(edges)
    total = np.zeros((3, len(low)))
    for atom, p in zip(bias.atoms, bias.probabilities, strict=True):
        start = low - float(atom)
        if bias.uniform:
            ends = np.clip([start, start + width], -bias.uniform, bias.uniform) - start
            raw = [(ends[1] ** n - ends[0] ** n) / (2 * n * bias.uniform) for n in (1, 2, 3)]
        else:
            s = bias.normal
            z = np.array([start, start + width]) / s
            density = np.exp(-z * z / 2) / math.sqrt(2 * math.pi)
            zero = (erf(z[1] / math.sqrt(2)) - erf(z[0] / math.sqrt(2))) / 2
            one = s * (density[0] - density[1])
            two = s * s * (zero + z[0] * density[0] - z[1] * density[1])
            raw = [zero, one - start * zero, two - 2 * start * one + start**2 * zero]
        total += float(p) * np.array([raw[0], raw[1] / width, raw[2] / width**2])
    return total[0], total[1], total[2]
