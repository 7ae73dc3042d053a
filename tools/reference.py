"""Write the pages of docs that are made from code and evidence; ``--check`` says whether they are current."""

from __future__ import annotations

import sys
from pathlib import Path

from paritylab.baselines import page as learners
from paritylab.claims import findings
from paritylab.cli import reference as commands
from paritylab.site import reference as names

DOCS = Path(__file__).parents[1] / "docs"


def pages() -> dict[Path, str]:
    figures = {DOCS / "data" / "findings" / each.figure.name: each.figure.read_text(encoding="utf-8")
               for each in findings.findings() if each.figure}
    return {DOCS / "reference" / "api.md": names.markdown(), DOCS / "reference" / "cli.md": commands.markdown(),
            DOCS / "reference" / "learners.md": learners.markdown(),
            DOCS / "explanation" / "findings.md": findings.markdown("../data/findings"), **figures}


def main() -> int:
    old = [path for path, text in pages().items()
           if not path.is_file() or path.read_text(encoding="utf-8") != text]
    if "--check" in sys.argv:
        print(*(f"{path.name} is not what the code says: make docs" for path in old), sep="\n")
        return len(old)
    for path, text in pages().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
