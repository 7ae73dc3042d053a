"""Setups with functions of the user's own, on their way to another process."""

from __future__ import annotations

import functools
import importlib
import io
import pickle
import types
from typing import Any

import jax

from paritylab.errors import InvalidInput, in_a_line, require
from paritylab.functions import homes
from paritylab.setups.setup import Setup


def packed(setup: Setup) -> bytes:
    """A Setup as cloudpickle sends it, but with what is a library's by its name: it is there, and must be the same."""
    import cloudpickle

    class Pickler(cloudpickle.Pickler):
        def reducer_override(self, obj: Any) -> Any:
            if not isinstance(obj, (type, types.FunctionType, types.BuiltinFunctionType)) and homes.named(obj):
                return _by_name, (obj.__module__, obj.__qualname__)
            if isinstance(obj, (jax.custom_jvp, jax.custom_vjp)):  # which only have a way to be made anew
                return object.__new__, (type(obj),), vars(obj)
            return super().reducer_override(obj)

    buffer = io.BytesIO()
    try:
        Pickler(buffer).dump((setup, setup.to_json()))
    except Exception as error:
        raise InvalidInput(f"{' or '.join(setup.functions)} cannot be sent to workers: {in_a_line(error)}") from error
    return buffer.getvalue()


def unpacked(data: bytes) -> Setup:
    """The Setup, if its functions compute with the same things here as where they came from."""
    try:
        setup, text = pickle.loads(data)
    except Exception as error:
        raise InvalidInput(f"a user's function cannot be had on a worker: {in_a_line(error)}") from error
    here = setup.now()
    require(here.to_json() == text,
            f"{' or '.join(setup.functions)} computes with something else on a worker: it imports modules anew and"
            " has its own versions of libraries; pass what was changed as an argument")
    return here


def _by_name(module: str, name: str) -> Any:
    return functools.reduce(getattr, name.split("."), importlib.import_module(module))
