"""Claims: every published statement as a command with an honest verdict.

A claim is one object, a :class:`Trial` beside the code of its paper; evidence says what came of trying it.

    from paritylab.claims import Lab, reproduce

    print(reproduce("me2025.width", Lab("quick")))

Names are loaded when first used: listing claims needs no engine.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paritylab.claims.lab import Lab as Lab
    from paritylab.claims.library import Claim as Claim
    from paritylab.claims.library import Paper as Paper
    from paritylab.claims.library import papers as papers
    from paritylab.claims.registry import find as find
    from paritylab.claims.reproduction import Reproduction as Reproduction
    from paritylab.claims.reproduction import reproduce as reproduce
    from paritylab.claims.rules import Rule as Rule
    from paritylab.claims.rules import at_least as at_least
    from paritylab.claims.rules import at_most as at_most
    from paritylab.claims.rules import between as between
    from paritylab.claims.rules import holds as holds
    from paritylab.claims.rules import significant as significant
    from paritylab.claims.trial import Findings as Findings
    from paritylab.claims.trial import Trial as Trial
    from paritylab.claims.trial import claim as claim
    from paritylab.claims.trial import rng as rng
    from paritylab.claims.trial import size as size
    from paritylab.claims.verdicts import Check as Check
    from paritylab.running.computations import computation as computation

_WHERE = {
    "paritylab.claims.lab": ("Lab",),
    "paritylab.claims.library": ("Claim", "Paper", "papers"),
    "paritylab.claims.registry": ("find",),
    "paritylab.claims.reproduction": ("Reproduction", "reproduce"),
    "paritylab.claims.rules": ("Rule", "at_least", "at_most", "between", "holds", "significant"),
    "paritylab.claims.trial": ("Findings", "Trial", "claim", "rng", "size"),
    "paritylab.claims.verdicts": ("Check",),
    "paritylab.running.computations": ("computation",),
}
_HOME = {name: module for module, names in _WHERE.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'paritylab.claims' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)
