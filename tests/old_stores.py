"""Stores as paritylab 0.1.0 wrote them: a folder for each Setup, with its JSON and blocks of records of one series."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path

import paritylab as pl
from paritylab.storage.gathered import to_frame
from paritylab.storage.records import Records


def write_old(root: Path, setup: pl.Setup, engine: str, seed: int, records: Records) -> Path:
    """A block in the layout of 0.1.0."""
    folder = root / setup.id
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "setup.json").write_text(setup.to_json())
    stamp = {"format": "1", "setup_id": setup.id, "engine": engine, "seed": str(seed), "version": "0.1.0"}
    buffer = io.BytesIO()
    frame = to_frame(records)
    frame.write_parquet(buffer, metadata={f"paritylab.{name}": text for name, text in stamp.items()})
    digest = hashlib.blake2b(buffer.getvalue(), digest_size=16).hexdigest()
    path = folder / f"{engine}-{seed}-{frame['run'].min()}-{digest}.parquet"
    path.write_bytes(buffer.getvalue())
    return path
