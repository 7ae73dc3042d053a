"""Blocks of Records for tests of the Store."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from paritylab.storage.records import COLUMNS, Records
from paritylab.storage.store import Store

SETUP = '{"n":30}'


def block(first: int, count: int = 10) -> Records:
    """Records that depend on the run number only, as those of a deterministic engine do."""
    run = np.arange(first, first + count)
    status = run % 3
    t_c = np.where(status == 0, 10 * run, -1)
    loss = np.where(status == 2, np.nan, run)
    return Records(run, status, t_c, np.where(status == 0, t_c, 5000), run % 2, loss)


def same(left: Records, right: Records) -> bool:
    return all(np.array_equal(getattr(left, name), getattr(right, name), equal_nan=True) for name in COLUMNS)


def filled(root: Path, *firsts: int) -> tuple[Store, list[Path]]:
    store = Store(root)
    return store, [store.append("abc", SETUP, "jax", 0, block(first)) for first in firsts]
