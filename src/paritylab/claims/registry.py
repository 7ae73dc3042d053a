"""Every claim of every paper."""

from __future__ import annotations

import fnmatch
from collections.abc import Sequence

from paritylab.claims.library import Claim, papers
from paritylab.errors import InvalidInput, unknown


def registry() -> dict[str, Claim]:
    """Every claim, by id, paper by paper.

    >>> registry()["me2025.width"].where
    'Figure 1'
    """
    return {name: claim for paper in papers().values() for name, claim in paper.claims.items()}


def find(patterns: Sequence[str]) -> list[Claim]:
    """The claims with these ids, or whose ids match these globs, each once.

    >>> [claim.id for claim in find(["me2025.*"])]
    ['me2025.width', 'me2025.guessing']
    """
    known = registry()
    found: dict[str, Claim] = {}
    for pattern in patterns:
        names = [name for name in known if fnmatch.fnmatchcase(name, pattern)]
        if not names:
            if any(sign in pattern for sign in "*?["):
                raise InvalidInput(f"no claim matches {pattern!r}; 'paritylab claims' lists them")
            hint = str(unknown("claim", pattern, known)).split("; allowed")[0]
            raise InvalidInput(f"{hint}; 'paritylab claims' lists them")
        found |= {name: known[name] for name in names}
    return list(found.values())
