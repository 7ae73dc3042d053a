"""What an update costs, in floating-point operations, by one formula for every optimiser, a user's own too.

The gradient costs what :func:`paritylab.running.cost.step_flops` says. What the optimiser does with it is counted in
its own program: one for every number that an arithmetic operation puts out (sums, products, quotients, roots, signs,
comparisons alike), one for every number that a sum is over, 2 a b c for a product of matrices (a, b) and (b, c), and a
loop as often as it runs. Copies, shapes, random numbers and whole numbers are free.
"""

from __future__ import annotations

import math
from typing import Any

import jax
import jax.numpy as jnp

from paritylab.running.cost import step_flops
from paritylab.setups.setup import Setup

FREE = frozenset({
    "broadcast_in_dim", "reshape", "transpose", "squeeze", "slice", "dynamic_slice", "concatenate",
    "convert_element_type", "copy", "iota", "select_n", "stop_gradient", "gather", "scatter", "pad", "rev", "split",
    "expand_dims", "dynamic_update_slice", "bitcast_convert_type",
})
REDUCTIONS = frozenset({"reduce_sum", "reduce_max", "reduce_min", "reduce_prod", "cumsum", "argmax", "argmin"})


def update_flops(setup: Setup) -> float:
    """Of one update of one network: the gradient and what the optimiser does with it."""
    return step_flops(setup) + optimiser_flops(setup)


def optimiser_flops(setup: Setup) -> float:
    """
    >>> from paritylab import SGD, Learner, MLP, Parity
    >>> optimiser_flops(Setup(Parity(30, 3), Learner(MLP(10), optimiser=SGD(0.1))))  # 2 for each of 321 weights
    642.0
    """
    optimiser = setup.learner.optimiser
    params = jax.eval_shape(setup.params, jax.random.key(0))
    state = jax.eval_shape(optimiser.start, params)
    rates = jax.tree.map(lambda _: jax.ShapeDtypeStruct((), jnp.float32), params)
    seen = {"value": jax.ShapeDtypeStruct((), jnp.float32), "grad": params, "value_fn": None}
    asked = {name: seen[name] for name in optimiser.sees if seen[name] is not None}

    def move(gradient: Any, state: Any, params: Any, rates: Any, step: Any, asked: Any) -> Any:
        return optimiser.move(gradient, state, params, rates, step, **asked)

    step = jax.ShapeDtypeStruct((), jnp.int32)
    return counted(jax.make_jaxpr(move)(params, state, params, rates, step, asked).jaxpr)


def counted(jaxpr: Any) -> float:
    """The operations of a program."""
    return float(sum(_of(equation) for equation in jaxpr.eqns))


def _of(equation: Any) -> float:
    name, params = equation.primitive.name, equation.params
    if name == "dot_general":
        (contracted, _), _ = params["dimension_numbers"]
        shape = equation.invars[0].aval.shape
        return 2.0 * _numbers(equation.outvars) * math.prod(shape[axis] for axis in contracted)
    if name == "scan":
        return params["length"] * counted(params["jaxpr"].jaxpr)
    if name == "cond":
        return max(counted(branch.jaxpr) for branch in params["branches"])
    inner = [value for value in params.values() if hasattr(value, "eqns") or hasattr(value, "jaxpr")]
    if inner:  # a function within, or a loop of unknown length, which counts once
        return sum(counted(getattr(each, "jaxpr", each)) for each in inner)
    if name in FREE:
        return 0.0
    return float(_numbers(equation.invars if name in REDUCTIONS else equation.outvars))


def _numbers(variables: Any) -> int:
    """How many numbers with a point there are in these arrays; comparisons put out truth values, which count."""
    kinds = "fb"
    return sum(math.prod(each.aval.shape) for each in variables if each.aval.dtype.kind in kinds or
               each.aval.dtype == jnp.bfloat16)
