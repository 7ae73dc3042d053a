"""Claims: every published statement as a command with an honest verdict.

The registry (``data/claims.toml``) states each claim with its setup and pass rule; one package per paper says how it is
tried; evidence says what came of it.

    from paritylab.claims import Lab, reproduce

    print(reproduce("barak2022.fig3", Lab("quick")))

Names are loaded when first used: listing claims needs no engine.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paritylab.claims.lab import Lab as Lab
    from paritylab.claims.registry import Claim as Claim
    from paritylab.claims.registry import find as find
    from paritylab.claims.reproduction import Reproduction as Reproduction
    from paritylab.claims.reproduction import reproduce as reproduce
    from paritylab.claims.verdicts import Check as Check
    from paritylab.claims.verdicts import Outcome as Outcome

_HOME = {
    "Lab": "lab",
    "Claim": "registry",
    "find": "registry",
    "Reproduction": "reproduction",
    "reproduce": "reproduction",
    "Check": "verdicts",
    "Outcome": "verdicts",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'paritylab.claims' has no attribute {name!r}")
    return getattr(importlib.import_module(f"paritylab.claims.{_HOME[name]}"), name)
