"""The engines there are, fastest first; ``jax`` can do everything, and comes last."""

from __future__ import annotations

import functools
import warnings
from importlib import metadata
from typing import Any

from paritylab.engines import arithmetic
from paritylab.engines.interface import Engine
from paritylab.engines.jax_engine import JaxEngine
from paritylab.engines.lanes import LanesEngine
from paritylab.engines.warps import WarpsEngine
from paritylab.errors import in_a_line, require, unknown
from paritylab.functions import sources

GROUP = "paritylab.engines"
AUTO = "auto"


class EngineNotice(UserWarning):
    """Something about the choice of engine that a user would want to know."""


@functools.cache
def engines() -> dict[str, Engine]:
    """Every engine by its name: this package's, after those that others bring."""
    found: dict[str, Engine] = {}
    for entry in metadata.entry_points(group=GROUP):
        try:
            made: Any = entry.load()()
            found[made.name] = made
            _brought_by[made.name] = entry.module
        except Exception as error:
            warnings.warn(f"engine {entry.name}, not used: {in_a_line(error)}", EngineNotice, stacklevel=2)
    return found | {engine.name: engine for engine in _OURS}


_OURS: tuple[Engine, ...] = (WarpsEngine(), LanesEngine(), JaxEngine())
_brought_by: dict[str, str] = {}
"""The modules that engines of other packages come from."""
_code = functools.cache(sources.digest)


def label(engine: Engine) -> str:
    """The name under which an engine's Records are kept: another arithmetic has another one, and an engine that another
    package brings is known by its code too."""
    return _versioned(engine, engine.label())


def known(engine: Engine) -> str:
    """The same without the device."""
    return _versioned(engine, engine.name)


def _versioned(engine: Engine, label: str) -> str:
    code = "" if engine in _OURS else f"_{_code(_brought_by[engine.name])[:12]}"
    return arithmetic.labelled(label, getattr(engine, "arithmetic", 1)) + code


def names() -> tuple[str, ...]:
    """What one may ask for."""
    return (AUTO, *sorted(engines()))


def named(name: str) -> Engine:
    """The engine of this name, or of this label of its records where it has no device."""
    known, told = engines(), arithmetic.parsed(name)
    if name in known:
        return known[name]
    if told.name not in known or told.device:
        raise unknown("engine", name, names())
    here = getattr(known[told.name], "arithmetic", 1)
    require(told.version == here, f"the engine {told.name!r} has arithmetic {here} here, not {told.version}")
    return known[told.name]
