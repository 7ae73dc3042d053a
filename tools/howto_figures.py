"""The figures of docs/how-to, each by the lines that its page shows: ``python tools/howto_figures.py [NAME ...]``."""

from __future__ import annotations

import contextlib
import re
import sys
import tempfile
from pathlib import Path
from typing import Any

PAGES = Path(__file__).resolve().parent.parent / "docs" / "how-to"
NAMES = ("multitask", "curriculum", "staircase", "grokking", "optimisers", "from-pytorch")


def main(names: list[str]) -> None:
    for name in names or NAMES:
        page = (PAGES / f"{name}.md").read_text()
        code = "\n".join(re.findall(r"```python\n(.*?)```", page, re.DOTALL))
        assert "figure = " in code, f"{name}.md makes no figure"
        space: dict[str, Any] = {}
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):  # a page may write files
            exec(compile(code, f"{name}.md", "exec"), space)
        space["pl"].plots.save(space["figure"], PAGES.parent / "images" / name)
        for suffix in (".svg", ".pdf", ".csv"):
            (PAGES.parent / "images" / f"{name}{suffix}").unlink(missing_ok=True)


if __name__ == "__main__":
    main(sys.argv[1:])
