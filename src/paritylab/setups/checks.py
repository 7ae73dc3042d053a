"""A Setup is tried on shapes alone before anything is computed: what a user's function does wrong is one line."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp

from paritylab.errors import InvalidInput, in_a_line, require
from paritylab.functions import fingerprints
from paritylab.functions.fingerprints import Named
from paritylab.setups import networks
from paritylab.setups.inits import Init
from paritylab.setups.networks.activations import Activation
from paritylab.setups.problems.targets import Target

Function = Callable[..., Any]
Shape = tuple[int, ...]

MOST_WEIGHTS = 2**40
"""Beyond, JAX cannot even number the random words of many starts."""


def check(setup: Any) -> None:
    """Try every part of a Setup; InvalidInput names the function that fails or returns what cannot be trained."""
    problem, learner = setup.problem, setup.learner
    optimiser = learner.optimiser
    network, law, loss, schedule = learner.network, learner.init, learner.loss, optimiser.schedule
    if setup.functions:
        problem, law = _watched_problem(problem), _watched_init(law)
        loss = _users("loss", loss, lambda f, *rest: _floats(jnp.shape(f), jnp.shape(f)[:1]))
        schedule = _users("schedule", schedule, lambda step: _reals(()))
    shape = (learner.batch, problem.n)
    key = jax.random.key(0)
    drawn = _tried("the inputs", lambda: problem.draw(key, learner.batch))
    x = _tried("the inputs", lambda: problem.signs(jnp.zeros(drawn.shape, drawn.dtype), problem.mask))
    y = _tried("the target", lambda: problem.labels(jnp.zeros(drawn.shape, drawn.dtype), problem.mask))
    random = {"key": key} if networks.takes_key(network) else {}
    network = _watched_network(network, y.shape) if setup.functions else network
    where = f"network {type(learner.network).__name__} on inputs of shape {shape}"
    params = _tried(where, lambda: network.init(key, problem.n, law))
    weights = sum(leaf.size for leaf in jax.tree.leaves(params))
    require(weights <= MOST_WEIGHTS, f"{where} has more than 2^40 weights")
    f, wanted = _tried(where, network.apply, params, x), _floats(y.shape)
    as_target = " as the target does," * (len(y.shape) > 1)
    require(_is(f, wanted), f"{where} must return {wanted[2]},{as_target} not {_said(f)}")
    losses = _tried("the loss", loss, f, f, params, x)
    require(getattr(getattr(problem, "target", None), "counted", None) is None or losses.shape == f.shape,
            f"shares that count (counted=) need a loss of each output, of shape {f.shape}, not {losses.shape}")
    _tried("the schedule", schedule, jax.ShapeDtypeStruct((), "int32"))
    rates = optimiser.layer_rates(params)
    if not setup.functions:
        return

    def value(params: Any, x: Any, y: Any) -> Any:
        return jnp.mean(loss(network.apply(params, x, **random), y, params, x))

    gradient = _tried("the gradient", jax.grad(value), params, x, f)
    rule = getattr(optimiser, "transformation", None)
    name = f"optimiser {fingerprints.name(optimiser if rule is None else rule.update)}"

    def move(g: Any, p: Any, x: Any, y: Any) -> Any:
        told = {"value": value(p, x, y), "grad": g, "value_fn": lambda p: value(p, x, y)}
        return optimiser.move(g, optimiser.start(p), p, rates, 0, **{name: told[name] for name in optimiser.sees})[0]

    moved = _tried(name, move, gradient, params, x, f)
    shapes = jax.tree.map(jnp.shape, (moved, params))
    require(shapes[0] == shapes[1], f"{name} must return updates of the params' shapes {shapes[1]}, not {shapes[0]}")


def _tried(what: str, function: Function, *arguments: Any) -> Any:
    """The shapes that a function returns; whatever it raises becomes one line."""
    return _called(what, jax.eval_shape, function, *arguments)


def _called(what: str, function: Function, *arguments: Any) -> Any:
    try:
        return function(*arguments)
    except InvalidInput as error:
        raise InvalidInput(str(error)) from error.__cause__  # without what JAX has added to it
    except Exception as error:
        raise InvalidInput(f"{what} failed: {in_a_line(error)}") from error


# --- what a function must return ----------------------------------------------------------------------------------

Demand = tuple[tuple[Shape, ...], tuple[Any, ...], str]
"""The shapes and the kinds of numbers that are allowed, and both in words."""


def _floats(*shapes: Shape) -> Demand:
    return shapes, (jnp.floating,), f"floating-point numbers of shape {_or(shapes)}"


def _reals(*shapes: Shape) -> Demand:
    return shapes, (jnp.floating, jnp.integer), f"real numbers of shape {_or(shapes)}"


def _or(shapes: tuple[Shape, ...]) -> str:
    return " or ".join(dict.fromkeys(map(str, shapes)))


def _is(value: Any, demand: Demand) -> bool:
    shapes, kinds, _ = demand
    if not (isinstance(value, (bool, int, float, complex)) or (hasattr(value, "dtype") and hasattr(value, "shape"))):
        return False
    return jnp.shape(value) in shapes and any(jnp.issubdtype(jnp.result_type(value), kind) for kind in kinds)


def _said(value: Any) -> str:
    """A value in a few words: ``int32 of shape (8,)``, ``None``, ``a list``."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype} of shape {tuple(value.shape)}"
    return "None" if value is None else f"a {type(value).__name__}"


# --- functions that say who they are --------------------------------------------------------------------------------


def _watched(name: str, function: Function, demand: Callable[..., Demand]) -> Function:
    """A function whose errors name it, and that returns what ``demand`` says of its arguments."""

    @functools.wraps(function)  # it asks for the same
    def watched(*arguments: Any, **more: Any) -> Any:
        returned, wanted = _called(name, functools.partial(function, **more), *arguments), demand(*arguments)
        require(_is(returned, wanted), f"{name} must return {wanted[2]}, not {_said(returned)}")
        return returned

    return watched


def _users(place: str, part: Any, demand: Callable[..., Demand]) -> Any:
    """An activation, loss or schedule: watched if it is the user's own."""
    if "@" not in part.spec:
        return part
    return replace(part, function=_watched(f"{place} {fingerprints.name(part.function)}", part.function, demand))


def _watched_problem(problem: Any) -> Any:
    """One whose functions of the user's own are watched."""
    if problem.sampler is not None:
        name = f"inputs {fingerprints.name(problem.sampler)}"
        problem = problem.with_sampler(_watched(name, problem.sampler, lambda key, count, n: _reals((count, n))))
    target = getattr(problem, "target", None)
    if target is not None and not isinstance(target, Target):
        problem = replace(problem, target=_watched_target(target))
    return problem


def _watched_target(target: Function) -> Function:
    """One that returns a label for each input, or as many for each."""
    name = f"target {fingerprints.name(target)}"

    def watched(x: Any) -> Any:
        returned, count = _called(name, target, x), jnp.shape(x)[0]
        outputs = jnp.shape(returned)[1:2] if hasattr(returned, "shape") else ()
        allowed = _is(returned, _reals((count,), (count, *outputs))) and outputs != (0,)
        require(allowed, f"{name} must return real numbers of shape ({count},) or ({count}, outputs),"
                         f" not {_said(returned)}")
        return returned

    return watched


def _watched_init(law: Init) -> Init:
    if "@" not in law.spec:
        return law
    sample = _watched(f"init {fingerprints.name(law.sample)}", law.sample, lambda key, shape: _reals(tuple(shape)))
    scale = _watched(f"scale {fingerprints.name(law.scale)}", law.scale, lambda fan_in, fan_out: _reals(()))
    return replace(law, sample=sample, scale=scale)


def _watched_network(network: Any, outputs: Shape) -> Any:
    """A network of the user's own, or one of ours with an activation of theirs; it must have outputs of this shape."""
    if type(network).__module__.startswith("paritylab.") and not isinstance(network, (networks.Network, Named)):
        parts = {field.name: getattr(network, field.name) for field in dataclasses.fields(network)}
        activations = {name: part for name, part in parts.items() if isinstance(part, Activation)}
        same = lambda z: _floats(jnp.shape(z))  # noqa: E731
        return replace(network, **{name: _users("activation", part, same) for name, part in activations.items()})
    own = isinstance(network, networks.Network)
    functions = (network.make, network.forward) if own else (network.init, network.apply)
    make, forward = (fingerprints.name(function) for function in functions)

    def init(key: Any, n: int, law: Init) -> Any:
        params = _called(f"network {make}", network.init, key, n, law)
        leaves = jax.tree.leaves(params)
        require(len(leaves) > 0, f"network {make} must return params, arrays in a pytree, not {_said(params)}")
        for leaf in leaves:
            floats = hasattr(leaf, "shape") and _is(leaf, _floats(leaf.shape))
            require(floats, f"network {make} must return floating-point arrays as params, not {_said(leaf)}")
        return params

    name = f"network {forward}, given params by {make},"
    return SimpleNamespace(init=init, apply=_watched(name, network.apply, lambda params, x: _floats(outputs)))
