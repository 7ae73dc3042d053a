"""Gradient alignment of Abbe et al. (2024), E |Gamma_f - Gamma_r|^2, exactly and in polynomial time.

f is the parity of ``degree`` of the d inputs, or a sum of parities; Gamma_f is the population gradient at random
initial weights and Gamma_r the one on random labels. One method for each module; they share ``laws`` (of weights and
biases) and ``units``.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from paritylab.errors import InvalidInput, require, unknown
from paritylab.measures.alignment import polynomials, units
from paritylab.measures.alignment.found import Found
from paritylab.measures.alignment.laws import Law, bias_law, law, rational
from paritylab.measures.alignment.montecarlo import PARTS, Sampling
from paritylab.running import crews
from paritylab.setups import inits
from paritylab.setups.losses import LossLike

UNITS = ("threshold", "relu", "network", "hinge-neuron")
METHODS = ("integral", "lattice", "pairs", "enumerate", "monte-carlo")
CHEAP = 2e5
MOST_INPUTS = 10**9
"""Additions of big integers that are worth an exact rational."""
Coefficient = Callable[[units.Unit, int], Found]
BiasLike = float | Fraction | str | inits.Init | None
ScaleLike = float | tuple[float, float] | Literal["fan-in"] | None


@dataclass(frozen=True)
class Alignment:
    """``value`` with an estimate of its absolute ``error`` (``monte-carlo``: half a 95 % interval).

    ``log`` is the natural logarithm of the value, also where that is below the least float; ``exact`` the value as a
    rational where known, ``digits`` its certified decimals (``pairs``), ``parts`` what it consists of.
    """

    value: float
    error: float
    method: str
    seconds: float
    log: float
    exact: Fraction | None = None
    digits: str | None = None
    parts: dict[str, float] = field(default_factory=dict[str, float])


def alignments(asked: Sequence[Mapping[str, Any]]) -> list[Alignment]:
    """The alignment for each of these arguments of :func:`alignment`; a crew computes several at a time.

    >>> [found.value for found in alignments([{"init": "rademacher", "d": d} for d in (3, 5)])]
    [0.0625, 0.03515625]
    """
    found = dict(crews.each(_aligned, [(dict(arguments),) for arguments in asked]))
    return [found[place] for place in range(len(asked))]


def _aligned(arguments: Mapping[str, Any]) -> Alignment:
    return alignment(**arguments)


def alignment(
    init: inits.InitLike,
    d: int,
    degree: int | None = None,
    *,
    unit: str = "threshold",
    bias: BiasLike = None,
    width: int | None = None,
    method: str | None = None,
    scale: ScaleLike = None,
    loss: LossLike = "correlation",
    draws: int = 1000,
    inputs: int | None = None,
    seed: int = 0,
    moved: float = 0.0,
    terms: Sequence[tuple[float, Sequence[int]]] | None = None,
) -> Alignment:
    """The alignment of one unit or a two-layer network with a parity, exactly and in polynomial time.

    Args:
        init: the law of the weights, by name or as an init of one's own.
        d: the number of inputs.
        degree: how many of them the parity has; all unless said.
        unit: ``threshold``, E_w (E_x chi 1[w.x + b >= 0])^2 (the paper's eq. 10); ``relu``, the same for ReLU (a
            gradient by an output weight); ``network``, GAL of sum_i v_i ReLU(w_i.x + b_i), all gradients by weights,
            biases (also if they start at 0) and output weights; ``hinge-neuron``, one coordinate of GAL for the loss
            max(0, 1 - y ReLU(w.x + b)), of an input in the parity (``parts`` has the others).
        bias: None or 0, a number, ``gaussian:0.7``, any init, or ``same`` (the weights' law and scale).
        width: units of a ``network``.
        method: None chooses ``lattice`` for discrete weights and ``integral`` for others; also ``pairs``,
            ``enumerate`` and ``monte-carlo``.
        scale: multiplies weights: a number, two (hidden, output), or ``fan-in``, as the init scales layers.
        loss: of a ``network`` with ``monte-carlo``; the others have the correlation loss.
        draws: of weights, for ``monte-carlo``.
        inputs: for each draw of ``monte-carlo``; all 2^d unless said.
        seed: of ``monte-carlo``.
        moved: the alignment after each hidden weight, and the bias if there is one, has moved by an independent
            N(0, (moved * s)^2), s the root mean square of the law: relative to the weights, whatever their scale.
            Output weights and scales stay as they are. Exact: phi(u) becomes phi(u) exp(-(moved s u)^2 / 2).
        terms: instead of a degree, pairs (coefficient, support): the alignment with a sum of parities, for all units
            but ``hinge-neuron`` and all methods but ``enumerate`` and ``monte-carlo``. If the law of a weight is
            symmetric about 0, it is the sum of c^2 times the alignment of each parity (``alignment.polynomials``).
            Other laws have terms for every two parities too, and must be discrete. ``weights in S`` are those of all
            supports.

    >>> alignment("rademacher", 7).exact
    Fraction(25, 1024)
    >>> f"{alignment('perturbed-rademacher:0.1', 201).value:.8e}"
    '1.01589213e-05'
    >>> f"{alignment('rademacher', 201, moved=0.1).value:.8e}"
    '1.01589213e-05'
    >>> alignment("rademacher", 7, terms=[(2, (0,)), (1, (0, 1, 2))]).exact  # 4 times (5/32)^2, and (1/32)^2
    Fraction(101, 1024)
    """
    began = time.perf_counter()
    require(terms is None or degree is None, "say a degree or terms, not both")
    degree = d if degree is None else degree
    require(isinstance(d, int) and 1 <= d <= MOST_INPUTS, f"d must be a whole number from 1 to 10^9, not {d}")
    require(isinstance(degree, int) and 1 <= degree <= d, f"the degree must be from 1 to d = {d}, not {degree}")
    if unit not in UNITS:
        raise unknown("unit", unit, UNITS)
    require(width is None or unit == "network", "only a network has a width")
    require(width is None or (isinstance(width, int) and width >= 1), f"the width must be at least 1, not {width}")
    require(loss == "correlation" or (unit == "network" and method == "monte-carlo"),
            "a loss is for unit 'network' and method 'monte-carlo'; the others have the correlation loss")
    require(math.isfinite(moved) and moved >= 0, f"a movement must be at least 0, not {moved}")
    require(not moved or not (unit == "network" and method == "monte-carlo"),
            "weights that moved are not for a sampled network; use method 'integral'")
    require(terms is None or (unit != "hinge-neuron" and method not in ("enumerate", "monte-carlo")),
            "sums of parities are for units threshold, relu and network and methods integral, lattice and pairs")
    start, width = law(init), width or 1
    movement = moved * math.sqrt(start.second_moment)
    weights = start.moved(movement)
    hidden, output = scales(init, d, width, scale)
    # In units of the scale: z = scale (w.x + b / scale).
    biases = start if bias == "same" else bias_law(bias).scaled(1 / rational(hidden))
    biases = biases if bias is None else biases.moved(movement)
    method = method or ("lattice" if weights.discrete else "integral")
    sampling = Sampling(draws, inputs, seed)
    if unit == "network" and method == "monte-carlo":
        from paritylab.measures.alignment.montecarlo import Network, sample_networks

        network = Network(weights, biases.scaled(rational(hidden)), width, hidden, output)
        parts = sample_networks(network, d, degree, loss, sampling)
        found = parts.pop("total")
    else:
        coefficient = _method(method, weights, biases, d, sampling)
        if terms is None:
            parts = _parts(unit, coefficient, d, degree, hidden, output, width, start)
        else:
            pair = polynomials.pairs(weights, biases, d, coefficient)
            square = _output_square(output, width, start)
            parts = polynomials.parts(unit, pair, polynomials.terms(terms, d), d, rational(hidden) ** 2, square, width)
        found = parts.pop("total")
    exact = None if scale == "fan-in" else found.exact  # the scale is rounded
    values = {name: part.value for name, part in parts.items()}
    seconds = time.perf_counter() - began
    return Alignment(found.value, found.absolute_error, method, seconds, found.log_value, exact, found.digits, values)


def _parts(
    unit: str, coefficient: Coefficient, d: int, k: int, hidden: float, output: float, width: int, law: Law
) -> dict[str, Found]:
    """The value ("total") and its parts, from the coefficients of steps and ramps."""
    by_scale = rational(hidden) ** 2
    if unit == "threshold":
        return {"total": coefficient(units.THRESHOLD, k)}
    if unit == "relu":
        return {"total": coefficient(units.RELU, k).times(by_scale)}
    if unit == "hinge-neuron":
        step = units.HINGE.rescaled(rational(hidden))
        inside = coefficient(step, k - 1)
        if k == d:
            return {"total": inside, "all coordinates": inside.times(k)}
        outside = coefficient(step, k + 1)
        every = inside.times(k) + outside.times(d - k)
        return {"total": inside, "a coordinate outside S": outside, "all coordinates": every}
    square = _output_square(output, width, law)
    inside = coefficient(units.THRESHOLD, k - 1).times(k * square)
    outside = coefficient(units.THRESHOLD, k + 1).times((d - k) * square) if k < d else Found.rational(Fraction(0))
    biases = coefficient(units.THRESHOLD, k).times(square)
    outputs = coefficient(units.RELU, k).times(width * by_scale)
    parts = dict(zip(PARTS, (inside, outside, biases, outputs), strict=True))
    return {**parts, "total": inside + outside + biases + outputs}


def _output_square(output: float, width: int, law: Law) -> Fraction:
    """The mean of the sum of squared output weights."""
    return width * rational(output) ** 2 * (law.mean_square if law.discrete else Fraction(law.second_moment))


def _method(method: str, weights: Law, biases: Law, d: int, sampling: Sampling) -> Coefficient:
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    if method == "integral":
        from paritylab.measures.alignment.integral import integrate

        require(not weights.discrete, "the integral needs weights with a density; these are discrete: use 'lattice'")
        return lambda unit, k: integrate(weights, biases, d, k, unit)
    if method == "lattice":
        from paritylab.measures.alignment.lattice import lattice_sum
        from paritylab.measures.alignment.pairs import cost, rational_sum

        require(weights.discrete, "the lattice needs discrete weights; these have a density: use 'integral'")
        if biases.discrete and cost(weights, d) * len(biases.atoms) <= CHEAP:
            return lambda unit, k: Found.rational(rational_sum(weights, biases, d, k, unit))
        return lambda unit, k: lattice_sum(weights, biases, d, k, unit)
    if method == "pairs":
        from paritylab.measures.alignment.pairs import pair_sum

        return lambda unit, k: pair_sum(weights, biases, d, k, unit)
    if method == "enumerate":
        from paritylab.measures.alignment.enumerate import enumerate_weights

        return lambda unit, k: enumerate_weights(weights, biases, d, k, unit)
    from paritylab.measures.alignment.montecarlo import sample_weights

    return lambda unit, k: sample_weights(weights, biases, d, k, unit, sampling)


def scales(init: inits.InitLike, d: int, width: int, given: Any) -> tuple[float, float]:
    """The factors of hidden and output weights: 1 unless given.

    >>> scales("gaussian", 4, 25, "fan-in")
    (0.5, 0.2)
    """
    if given is None:
        return 1.0, 1.0
    if given == "fan-in":
        chosen = inits.init(init)
        return chosen.scale(d, width), chosen.scale(width, 1)
    try:
        pair: Any = given if isinstance(given, (tuple, list)) else (given, given)
        hidden, output = (float(part) for part in pair)
    except (TypeError, ValueError):
        raise InvalidInput(f"a scale is a number, two numbers or 'fan-in', not {given!r}") from None
    require(all(math.isfinite(x) and x > 0 for x in (hidden, output)), f"a scale must be positive, not {given!r}")
    return hidden, output
