"""The commands as a page of the site."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from paritylab.cli import Contents
from paritylab.cli.parser import Parser

HEAD = """# Commands

Made from the parser itself. Every command except `work` takes `--out DIR` (where results are kept; by default `out`;
for `figure`, `--out FILE` is the figure), `--json` (one JSON object and nothing else) and `--papers DIR` (a folder with
papers that need not be installed); they are not repeated below."""
COMMON = ("help", "out", "json", "papers")


def pages() -> dict[str, str]:
    """The page by the path in the repository that links would give it: what the command line brings to the site."""
    return {"docs/reference/cli.md": markdown()}


def markdown() -> str:
    """Every command with its options, as the table of contents has them."""
    contents = Contents()
    lines = [HEAD]
    for title, names in contents.titles.items():
        lines += ["", f"## {title[0].upper()}{title[1:]}" if " " in title else f"## `paritylab {title}`"]
        for name in names:
            lines += ["", f"### `paritylab {name}`", "", *_command(contents.parsers[name])]
    return "\n".join(lines) + "\n"


def _command(parser: Parser) -> Iterator[str]:
    yield _plain(" ".join((parser.description or "").split()))
    yield ""
    for action in parser._actions:
        if action.dest not in COMMON:
            yield f"- `{_called(action)}`: {_plain(_help(action))}"


def _called(action: argparse.Action) -> str:
    value = "" if action.nargs == 0 else str(action.metavar or (action.dest.upper() if action.option_strings else ""))
    several = " ..." if action.nargs in ("+", "*") and action.option_strings else ""
    return f"{', '.join(action.option_strings) or action.metavar or action.dest} {value}{several}".strip()


def _help(action: argparse.Action) -> str:
    default = action.default
    if default in (None, False, argparse.SUPPRESS, []) or action.nargs == 0:
        return action.help or ""
    shown = " ".join(map(str, default)) if isinstance(default, list) else str(default)
    return f"{action.help} (default: {shown})"


def _plain(text: str) -> str:
    for sign in "*_<":
        text = text.replace(sign, "\\" + sign)
    return text
