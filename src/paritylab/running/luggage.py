"""Setups with functions of the user's own, on their way to another process."""

from __future__ import annotations

import contextlib
import functools
import importlib
import io
import pickle
import sys
from typing import Any

from paritylab.errors import InvalidInput, in_a_line, require
from paritylab.later import jax
from paritylab.places import places
from paritylab.setups.setup import Setup


def packed(setup: Setup) -> bytes:
    """A Setup as cloudpickle sends it, with the functions that the user gave; what can be imported goes by its name."""
    import cloudpickle

    jitted: type = type(jax.jit(len))

    class Pickler(cloudpickle.Pickler):
        def reducer_override(self, obj: Any) -> Any:
            if isinstance(obj, (jax.custom_jvp, jax.custom_vjp, jitted)):
                module, name = (str(getattr(obj, each, "")) for each in ("__module__", "__qualname__"))
                if _found(module, name) is obj:
                    return _by_name, (module, name)
                if not isinstance(obj, jitted):  # which have no way to be made anew
                    return object.__new__, (type(obj),), vars(obj)
            return super().reducer_override(obj)

    buffer = io.BytesIO()
    try:
        Pickler(buffer).dump((setup, setup.id))
    except Exception as error:
        raise InvalidInput(f"{' or '.join(setup.functions)} cannot be sent to workers: {in_a_line(error)}") from error
    return buffer.getvalue()


def unpacked(data: bytes) -> Setup:
    """The Setup, if its functions compute with the same things here as where they came from."""
    for place in places():
        if not place.installed:
            with contextlib.suppress(InvalidInput):  # what is wrong with it is said where it is used
                place.make_importable()
    try:
        setup, known = pickle.loads(data)
    except Exception as error:
        raise InvalidInput(f"a user's function cannot be had on a worker: {in_a_line(error)}") from error
    here: Setup = setup.now()
    require(here.id == known,
            f"{' or '.join(setup.functions)} computes something else on a worker: it imports modules anew and has its"
            " own versions of libraries; pass what was changed as an argument")
    return here


def by_value(title: str) -> bool:
    """Whether a function goes to workers with its code: they cannot import it."""
    return "<" in title or title.startswith("__main__.")


def _by_name(module: str, name: str) -> Any:
    return functools.reduce(getattr, name.split("."), importlib.import_module(module))


def _found(module: str, name: str) -> Any:
    """What has this name here, if its module is one that workers can import too."""
    held: Any = None if module == "__main__" else sys.modules.get(module)
    for part in name.split("."):
        held = getattr(held, part, None)
    return held
