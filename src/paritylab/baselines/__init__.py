"""What else finds a parity: linear algebra, search, Fourier analysis, queries and kernels, beside SGD.

Every learner takes a Problem and gives a Record: what it was given, whether it found the parity, how long it took.

>>> from paritylab import Parity, baselines
>>> baselines.learn("exhaustive", Parity(n=20, k=3, noise=0.1), samples=200).status
'solved'
>>> baselines.needed("goldreich-levin", Parity(n=20, k=3)).unit
'queries'
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paritylab.baselines.attempts import learn as learn
    from paritylab.baselines.attempts import needed as needed
    from paritylab.baselines.comparison import compare as compare
    from paritylab.baselines.comparison import comparison_plot as comparison_plot
    from paritylab.baselines.comparison import summarise as summarise
    from paritylab.baselines.goldreich_levin import heavy as heavy
    from paritylab.baselines.records import Record as Record
    from paritylab.baselines.records import as_records as as_records
    from paritylab.baselines.records import frame as frame
    from paritylab.baselines.registry import descriptions as descriptions

_WHERE = {
    "attempts": ("learn", "needed"),
    "comparison": ("compare", "comparison_plot", "summarise"),
    "goldreich_levin": ("heavy",),
    "records": ("Record", "as_records", "frame"),
    "registry": ("descriptions",),
}
_HOME = {name: module for module, names in _WHERE.items() for name in names}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"paritylab.baselines.{_HOME[name]}"), name)
    raise AttributeError(f"module 'paritylab.baselines' has no attribute {name!r}")
