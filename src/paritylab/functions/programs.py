"""What a function computes, as JAX traces it: a program that can be run, and a digest of it that names and lines of
source do not enter.

JAX keeps what it once traced, by the function's identity, and would not notice that a global has changed since. So
tracing is done in a context of its own, in which nothing kept is used.
"""

from __future__ import annotations

import contextlib
import enum
import functools
import hashlib
import importlib
import itertools
import sys
import types
from collections.abc import Callable, Generator, Sequence
from typing import Any, NamedTuple

import numpy as np

from paritylab.errors import InvalidInput, in_a_line
from paritylab.later import core, jax, jnp, random

LENGTH = 16
NOT_COMPUTED = frozenset({"name", "debug_info", "source_info"})
RULES = frozenset({"jvp_jaxpr_fun", "jvp_jaxpr_thunk", "fwd_jaxpr_thunk", "bwd", "out_trees"})
"""Parameters of ``custom_jvp`` and ``custom_vjp``: what they compute is in a program's derivative."""
GENERATORS = "threefry_prng_impl", "rbg_prng_impl", "unsafe_rbg_prng_impl"
FUNCTIONS = types.FunctionType, types.BuiltinFunctionType, types.MethodType, functools.partial

_apart = functools.cache(lambda: jax.make_user_context())
_numbers = itertools.count()


@contextlib.contextmanager
def afresh() -> Generator[None, None, None]:
    """Within, JAX uses no trace that was made before."""
    with _apart()(next(_numbers)):
        yield


def in_single_precision() -> Any:
    """Within, JAX has the kinds of numbers that training has."""
    place: Any = jax if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental")  # before JAX 0.8
    return place.enable_x64(False)


class Untold(InvalidInput):
    """What a function computes cannot be told from its program."""


class Program(NamedTuple):
    """A function of arrays at given shapes: its operations, the tree that it returns, and what both compute."""

    operations: core.ClosedJaxpr
    tree: Any
    digest: str
    derivative: Derivative | Untold | None

    def __call__(self, arrays: Sequence[Any]) -> Any:
        if self.derivative is None:
            run = core.jaxpr_as_fun(self.operations)
        elif isinstance(self.derivative, Untold):
            run = _without_derivative(self.operations, self.derivative)
        else:
            run = _with_derivative(self.operations, self.derivative)
        return jax.tree.unflatten(self.tree, run(*arrays))


def program(
    function: Callable[..., Any],
    shapes: Sequence[jax.ShapeDtypeStruct],
    vouched: bool = False,
    precision: str = "highest",
) -> Program:
    """The program of a function of arrays of these shapes; without a digest if its user vouches for it.

    ``precision`` is that of matrix products for which the function asks for none.

    >>> x = jax.ShapeDtypeStruct((3,), np.float32)
    >>> program(lambda x: 2 * x, [x]).digest == program(lambda renamed: 2 * renamed, [x]).digest
    True
    >>> program(lambda x: 2 * x, [x]).digest == program(lambda x: 3 * x, [x]).digest
    False
    """
    with afresh(), jax.default_matmul_precision(precision):
        operations, returned = jax.make_jaxpr(lambda *arrays: function(*arrays), return_shape=True)(*shapes)
        if vouched:
            return Program(operations, jax.tree.structure(returned), "", None)
        found = _Digest()
        found.program(operations.jaxpr, operations.consts)
        leaves, _ = jax.tree_util.tree_flatten_with_path(returned)
        found.tell("returns", *(jax.tree_util.keystr(path) for path, _ in leaves))
        derivative = _derivative(operations, "custom_vjp" in found.rules) if found.rules else None
        for part in derivative if isinstance(derivative, Derivative) else ():
            if part is not None:
                found.program(part.jaxpr, part.consts)
    return Program(operations, jax.tree.structure(returned), found.hexadecimal, derivative)


# --- digests ----------------------------------------------------------------------------------------------------------


class _Digest:
    """A digest of programs, fed part by part: variables by the order in which they come, inner programs in place."""

    def __init__(self) -> None:
        self._sum = hashlib.sha256()
        self.rules: set[str] = set()

    @property
    def hexadecimal(self) -> str:
        return self._sum.hexdigest()[:LENGTH]

    def tell(self, *parts: str | bytes) -> None:
        for part in parts:
            data = part.encode() if isinstance(part, str) else part
            self._sum.update(f"{len(data)}:".encode() + data)

    def program(self, jaxpr: core.Jaxpr, consts: Sequence[Any]) -> None:
        if jaxpr.effects:
            raise Untold(f"it does more than compute ({', '.join(sorted(map(str, jaxpr.effects)))})")
        numbers: dict[core.Var, int] = {}

        def variables(atoms: Sequence[Any]) -> None:
            for atom in atoms:
                self.tell(_kind(atom.aval))
                if isinstance(atom, core.Literal):
                    self.array(np.asarray(atom.val, getattr(atom.aval, "dtype", None)))
                else:
                    self.tell(str(numbers.setdefault(atom, len(numbers))))

        self.tell("program", str(len(jaxpr.eqns)))
        variables(jaxpr.constvars)
        for const in consts:
            self.array(const)
        variables(jaxpr.invars)
        for equation in jaxpr.eqns:
            name = equation.primitive.name
            if "callback" in name:
                raise Untold(f"it calls Python while it trains ({name})")
            if name == "ffi_call" or not _of_jax(equation.primitive):
                raise Untold(f"it calls code that JAX does not trace ({name})")
            self.tell(name)
            variables(equation.invars)
            rules = [rule for rule in ("custom_jvp", "custom_vjp") if name.startswith(rule)]
            own = RULES if rules else frozenset[str]()
            self.rules.update(rules)
            for parameter in sorted(equation.params.keys() - own - NOT_COMPUTED):
                if (value := equation.params[parameter]) is not None:  # as later versions of JAX add some
                    self.tell(parameter)
                    self.value(value, f"{parameter} of {name}")
            variables(equation.outvars)
        variables(jaxpr.outvars)

    def array(self, given: Any) -> None:
        if jnp.issubdtype(given.dtype, jax.dtypes.prng_key):
            self.tell(str(jax.random.key_impl(given)))
            given = jax.random.key_data(given)
        array = np.asarray(given)
        self.tell(str(array.dtype), str(array.shape), array.tobytes())

    def value(self, given: Any, where: str) -> None:
        """A parameter of an operation."""
        self.tell(type(given).__name__)
        if isinstance(given, core.ClosedJaxpr):
            self.program(given.jaxpr, given.consts)
        elif isinstance(given, core.Jaxpr):
            self.program(given, ())
        elif any(given is getattr(random, name) for name in GENERATORS):
            self.tell(given.name)
        elif isinstance(given, (tuple, list)):
            self.tell(str(len(given)))
            for item in given:
                self.value(item, where)
        elif isinstance(given, dict):
            self.value(list(given.items()), where)
        elif isinstance(given, (np.ndarray, np.generic, jax.Array)):
            self.array(given)
        elif isinstance(given, enum.Enum):
            self.tell(given.name)
        elif " at 0x" in (text := repr(given)) or isinstance(given, FUNCTIONS) or hasattr(given, "call_wrapped"):
            raise Untold(f"the {where} cannot be told from others: {text:.60}")
        else:
            self.tell(text)


@functools.cache
def _of_jax(primitive: Any) -> bool:
    """Whether an operation is one of JAX's own: a program does not say what another one's name stands for."""
    modules = [module for name, module in sys.modules.items() if name.partition(".")[0] == "jax"]
    return any(primitive is value for module in modules for value in vars(module).values())


def _kind(aval: Any) -> str:
    return f"{getattr(aval, 'dtype', aval)}{getattr(aval, 'shape', ())}{getattr(aval, 'weak_type', False)}"


# --- rules of differentiation -----------------------------------------------------------------------------------------


class Derivative(NamedTuple):
    """What the rules in a function make of its derivative: its tangents or, if a rule goes backwards, both ways."""

    forward: core.ClosedJaxpr
    backward: core.ClosedJaxpr | None


def _derivative(operations: core.ClosedJaxpr, has_backward_rule: bool) -> Derivative | Untold:
    """The derivative as it is now, traced, or why there is none. JAX would ask the user's rules for it later."""
    run, avals = core.jaxpr_as_fun(operations), operations.in_avals
    shapes = [jax.ShapeDtypeStruct(aval.shape, aval.dtype) for aval in avals]
    moving, smooth = _floating(avals), _floating(operations.out_avals)

    def parts(arrays: Sequence[Any]) -> Callable[..., Any]:
        """The function of the moving arguments alone; what is not smooth beside the rest."""

        def of(*moved: Any) -> Any:
            given = iter(moved)
            made = run(*(next(given) if moves else array for array, moves in zip(arrays, moving, strict=True)))
            return list(itertools.compress(made, smooth)), list(itertools.compress(made, [not each for each in smooth]))

        return of

    def tangents(*given: Any) -> Any:
        arrays, directions = given[: len(shapes)], given[len(shapes) :]
        moved = tuple(itertools.compress(arrays, moving))
        made, led, rest = jax.jvp(parts(arrays), moved, directions, has_aux=True)
        return made, led, rest

    def onward(*arrays: Any) -> Any:
        made, back, rest = jax.vjp(parts(arrays), *itertools.compress(arrays, moving), has_aux=True)
        return made, rest, back

    try:
        if not has_backward_rule:
            return Derivative(jax.make_jaxpr(tangents)(*shapes, *itertools.compress(shapes, moving)), None)
        forward, (made, _, back) = jax.make_jaxpr(onward, return_shape=True)(*shapes)
        residuals, tree = jax.tree.flatten(back)
        backward = jax.make_jaxpr(lambda left, pulled: jax.tree.unflatten(tree, left)(pulled))(residuals, made)
        return Derivative(forward, backward)
    except Exception as error:
        return Untold(f"it has rules of differentiation, but no derivative by all its arguments: {in_a_line(error)}")


def _without_derivative(operations: core.ClosedJaxpr, why: Untold) -> Callable[..., Any]:
    """The function, whose derivative is refused: JAX would ask rules for it that are not in the digest."""
    run = core.jaxpr_as_fun(operations)
    ruled: Any = jax.custom_jvp(lambda *arrays: tuple(run(*arrays)))

    @ruled.defjvp
    def refused(primals: Any, directions: Any) -> Any:
        raise why

    return ruled


def _with_derivative(operations: core.ClosedJaxpr, derivative: Derivative) -> Callable[..., Any]:
    """The function whose derivative is what was traced."""
    moving, smooth = _floating(operations.in_avals), _floating(operations.out_avals)
    count, run, forward = sum(smooth), core.jaxpr_as_fun(operations), core.jaxpr_as_fun(derivative.forward)

    def joined(soft: Sequence[Any], rest: Sequence[Any]) -> tuple[Any, ...]:
        found, others = iter(soft), iter(rest)
        return tuple(next(found) if is_smooth else next(others) for is_smooth in smooth)

    def zeros(rest: Sequence[Any]) -> list[Any]:
        return [np.zeros(jnp.shape(each), jax.dtypes.float0) for each in rest]

    def tangents(primals: Any, directions: Any) -> Any:
        made = forward(*primals, *itertools.compress(directions, moving))
        rest = made[2 * count :]
        return joined(made[:count], rest), joined(made[count : 2 * count], zeros(rest))

    def onward(*arrays: Any) -> Any:
        made = forward(*arrays)
        return joined(made[:count], made[count : len(smooth)]), made[len(smooth) :]

    def backward(residuals: Any, pulled: Any) -> Any:
        assert derivative.backward is not None
        found = iter(core.jaxpr_as_fun(derivative.backward)(*residuals, *itertools.compress(pulled, smooth)))
        return tuple(next(found) if moves else None for moves in moving)

    if derivative.backward is None:
        ruled: Any = jax.custom_jvp(lambda *arrays: tuple(run(*arrays)))
        ruled.defjvp(tangents)
        return ruled
    pulled: Any = jax.custom_vjp(lambda *arrays: tuple(run(*arrays)))
    pulled.defvjp(onward, backward)
    return pulled


def _floating(avals: Sequence[Any]) -> list[bool]:
    return [jnp.issubdtype(aval.dtype, np.inexact) for aval in avals]
