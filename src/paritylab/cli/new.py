"""``paritylab paper new``: a folder for a paper of one's own, from the template."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from paritylab.cli.parser import Parser, add_common, print_json
from paritylab.errors import require

TEMPLATE = "me2025"
LEFT_OUT = ("evidence", "__pycache__", ".pytest_cache")
_PACKAGE = Path(__file__).parents[1]


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "new",
        help="a folder with all that a paper needs, to be filled in",
        description="Makes a folder of the name with a package: paper.toml, two claims as examples, a table, values,"
        " documentation and tests. Put your claims in their place; 'paritylab paper check NAME/src' says what is wrong,"
        " and the how-to 'Add a paper' goes through it step by step.",
    )
    parser.add_argument("name", metavar="NAME", help="of the paper and its package: author and year, as you2026")
    add_common(parser, run, out=False)


def run(options: argparse.Namespace) -> None:
    from paritylab.storage.files import write_atomically

    name, folder = options.name, Path(options.name)
    require(name.isidentifier() and name == name.lower() and name != TEMPLATE,
            f"a paper has the name of a Python package, such as you2026, not {name!r}")
    require(not folder.exists(), f"there is a {folder} already")
    written: list[str] = []
    for path in sorted(skeleton().rglob("*")):
        if path.is_file() and not set(path.parts) & set(LEFT_OUT):
            place = folder / str(path.relative_to(skeleton())).replace(TEMPLATE, name)
            place.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(place, path.read_text(encoding="utf-8").replace(TEMPLATE, name).encode())
            written.append(str(place))
    if options.json:
        print_json({"paper": name, "files": written})
    else:
        print(*written, f"next: paritylab claims --papers {folder}/src --paper {name}", sep="\n")


def skeleton() -> Path:
    """The template in the checkout, or the copy that an installed package carries."""
    checkout = _PACKAGE.parents[1] / "examples" / TEMPLATE
    return checkout if checkout.is_dir() else _PACKAGE / "examples" / TEMPLATE
