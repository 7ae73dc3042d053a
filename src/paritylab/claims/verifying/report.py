"""What a verification found."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

LEVEL = 1e-3
"""The chance that a whole verification finds a difference by chance: all comparisons of laws share it."""


class Law(NamedTuple):
    """Two samples, and the p-value of their having one law."""

    where: str
    what: str
    p_value: float


@dataclass
class Report:
    """What was checked, what was not and why, and what differed.

    >>> report = Report()
    >>> report.weigh("store", "records of another law", 1e-5)
    >>> report.differences
    [{'where': 'store', 'what': 'records of another law (p = 1e-05, and 0.001 is the level)'}]
    >>> for _ in range(999):
    ...     report.weigh("store", "records of another law", 0.5)
    >>> report.differences
    []
    """

    checked: Counter[str] = field(default_factory=Counter[str])
    left_out: Counter[str] = field(default_factory=Counter[str])
    certain: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    laws: list[Law] = field(default_factory=list[Law])

    def differ(self, where: str, what: str) -> None:
        """Two things differ that must be the same."""
        self.certain.append({"where": where, "what": what})

    def weigh(self, where: str, what: str, p_value: float) -> None:
        """Two samples should have one law; whether they do is told when all p-values are known."""
        self.laws.append(Law(where, what, p_value))

    @property
    def differences(self) -> list[dict[str, str]]:
        level = LEVEL / max(1, len(self.laws))
        unlikely = [{"where": where, "what": f"{what} (p = {p:.2g}, and {level:.2g} is the level)"}
                    for where, what, p in self.laws if p < level]
        return self.certain + unlikely

    def to_dict(self) -> dict[str, Any]:
        return {"checked": dict(self.checked), "left_out": dict(self.left_out), "differences": self.differences,
                "compared_by_law": len(self.laws), "level": LEVEL}

    def __str__(self) -> str:
        lines = [f"{count:>9,}  {what}" for what, count in self.checked.items() if count]
        if self.laws:
            chance = f"a chance of at most {LEVEL:g} that one of them is a false alarm"
            lines.append(f"{len(self.laws):>9,}  comparisons by distribution, with {chance}")
        lines += [f"{count:>9,}  not checked: {what}" for what, count in self.left_out.items() if count]
        lines += [f"differs: {each['where']}: {each['what']}" for each in self.differences]
        return "\n".join([*lines, f"{len(self.differences)} differences"])
