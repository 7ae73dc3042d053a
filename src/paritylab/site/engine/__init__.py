"""The native engine compiled to WebAssembly, as the page "Play" has it: ``make web`` writes what is in this folder."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

FOLDER = Path(__file__).parent
SOURCES = ("paritylab", "given", "kernels", "refusal", "problem", "problem_parts", "starts", "stock", "finite_sample",
           "message", "web", "kernel")
"""What of ``native/`` is compiled, with all headers."""
ISAS = ("fused", "baseline")


def digest(native: Path) -> str:
    """Of the sources that make the modules."""
    searches = ("bind_supports", "bits", "enumeration", "meeting", "supports")
    elsewhere = ("bind_problem", "parse", "pool", "threads", *searches)
    headers = {path for path in native.glob("*.h") if path.stem not in elsewhere}
    files = sorted({native / f"{name}.cpp" for name in SOURCES} | headers)
    told = hashlib.sha256()
    for path in files:
        told.update(f"{path.name}\n{len(path.read_bytes())}\n".encode() + path.read_bytes())
    return told.hexdigest()


def about() -> dict[str, Any]:
    """Of which sources, and by which compiler."""
    return json.loads((FOLDER / "engine.json").read_text(encoding="utf-8"))


def module(isa: str) -> bytes:
    """Compressed by gzip."""
    return (FOLDER / f"{isa}.wasm.gz").read_bytes()
