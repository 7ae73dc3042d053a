"""On what a verdict rests: which values of a setup the paper prints, and which are ours.

A paper's ``values.toml`` lists them for each claim, by name, each with its value and where it stands or why it was
taken::

    [fig1]
    printed = { "n, k" = "50, 3 (Figure 1)" }
    derived = { support = "the first k bits: the law is the same for all" }
    chosen = { steps = "100,000; the figure has no axis" }
    precision = { runs = "100" }
    changed = { batch = "32, where Figure 1 prints 1; Section 3.1 asks for 16 or more" }
    [fig1.parts."width 10"]
    chosen = { width = "10, not printed" }

``precision`` are numbers of runs, draws and digits: they make intervals narrow, and no result another. What a
part says of a value counts for it instead of what is said of the whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from paritylab.errors import require, unknown

SOURCES = ("printed", "derived", "chosen", "changed", "precision")
AS_PRINTED, NOT_SAID = "as printed", "basis not said"


@dataclass(frozen=True)
class Values:
    """The values of a setup by where they come from; ``corrected`` says how a theorem had to be put right."""

    sources: Mapping[str, Mapping[str, str]] = field(default_factory=dict[str, "Mapping[str, str]"])
    corrected: str = ""

    @property
    def basis(self) -> str:
        """
        >>> Values({"printed": {"n": "50"}, "chosen": {"rate": "0.1", "steps": "1e5"}}).basis
        'unprinted value chosen: rate, steps'
        """
        if self.corrected:
            return f"corrected statement: {self.corrected}"
        for source, words in (("changed", "printed value changed"), ("chosen", "unprinted value chosen")):
            if names := self.sources.get(source):
                return f"{words}: {', '.join(names)}"
        return AS_PRINTED if self.sources else NOT_SAID

    @property
    def names(self) -> set[str]:
        """Every value that is spoken of; several of one source may share a line."""
        return {name.strip() for values in self.sources.values() for names in values for name in names.split(",")}

    def unsaid(self, labels: Iterable[str]) -> list[str]:
        """The values among these of which nothing is said.

        >>> Values({"printed": {"n, k": "20, 3"}}).unsaid(["n", "k", "n, k", "rate"])
        ['rate']
        """
        return [label for label in labels if not {name.strip() for name in label.split(",")} <= self.names]

    def updated(self, table: Mapping[str, Any]) -> Values:
        """These values with what a further table says of some of them."""
        said = {name for source in SOURCES for name in table.get(source, {})}
        kept = {source: {name: text for name, text in self.sources.get(source, {}).items() if name not in said}
                for source in SOURCES}
        merged = {source: kept[source] | dict(table.get(source, {})) for source in SOURCES}
        return Values({source: each for source, each in merged.items() if each},
                      " ".join(table.get("corrected", self.corrected).split()))


def read(table: Mapping[str, Any], part: str = "") -> Values:
    """What a claim's table says of all of it, or of a part.

    >>> table = {"printed": {"B": "1"}, "parts": {"B = 32": {"changed": {"B": "32"}}}}
    >>> read(table).basis, read(table, "B = 32").basis
    ('as printed', 'printed value changed: B')
    """
    return Values().updated(table).updated(table.get("parts", {}).get(part, {}))


def checked(tables: Mapping[str, Any]) -> dict[str, Any]:
    """The tables of ``values.toml``, if they are as they should be."""
    for name, table in tables.items():
        for each in (table, *table.get("parts", {}).values()):
            for key, value in each.items():
                if key not in (*SOURCES, "corrected", "parts"):
                    raise unknown(f"source of values of {name}", key, (*SOURCES, "corrected", "parts"))
                if key in SOURCES:
                    require(isinstance(value, dict) and all(isinstance(text, str) for text in value.values()),
                            f"values.toml: {key} of {name} must be a table of texts")
                elif key == "corrected":
                    require(isinstance(value, str), f"values.toml: corrected of {name} must be text")
    return dict(tables)

