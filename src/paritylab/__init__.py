"""paritylab: how long any network takes to learn a parity, next to what theory predicts and papers published.

    import paritylab as pl

    result = pl.measure(
        pl.Parity(n=30, k=3),
        pl.Learner(network=pl.MLP(width=10), optimiser=pl.SGD(lr=1.0), batch=32),
        runs=1000,
    )
    print(result)

Names are loaded when first used, so that importing the package costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from paritylab import baselines as baselines
    from paritylab import figure7 as figure7
    from paritylab import inits as inits
    from paritylab import settings as settings
    from paritylab import statistics as statistics
    from paritylab.classifier import ParityClassifier as ParityClassifier
    from paritylab.crews import crew as crew
    from paritylab.engines import EngineNotice as EngineNotice
    from paritylab.engines.curves import Curves as Curves
    from paritylab.engines.curves import curves as curves
    from paritylab.errors import CellFailed as CellFailed
    from paritylab.errors import InvalidInput as InvalidInput
    from paritylab.fingerprints import named as named
    from paritylab.measures.alignment import alignment as alignment
    from paritylab.networks import MLP as MLP
    from paritylab.networks import DisjointPolyNet as DisjointPolyNet
    from paritylab.networks import Network as Network
    from paritylab.networks import Neuron as Neuron
    from paritylab.networks import PolyNet as PolyNet
    from paritylab.networks import Transformer as Transformer
    from paritylab.optimisers import SGD as SGD
    from paritylab.optimisers import Adam as Adam
    from paritylab.optimisers import Optax as Optax
    from paritylab.optimisers import SignSGD as SignSGD
    from paritylab.problems import LeakyParity as LeakyParity
    from paritylab.problems import Parity as Parity
    from paritylab.problems import Polynomial as Polynomial
    from paritylab.races import Race as Race
    from paritylab.races import race as race
    from paritylab.records import Records as Records
    from paritylab.setup import Learner as Learner
    from paritylab.setup import Protocol as Protocol
    from paritylab.setup import Setup as Setup
    from paritylab.store import Store as Store
    from paritylab.sweeps import Result as Result
    from paritylab.sweeps import measure as measure
    from paritylab.sweeps import sweep as sweep
    from paritylab.theory.alignment_rate import alignment_rate as alignment_rate

__version__ = "0.1.0"

_WHERE = {
    "classifier": ("ParityClassifier",),
    "crews": ("crew",),
    "engines": ("EngineNotice",),
    "engines.curves": ("Curves", "curves"),
    "errors": ("CellFailed", "InvalidInput"),
    "fingerprints": ("named",),
    "measures.alignment": ("alignment",),
    "networks": ("MLP", "DisjointPolyNet", "Network", "Neuron", "PolyNet", "Transformer"),
    "optimisers": ("SGD", "Adam", "Optax", "SignSGD"),
    "problems": ("LeakyParity", "Parity", "Polynomial"),
    "races": ("Race", "race"),
    "records": ("Records",),
    "setup": ("Learner", "Protocol", "Setup"),
    "store": ("Store",),
    "sweeps": ("Result", "measure", "sweep"),
    "theory.alignment_rate": ("alignment_rate",),
}
_MODULES = ("baselines", "figure7", "inits", "settings", "statistics")
_HOME = {name: module for module, names in _WHERE.items() for name in names}

__all__ = sorted([*_HOME, *_MODULES])  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"paritylab.{name}")
    if name in _HOME:
        return getattr(importlib.import_module(f"paritylab.{_HOME[name]}"), name)
    raise AttributeError(f"module 'paritylab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*globals(), *__all__]
