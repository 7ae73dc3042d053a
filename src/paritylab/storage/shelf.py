"""A shelf: a folder of files that never change, each whole or not there, known by the digest in its name.

Any number of processes write and tidy one shelf without a lock. A file is deleted only by a process that has put
another one there with all that is in it, and whose name depends on the names of those it replaces. So the files that
ever held some record are ordered by who replaced whom, without a circle, and the last one written is never deleted:
nothing is lost, whoever is killed when, and whoever is slow. What is in two files is there once for readers.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from paritylab.errors import InvalidInput, require
from paritylab.storage.files import remove_stale, sync_directory, write_atomically

MEMORY = 2**28
"""Bytes of files that a shelf remembers; they were verified when they were read."""
FULL = 2**24
"""A file of so many bytes is not merged with others any more: tidying takes bounded memory and time."""
SMALL = 2**20
"""Files that have fewer bytes together are always merged."""
RATIO = 4
"""A file is merged with all that are smaller if they have more than this part of its bytes."""

ATTEMPTS = 1000
"""How often a folder is listed again that changes meanwhile."""

Report = Callable[[Path, str], None]


class StoreError(InvalidInput):
    """The store cannot be used. The message is one line: what failed and where."""


class StoreConflict(StoreError):
    """Two files of the store contradict each other."""


@dataclass(frozen=True)
class File:
    """What a listing says of a file."""

    path: Path
    match: re.Match[str]
    size: int
    changed: int

    @property
    def name(self) -> str:
        return self.path.name


class Shelf:
    """The files of one folder whose names match a pattern, the digest being its group ``digest``."""

    def __init__(self, folder: Path, pattern: re.Pattern[str], report: Report) -> None:
        self.folder, self._pattern, self._report = folder, pattern, report
        self._known: OrderedDict[str, tuple[File, Any]] = OrderedDict()

    def files(self) -> list[File]:
        """What is there, by name."""
        for left in reversed(range(ATTEMPTS)):
            before = changed(self.folder)
            # A listing made while files are merged can miss an old one (already deleted) and the merged one (not yet
            # there when its place was passed). The next listing then has the merged one.
            entries = {entry.name: entry for entry in [*listing(self.folder), *listing(self.folder)]}
            try:
                found = [file for _, entry in sorted(entries.items()) if (file := self._file(entry)) is not None]
            except FileNotFoundError:
                continue  # merged with others since
            if changed(self.folder) == before or not left:
                return found
        raise StoreError(f"cannot list {self.folder}: others change it all the time")

    def _file(self, entry: os.DirEntry[str]) -> File | None:
        if not entry.name.endswith(".parquet"):
            return None
        if (match := self._pattern.fullmatch(entry.name)) is None:
            self._report(Path(entry.path), "is not named like a file of this store")
            return None
        about = entry.stat()
        return File(Path(entry.path), match, about.st_size, about.st_mtime_ns)

    def load(self, file: File, parse: Callable[[File, bytes], Any]) -> Any:
        """What ``parse`` makes of a file whose bytes are those of its digest, or None; what is wrong is reported."""
        if (known := self._known.get(file.name)) is not None and known[0] == file:
            self._known.move_to_end(file.name)
            return known[1]
        try:
            data = file.path.read_bytes()
            right = digest_of(data) == file.match["digest"]
            require(right, "is damaged: its contents do not match the digest in its name")
            made = parse(file, data)
        except FileNotFoundError:
            raise
        except (ValueError, OSError) as error:
            self._report(file.path, str(error))
            return None
        self._remember(file, made)
        return made

    def _remember(self, file: File, made: Any) -> None:
        if file.size > MEMORY:
            return
        self._known[file.name] = file, made
        while sum(each.size for each, _ in self._known.values()) > MEMORY:
            self._known.popitem(last=False)

    def write(self, name: str, data: bytes) -> Path:
        """Put a file there; ``name`` has a place for its digest."""
        make_folder(self.folder)
        path = self.folder / name.format(digest_of(data))
        write_atomically(path, data)
        remove_stale(path)
        return path

    def remove(self, files: Sequence[Path]) -> None:
        """Delete files whose contents are in another one that is on disk."""
        for path in files:
            path.unlink(missing_ok=True)
        sync_directory(self.folder)


def lineage(files: Sequence[File]) -> str:
    """What the name of a merged file depends on."""
    return digest_of("\n".join(sorted(file.name for file in files)).encode())


def tidied(files: Sequence[File]) -> list[File]:
    """Which files should become one, so that few are left and each byte is written again a few times only.

    Of what stays, each file has several times the bytes of all smaller ones together, unless it is full: as many as the
    logarithm of their bytes, and one for each ``FULL``.
    """
    ordered = sorted((file for file in files if file.size < FULL), key=lambda file: (file.size, file.name))
    sums = list(accumulate(file.size for file in ordered))
    close = [place for place in range(1, len(ordered))
             if sums[place] <= SMALL or ordered[place].size <= RATIO * sums[place - 1]]
    if not close:
        return []
    enough = next((place for place, size in enumerate(sums) if size >= FULL), len(sums))
    return ordered[: max(2, min(close[-1], enough) + 1)]


def digest_of(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


@contextmanager
def explained(verb: str, path: Path) -> Iterator[None]:
    """Errors of the disk in one line."""
    try:
        yield
    except OSError as error:
        raise StoreError(f"cannot {verb} the store at {path}: {error.strerror or error}") from error


def listing(folder: Path) -> list[os.DirEntry[str]]:
    with explained("read", folder):
        try:
            with os.scandir(folder) as entries:
                return list(entries)
        except FileNotFoundError:
            return []


def changed(folder: Path) -> int:
    """When a file was last added to a folder or taken away."""
    try:
        return folder.stat().st_mtime_ns
    except OSError:  # listing it says what is wrong
        return 0


def make_folder(folder: Path) -> None:
    if not folder.is_dir():
        folder.mkdir(parents=True, exist_ok=True)
        sync_directory(folder.parent)
