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
    from paritylab import callbacks as callbacks
    from paritylab import plots as plots
    from paritylab import statistics as statistics
    from paritylab.adapters.equinox_modules import from_equinox as from_equinox
    from paritylab.adapters.torch_modules import from_torch as from_torch
    from paritylab.baselines.classifier import ParityClassifier as ParityClassifier
    from paritylab.engines import EngineNotice as EngineNotice
    from paritylab.engines.checkpoints import Checkpoint as Checkpoint
    from paritylab.engines.curves import Curves as Curves
    from paritylab.errors import CellFailed as CellFailed
    from paritylab.errors import InvalidInput as InvalidInput
    from paritylab.functions.named import named as named
    from paritylab.measures import inside as inside
    from paritylab.measures.alignment import alignment as alignment
    from paritylab.measures.alignment import alignments as alignments
    from paritylab.measures.population import population_gradient as population_gradient
    from paritylab.running.comparing import Compared as Compared
    from paritylab.running.comparing import compare as compare
    from paritylab.running.crews import crew as crew
    from paritylab.running.races import Race as Race
    from paritylab.running.races import race as race
    from paritylab.running.recording import curves as curves
    from paritylab.running.result import Result as Result
    from paritylab.running.results import Results as Results
    from paritylab.running.sweeps import measure as measure
    from paritylab.running.sweeps import sweep as sweep
    from paritylab.setups import inits as inits
    from paritylab.setups.grids import grid as grid
    from paritylab.setups.networks import MLP as MLP
    from paritylab.setups.networks import DisjointPolyNet as DisjointPolyNet
    from paritylab.setups.networks import Graph as Graph
    from paritylab.setups.networks import Network as Network
    from paritylab.setups.networks import Neuron as Neuron
    from paritylab.setups.networks import PolyNet as PolyNet
    from paritylab.setups.networks import Transformer as Transformer
    from paritylab.setups.optimisers import SGD as SGD
    from paritylab.setups.optimisers import Adam as Adam
    from paritylab.setups.optimisers import AdamW as AdamW
    from paritylab.setups.optimisers import Lion as Lion
    from paritylab.setups.optimisers import Optax as Optax
    from paritylab.setups.optimisers import RMSProp as RMSProp
    from paritylab.setups.optimisers import SignSGD as SignSGD
    from paritylab.setups.problems import Data as Data
    from paritylab.setups.problems import LeakyParity as LeakyParity
    from paritylab.setups.problems import Outputs as Outputs
    from paritylab.setups.problems import Parity as Parity
    from paritylab.setups.problems import Polynomial as Polynomial
    from paritylab.setups.problems import Problem as Problem
    from paritylab.setups.problems import Stage as Stage
    from paritylab.setups.problems import Sum as Sum
    from paritylab.setups.problems import Table as Table
    from paritylab.setups.problems import Tasks as Tasks
    from paritylab.setups.problems import laws as laws
    from paritylab.setups.problems import multitask as multitask
    from paritylab.setups.setup import Learner as Learner
    from paritylab.setups.setup import Protocol as Protocol
    from paritylab.setups.setup import Setup as Setup
    from paritylab.storage.records import Records as Records
    from paritylab.storage.store import Store as Store
    from paritylab.theory.alignment_rate import alignment_rate as alignment_rate
    from paritylab.theory.bias_gap import bias_gap as bias_gap
    from paritylab.trained import TrainedNetwork as TrainedNetwork
    from paritylab.trained import TrainedNetworks as TrainedNetworks

__version__ = "0.2.0"

_WHERE = {
    "adapters.equinox_modules": ("from_equinox",),
    "adapters.torch_modules": ("from_torch",),
    "baselines.classifier": ("ParityClassifier",),
    "engines": ("EngineNotice",),
    "engines.checkpoints": ("Checkpoint",),
    "engines.curves": ("Curves",),
    "errors": ("CellFailed", "InvalidInput"),
    "functions.named": ("named",),
    "measures.alignment": ("alignment", "alignments"),
    "measures.population": ("population_gradient",),
    "running.comparing": ("Compared", "compare"),
    "running.crews": ("crew",),
    "running.races": ("Race", "race"),
    "running.recording": ("curves",),
    "running.result": ("Result",),
    "running.results": ("Results",),
    "running.sweeps": ("measure", "sweep"),
    "setups.grids": ("grid",),
    "setups.networks": ("MLP", "DisjointPolyNet", "Graph", "Network", "Neuron", "PolyNet", "Transformer"),
    "setups.optimisers": ("SGD", "Adam", "AdamW", "Lion", "Optax", "RMSProp", "SignSGD"),
    "setups.problems": (
        "Data", "LeakyParity", "Outputs", "Parity", "Polynomial", "Problem", "Stage", "Sum", "Table", "Tasks",
        "multitask",
    ),
    "setups.setup": ("Learner", "Protocol", "Setup"),
    "storage.records": ("Records",),
    "storage.store": ("Store",),
    "theory.alignment_rate": ("alignment_rate",),
    "theory.bias_gap": ("bias_gap",),
    "trained": ("TrainedNetwork", "TrainedNetworks"),
}
_MODULES = {
    "baselines": "baselines",
    "callbacks": "callbacks",
    "inits": "setups.inits",
    "inside": "measures.inside",
    "laws": "setups.problems.laws",
    "plots": "plots",
    "statistics": "statistics",
}
_HOME = {name: module for module, names in _WHERE.items() for name in names}

__all__ = sorted([*_HOME, *_MODULES])  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"paritylab.{_MODULES[name]}")
    if name in _HOME:
        return getattr(importlib.import_module(f"paritylab.{_HOME[name]}"), name)
    raise AttributeError(f"module 'paritylab' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
