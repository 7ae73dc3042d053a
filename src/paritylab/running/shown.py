"""A Result as notebooks show it."""

from __future__ import annotations

import io
from html import escape
from typing import TYPE_CHECKING

from paritylab.setups.words import setups_in_words

if TYPE_CHECKING:
    from paritylab.running.sweeps import Result


def html(result: Result) -> str:
    """A small table and the survival curve, as one piece of HTML that needs nothing else."""
    rows = {
        "Setup": setups_in_words([result.setup]),
        "runs": f"{len(result.records)} by {result.engine}, seed {result.seed}, {result.reused} from the store",
        "result": str(result.summary),
    }
    cells = "".join(f"<tr><th style=\"text-align:left;vertical-align:top\">{escape(name)}</th>"
                    f"<td style=\"text-align:left\">{escape(text)}</td></tr>" for name, text in rows.items())
    return f"<table>{cells}</table>{_curve(result) if len(result.records) else ''}"


def _curve(result: Result) -> str:
    drawn = io.StringIO()
    result.plot().savefig(drawn, format="svg", metadata={"Date": None})
    text = drawn.getvalue()
    return text[text.index("<svg") :]
