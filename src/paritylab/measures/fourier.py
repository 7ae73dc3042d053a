"""Fourier coefficients on the cube, and the population gradient of one neuron on a parity.

chi_T(x) is the product of x_j over j in T; x is uniform on {-1, +1}^n; the coefficient of f at T is E f(x) chi_T(x).
Functions on the cube are arrays of 2^n values in the order of binary counting: bit j of the index is set where
x_j = -1. Coefficients come in the same order: bit j is set where T contains j.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from paritylab.aliases import Floats
from paritylab.errors import InvalidInput, require, unknown
from paritylab.measures import coefficients
from paritylab.setups import specs

Function = Callable[[Any], Any]
METHODS = ("auto", "enumerate", "meet", "integral")
MOST_ENUMERATED = 24
MOST_MET = 48


def walsh_hadamard(values: ArrayLike) -> Floats:
    """sum_x values(x) chi_T(x) for every T, along the last axis: n 2^n additions.

    >>> walsh_hadamard([1.0, 2.0, 4.0, 8.0])
    array([15., -5., -9.,  3.])
    """
    out = np.array(values, np.float64)
    size = out.shape[-1] if out.ndim else 0
    n = size.bit_length() - 1
    require(size > 0 and size == 2**n, f"a function on the cube has 2^n values, not {size}")
    require(n <= MOST_ENUMERATED, f"a transform takes at most n = {MOST_ENUMERATED}, not {n}")
    for j in range(n):
        pairs = out.reshape(*out.shape[:-1], -1, 2, 2**j)
        low, high = pairs[..., 0, :], pairs[..., 1, :]
        low += high
        high *= -2
        high += low
    return out


def cube(n: int) -> Floats:
    """All 2^n inputs as rows of signs.

    >>> cube(2).tolist()
    [[1.0, 1.0], [-1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]]
    """
    require(1 <= n <= MOST_ENUMERATED, f"enumeration takes n from 1 to {MOST_ENUMERATED}, not {n}")
    return 1.0 - 2.0 * ((np.arange(2**n)[:, None] >> np.arange(n)) & 1)


def fourier_coefficients(function: Function | ArrayLike, n: int) -> Floats:
    """All 2^n coefficients of a function of the rows of :func:`cube`, or of its values there.

    >>> fourier_coefficients(lambda x: x[:, 0] * x[:, 1] + 3 * x[:, 2], 3)
    array([0., 0., 0., 1., 3., 0., 0., 0.])
    """
    values = np.asarray(function(cube(n)) if callable(function) else function, np.float64)
    require(values.shape == (2**n,), f"a function of {n} bits has 2^{n} values, not shape {values.shape}")
    return walsh_hadamard(values) / 2**n


# --- units ------------------------------------------------------------------------------------------------------


class Gradient(NamedTuple):
    """E chi_S(x) x_j s(w.x + b) for each input j, E chi_S(x) s(w.x + b), and the estimated absolute error."""

    weights: Floats
    bias: Floats
    error: Floats


def population_gradient(
    weights: ArrayLike,
    support: Iterable[int],
    bias: ArrayLike = 0.0,
    unit: str | Function = "relu",
    method: str = "auto",
) -> Gradient:
    """The gradient of E y a(w.x + b) for the parity y = chi_S: by weights (..., n), one or many, and by biases (...).

    ``unit`` is the activation a: ``relu`` (derivative 1[z > 0], 0 at a tie), ``sinusoid`` (sin z) or the activation
    ``sinusoid:degree[,scale]``; a function of the user's own is taken as the *derivative* of a, of arrays.
    ``method``, for relu: ``enumerate`` all inputs (n <= 24), ``meet`` in the middle (exact, n <= 48), or the
    ``integral`` (any n: exact for weights on a lattice, otherwise accurate for large n and sparse S; see ``error``).

    >>> population_gradient([1, 1, 1, 1, 1], [0, 1]).weights
    array([ 0.1875,  0.1875, -0.0625, -0.0625, -0.0625])
    """
    w = np.asarray(weights, np.float64)
    require(w.ndim >= 1 and w.shape[-1] >= 1, "a neuron needs at least one weight")
    n = w.shape[-1]
    inside = _mask(support, n)
    b = np.broadcast_to(np.asarray(bias, np.float64), w.shape[:-1])
    require(bool(np.all(np.isfinite(w)) and np.all(np.isfinite(b))), "weights and biases must be finite")
    if wave := _wave(unit):
        frequency, phase = wave
        gradient, constant = coefficients.sine(frequency * w, inside, frequency * b + phase + math.pi / 2)
        return Gradient(frequency * gradient, frequency * constant, np.zeros(w.shape[:-1]))
    arguments = w.reshape(-1, n), inside, b.reshape(-1)
    if callable(unit):
        require(method in ("auto", "enumerate"), f"a function of one's own is enumerated, not {method!r}")
        require(n <= MOST_ENUMERATED, f"enumeration takes n from 1 to {MOST_ENUMERATED}, not {n}")
        found = coefficients.enumerate_inputs(*arguments, unit)
    elif unit == "relu":
        found = _by_method(method, n, arguments[0])(*arguments)
    else:
        require(unit != "threshold", "a threshold has no gradient; 'relu' has threshold coefficients as its gradient")
        raise unknown("unit", unit, ("relu", "sinusoid", "sinusoid:degree,scale"))
    gradient, constant, error = found
    return Gradient(gradient.reshape(w.shape), constant.reshape(w.shape[:-1]), error.reshape(w.shape[:-1]))


def unit_coefficient(
    weights: ArrayLike,
    subset: Iterable[int],
    bias: ArrayLike = 0.0,
    unit: str | Function = "threshold",
    method: str = "auto",
) -> Floats:
    """E chi_T(x) u(w.x + b) for u a ``threshold`` 1[z > 0], ``relu``, ``sinusoid`` (sin z) or any function of arrays.

    Methods are those of :func:`population_gradient`. A threshold's coefficient is the bias coordinate of relu's
    gradient, and relu's follows from all its coordinates, since relu(z) = z 1[z > 0].

    >>> float(unit_coefficient([1, 1, 1], [0])), float(unit_coefficient([3, 4], [0, 1], unit="relu"))
    (0.25, 1.5)
    """
    if wave := _wave(unit):
        frequency, phase = wave
        shift = frequency * np.asarray(bias, np.float64) + phase
        w = frequency * np.asarray(weights, np.float64)
        return coefficients.sine(w, _mask(subset, w.shape[-1]), shift)[1]
    if callable(unit):
        return population_gradient(weights, subset, bias, unit, method).bias
    if unit not in ("threshold", "relu"):
        raise unknown("unit", unit, ("threshold", "relu", "sinusoid", "sinusoid:degree,scale"))
    found = population_gradient(weights, subset, bias, "relu", method)
    if unit == "threshold":
        return found.bias
    return (np.asarray(weights) * found.weights).sum(-1) + np.asarray(bias) * found.bias


def _mask(support: Iterable[int], n: int) -> NDArray[np.bool_]:
    members = list(support)
    require(len(set(members)) == len(members) and all(0 <= j < n for j in members),
            f"a support is made of different inputs from 0 to {n - 1}, not {members}")
    return np.isin(np.arange(n), members)


def _wave(unit: str | Function) -> tuple[float, float] | None:
    """Frequency and phase of a sine; None for another unit."""
    if not isinstance(unit, str) or not unit.startswith("sinusoid"):
        return None
    if unit == "sinusoid":
        return 1.0, 0.0
    _, numbers = specs.parse("unit", unit, {"sinusoid": (1, 2)})
    degree, scale = (*numbers, 1.0)[:2]
    return math.pi / 2 * scale, math.pi / 2 * (1 - degree)


def _by_method(method: str, n: int, weights: Floats) -> Callable[..., coefficients.Result]:
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    if method == "auto":
        integral = n > 44 or (n > 16 and all(coefficients.lattice_spacing(w) for w in weights))
        method = "integral" if integral else "enumerate" if n <= 16 else "meet"
    if method == "integral":
        return coefficients.integrate
    most = MOST_ENUMERATED if method == "enumerate" else MOST_MET
    if n > most:
        raise InvalidInput(f"method {method!r} takes at most n = {most}, not {n}; 'integral' takes any")
    return coefficients.enumerate_threshold if method == "enumerate" else coefficients.meet_in_the_middle


# --- majority ---------------------------------------------------------------------------------------------------


def majority_fraction(n: int, k: int) -> Fraction:
    """The coefficient xi_k of the majority of n signs (n odd) at a set of k inputs, exactly (Barak et al., Lemma 1)."""
    require(n >= 1 and n % 2 == 1, f"a majority needs an odd number of inputs, not {n}")
    require(0 <= k <= n, f"a set of inputs has from 0 to {n} members, not {k}")
    if k % 2 == 0:
        return Fraction(0)
    half, order = (n - 1) // 2, (k - 1) // 2
    size = Fraction(math.comb(half, order) * math.comb(n - 1, half), math.comb(n - 1, k - 1) << (n - 1))
    return -size if order % 2 else size


def majority_coefficient(n: int, k: int) -> float:
    """xi_k to the last digit, for n up to about 10^4.

    >>> majority_coefficient(3, 1), majority_coefficient(3, 3)
    (0.5, -0.5)
    """
    return float(majority_fraction(n, k))
