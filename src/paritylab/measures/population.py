"""Population gradients at given weights, for any target of at most 20 inputs under a product law.

The loss is the correlation loss -y f(x). The gradient is also that of the hinge loss while every |f(x)| is below the
margin (at the start f is near 0), and half of that of the square loss (f - y)^2 but for its part with f alone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from paritylab.aliases import Floats
from paritylab.errors import InvalidInput, require, unknown
from paritylab.measures import background
from paritylab.measures.coefficients import first_order, lattice_spacing, sums, tolerance
from paritylab.measures.fourier import Gradient
from paritylab.measures.precision import double
from paritylab.measures.product import chances, masses
from paritylab.measures.targets import Target, target
from paritylab.setups.networks import MLP, Neuron, activations
from paritylab.setups.networks.activations import ActivationLike

METHODS = ("auto", "enumerate", "meet", "lattice", "integral")
MOST_ENUMERATED = 24
MOST_MET = 40


def population_gradient(network: MLP | Neuron, params: Any, y: Any, p: ArrayLike = 0.5, method: str = "auto") -> Any:
    """The gradient of E -y f(x) at these params, in their shape: one hidden layer of any activation, or a neuron.

    Args:
        network: an MLP with one hidden layer, or a Neuron.
        params: as the network's ``init`` makes them, such as ``[{"w": (n, width), "b": (width,)}, {"w": (width, 1)}]``.
        y: the target: a name such as ``majority:3``, a table, pairs (coefficient, support), or a ``targets.Target``.
        p: the probability that an input is +1: one number, or one for each of the n inputs.
        method: that of :func:`unit_gradient`, which says where it is exact.

    >>> import paritylab as pl
    >>> layers = [{"w": np.ones((5, 1)), "b": np.zeros(1)}, {"w": np.array([[2.0]])}]
    >>> found = population_gradient(pl.MLP(1, output_bias=False), layers, "parity:2")
    >>> found[0]["w"][:, 0], found[1]["w"][0]  # -2 times the coefficients of 1[x_0 + ... + x_4 > 0]
    (array([-0.375, -0.375,  0.125,  0.125,  0.125]), array([-0.1875]))
    """
    layers = _layers(network, params)
    hidden, rest = layers[0], layers[1:]
    w, act = hidden["w"].T, activations.activation(network.activation)
    b = hidden.get("b", np.zeros(len(w)))
    found = unit_gradient(w, y, p, b, act, method)
    by = -rest[0]["w"][:, 0] if rest else -np.ones(1)
    gradient: list[dict[str, Floats]] = [{"w": (by[:, None] * found.weights).T}]
    if "b" in hidden:
        gradient[0]["b"] = by * found.bias
    if rest:
        read = target(y)
        outputs = -unit_mean(w, read, p, b, act, method)
        law = masses(chances(p, w.shape[1])[list(read.inputs)])
        gradient.append({"w": outputs[:, None]})
        if "b" in rest[0]:
            gradient[1]["b"] = np.array([-(law @ read.values)])
    return gradient


def unit_gradient(
    weights: ArrayLike,
    y: Any,
    p: ArrayLike = 0.5,
    bias: ArrayLike = 0.0,
    activation: ActivationLike = "relu",
    method: str = "auto",
) -> Gradient:
    """The gradient of E y a(w.x + b) by weights (..., n), one unit or many, and by biases (...).

    That is E y x_j a'(w.x + b) for each input j, and E y a'(w.x + b); input j is +1 with probability p_j. Methods:

    * ``enumerate`` visits all inputs: any activation, n <= 24.
    * ``meet`` sorts the sums of two halves: relu, n <= 40. A sum of 0 counts as not above 0.
    * ``lattice``, any activation and any n: the weights off the target are multiples of one number (such as signs),
      so that the law of their sum is known point by point.
    * ``integral``, relu and any n: by the transform of the step. It is exact up to ``error``, which is small where
      the inputs off the target are many and their weights of similar size. It counts half of a tie.

    ``auto`` takes the first that is exact and cheap. What none can do (another activation than relu, more than 24
    inputs, no lattice) is refused. Other kinks than relu's at 0 are met to rounding only.

    >>> unit_gradient([1, 1, 1, 1, 1], "parity:2").weights
    array([ 0.1875,  0.1875, -0.0625, -0.0625, -0.0625])
    >>> unit_gradient([1] * 5, [(1.0, (0, 1))], p=0.75).weights.round(4)
    array([0.5273, 0.5273, 0.1055, 0.1055, 0.1055])
    """
    return _gradient(weights, y, p, bias, _slope(activation), method)


def unit_mean(
    weights: ArrayLike,
    y: Any,
    p: ArrayLike = 0.5,
    bias: ArrayLike = 0.0,
    activation: ActivationLike = "relu",
    method: str = "auto",
) -> Floats:
    """E y a(w.x + b): what one output weight's gradient is made of. Methods are those of :func:`unit_gradient`.

    >>> float(unit_mean([3.0, 4.0], "parity:2"))
    1.5
    """
    act = activations.activation(activation)
    if act.spec == "relu":  # relu(z) = z 1[z > 0]
        found = _gradient(weights, y, p, bias, None, method)
        return (np.asarray(weights) * found.weights).sum(-1) + np.asarray(bias) * found.bias
    return _gradient(weights, y, p, bias, _double(act), method).bias


# --- one unit -----------------------------------------------------------------------------------------------------


def _gradient(
    weights: ArrayLike, y: Any, p: ArrayLike, bias: ArrayLike, function: background.Function | None, method: str
) -> Gradient:
    """E y x_j s(w.x + b) and E y s(w.x + b) for s a function of arrays; None is the step 1[z > 0]."""
    w, read = np.asarray(weights, np.float64), target(y)
    require(w.ndim >= 1 and w.shape[-1] >= 1, "a unit needs at least one weight")
    n = w.shape[-1]
    require(all(j < n for j in read.inputs), f"the target reads input {max(read.inputs, default=0)}, but there are {n}"
            f" inputs, numbered from 0 to {n - 1}")
    b = np.broadcast_to(np.asarray(bias, np.float64), w.shape[:-1])
    require(bool(np.all(np.isfinite(w)) and np.all(np.isfinite(b))), "weights and biases must be finite")
    law = chances(p, n)
    units = zip(w.reshape(-1, n), b.reshape(-1), strict=True)
    found = [_unit(one, read, law, float(offset), function, method) for one, offset in units]
    slopes, constants, errors = (np.array([each[i] for each in found]) for i in range(3))
    return Gradient(slopes.reshape(w.shape), constants.reshape(b.shape), errors.reshape(b.shape))


def _unit(
    w: Floats, read: Target, p: Floats, b: float, function: background.Function | None, method: str
) -> tuple[Floats, float, float]:
    n = len(w)
    own = np.array(read.inputs, int)
    others = np.setdiff1d(np.arange(n), own)
    method = _choose(method, n, w[others], function)
    if method in ("enumerate", "meet"):  # balance the sides: the target's inputs and some others, and the rest
        more = max(n // 2 - len(own), 0)
        own, others = np.concatenate([own, others[:more]]), others[more:]
    values = np.tile(read.values, 2 ** (len(own) - len(read.inputs)))
    c, q = sums(w[own]) + b, masses(p[own]) * values
    slack, error = float(tolerance(w, np.asarray(b))), 0.0
    gradient = np.empty(n)
    if method == "integral":
        h, gradient[others], error = background.integrals(c, q, w[others], p[others])
    else:
        if method == "lattice":
            spacing = lattice_spacing(w[others])
            points, mass, signed = background.lattice(w[others], p[others], spacing)
            slack = max(slack, 1e-9 * spacing)
        else:
            points, mass, signed = sums(w[others]), masses(p[others]), None
        if function is None:
            h, Q = background.step_means(c, q, points, mass, slack)
        else:
            h, Q = background.function_means(c, q, points, mass, function)
        gradient[others] = first_order(mass * Q, len(others)) if signed is None else signed @ Q
    gradient[own] = first_order(q * h, len(own))
    return gradient, float(q @ h), error


def _choose(method: str, n: int, others: Floats, function: background.Function | None) -> str:
    """The method meant, or the reason against it."""
    if method not in METHODS:
        raise unknown("method", method, METHODS)
    step, regular = function is None, lattice_spacing(others) > 0
    if method == "auto":
        if n <= 16:
            return "meet" if step else "enumerate"
        if regular:
            return "lattice"
        if step:
            return "meet" if n <= MOST_MET else "integral"
        require(n <= MOST_ENUMERATED, f"activations other than relu take n up to {MOST_ENUMERATED}, or weights off the"
                f" target that are multiples of one number; n is {n}")
        return "enumerate"
    if not step and method in ("meet", "integral"):
        raise InvalidInput(f"method {method!r} is for relu; other activations have 'enumerate' and 'lattice'")
    if method == "lattice":
        require(regular, "method 'lattice' needs weights off the target that are multiples of one number")
    if method in ("enumerate", "meet"):
        most = MOST_ENUMERATED if method == "enumerate" else MOST_MET
        require(n <= most, f"method {method!r} takes at most n = {most}, not {n}")
    if method == "integral":
        require(bool(np.any(others)), "method 'integral' needs weights off the target that are not all 0")
    return method


# --- activations and params ---------------------------------------------------------------------------------------


def _slope(given: ActivationLike) -> background.Function | None:
    """The derivative of an activation in double precision, with the package's conventions; None for relu's step."""
    act = activations.activation(given)
    if act.spec == "relu":
        return None
    import jax
    import jax.numpy as jnp

    return _double(lambda z: jax.jvp(act, (z,), (jnp.ones_like(z),))[1])


def _double(function: Callable[[Any], Any]) -> background.Function:
    import jax.numpy as jnp

    def of(z: Floats) -> Floats:
        with double():
            return np.asarray(function(jnp.asarray(z, jnp.float64)), np.float64)

    return of


def _layers(network: MLP | Neuron, params: Any) -> list[dict[str, Floats]]:
    known = isinstance(network, Neuron) or (isinstance(network, MLP) and len(network.widths) == 1)
    require(known, "population gradients are for an MLP with one hidden layer, or a Neuron")
    require(getattr(network, "inputs", "signs") == "signs", "population gradients are for inputs of signs, not of bits")
    try:
        layers: list[dict[str, Floats]] = [
            {name: np.asarray(value, np.float64) for name, value in layer.items()} for layer in params]
        width = layers[0]["w"].shape[1]
        right = len(layers) == (1 if isinstance(network, Neuron) else 2) and layers[0]["w"].ndim == 2
        right &= layers[0].get("b", np.zeros(width)).shape == (width,)
        right &= len(layers) == 1 or layers[1]["w"].shape == (width, 1)
    except (AttributeError, TypeError, ValueError, KeyError, IndexError):
        right, layers = False, []
    require(bool(right), "params are the network's own: a layer {'w': (n, width), 'b': (width,)}, and one of outputs")
    return layers
