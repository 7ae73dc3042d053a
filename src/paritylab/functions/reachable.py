"""A digest of everything that can be reached from a value: the same in every process, another if anything differs.

A walk over the graph of objects: each is told by its kind, its plain values and how many parts follow, then its parts.
What was met before is told by the number of its first visit, so that circles end. A function is its code and what it
captured, its defaults, its attributes and the globals that its code reads; a class is its bases and all that is in its
body, whole hierarchies long; an object is its class and its attributes. What comes from an installed library by name is
known by that name and the library's version. Nothing is left out: what cannot be told for certain is refused.
"""

from __future__ import annotations

import copyreg
import dataclasses
import functools
import hashlib
import struct
import types
import warnings
from collections.abc import Callable, Iterable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

from paritylab.errors import InvalidInput
from paritylab.functions import homes
from paritylab.functions.reads import reads

MOST_PARTS = 2_000_000
UNFOLLOWED = {"globals", "eval", "exec", "__import__"}
"""Builtins that reach names which no one can see in the code."""
BASES = (bool, int, float, complex, str, bytes, bytearray, tuple, list, dict, set, frozenset, np.ndarray)
UNTOLD = {"__dict__", "__weakref__", "__doc__", "__module__", "__qualname__", "__annotations__", "__annotate__",
          "__annotate_func__", "__annotations_cache__", "__abstractmethods__", "_abc_impl", "__orig_bases__",
          "__parameters__", "__type_params__", "__firstlineno__", "__static_attributes__", "__slotnames__",
          "_value2member_map_"}
"""What is in the body of a class but does not change what it does; some of it comes only with use."""
EMPTY = types.MappingProxyType({"empty": "cell"})
WORDS = {"captured": "closure variable"}
PjitFunction: type = type(jax.jit(len))
POINTER = struct.calcsize("P")

Part = tuple[str, Any]
"""A part of an object and what it is to it: ``closure variable `rng```."""


class Vouched:
    """What a user vouches for by a name: known by it, whatever it holds. See :func:`paritylab.named`."""

    name: str


def digest(value: Any) -> str:
    """Sixty-four hexadecimal digits for a value and all that it reaches; InvalidInput says what cannot be told.

    >>> digest(lambda x: x + 1) == digest(lambda x: x + 1), digest([1]) == digest([1.0])
    (True, False)
    """
    return _Walk(value, ()).digest()


class _Where:
    """The way from the value that is described to one of its parts."""

    def __init__(self, part: str, owner: Any, before: _Where | None) -> None:
        self.part, self.owner, self.before = part, owner, before

    def __str__(self) -> str:
        """Up to the nearest function or class, which has a name."""
        words, where = [self.part], self
        while where.before is not None and not isinstance(where.owner, (types.FunctionType, type)):
            where = where.before
            words.append(where.part)
        words = words if len(words) <= 4 else [*words[:2], "...", words[-1]]
        return " of ".join([*words, title(where.owner)])


def title(value: Any) -> str:
    """What a function, class or object goes by: ``module.qualname``, or the name that a user gave it."""
    if isinstance(value, Vouched):
        return value.name
    value = _compiled_from(value) or value
    holder = value if isinstance(getattr(value, "__qualname__", None), str) else type(value)
    return f"{homes.told(str(getattr(value, '__module__', '?')))}.{holder.__qualname__}"


class _Walk:
    def __init__(self, value: Any, above: tuple[int, ...]) -> None:
        self._sum = hashlib.sha256()
        self._numbers: dict[int, int] = {}
        self._kept: list[Any] = []  # alive, so that an address means one object
        self._above = above  # the sets that are described just now
        self._left = MOST_PARTS
        self._waiting: list[tuple[Any, _Where | None]] = [(value, None)]
        self._root = value
        self._where: _Where | None = None

    def digest(self) -> str:
        while self._waiting:
            value, self._where = self._waiting.pop()
            self._left -= 1
            if self._left < 0:
                raise InvalidInput(f"{title(self._root)} reaches more than {MOST_PARTS} things, too many to tell it"
                                   f" from others; {_advice()}")
            self._visit(value)
        return self._sum.hexdigest()

    # --- what is told ---------------------------------------------------------------------------------------------

    def _tell(self, kind: str, *texts: str | bytes) -> None:
        """Some words, each after its length, so that no two rows of words look alike."""
        self._sum.update(b"%d;" % len(texts))
        for text in (kind, *texts):
            data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
            self._sum.update(b"%d:" % len(data))
            self._sum.update(data)

    def _parts(self, owner: Any, parts: Iterable[Part]) -> None:
        """How many parts there are; they are visited next, in order."""
        listed = list(parts)
        self._tell(str(len(listed)))
        self._kept += [part for _, part in listed]
        self._waiting += [(part, _Where(label, owner, self._where)) for label, part in reversed(listed)]

    def _refuse(self, why: str) -> InvalidInput:
        what = title(self._root) if self._where is None else str(self._where)
        return InvalidInput(f"cannot tell {what} from others: {why}; {_advice()}")

    def _visit(self, value: Any) -> None:
        kind = type(value)
        if kind in LEAVES:
            self._tell(kind.__name__, LEAVES[kind](value))
        elif kind is tuple:
            self._tell("tuple")
            self._parts(value, _items(value))
        elif kind is types.CodeType:
            self._tell("code", _code(value))
        elif (number := self._numbers.get(id(value))) is not None:
            self._tell("again", str(number))
        else:
            self._numbers[id(value)] = len(self._numbers)
            self._kept.append(value)
            self._object(value)

    # --- objects --------------------------------------------------------------------------------------------------

    def _object(self, value: Any) -> None:
        """What is met for the first time."""
        if isinstance(value, Vouched):
            self._tell("vouched", value.name)
        elif isinstance(value, types.ModuleType):
            self._module(value)
        elif name := homes.named(value):
            self._tell("name", name)
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, type):
            self._class(value)
        elif type(value) in TAKEN_APART:
            self._tell(type(value).__name__)
            self._parts(value, TAKEN_APART[type(value)](value))
        elif isinstance(value, (types.GetSetDescriptorType, types.MemberDescriptorType)):
            self._tell("slot", value.__name__)
        elif isinstance(value, functools._lru_cache_wrapper):
            raise self._refuse("a functools cache may remember what was true before")
        elif isinstance(value, Tracer):
            raise self._refuse("it is a value that JAX is only tracing")
        elif (compiled := _compiled_from(value)) is not None:
            self._tell("jit")
            self._parts(value, [("the function", compiled)])
        elif isinstance(value, jax.Array):
            self._jax_array(value)
        elif isinstance(value, (np.dtype, np.generic)):
            self._tell(type(value).__name__, repr(getattr(value, "dtype", value)), getattr(value, "tobytes", bytes)())
        else:
            self._instance(value)

    def _module(self, module: types.ModuleType) -> None:
        if _is_users_module(module):
            raise self._refuse(f"the module {module.__name__} is passed around, and what is read of it not seen")
        self._tell("module", homes.of_module(module.__name__), homes.told(module.__name__))

    def _function(self, function: types.FunctionType) -> None:
        code, home = function.__code__, homes.of_function(function)
        follow = home == homes.USERS
        parts: list[Part] = []
        told: dict[str, Any] = {}
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            content = _content(cell)
            if not (follow and _is_users_module(content)):  # of which only what is read matters
                parts.append((f"closure variable `{name}`", content))
        if follow:
            for label, (state, found) in self._outside(function).items():
                told[label] = state
                if state == "here":
                    parts.append((label, found))
        for name, default in (function.__kwdefaults__ or {}).items():
            parts.append((f"default of `{name}`", default))
        parts += [("a default", default) for default in function.__defaults__ or ()]
        counts = (len(function.__defaults__ or ()), *(function.__kwdefaults__ or {}))
        self._tell("function", home, _code(code), repr(counts))
        self._tell("reads", *(f"{label} {state}" for label, state in told.items()))
        self._parts(function, [*parts, ("the attributes", vars(function))])

    def _outside(self, function: types.FunctionType) -> dict[str, tuple[str, Any]]:
        """What the function's code reads of globals and of the user's modules: whether it is there, and if so, what."""
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        found: dict[str, tuple[str, Any]] = {}
        for read in reads(function.__code__):
            state, value = "here", None
            if read.kind == "captured":
                value = _content(cells[read.name])
                if not _is_users_module(value):
                    continue  # told as a whole
            elif read.kind == "import":
                value = homes.imported(read.name, function.__globals__.get("__package__"))
                state = "missing" if value is None else "here"
            elif read.name in function.__globals__:
                value = function.__globals__[read.name]
            elif read.name in UNFOLLOWED:
                raise self._refuse(f"{title(function)} calls `{read.name}`, and what that reaches cannot be followed")
            else:
                known = function.__builtins__  # pyright: ignore[reportAttributeAccessIssue]
                state = "builtin" if read.name in known else "missing"
            words, left = read.name, list(read.attributes)
            while left and _is_users_module(value):
                name = left.pop(0)
                words = f"{words}.{name}"
                state, value = ("here", getattr(value, name)) if hasattr(value, name) else ("missing", None)
            if not (read.bound and _is_users_module(value)):  # otherwise its uses are reads of their own
                found[f"{WORDS.get(read.kind, read.kind)} `{words}`"] = state, value
        return found

    def _class(self, kind: type) -> None:
        self._tell("class", kind.__qualname__, *(["metaclass"] if type(kind) is not type else []))
        body = {name: item for name, item in vars(kind).items() if name not in UNTOLD}
        self._tell("names", *sorted(body))
        parts: list[Part] = [("a base", base) for base in kind.__bases__]
        parts += [(f"attribute `{name}`", body[name]) for name in sorted(body)]
        self._parts(kind, [*parts, *([("the metaclass", type(kind))] if type(kind) is not type else [])])

    def _jax_array(self, value: jax.Array) -> None:
        if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
            self._tell("key", str(value.dtype))
            self._parts(value, [("the key", np.asarray(jax.random.key_data(value)))])
        else:
            array = np.asarray(value)
            self._tell("jax array", str(array.dtype), repr(array.shape), repr(value.aval.weak_type), array.tobytes())

    def _instance(self, value: Any) -> None:
        """An object of any other class: the class, its plain content, its attributes."""
        kind = type(value)
        base = next((each for each in BASES if isinstance(value, each)), None)
        known = homes.named(kind) is not None
        if kind not in BASES and ((known and _reduces(kind)) or (base is None and _is_opaque(kind))):
            self._tell("reduced")
            self._parts(value, self._reduced(value))
            return
        self._tell("object", "" if base is None else base.__name__)
        parts: list[Part] = [] if kind in BASES else [("its class", kind), ("its attributes", attributes(value))]
        if base is not None:
            parts += self._content(base, value)
        self._parts(value, parts)

    def _content(self, base: type, value: Any) -> list[Part]:
        if base in (list, tuple):
            return list(_items(base.__iter__(value)))
        if base is dict:
            items = list(dict.items(value))
            return [("a key", key) for key, _ in items] + [(f"item {key!r:.40}", item) for key, item in items]
        if base in (set, frozenset):
            if id(value) in self._above:
                raise self._refuse("a set that contains itself has no order")
            above = (*self._above, id(value))
            try:
                found = [_Walk(item, above).digest() for item in base.__iter__(value)]
            except RecursionError:
                raise self._refuse("sets within sets, too deep") from None
            return [("an item", each) for each in sorted(found)]
        if base is np.ndarray:
            array = np.asarray(value)
            about: list[Part] = [("its type", repr(array.dtype)), ("its shape", array.shape)]
            if array.dtype.hasobject:
                return about + list(_items(array.ravel().tolist()))
            return [*about, ("its bytes", array.tobytes())]
        return [("its value", bytes(value) if base is bytearray else base(value))]

    def _reduced(self, value: Any) -> list[Part]:
        """What the object's own class says one would need to make it again; nothing is made."""
        reduce = copyreg.dispatch_table.get(type(value)) or (lambda each: each.__reduce_ex__(4))
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # some iterators will not do this for ever
                found = reduce(value)
        except Exception:
            raise self._refuse(f"a {type(value).__qualname__} has no description that holds in every process") from None
        if isinstance(found, str):
            return [("its class", type(value)), ("its name", found)]
        parts = [*found, *[None] * 6][:6]
        parts[3], parts[4] = (None if part is None else list(part) for part in parts[3:5])
        return [(f"state {i}", part) for i, part in enumerate(parts)]


def _compiled_from(value: Any) -> Any:
    """What ``jax.jit`` was given to compile, of what it returned; one from another process has no ``__wrapped__``."""
    if not isinstance(value, PjitFunction):
        return None
    return getattr(value, "__wrapped__", None) or value.__reduce_ex__(4)[2]["fun"]


def _advice() -> str:
    return "vouch for the function by a name of your own, pl.named('my-function v1', function)"


def _items(values: Iterable[Any]) -> Iterable[Part]:
    return ((f"item {i}", item) for i, item in enumerate(values))


def _content(cell: types.CellType) -> Any:
    """What is in a cell."""
    try:
        return cell.cell_contents
    except ValueError:
        return EMPTY


def _is_users_module(value: Any) -> bool:
    return isinstance(value, types.ModuleType) and homes.of_module(value.__name__) == homes.USERS


@functools.lru_cache(maxsize=4096)
def _code(code: types.CodeType) -> bytes:
    """A digest of all that code does, and nothing of where it stands."""
    walk = _Walk(list(code.co_consts), ())
    flags = (code.co_flags, code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount)
    names = (code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars)
    walk._tell("code", code.co_code, code.co_exceptiontable, repr(flags), repr(names))
    return bytes.fromhex(walk.digest())


def _reduces(kind: type) -> bool:
    """Whether a class has its own say on how its objects are described."""
    return kind in copyreg.dispatch_table or any(
        getattr(kind, name) is not getattr(object, name) for name in ("__reduce__", "__reduce_ex__")
    )


@functools.lru_cache(maxsize=1024)
def _is_opaque(kind: type) -> bool:
    """Whether objects of this class hold more than attributes: something of an extension module's own."""
    slots = sum(isinstance(item, types.MemberDescriptorType) for base in kind.__mro__ for item in vars(base).values())
    seen = slots + (kind.__dictoffset__ > 0) + (kind.__weakrefoffset__ > 0)
    return kind.__itemsize__ != 0 or kind.__basicsize__ > object.__basicsize__ + seen * POINTER


def attributes(value: Any) -> dict[str, Any]:
    """What is in the ``__dict__`` and ``__slots__`` of an object, all its classes long."""
    found: dict[str, Any] = {}
    for base in reversed(type(value).__mro__):
        for name, slot in vars(base).items():
            if isinstance(slot, types.MemberDescriptorType):
                try:
                    found[name if name not in found else f"{base.__qualname__}.{name}"] = slot.__get__(value)
                except AttributeError:
                    continue  # never set
    return dict(sorted((found | getattr(value, "__dict__", {})).items()))


LEAVES: dict[type, Callable[[Any], str | bytes]] = {
    types.NoneType: lambda value: "",
    types.EllipsisType: lambda value: "",
    types.NotImplementedType: lambda value: "",
    bool: repr,
    int: hex,
    float: float.hex,
    complex: lambda value: f"{value.real.hex()} {value.imag.hex()}",
    str: lambda value: value.encode("utf-8", "surrogatepass"),
    bytes: lambda value: value,
}
TAKEN_APART: dict[type, Callable[[Any], Iterable[Part]]] = {
    range: lambda value: [("start", value.start), ("stop", value.stop), ("step", value.step)],
    slice: lambda value: [("start", value.start), ("stop", value.stop), ("step", value.step)],
    types.MethodType: lambda value: [("the function", value.__func__), ("the object", value.__self__)],
    functools.partial: lambda value: [("the function", value.func), ("the arguments", value.args),
                                      ("the arguments", value.keywords), ("the attributes", vars(value))],
    staticmethod: lambda value: [("the function", value.__func__)],
    classmethod: lambda value: [("the function", value.__func__)],
    property: lambda value: [("getter", value.fget), ("setter", value.fset), ("deleter", value.fdel)],
    functools.cached_property: lambda value: [("the function", value.func), ("its name", value.attrname)],
    types.MappingProxyType: lambda value: [("the mapping", dict(value))],
    dataclasses.Field: lambda value: [(f"field `{name}`", getattr(value, name, None)) for name in
                                      ("name", "default", "default_factory", "init", "compare", "kw_only", "metadata")],
}
