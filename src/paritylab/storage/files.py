"""Files that are whole or not there."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import uuid
from collections.abc import Iterable
from pathlib import Path

from paritylab.later import np

ATTEMPTS = 3
STALE_SECONDS = 3600


def save_table(path: Path, rows: np.ndarray, names: Iterable[str]) -> None:
    """Write rows of numbers as CSV under a line of names."""
    buffer = io.StringIO()
    np.savetxt(buffer, rows, header=",".join(names), comments="", delimiter=",")
    write_atomically(path, buffer.getvalue().encode())


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file through a temporary one in the same directory: readers see all of it, or the old one."""
    if not path.name:
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    for left in reversed(range(ATTEMPTS)):
        temporary = path.with_name(f".{uuid.uuid4().hex}.tmp")
        try:
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
            break
        except BaseException as error:
            gone = isinstance(error, FileNotFoundError) and path.parent.is_dir()
            temporary.unlink(missing_ok=True)
            if not (gone and left):  # gone: another process found it stale, the clock having jumped
                raise
    sync_directory(path.parent)


def remove_stale(written: Path, folder: Path | None = None) -> None:
    """Delete what killed processes left beside a file that was written just now: its time counts, not the clock.

    ``folder`` is another one of the same disk.
    """
    with contextlib.suppress(OSError):  # another process was quicker, or it cannot be deleted: no harm
        now = written.stat().st_mtime
        for path in (folder or written.parent).glob(".*.tmp"):
            if now - path.stat().st_mtime > STALE_SECONDS:
                path.unlink()


def sync_directory(directory: Path) -> None:
    """Wait until the names in a directory are on disk."""
    if os.name != "posix":  # Windows cannot open a directory, and needs no such call
        return
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
