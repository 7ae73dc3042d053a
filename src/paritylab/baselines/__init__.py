"""What else finds a parity: linear algebra, search, Fourier analysis, queries and kernels, beside SGD.

Every learner takes a Problem and gives a Record: what it was given, whether it found the parity, how long it took. Some
find polynomials too, and your own learners (``learner``) are compared like the others.

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
    from paritylab.baselines.low_degree import terms as terms
    from paritylab.baselines.own import learner as learner
    from paritylab.baselines.records import Record as Record
    from paritylab.baselines.records import as_records as as_records
    from paritylab.baselines.records import frame as frame
    from paritylab.baselines.registry import descriptions as descriptions
    from paritylab.baselines.sources import Examples as Examples
    from paritylab.baselines.sources import Guess as Guess
    from paritylab.baselines.sources import Queries as Queries
    from paritylab.baselines.targets import Term as Term

_WHERE = {
    "attempts": ("learn", "needed"),
    "comparison": ("compare", "comparison_plot", "summarise"),
    "goldreich_levin": ("heavy",),
    "low_degree": ("terms",),
    "own": ("learner",),
    "records": ("Record", "as_records", "frame"),
    "registry": ("descriptions",),
    "sources": ("Examples", "Guess", "Queries"),
    "targets": ("Term",),
}
_HOME = {name: module for module, names in _WHERE.items() for name in names}

__all__ = sorted(_HOME)  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        return getattr(importlib.import_module(f"paritylab.baselines.{_HOME[name]}"), name)
    raise AttributeError(f"module 'paritylab.baselines' has no attribute {name!r}")
