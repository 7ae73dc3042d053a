"""Where code comes from: an installed library, Python itself, paritylab, or the user."""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import importlib.util
import sys
import sysconfig
import types
from pathlib import Path
from typing import Any

PACKAGES = ("site-packages", "dist-packages")
PYTHON, OURS, USERS = "python", "paritylab", ""
MOVED = {f"paritylab.{folder}.": "paritylab." for folder in ("setups", "functions", "storage", "running")}
MOVED |= {"paritylab.papers.": "paritylab.claims.", "paritylab.theory.leaky.": "paritylab.theory.leaky_",
          "paritylab.theory.xor.": "paritylab.theory.xor_"}


def of_module(name: str) -> str:
    """``jax 0.10.2`` for a module of an installed library, ``python``, ``paritylab``, or nothing for a user's own.

    A library without a version is a user's own: nothing else would tell one state of it from the next.

    >>> of_module("math"), of_module("paritylab.setups.inits"), of_module("__main__")
    ('python', 'paritylab', '')
    """
    root, module = name.partition(".")[0], _loaded(name)[0]
    if root == OURS:
        return OURS
    if module is None or name == "__main__":
        return USERS
    file = getattr(module, "__file__", None) or next(iter(getattr(module, "__path__", ())), None)
    if file is not None:
        return _of_file(file, root)
    if "." in name:  # made by the module above it, or by hand
        return of_module(name.rpartition(".")[0])
    return PYTHON if root in sys.stdlib_module_names else USERS  # built in or frozen, or made by hand


def told(module: str) -> str:
    """A module's name as fingerprints have it: those of paritylab keep the names of its first layout, and ids last.

    >>> told("paritylab.setups.inits"), told("paritylab.theory.xor"), told("jax.numpy")
    ('paritylab.inits', 'paritylab.theory.xor', 'jax.numpy')
    >>> told("paritylab.papers.barak2022.deep"), told("paritylab.theory.leaky.network")
    ('paritylab.claims.barak2022.deep', 'paritylab.theory.leaky_network')
    """
    for now, before in MOVED.items():
        if module.startswith(now):
            return before + module[len(now) :]
    return module


def of_function(function: types.FunctionType) -> str:
    """The same of a function, by its code: a name is easily copied from another function."""
    name = function.__globals__.get("__name__") or ""
    module = sys.modules.get(name)
    if module is not None and vars(module) is function.__globals__:
        return of_module(name)
    return _of_file(function.__code__.co_filename, name.partition(".")[0])


def named(value: Any) -> str | None:
    """``jax 0.10.2 jax.numpy.sin`` for what can be imported by name from elsewhere than the user's modules."""
    module, qualname = getattr(value, "__module__", None), getattr(value, "__qualname__", None)
    if not isinstance(module, str) or not isinstance(qualname, str):
        return None
    home = of_module(module)
    if home == USERS or (isinstance(value, types.FunctionType) and of_function(value) in (USERS, OURS)):
        return None  # of paritylab's functions the code is described: no version stands for it
    found, rest = _loaded(module)
    for part in [*rest, *qualname.split(".")]:
        found = getattr(found, part, None)
    return f"{home} {told(module)}.{qualname}" if found is value else None


def _loaded(name: str) -> tuple[Any, list[str]]:
    """The module of this name, or the nearest above it that has been imported, and what is left of the name."""
    parts = name.split(".")
    for length in range(len(parts), 0, -1):
        if (module := sys.modules.get(".".join(parts[:length]))) is not None:
            return module, parts[length:]
    return None, parts


def imported(name: str, package: str | None) -> types.ModuleType | str | None:
    """What an import within a function gives: a user's module, or home and name of another; None if not found."""
    try:
        whole = importlib.util.resolve_name(name, package)
        if whole not in sys.modules:
            spec = importlib.util.find_spec(whole)
            if spec is None:
                return None
            if home := _of_file(spec.origin or "", whole.partition(".")[0]):
                return f"{home} {told(whole)}"  # need not be loaded
        module = importlib.import_module(whole)
    except ImportError:
        return None
    home = of_module(whole)
    return module if home == USERS else f"{home} {told(whole)}"


@functools.lru_cache(maxsize=4096)
def _of_file(file: str, root: str) -> str:
    path = Path(file)
    if root == OURS:
        return OURS
    if any(part in PACKAGES for part in path.parts):
        version = _version(root)
        return f"{root} {version}" if version else USERS
    return PYTHON if any(path.is_relative_to(folder) for folder in _python()) or file.startswith("<frozen") else USERS


@functools.cache
def _python() -> set[str]:
    paths = sysconfig.get_paths()
    return {paths["stdlib"], paths["platstdlib"]}


@functools.cache
def _version(root: str) -> str | None:
    """Of an installed library, loaded or not."""
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        return importlib.metadata.version(root)
    with contextlib.suppress(importlib.metadata.PackageNotFoundError, KeyError):
        return importlib.metadata.version(importlib.metadata.packages_distributions()[root][0])
    version = getattr(sys.modules.get(root), "__version__", None)
    return version if isinstance(version, str) else None
