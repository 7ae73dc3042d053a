"""Trained networks as files: safetensors, which any framework reads, with where they come from in the metadata.

The tensors are the params by name, those of many networks with a leading axis. The metadata are texts: ``setup`` (its
JSON), ``seed``, ``runs`` and ``steps`` (JSON lists), ``engine``, ``exact``, ``origin`` (JSON), ``paritylab`` (the
version), ``count`` (of networks, or ``one``) and a ``digest`` of all that, which reading verifies.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from paritylab import __version__
from paritylab.errors import InvalidInput, in_a_line, require
from paritylab.setups.setup import Setup
from paritylab.storage.files import remove_stale, write_atomically

ONE = "one"
KIND = "paritylab networks 1"


@dataclass(frozen=True)
class Contents:
    """What is in a file."""

    setup: Setup
    seed: int
    runs: np.ndarray
    steps: np.ndarray
    params: dict[str, np.ndarray]
    engine: str
    exact: bool
    origin: dict[str, str]
    one: bool


def save(path: Path, contents: Contents) -> None:
    """Write a file, whole or not at all."""
    data = to_bytes(contents)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error.strerror or error}") from error
    remove_stale(path)


def to_bytes(contents: Contents) -> bytes:
    """What a file holds."""
    from safetensors.numpy import save as serialised

    params = {name: np.array(leaf, order="C") for name, leaf in contents.params.items()}  # it takes them as they lie
    about = {
        "kind": KIND, "paritylab": __version__, "setup": contents.setup.to_json(), "setup_id": contents.setup.id,
        "seed": str(contents.seed), "runs": _listed(contents.runs), "steps": _listed(contents.steps),
        "count": ONE if contents.one else str(len(contents.runs)), "engine": contents.engine,
        "exact": json.dumps(contents.exact), "origin": json.dumps(contents.origin, sort_keys=True),
    }
    try:
        return serialised(params, about | {"digest": _digest(about, params)})
    except Exception as error:
        kinds = ", ".join(sorted({str(leaf.dtype) for leaf in params.values()}))
        raise InvalidInput(f"params of {kinds} cannot be kept as safetensors: {in_a_line(error)}") from error


def load(path: Path, functions: Iterable[Any] = (), setup: Setup | None = None) -> Contents:
    """What such a file holds; InvalidInput if it is another one, or damaged.

    ``functions`` are those of the user's own that the Setup has, as :meth:`Setup.from_json` takes them; or ``setup`` is
    the one that it must have.
    """
    about, params = _read(path)
    require(about.get("kind") == KIND, f"{path} was not written by paritylab: its metadata do not say {KIND!r}")
    digest = about.pop("digest", "")
    require(digest == _digest(about, params), f"{path} is damaged: its contents do not match its digest")
    require(setup is None or about["setup_id"] == setup.id, f"{path} holds networks of another Setup")
    setup = setup or Setup.from_json(about["setup"], functions)
    runs, steps = (np.array(json.loads(about[name]), np.int64) for name in ("runs", "steps"))
    return Contents(setup, int(about["seed"]), runs, steps, params, about["engine"], json.loads(about["exact"]),
                    json.loads(about["origin"]), about["count"] == ONE)


def _read(path: Path) -> tuple[dict[str, str], dict[str, np.ndarray]]:
    from safetensors import safe_open

    require(path.is_file() or not path.exists(), f"{path} is not a file")
    try:
        with safe_open(path, framework="np") as file:
            return dict(file.metadata() or {}), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError:
        raise InvalidInput(f"no networks at {path}") from None
    except OSError as error:
        raise InvalidInput(f"cannot read {path}: {error.strerror or error}") from error
    except Exception as error:  # another program's file may hold anything
        raise InvalidInput(f"{path} is damaged or no safetensors file: {in_a_line(error)}") from error


def _listed(numbers: np.ndarray) -> str:
    return json.dumps(numbers.tolist(), separators=(",", ":"))


def _digest(about: Mapping[str, str], params: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.blake2b(json.dumps(about, sort_keys=True).encode(), digest_size=16)
    for name, leaf in sorted(params.items()):
        digest.update(json.dumps([name, str(leaf.dtype), leaf.shape]).encode())
        digest.update(np.ascontiguousarray(leaf).data if leaf.ndim and leaf.size else leaf.tobytes())
    return digest.hexdigest()
