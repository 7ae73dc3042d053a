"""The explicit formulas of Abbe et al. (2024), corrected where a docstring says so.

d inputs, n hidden ReLU units, the full parity as target; alignments GAL are E ||Gamma_f - Gamma_r||^2.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import erf

from paritylab.aliases import Floats
from paritylab.errors import require

# --- one step on the output layer (Section 4.1) -------------------------------------------------------------------


def recommended_bias(d: int) -> int:
    """0 for even d, -1 for odd d."""
    return -(d % 2)


def delta(d: int, bias: float | Fraction) -> Fraction:
    """Delta_{d,b} = E_x chi(x) relu(x_1 + ... + x_d + b), by Lemma 1, exactly.

    >>> delta(4, 0), delta(5, -1), delta(5, 0)
    (Fraction(-1, 4), Fraction(-3, 16), Fraction(0, 1))
    """
    require(d > 1, f"Lemma 1 needs d > 1, not {d}")
    b = Fraction(bias)
    c = math.ceil((d - b) / 2)
    total = d * (_binomial(d - 2, c - 2) - _binomial(d - 2, c - 1)) + b * _binomial(d - 1, c - 1)
    return (-1) ** (d + c) * total / 2**d


def activation_moments(d: int, bias: float = 0, clip: float | None = None) -> tuple[Fraction, Fraction]:
    """E chi(x) h(z) and E h(z)^2 for z = x_1 + ... + x_d + b and h the ReLU, clipped at ``clip`` if given.

    >>> activation_moments(5, -1)[0] == delta(5, -1)
    True
    """
    b, most = Fraction(bias), None if clip is None else Fraction(clip)
    first, second = Fraction(0), Fraction(0)
    for negative in range(d + 1):
        z = max(Fraction(0), d - 2 * negative + b)
        value = z if most is None else min(z, most)
        first += (-1) ** negative * math.comb(d, negative) * value
        second += math.comb(d, negative) * value**2
    return first / 2**d, second / 2**d


def critical_width(d: int, clip: float | None = None) -> float:
    """The width at which one step starts to classify all 2^d inputs: 2 d ln 2 (E h^2 - Delta^2) / Delta^2.

    A normal approximation of the margin of each input with a union over the cube: about 4.4 d^3 for the ReLU and of
    order d^2 for a clipped one (Remark 1).

    >>> round(critical_width(80)), round(critical_width(80, clip=5))
    (2187972, 540083)
    """
    mean, square = activation_moments(d, recommended_bias(d), clip)
    require(mean != 0, f"the activation has no correlation with the parity at d = {d}")
    return 2 * d * math.log(2) * float((square - mean**2) / mean**2)


def margin_bound(d: int, n: int) -> float:
    """Equation (4): the unit-norm output weights of one step have margin at least sqrt(n/d)/18."""
    return math.sqrt(n / d) / 18


def one_step_failure(d: int, n: int) -> float:
    """The chance that some input has a smaller margin than :func:`margin_bound`, by equation (29) and a union bound.

    >>> one_step_failure(10, 10**4), one_step_failure(10, 10**7) < 1e-11
    (1.0, True)
    """
    return min(1.0, math.exp(d * math.log(2) - n / (288 * d**3)))


# --- hinge loss on both layers (Section 4.2) ----------------------------------------------------------------------


def update_bound(d: int, perturbed: bool = False) -> int:
    """Theorem 6: at most 20 R_z^2 / c^2 non-zero updates, 25920 d^3; 233280 d^3 for weights perturbed by 1/(72 d).

    >>> update_bound(10), update_bound(10, perturbed=True)
    (25920000, 233280000)
    """
    return (20 * 3**2 * 36**2 if perturbed else 20 * 2**2 * 18**2) * d**3


def largest_rate(d: int) -> float:
    """Theorem 6's rate, 1/(500 * 9 * 36^2 d^3.5), small enough with and without perturbation."""
    return 1 / (500 * 9 * 36**2 * d**3.5)


def largest_margin(d: int, n: int, rate: float) -> float:
    """Theorem 6's largest beta of the loss max(0, beta - y f), 16 d^2 n gamma (36 in its perturbed proof)."""
    return 16 * d**2 * n * rate


def patience(error: float, failure: float, updates: float) -> int:
    """Theorem 5: stop after (ln(1/delta) + ln C_0)/eps steps without update, to err eps at most but for a chance delta.

    >>> patience(0.02, 0.1, update_bound(6))
    893
    """
    require(0 < error < 1 and 0 < failure < 1, "error and failure probability must be in (0, 1)")
    return math.ceil((math.log(1 / failure) + math.log(updates)) / error)


# --- what small alignment forbids (Section 5.1) -------------------------------------------------------------------


def total_variation(distance: ArrayLike, tau: float) -> Floats:
    """TV between N(a, tau^2 I) and N(b, tau^2 I) at this distance of a and b: 2 Phi(|a - b|/(2 tau)) - 1.

    Lemma 3 bounds it by distance/(2 tau) (Pinsker); the truth is smaller by sqrt(2/pi) at least.

    >>> total_variation([0.0, 0.1, 10.0], 1.0).round(4)
    array([0.    , 0.0399, 1.    ])
    """
    return erf(np.asarray(distance, float) / (2 * math.sqrt(2) * tau))


def lemma3(alignments: ArrayLike, tau: float) -> float:
    """TV(theta^T, psi^T) <= sum_t sqrt(GAL(psi^t)) / (2 tau), with the alignments at t = 0, ..., T - 1."""
    return float(np.sqrt(np.asarray(alignments, float)).sum()) / (2 * tau)


def accuracy_bound(alignments: ArrayLike, tau: float) -> float:
    """Theorem 7 by its equation (52): 1/2 + sum_t sqrt(GAL(psi^t)) / (2 tau).

    The statement prints T gamma^2 eps / (2 tau), which its proof does not give: T sqrt(eps) / (2 tau).

    >>> accuracy_bound([1e-6] * 10, 1.0)
    0.505
    """
    return 0.5 + lemma3(alignments, tau)


def junk_variances(variance: ArrayLike, steps: int, rate: float, tau: float) -> Floats:
    """Variances of the junk flow's weights at t = 0, ..., T - 1 under the correlation loss, where it is pure diffusion.

    >>> junk_variances(0.1, 3, 1.0, 0.5)
    array([0.1 , 0.35, 0.6 ])
    """
    return np.asarray(variance, float) + np.arange(steps) * (rate * tau) ** 2


def corollary1_noise(sigma: float, least_variance: float, parameters: int, steps: int, rate: float) -> float:
    """The largest tau of Corollary 1, sigma sqrt(min Var A / (P T)) / gamma."""
    return sigma * math.sqrt(least_variance / (parameters * steps)) / rate


def corollary1(alignment: float, steps: int, tau: float, gradient: float) -> float:
    """Corollary 1: accuracy at most 1/2 + T sqrt(4 R + 1) GAL(theta^0)^(1/18) / (2 tau), squared gradients at most R.

    >>> corollary1(1e-40, 1, 1.0, 0.0) > accuracy_bound([1e-40], 1.0)
    True
    """
    return 0.5 + steps * math.sqrt(4 * gradient + 1) / (2 * tau) * alignment ** (1 / 18)


def growth_factor(variances: Sequence[float], noise: float, degree: float = 1, printed: bool = False) -> float:
    """Proposition 2: GAL(theta + lambda H) <= factor GAL(theta) for Gaussian layers of these variances, noise lambda^2.

    Scaling layer l by C_l = sqrt(1 + lambda^2/v_l^2) scales the network by C_1^(H^(L-1)) ... C_L, and the gradient by
    a weight of layer l by that over C_l. The printed factor, prod_l C_l^(2H), is above the largest square of these
    for the ReLU (H = 1) and for L = 2; for H >= 2 and L >= 3 it is too small.

    >>> growth_factor([0.1, 0.02], 0.1), growth_factor([0.1, 0.02], 0.1, printed=True)
    (6.0, 12.0)
    >>> growth_factor([0.1, 1, 1], 1, degree=2), growth_factor([0.1, 1, 1], 1, degree=2, printed=True)
    (58564.0, 1936.0)
    """
    squares = [1 + noise / v for v in variances]
    if printed:
        return float(math.prod(squares) ** degree)
    depth = len(squares)
    return float(math.prod(c ** degree ** (depth - layer) for layer, c in enumerate(squares, start=1)) / min(squares))


def corollary2(
    alignment: float, steps: int, rate: float, tau: float, variances: Sequence[float], printed: bool = False
) -> float:
    """Corollary 2 for a ReLU network: accuracy at most 1/2 + T sqrt(factor GAL(theta^0)) / (2 tau).

    The factor is Proposition 2's at lambda^2 = T gamma^2 tau^2; equation (7) prints it without the root.
    """
    factor = growth_factor(variances, steps * (rate * tau) ** 2, printed=printed)
    return 0.5 + steps / (2 * tau) * math.sqrt(factor**2 if printed else factor) * math.sqrt(alignment)


def claim1(mean: float, most: float) -> float:
    """Claim 1: E F(psi) <= (4 R + 1) (E F(theta))^(1/9) for 0 <= F <= R and variances inflated by at most 1 + 1/P."""
    return (4 * most + 1) * mean ** (1 / 9)


def normalised_bias_variance(d: int, bias_variance: float, noise: float) -> float:
    """Equation (105): the bias's variance once noise lambda^2 is added and the unit scaled back to weights N(0, 1/d).

    >>> normalised_bias_variance(10, 1.0, 0.1)
    0.55
    """
    return (bias_variance + noise) / (1 + d * noise)


def noisy_alignment(hidden: float, output: float, d: int, n: int, noise: float) -> float:
    """GAL(theta + lambda H) of Theorem 8's network, noise lambda^2, exactly; equation (107) bounds it.

    ``hidden`` is the sum of one neuron's squared gradients by weights and bias for an output weight of variance 1, and
    ``output`` that by its output weight, both for weights N(0, 1/d) and the bias of :func:`normalised_bias_variance`.

    >>> noisy_alignment(1.0, 2.0, 10, 5, 0.0)
    11.0
    """
    return n * ((1 / n + noise) * hidden + (1 + d * noise) * output)


# --- the target of Figure 8 ---------------------------------------------------------------------------------------


LEAP_TERMS = ((1 / 8, (0, 1, 2)), (3 / 8, (0, 1, 3)), (1 / 4, (0, 2, 3)), (1 / 4, (1, 2, 3)))
"""Equation (198), as the terms of a Polynomial."""


def leap_target(x: Any) -> Any:
    """Equation (198), for inputs (..., d) of signs, NumPy or JAX.

    >>> leap_target(np.array([[1.0, 1.0, 1.0, 1.0, -1.0], [1.0, 1.0, -1.0, 1.0, 1.0]]))
    array([ 1.  , -0.25])
    """
    return sum(c * x[..., list(support)].prod(-1) for c, support in LEAP_TERMS)


def _binomial(n: int, k: int) -> int:
    return math.comb(n, k) if 0 <= k <= n else 0
