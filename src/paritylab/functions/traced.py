"""Users' functions as they were traced: called, they run the very programs by which a Setup's id knows them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from paritylab.errors import InvalidInput, in_a_line, require
from paritylab.functions.named import MARK, title
from paritylab.functions.programs import LENGTH, Program, Untold, in_single_precision, program
from paritylab.later import jax, jnp

Demand = Callable[..., tuple[str, str]]
"""Given what a function returned and its arguments: what it should have returned and what it did; empty if right."""
Key = tuple[Any, ...]

ADVICE = "vouch for it by a name of your own, pl.named('my function v1', function)"


def combined(texts: Sequence[str]) -> str:
    """One digest for several texts."""
    return hashlib.sha256("".join(f"{len(text)}:{text}" for text in texts).encode()).hexdigest()[:LENGTH]


class Traced:
    """A function and its programs, one for each shape of arguments that it was called with while it was open.

    Arguments may be trees of arrays, numbers and texts; numbers and texts are part of the shape. Closed, it has a
    digest of all its programs. A shape that it was not called with before (a measure has inputs of its own) is traced
    then, if the function still computes what it did. ``what`` names it in errors; ``vouched`` is the name that its
    user gave it, in place of a digest.
    """

    def __init__(self, function: Any, what: str, demand: Demand | None = None, vouched: str | None = None) -> None:
        self.__wrapped__ = self.given = function
        self.what, self.demand = what, demand
        self._vouched, self._digest = vouched, ""
        self._programs: dict[Key, tuple[Program, _Call]] = {}
        self.later: dict[Key, Program] = {}

    @property
    def identity(self) -> str:
        """What tells it from all others: the digest, or ``@my loss v2`` where its user vouches for it."""
        return self._digest if self._vouched is None else f"{MARK}{self._vouched}"

    @property
    def spec(self) -> str:
        """How text has it: ``mine.loss@0123456789abcdef``, or ``@my loss v2``."""
        return f"{title(self.given)}{MARK}{self._digest}" if self._vouched is None else self.identity

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        paths, tree = jax.tree_util.tree_flatten_with_path((arguments, named), is_leaf=lambda leaf: leaf is None)
        arrays = {place: leaf for place, (_, leaf) in enumerate(paths) if hasattr(leaf, "shape")}
        call = _Call(self, tree, {place: _shape(leaf) for place, leaf in arrays.items()},
                     {place: leaf for place, (_, leaf) in enumerate(paths) if place not in arrays},
                     [jax.tree_util.keystr(path) for path, _ in paths])
        given = [_as(shape, arrays[place]) for place, shape in call.shapes.items()]
        try:
            made = self._program(call)(given)
        except Untold as error:
            raise InvalidInput(f"{self.what} cannot be told from others: {error}; {ADVICE}") from error
        return jax.tree.map(lambda leaf: leaf if isinstance(leaf, jax.Array) else jnp.asarray(leaf), made)

    def close(self) -> None:
        """Take no more shapes into the digest."""
        self._digest = combined(sorted(f"{call.told} {made.digest}" for made, call in self._programs.values()))

    def _program(self, call: _Call) -> Program:
        precision = _precision() if self._digest else "highest"
        key = (*call.key, precision)
        if key in self._programs:
            return self._programs[key][0]
        if not self._digest:
            self._programs[key] = self._traced(call), call
            return self._programs[key][0]
        if key not in self.later:
            if self._vouched is None:
                with in_single_precision():
                    require(all(self._traced(before).digest == made.digest for made, before in self._programs.values()),
                            f"{self.what} does not compute what it did when its Setup was made")
            self.later[key] = self._traced(call, precision)
        return self.later[key]

    def _traced(self, call: _Call, precision: str = "highest") -> Program:
        shapes = list(call.shapes.values())
        if self._vouched is not None:
            return program(call, shapes, vouched=True, precision=precision)
        found, again = (program(call, shapes, precision=precision) for _ in range(2))
        require(found.digest == again.digest, f"{self.what} computes something else each time; draw random numbers from"
                                              f" the keys that functions are given, or {ADVICE}")
        return found

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Traced) and (self is other or (bool(self._digest) and self.spec == other.spec))

    def __hash__(self) -> int:
        return hash(title(self.given))

    def __repr__(self) -> str:
        return f"<{self.spec}>"


class _Call(NamedTuple):
    """A call of a function less its arrays, and what calls it with them."""

    owner: Traced
    tree: Any
    shapes: Mapping[int, jax.ShapeDtypeStruct]
    rest: Mapping[int, Any]
    paths: Sequence[str]

    @property
    def key(self) -> Key:
        """The same for calls that differ in nothing but the numbers in arrays."""
        return tuple((path, repr(self.shapes[i]) if i in self.shapes else _token(self.rest[i]))
                     for i, path in enumerate(self.paths))

    @property
    def told(self) -> str:
        """The same in every process."""
        parts = (repr(self.shapes[i]) if i in self.shapes else _text(self.rest[i]) for i in range(len(self.paths)))
        return " ".join(f"{path} {part}" for path, part in zip(self.paths, parts, strict=True))

    def __call__(self, *arrays: Any) -> Any:
        leaves = {**self.rest, **dict(zip(self.shapes, arrays, strict=True))}
        arguments, named = jax.tree.unflatten(self.tree, [leaves[place] for place in range(len(leaves))])
        owner = self.owner
        try:
            returned = owner.given(*arguments, **named)
        except InvalidInput:
            raise
        except Exception as error:
            raise InvalidInput(f"{owner.what} failed: {in_a_line(error)}") from error
        wanted, said = owner.demand(returned, *arguments) if owner.demand is not None else ("", "")
        require(not wanted, f"{owner.what} must return {wanted}, not {said}")
        return returned


class TracedObject:
    """An object of the user's (a network, a transformation) with Traced methods; all else is as it was."""

    def __init__(self, given: Any, methods: Mapping[str, Traced]) -> None:
        self.__wrapped__ = self.given = given
        self.methods = dict(methods)

    @property
    def spec(self) -> str:
        return spec_of(self.given, self.methods)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name in ("given", "methods"):  # not made yet: it is being copied
            raise AttributeError(name)
        return self.methods[name] if name in self.methods else getattr(self.__wrapped__, name)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TracedObject) and (self is other or self.methods == other.methods)

    def __hash__(self) -> int:
        return hash(title(self.given))

    def __repr__(self) -> str:
        return f"<{self.spec}>"


def spec_of(owner: Any, methods: Mapping[str, Traced]) -> str:
    """How text has an object with these methods; where its user vouches for it, they all have its name."""
    told = {method.identity for method in methods.values()}
    if len(told) == 1 and (name := told.pop()).startswith(MARK):
        return name
    digest = combined([f"{name} {method.identity}" for name, method in sorted(methods.items())])
    return f"{title(owner)}{MARK}{digest}"


def _shape(array: Any) -> jax.ShapeDtypeStruct:
    """An array's shape and kind, as JAX has it."""
    kind = array.dtype
    if not jnp.issubdtype(kind, jax.dtypes.extended):
        kind = jax.dtypes.canonicalize_dtype(kind)
    return jax.ShapeDtypeStruct(jnp.shape(array), kind)


def _as(shape: jax.ShapeDtypeStruct, array: Any) -> Any:
    """An array of just this kind; that of a number of Python's would give way to others."""
    return array if jnp.issubdtype(shape.dtype, jax.dtypes.extended) else jnp.asarray(array, shape.dtype)


def _precision() -> str:
    """That of matrix products where the function is called: a GPU has faster ones that are accurate enough."""
    asked: Any = jax.config.jax_default_matmul_precision  # pyright: ignore[reportAttributeAccessIssue]
    return "highest" if asked is None or jax.default_backend() == "cpu" else str(asked)


PLAIN = (type(None), bool, int, float, str)


def _token(leaf: Any) -> Any:
    """What tells an argument that is no array from others in this process, which hold it."""
    if type(leaf) in PLAIN:
        return type(leaf).__name__, repr(leaf)
    return getattr(leaf, "token", id(leaf))


def _text(leaf: Any) -> str:
    return f"{type(leaf).__name__} {leaf!r}" if type(leaf) in PLAIN else type(leaf).__name__
