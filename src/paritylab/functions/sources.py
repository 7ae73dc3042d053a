"""The code that a module's functions compute with, as a digest: edited code is other code.

Everything counts by name and content, never by path or date, so that a checkout, a wheel, a folder of ``--papers`` and
a worker agree:

- the module and all modules of its distribution that it imports, directly or not, also within functions, and the
  ``__init__`` of each package on the way. Imports are read from the source; nothing is run for it. Modules of no
  distribution, or of an editable one, whose version says nothing, are followed in the same way;
- files in the folder of the package that are not Python, such as those in a folder ``data``. Not hidden ones, nor
  ``evidence`` and ``site``, which come of computations, nor what only paritylab reads (``paper.toml`` and other texts),
  unless a module says ``toml``;
- paritylab as a whole, without its pages and commands, which are followed like the rest;
- the versions of Python, JAX, NumPy, SciPy and of the other distributions that are imported.

A module that imports by a computed name, or runs ``exec`` or ``eval``, may use anything: all modules of its package
count, and the versions of all distributions. One that loads code by path is refused. Data from elsewhere, variables of
the environment and what other processes run are not seen: they belong into the arguments of a computation.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import hashlib
import importlib.util
import json
import sys
import sysconfig
import types
from collections.abc import Generator, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

from paritylab.errors import require

OURS, FOLLOWED = "paritylab", ("site", "cli")
LIBRARIES = ("jax", "jaxlib", "numpy", "scipy")
TEXTS = {"paper.toml", "values.toml", "remarks.toml", "findings.toml", "history.toml"}
ANYTHING = {"exec", "eval", "__import__", "import_module", "reload", "runpy", "pkgutil", "import importlib",
            "entry_points", "__getattr__", "sys.modules"}
BY_PATH = {"run_path", "spec_from_file_location", "SourceFileLoader", "SourcelessFileLoader", "addsitedir", "sys.path"}


def digest(module: str) -> str:
    """The digest of the code behind a module. InvalidInput if some of it was edited after it was loaded.

    >>> digest("paritylab.cli.doctor") == digest("paritylab.cli.doctor")
    True
    """
    found = parts(module)
    for name in found:
        require(sys.modules.get(name) is None or _remembered(name, found[name]) == found[name],
                f"{name} was edited after it was loaded: start Python again")
    return _digest(json.dumps(sorted(found.items())).encode())


def remember(module: str) -> None:
    """Note the source of a module that is being loaded, and of those of its package that are loaded by now."""
    _LOADED.pop(module, None)  # it may be loaded once more
    for name in [name for name in sys.modules if _root(name) == _root(module) and not _is_ours(name)]:
        if name not in _LOADED and (path := _file(name)) is not None:
            _remembered(name, _digest(_source(path)))


@contextlib.contextmanager
def unchanged(module: str) -> Generator[None, None, None]:
    """InvalidInput at the end if something was edited before it was loaded or read within."""
    before = {name: known for name, known in parts(module).items() if sys.modules.get(name) is None}
    yield
    after = parts(module)
    changed = [name for name, known in before.items() if after.get(name) != known]
    require(not changed, f"{', '.join(changed)} was edited while {module} computed: the result is not kept")


def parts(module: str) -> dict[str, str]:
    """All that counts: the digest of each module and data file, the version of each distribution, by name.

    >>> from paritylab.claims import find
    >>> sorted(name for name in parts(find(["me2025.guessing"])[0].trial.__module__) if name.startswith("me2025"))
    ['me2025', 'me2025.guessing', 'me2025/data/medians.csv']
    """
    require(_file(module) is not None, f"there is no source of {module} here")
    found = {"python": "{}.{}".format(*sys.version_info), f"{OURS}.": _laboratory()}
    versions = {name: _version(name) or "none" for name in LIBRARIES}
    waiting, packages, texts_too = [module], dict[str, Path](), False
    while waiting:
        name = waiting.pop()
        root, path = _root(name), None
        if name in found or root in versions or is_of_python(root) or _is_ours(name):
            continue
        if root not in (_root(module), OURS) and (version := _version(root)) is not None:
            versions[root] = version
            continue
        waiting += filter(None, [name.rpartition(".")[0]])
        if name.endswith(".*"):
            waiting += _modules(name[:-2])  # a package may say which are meant
            continue
        if (path := _file(name)) is None:
            if name == root and (path := _compiled(name)) is not None:
                found[name] = _digest(path.read_bytes())
            continue  # something in a module, or not there
        source, is_package = _source(path), path.name == "__init__.py"
        found[name] = _digest(source)
        if is_package:
            packages[name] = path.parent
        said = _said(source, name if is_package else name.rpartition(".")[0])
        require(not said.by_path, f"{name} loads code by path ({said.by_path}): import it from a module of the package")
        waiting += said.imports
        texts_too |= b"toml" in source
        if said.anything:
            waiting += _modules(_root(name))
            versions |= {f"{each.name} ": each.version for each in metadata.distributions()}
    for name, folder in packages.items():
        if name.rpartition(".")[0] in packages:
            continue  # it is in that one's folder
        found |= {name: _digest(path.read_bytes()) for name, path in _data(name, folder, texts_too)}
    return found | versions


class Said(NamedTuple):
    """What a module's source imports: names of modules or of what is in them; whether anything; what loads by path."""

    imports: frozenset[str]
    anything: bool
    by_path: str


@functools.lru_cache(maxsize=4096)
def _said(source: bytes, package: str) -> Said:
    """
    >>> sorted(_said(b"from . import a" + bytes([10]) + b"def f(): import b.c", "p.q").imports)
    ['b.c', 'p.q', 'p.q.a']
    >>> _said(b"importlib.import_module(name)", "p").anything
    True
    """
    imports, names = set[str](), set[str]()
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return Said(frozenset(), False, "")  # it cannot be imported either
    nodes = list(ast.walk(tree))
    systems = {alias.asname or alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names
               if alias.name == "sys"}
    for node in nodes:
        match node:
            case ast.Import():
                imports |= {alias.name for alias in node.names}
                names |= {f"import {alias.name}" for alias in node.names}
            case ast.ImportFrom() if node.level <= package.count(".") + 1:
                base = importlib.util.resolve_name("." * node.level + (node.module or ""), package)
                imports |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
            case ast.Attribute(ast.Name(system), ("path" | "modules") as name) if system in systems:
                names.add(f"sys.{name}")
            case ast.Name(name) | ast.Attribute(attr=name) | ast.FunctionDef(name):
                names.add(name)
            case _:
                pass
    names |= imports | {part for name in imports for part in name.split(".")}
    by_path = names & BY_PATH
    return Said(frozenset(imports), bool(names & ANYTHING), ", ".join(sorted(by_path)))


# --- where modules and data are ---------------------------------------------------------------------------------------


def _root(name: str) -> str:
    return name.partition(".")[0]


@functools.cache
def is_of_python(root: str) -> bool:
    """Whether it is of Python's own library, and no module of the user's by the same name."""
    origin = getattr(_spec(root), "origin", None)
    return root in sys.stdlib_module_names and (
        origin in (None, "built-in", "frozen") or Path(origin).is_relative_to(sysconfig.get_path("stdlib")))


def is_library(module: str, home: str) -> str:
    """What a module is known by that is not followed from one that is called ``home``; empty if it is followed."""
    root = _root(module)
    if is_of_python(root):
        return module
    if _is_ours(module):
        return _laboratory()
    return (root not in (_root(home), OURS) and _version(root)) or ""


def _is_ours(name: str) -> bool:
    """Whether it is of the laboratory, which counts as a whole."""
    root, *rest = name.split(".")
    return root == OURS and (not rest or rest[0] not in FOLLOWED)


@functools.cache
def _laboratory() -> str:
    """The digest of paritylab without what is followed; taken once, as later edits are not what runs here."""
    folder = Path(__file__).parents[1]
    paths = (path for path in folder.rglob("*.py") if path.relative_to(folder).parts[0] not in FOLLOWED)
    return _digest(json.dumps(sorted((path.relative_to(folder).as_posix(), _digest(_source(path)))
                                     for path in paths)).encode())


def _folders(package: str) -> list[Path]:
    """The folders of a package, of the one that is loaded if it is."""
    if (module := sys.modules.get(package)) is not None:
        return [Path(each) for each in getattr(module, "__path__", ())]
    above, _, name = package.rpartition(".")
    if above:
        return [folder / name for folder in _folders(above) if (folder / name).is_dir()]
    spec = _spec(package)
    return [Path(each) for each in getattr(spec, "submodule_search_locations", None) or ()]


def _file(name: str) -> Path | None:
    """The source of a module; None if there is none of this name."""
    above, _, last = name.rpartition(".")
    spec = None if above else _spec(name)
    places = [Path(spec.origin)] if spec is not None and spec.has_location and spec.origin is not None else []
    places += [folder / "__init__.py" for folder in _folders(name)]
    places += [folder / f"{last}.py" for folder in (_folders(above) if above else ())]
    return next((path for path in places if path.suffix == ".py" and path.is_file()), None)


def _compiled(root: str) -> Path | None:
    """The file of a module of which there is no source; None if there is no such module."""
    if (spec := _spec(root)) is None or not spec.has_location:
        return None
    path = Path(spec.origin)
    require(path.is_file(), f"there is no source of {root} here: {path}")
    return path


def _spec(root: str) -> Any:
    if root == "__main__":  # run as a script; with -m it has a spec
        path = getattr(sys.modules[root], "__file__", None)
        return None if path is None else importlib.util.spec_from_file_location(root, path)
    with contextlib.suppress(ImportError, ValueError, AttributeError):
        return importlib.util.find_spec(root)
    return None


def _modules(package: str) -> Iterator[str]:
    """All modules of a package."""
    for folder in _folders(package):
        for path in folder.rglob("*.py"):
            place = path.relative_to(folder).with_suffix("").parts
            yield ".".join([package, *(place[:-1] if place[-1] == "__init__" else place)])


def _data(package: str, folder: Path, texts_too: bool) -> Iterator[tuple[str, Path]]:
    """Files of a package that are not Python, with names, in its folder and folders in it."""
    for path in folder.iterdir():
        name = f"{package}/{path.name}"
        if path.name.startswith((".", "__pycache__")) or path.name in ("docs", "evidence", "site"):
            continue
        if path.is_dir():
            yield from _data(name, path, texts_too)
        elif path.suffix not in (".py", ".pyi") and (texts_too or path.name not in TEXTS):
            yield name, path


@functools.cache
def _version(root: str) -> str | None:
    """The version of the installed library that has a package; None for what is not installed, or may be edited."""
    names = [root] if root in LIBRARIES else sorted(set(metadata.packages_distributions().get(root, ())))
    found = [each for each in map(metadata.distribution, names) if root in LIBRARIES or _brings(each, root)]
    about = [json.loads(each.read_text("direct_url.json") or "{}") for each in found]
    if any(each.get("dir_info", {}).get("editable") for each in about):
        return None
    return ", ".join(f"{each.name} {each.version}" for each in found) or None


def _brings(distribution: metadata.Distribution, root: str) -> bool:
    """Whether what is imported by this name is the distribution's, and no module of the user's."""
    spec, place = _spec(root), Path(str(distribution.locate_file("")))
    places = [spec.origin, *(spec.submodule_search_locations or ())] if spec is not None else []
    return any(each is not None and Path(each).is_relative_to(place) for each in places)


# --- what is loaded ---------------------------------------------------------------------------------------------------

_LOADED: dict[str, tuple[Any, str]] = {}
"""Modules with the digest of their source when they were loaded, or when they were first asked for."""


def _remembered(name: str, now: str) -> str:
    """The digest of the source of what is loaded."""
    module, then = _LOADED.get(name, (None, ""))
    if module is not sys.modules[name]:
        _LOADED[name], then = (sys.modules[name], now), now
    return then


def is_current(function: types.FunctionType) -> bool:
    """Whether the file of a function has the code that it was loaded with."""
    path = Path(function.__code__.co_filename)
    waiting = [compile(_source(path), str(path), "exec", dont_inherit=True)] if path.is_file() else []
    while waiting:
        code = waiting.pop()
        if code == function.__code__:
            return True
        waiting += [each for each in code.co_consts if isinstance(each, types.CodeType)]
    return False


def _source(path: Path) -> bytes:
    """The bytes of a file of Python, with the ends of lines that Python reads."""
    return path.read_bytes().replace(b"\r\n", b"\n")


def _digest(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()
