"""Files that are kept to be read again: written whole, with a digest that every reading verifies.

Arrays are an ordinary ``.npz`` archive whose comment (``unzip -z`` shows it) is a digest of its bytes and of the file's
name; documents are JSON with a digest of the rest. A file that cannot be trusted counts as absent: :func:`recall` says
so in a note, and what is made again takes its place.
"""

from __future__ import annotations

import hashlib
import io
import json
import warnings
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from paritylab.errors import InvalidInput, in_a_line, require
from paritylab.later import np
from paritylab.storage.files import remove_stale, write_atomically

T = TypeVar("T")

NETWORKS = "networks"
"""The folder of a store for trained networks (:mod:`paritylab.trained.kept`)."""
SEAL = b"paritylab blake2b "
_SEALED = len(SEAL) + 32


class KeptWarning(UserWarning):
    """A kept file is not used."""


def recall(path: Path, load: Callable[[Path], T]) -> T | None:
    """What a file keeps, as ``load`` reads it; None if it is not there, or damaged, which is said."""
    try:
        return load(path)
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        why = f"{path}: {error.strerror or error}" if isinstance(error, OSError) else error
        warnings.warn(f"not used: {why}", KeptWarning, stacklevel=1)  # one place: Python shows each text once
        return None


def is_sound(path: Path, digest: str | None) -> bool:
    """Whether a file is there and has this digest; that it has another is said."""
    if not path.is_file():
        return False
    if sound := digest_of(path.read_bytes()) == digest:
        return sound
    warnings.warn(f"not used: {path} is damaged: its contents do not match its digest", KeptWarning, stacklevel=1)
    return False


def digest_of(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


def digest_of_arrays(arrays: Mapping[str, np.ndarray]) -> str:
    """A digest of named arrays: of their values, however they are laid out. All NaN are alike, and so are both zeros.

    >>> digest_of_arrays({"a": np.array([0.0, np.nan])}) == digest_of_arrays({"a": np.array([-0.0, -np.nan])})
    True
    """
    digest = hashlib.blake2b(digest_size=16)
    for name, array in sorted(arrays.items()):
        if array.dtype.kind == "f":
            array = np.where(np.isnan(array), array.dtype.type(np.nan), array + array.dtype.type(0))
        array = array.astype(array.dtype.newbyteorder("<"), order="C")
        digest.update(json.dumps([name, array.dtype.str, array.shape]).encode() + array.tobytes())
    return digest.hexdigest()


def save_arrays(path: Path, arrays: Mapping[str, np.ndarray]) -> None:
    """Write named arrays, compressed, as one file."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # pyright: ignore[reportArgumentType]
    archive = buffer.getvalue()
    _write(path, archive[:-2] + _SEALED.to_bytes(2, "little") + _seal(path, archive))


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """The arrays of such a file; ValueError if it is damaged."""
    data = _read(path)
    archive, end = data[: -_SEALED - 2] + b"\0\0", data[-_SEALED - 2 :]
    right = _SEALED.to_bytes(2, "little") + _seal(path, archive)
    require(end == right, f"{path} is damaged or was renamed: its contents do not match its digest")
    try:
        return _members(archive)
    except Exception as error:  # a parser may make anything of what is no archive
        raise InvalidInput(f"{path} is damaged: {in_a_line(error)}") from error


def save_document(path: Path, document: Mapping[str, Any]) -> None:
    """Write a document as JSON."""
    _write(path, (json.dumps(sealed(document), indent=1, allow_nan=False) + "\n").encode())


def sealed(document: Mapping[str, Any]) -> dict[str, Any]:
    """A document with a digest of the rest.

    >>> seal_holds(sealed({"runs": 10})), seal_holds(sealed({"runs": 10}) | {"runs": 100})
    (True, False)
    """
    return {**document, "digest": _digest(document)}


def seal_holds(document: Mapping[str, Any]) -> bool:
    """Whether such a document has the digest it was given."""
    return document.get("digest") == _digest({name: value for name, value in document.items() if name != "digest"})


def load_document(path: Path) -> dict[str, Any]:
    """The document in such a file; ValueError if it is damaged."""
    try:
        document = parse_json(_read(path))
    except ValueError as error:
        raise InvalidInput(f"{path} is damaged: {error}") from error
    require(isinstance(document, dict), f"{path} is damaged: not a JSON object")
    digest = document.pop("digest", None)
    require(digest is not None, f"{path} has no digest to verify it by: it was not written by this version")
    require(digest == _digest(document), f"{path} is damaged: its contents do not match its digest")
    return document


def parse_json(data: bytes) -> Any:
    """What JSON says, all numbers finite; ValueError if that cannot be read, however odd it is.

    >>> parse_json(b'{"a": 1e400}')
    Traceback (most recent call last):
    ...
    paritylab.errors.InvalidInput: not a finite number: 1e400
    """
    try:
        return json.loads(data.decode(), parse_float=_finite, parse_constant=_finite)
    except RecursionError:
        raise InvalidInput("nested too deeply") from None


def _finite(text: str) -> float:
    number = float(text)
    require(abs(number) < float("inf"), f"not a finite number: {text[:20]}")
    return number


def _read(path: Path) -> bytes:
    require(path.is_file() or not path.exists(), f"{path} is not a file")  # reading a pipe would last for ever
    return path.read_bytes()


def _write(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, data)
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error.strerror or error}") from error
    remove_stale(path)


def _seal(path: Path, archive: bytes) -> bytes:
    return SEAL + digest_of(path.name.encode(errors="surrogateescape") + b"\0" + archive).encode()


def _digest(document: Mapping[str, Any]) -> str:
    return digest_of(json.dumps(document, sort_keys=True).encode())


def _members(archive: bytes) -> dict[str, np.ndarray]:
    """The arrays of an archive, each read to its end, where its checksum is compared: ``np.load`` may stop before."""
    with zipfile.ZipFile(io.BytesIO(archive)) as file:
        require(bool(file.namelist()), "an archive of nothing")
        parts = {name.removesuffix(".npy"): io.BytesIO(file.read(name)) for name in file.namelist()}
    return {name: np.lib.format.read_array(part, allow_pickle=False) for name, part in parts.items()}
