"""Write docs/reference/api.md and docs/reference/cli.md from the code; ``--check`` says whether they are current."""

from __future__ import annotations

import sys
from pathlib import Path

from paritylab.cli import reference as commands
from paritylab.site import reference as names

FOLDER = Path(__file__).parents[1] / "docs" / "reference"


def pages() -> dict[Path, str]:
    return {FOLDER / "api.md": names.markdown(), FOLDER / "cli.md": commands.markdown()}


def main() -> int:
    old = [path for path, text in pages().items()
           if not path.is_file() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv:
        print(*(f"{path.name} is not what the code says: make docs" for path in old), sep="\n")
        return len(old)
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
