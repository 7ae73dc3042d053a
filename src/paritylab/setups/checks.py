"""A Setup is tried on shapes alone before anything is computed: what a user's function does wrong is one line.

All of the user's functions are called as training and its checks will call them. That is also how they are traced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from paritylab.errors import InvalidInput, in_a_line, require
from paritylab.functions.named import title
from paritylab.later import jax, jnp
from paritylab.setups import networks
from paritylab.setups.objective import Batch, Objective

Function = Callable[..., Any]
Shape = tuple[int, ...]
Wrong = tuple[str, str]
"""What a function should have returned and what it did, in words; empty if it is right."""

FIRST, BLOCK = 16, 128
"""How many inputs networks are judged on at a time: at first, and from then on."""
MOST_WEIGHTS = 2**40
"""Beyond, JAX cannot even number the random words of many starts."""


def rehearse(setup: Any) -> None:
    """Try every part of a Setup; InvalidInput names the function that fails or returns what cannot be trained."""
    problem, learner = setup.problem, setup.learner
    network, optimiser, batch = learner.network, learner.optimiser, learner.batch
    key, step = jax.eval_shape(jax.random.key, 0), jax.ShapeDtypeStruct((), "int32")
    sizes = [batch] if problem.sample is None else [batch, problem.sample]
    trained = [_examples(problem, lambda key, size=size: problem.draw(key, size), key) for size in sizes]
    judged = [_examples(problem, lambda key, size=size: problem.draw_block(key, 0, size), key)
              for size in ((FIRST, BLOCK) if problem.packed else (BLOCK,))]
    x, y = trained[0]
    named = title(getattr(network, "forward", network)) if networks.is_own(network) else type(network).__name__
    where = f"network {named} on inputs of shape {x.shape}"
    params = _tried(where, lambda key: network.init(key, problem.n, learner.init), key)
    weights = sum(leaf.size for leaf in jax.tree.leaves(params))
    require(weights <= MOST_WEIGHTS, f"{where} has more than 2^40 weights")
    as_target = " as the target does," * (len(y.shape) > 1)
    random = [key] if networks.takes_key(network) else []
    for (inputs, labels), keys in [(trained[0], random), *((each, []) for each in [trained[0], *judged])]:
        f = _tried(where, lambda p, x, *keys: network.apply(p, x, **dict(zip(["key"], keys, strict=False))),
                   params, inputs, *keys)
        wanted, said = _unless(f, FLOATS, labels.shape)
        require(not wanted, f"{where} must return {wanted},{as_target} not {said}")
        losses = _tried("the loss", learner.loss, f, labels, params, inputs)
        require(getattr(getattr(problem, "target", None), "counted", None) is None or losses.shape == f.shape,
                f"shares that count (counted=) need a loss of each output, of shape {f.shape}, not {losses.shape}")
    _tried("the schedule", optimiser.schedule, step)
    rates = _tried("the rates", optimiser.layer_rates, params)
    if setup.functions:
        told = Batch(x, y, step, *random)
        _rehearse_update(setup, told, params, jax.tree.map(lambda _: jax.ShapeDtypeStruct((), jnp.float32), rates))


def _rehearse_update(setup: Any, batch: Batch, params: Any, lr: Any) -> None:
    """The same for the gradient and where it leads."""
    loss, optimiser = Objective(setup), setup.learner.optimiser
    value, gradient = _tried("the gradient", lambda batch, p: jax.value_and_grad(loss.at(batch))(p), batch, params)
    rule = getattr(optimiser, "rule", getattr(optimiser, "transformation", optimiser))
    name = f"optimiser {title(rule)}"
    state = _tried(name, optimiser.start, params)

    def move(g: Any, state: Any, p: Any, lr: Any, value: Any, batch: Batch) -> Any:
        told = {"value": value, "grad": g, "value_fn": loss.at(batch)}
        return optimiser.move(g, state, p, lr, batch.step, **{name: told[name] for name in optimiser.sees})[0]

    moved = _tried(name, move, gradient, state, params, lr, value, batch)
    shapes = jax.tree.map(jnp.shape, (moved, params))
    require(shapes[0] == shapes[1], f"{name} must return updates of the params' shapes {shapes[1]}, not {shapes[0]}")


def _examples(problem: Any, draw: Function, key: Any) -> tuple[Any, Any]:
    """The shapes of drawn inputs as a network sees them, and of their labels."""
    drawn = _tried("the inputs", draw, key)
    x = _tried("the inputs", lambda drawn: problem.signs(drawn, problem.mask), drawn)
    return x, _tried("the target", lambda drawn: problem.labels(drawn, problem.mask), drawn)


def _tried(what: str, function: Function, *arguments: Any) -> Any:
    """The shapes that a function returns; whatever it raises becomes one line."""
    try:
        return jax.eval_shape(function, *arguments)
    except InvalidInput as error:
        raise InvalidInput(str(error)) from error.__cause__  # without what JAX has added to it
    except Exception as error:
        raise InvalidInput(f"{what} failed: {in_a_line(error)}") from error


# --- what a function must return ----------------------------------------------------------------------------------

FLOATS, REALS = (np.floating,), (np.floating, np.integer)
NUMBERS = {FLOATS: "floating-point numbers", REALS: "real numbers"}


def _unless(value: Any, kinds: tuple[Any, ...], *shapes: Shape) -> Wrong:
    """What a function should have returned, and what it did; nothing if its numbers are of these kinds and a shape."""
    numbers = isinstance(value, (bool, int, float, complex)) or (hasattr(value, "dtype") and hasattr(value, "shape"))
    if numbers and jnp.shape(value) in shapes and any(jnp.issubdtype(jnp.result_type(value), kind) for kind in kinds):
        return "", ""
    return f"{NUMBERS[kinds]} of shape {' or '.join(dict.fromkeys(map(str, shapes)))}", said(value)


def said(value: Any) -> str:
    """A value in a few words: ``int32 of shape (8,)``, ``None``, ``a list``."""
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return f"{value.dtype} of shape {tuple(value.shape)}"
    return "None" if value is None else f"a {type(value).__name__}"


def _labels(returned: Any, x: Any) -> Wrong:
    """A label for each input, or as many for each."""
    count, outputs = jnp.shape(x)[0], jnp.shape(returned)[1:2] if hasattr(returned, "shape") else ()
    if outputs != (0,) and not _unless(returned, REALS, (count,), (count, *outputs))[0]:
        return "", ""
    return f"real numbers of shape ({count},) or ({count}, outputs)", said(returned)


def _params(returned: Any, *arguments: Any) -> Wrong:
    """Floating-point arrays in a pytree."""
    leaves = jax.tree.leaves(returned)
    if not leaves:
        return "params, arrays in a pytree", said(returned)
    wrong = [leaf for leaf in leaves if not hasattr(leaf, "shape") or _unless(leaf, FLOATS, jnp.shape(leaf))[0]]
    return ("floating-point arrays as params", said(wrong[0])) if wrong else ("", "")


def _outputs(returned: Any, params: Any, x: Any, *key: Any) -> Wrong:
    """Floating-point numbers; how many is seen where the target is known."""
    return _unless(returned, FLOATS, jnp.shape(returned) if hasattr(returned, "shape") else jnp.shape(x)[:1])


DEMANDS: dict[str, Callable[..., Wrong]] = {
    "inputs": lambda returned, key, count, n: _unless(returned, REALS, (count, n)),
    "target": _labels,
    "init": lambda returned, key, shape: _unless(returned, REALS, tuple(shape)),
    "scale": lambda returned, *fans: _unless(returned, REALS, ()),
    "loss": lambda returned, f, *rest: _unless(returned, FLOATS, jnp.shape(f), jnp.shape(f)[:1]),
    "schedule": lambda returned, step: _unless(returned, REALS, ()),
    "activation": lambda returned, z: _unless(returned, FLOATS, jnp.shape(z)),
    "make": _params,
    "forward": _outputs,
    "network.init": _params,
    "network.apply": _outputs,
}
"""What each of a user's functions must return, by its place in a Setup."""
WORDS = {"make": "network", "forward": "network", "transformation": "optimiser"}
"""What errors call a place, where it is not by its name."""
