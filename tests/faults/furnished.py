"""A folder to run commands in, with records and with files that no one can read."""

from __future__ import annotations

from pathlib import Path

import pytest

import paritylab as pl


@pytest.fixture(scope="module")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to run commands in: ``kept`` has records, ``broken`` has files that no one can read, ``file`` is one."""
    folder = tmp_path_factory.mktemp("furnished")
    setup = pl.Setup(pl.Parity(6, 2), protocol=pl.Protocol(max_steps=20, eval_size=64))
    pl.sweep([setup], runs=3, store=pl.Store(folder / "kept" / "store"), threads=1)
    (folder / "file").write_text("mine")
    for name in ("store/0123/setup.json", "store/0123/lanes-0-0-00.parquet", "store/4567/setup.json", "jobs.toml",
                 f"store/blocks/many-3-{'0' * 32}.parquet", f"store/setups/1-{'0' * 32}.parquet",
                 "store/blocks/x.parquet",
                 "kept/curves-1.npz", "records.npz", "claims/me2025.width/quick/result.json", "x.svg"):
        path = folder / "broken" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("{}" if "4567" in name else "no \x00 such = [")
    return folder
