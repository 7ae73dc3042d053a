"""Kept files: a damaged one is never believed, never a traceback, and made again."""

from __future__ import annotations

import errno
import io
import json
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

from paritylab.errors import InvalidInput
from paritylab.storage.kept import KeptWarning, load_arrays, load_document, recall, save_arrays, save_document

ARRAYS = {"t_c": np.array([10, 20, 40]), "loss": np.array([0.5, np.nan]), "engine": np.array("lanes")}
DOCUMENT = {"verdict": "reproduced", "numbers": {"median": 120.5, "name": "ω"}, "checks": [True, None]}


def plain(path: Path, arrays: dict[str, np.ndarray]) -> None:
    """As earlier versions wrote them: without a digest."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)  # pyright: ignore[reportArgumentType]
    path.write_bytes(buffer.getvalue())


def alike(found: Any, wanted: Any) -> bool:
    if not isinstance(wanted, dict) or found is None or found.keys() != wanted.keys():
        return found == wanted
    return all(np.array_equal(found[name], value, equal_nan=value.dtype.kind == "f") and
               found[name].dtype == value.dtype for name, value in wanted.items())


def flips(data: bytes) -> Iterator[bytes]:
    """Each bit of some bytes flipped, one at a time."""
    for place in range(8 * len(data)):
        damaged = bytearray(data)
        damaged[place // 8] ^= 1 << place % 8
        yield bytes(damaged)


def wounds(data: bytes, count: int = 200) -> Iterator[bytes]:
    """Bytes cut short, zeroed, doubled, mixed up or replaced."""
    moments = Random(0)
    yield from (b"", b"no", data + b"\0", data + data, data[::-1], bytes(len(data)), b"PK\x05\x06" + bytes(18))
    for _ in range(count):
        first, last = sorted(moments.sample(range(len(data) + 1), 2))
        yield data[:first]
        yield data[:first] + bytes(last - first) + data[last:]
        yield data[:first] + moments.randbytes(last - first) + data[last:]
        yield data[:first] + data[last:]


def quietly(path: Path, load: Any = load_arrays) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeptWarning)
        return recall(path, load)


def test_arrays_come_back_and_any_reader_of_npz_can_open_them(tmp_path: Path) -> None:
    path = tmp_path / "below" / "a.npz"
    save_arrays(path, ARRAYS)
    assert alike(load_arrays(path), ARRAYS)
    with np.load(path, allow_pickle=False) as file:
        assert alike(dict(file), ARRAYS)
    assert recall(tmp_path / "absent.npz", load_arrays) is None
    assert recall(tmp_path / "absent" / "a.npz", load_arrays) is None


def test_every_flipped_bit_of_kept_arrays_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    save_arrays(path, {"t_c": np.array([10, 20, 40])})
    for damaged in flips(path.read_bytes()):
        path.write_bytes(damaged)
        assert quietly(path) is None


def test_whatever_befalls_kept_arrays_they_are_right_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    save_arrays(path, ARRAYS)
    data = path.read_bytes()
    for damaged in wounds(data):
        path.write_bytes(damaged)
        found = quietly(path)
        assert found is None or alike(found, ARRAYS)
        assert found is None or damaged == data


def test_a_kept_file_under_another_name_is_not_believed(tmp_path: Path) -> None:
    save_arrays(tmp_path / "a.npz", ARRAYS)
    os.replace(tmp_path / "a.npz", tmp_path / "b.npz")
    with pytest.warns(KeptWarning, match=r"not used: .*b\.npz is damaged or was renamed"):
        assert recall(tmp_path / "b.npz", load_arrays) is None


def test_what_needs_a_pickle_is_never_opened(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    plain(path, {"x": np.array([{"a": 1}], dtype=object)})
    with pytest.warns(KeptWarning, match="do not match its digest"):
        assert recall(path, load_arrays) is None


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    (tmp_path / "folder.npz").mkdir()
    os.mkfifo(tmp_path / "pipe.npz")
    (tmp_path / "nowhere.npz").symlink_to(tmp_path / "nothing")
    for name in ("folder", "pipe"):
        with pytest.warns(KeptWarning, match="is not a file"):
            assert recall(tmp_path / f"{name}.npz", load_arrays) is None
    assert recall(tmp_path / "nowhere.npz", load_arrays) is None


def test_documents_come_back_and_no_flipped_bit_changes_them(tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    save_document(path, DOCUMENT)
    data = path.read_bytes()
    assert load_document(path) == DOCUMENT
    assert json.loads(data).items() >= DOCUMENT.items()
    for damaged in [*flips(data), *wounds(data)]:
        path.write_bytes(damaged)
        assert quietly(path, load_document) in (None, DOCUMENT)  # spaces, or "ω" written in full: all the same
    path.write_text(json.dumps(DOCUMENT))  # of an earlier version
    with pytest.warns(KeptWarning, match="has no digest"):
        assert recall(path, load_document) is None


ODD = ["[" * 10**5, "[1]", "1", "null", '{"a": NaN}', '{"a": 1e999}', '{"a": 1' + "0" * 5000 + "}", "\ufeff{}"]


@pytest.mark.parametrize("text", ODD, ids=range(len(ODD)))
def test_odd_documents_are_not_used(text: str, tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(text)
    with pytest.warns(KeptWarning, match="not used"):
        assert recall(tmp_path / "a.json", load_document) is None


def test_a_failing_disk_is_said_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    for save, what in ((save_arrays, ARRAYS), (save_document, DOCUMENT)):
        with pytest.raises(InvalidInput, match=r"cannot write .*a\.npz: No space left on device"):
            save(tmp_path / "a.npz", what)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_removed_by_the_next_write(tmp_path: Path) -> None:
    (tmp_path / ".old.tmp").write_bytes(b"")
    os.utime(tmp_path / ".old.tmp", (0, 0))
    save_arrays(tmp_path / "a.npz", ARRAYS)
    assert [path.name for path in tmp_path.iterdir()] == ["a.npz"]
