"""What notebooks show: tables as HTML that is readable on light and on dark, and a line that changes in its place."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

_LEFT = ' style="text-align:left;vertical-align:top"'


def facts(rows: Mapping[str, Any]) -> str:
    """A table of names and what they stand for, as HTML.

    >>> facts({"a < b": 3})
    '<table><tr><th style="text-align:left;vertical-align:top">a &lt; b</th>\
<td style="text-align:left;vertical-align:top">3</td></tr></table>'
    """
    lines = "".join(f"<tr><th{_LEFT}>{escape(name)}</th><td{_LEFT}>{escape(str(said))}</td></tr>"
                    for name, said in rows.items())
    return f"<table>{lines}</table>"


def table(head: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    """A table with a head, as HTML; numbers of a column stand below each other.

    >>> table(["n", "median"], [[20, 110.0]], "two < three")
    '<p>two &lt; three</p><table><thead><tr><th>n</th><th>median</th></tr></thead>\
<tbody><tr><td>20</td><td>110</td></tr></tbody></table>'
    """
    names = "".join(f"<th>{escape(name)}</th>" for name in head)
    lines = "".join(f"<tr>{''.join(f'<td>{escape(_shown(cell))}</td>' for cell in row)}</tr>" for row in rows)
    said = f"<p>{escape(caption)}</p>" if caption else ""
    return f"{said}<table><thead><tr>{names}</tr></thead><tbody>{lines}</tbody></table>"


def _shown(cell: Any) -> str:
    return "" if cell is None else f"{cell:.4g}" if isinstance(cell, float) else str(cell)


def shell() -> Any:
    """The shell of the notebook that this runs in; None in a terminal or a script."""
    ipython = sys.modules.get("IPython")  # which every notebook has loaded
    found = None if ipython is None else ipython.get_ipython()
    return found if getattr(found, "kernel", None) is not None else None


class Line:
    """One line of a cell's output, written anew in its place: however often it changes, it is saved once."""

    def __init__(self) -> None:
        self._handle: Any = None

    def write(self, text: str, html: str | None = None) -> None:
        from IPython.display import DisplayHandle  # pyright: ignore[reportMissingImports]

        data = {"text/plain": text} if html is None else {"text/plain": text, "text/html": html}
        if self._handle is None:
            self._handle = DisplayHandle()
            self._handle.display(data, raw=True)
        else:
            self._handle.update(data, raw=True)

    def clear(self) -> None:
        """Leave an empty line, which takes no room, in what is saved."""
        if self._handle is not None:
            self.write("")
