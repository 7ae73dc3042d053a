"""The figures of docs/how-to/figures.md, by the lines and the commands that the page shows: ``make gallery``."""

from __future__ import annotations

import contextlib
import re
import shlex
import sys
import tempfile
from pathlib import Path

from paritylab.cli import main

DOCS = Path(__file__).parents[1] / "docs"
PAGE = DOCS / "how-to" / "figures.md"
KEPT = DOCS / "images" / "gallery"


def make() -> None:
    """What the page says, from its top to its end, in a folder of its own; the figures are brought here."""
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        names: dict[str, object] = {}
        for language, block in re.findall(r"```(python)?\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL):
            if language:
                exec(compile(block, PAGE.name, "exec"), names)
                continue
            for line in block.splitlines():
                if status := main(shlex.split(line)[1:]):
                    sys.exit(status)
        KEPT.mkdir(exist_ok=True)
        for path in Path("gallery").glob("*.svg"):
            (KEPT / path.name).write_bytes(path.read_bytes())
            print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    make()
