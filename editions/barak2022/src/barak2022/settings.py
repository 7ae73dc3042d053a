"""The papers' learners, by the names the papers give them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from paritylab.errors import require, unknown
from paritylab.setups.networks import MLP, Neuron, PolyNet, Transformer
from paritylab.setups.optimisers import SGD, Adam
from paritylab.setups.setup import Learner

BARAK2022: dict[str, Callable[[int], Any]] = {
    "i": lambda k: MLP(10),
    "ii": lambda k: MLP(100),
    "iii": lambda k: MLP(1000),
    "iv": lambda k: MLP(10, f"power:{k}"),
    "v": lambda k: MLP(100, f"power:{k}"),
    "vi": lambda k: MLP(1000, f"power:{k}"),
    "vii": lambda k: MLP(1, f"zigzag:{k}"),
    "viii": lambda k: MLP(1, f"oscillating:{k}"),
    "ix": lambda k: MLP(1, f"infinite-zigzag:{k}"),
    "x": lambda k: MLP(1, f"sinusoid:{k}"),
    "xi": lambda k: Neuron(f"zigzag:{k}"),
    "xii": lambda k: Neuron(f"oscillating:{k}"),
    "xiii": lambda k: Neuron(f"infinite-zigzag:{k}"),
    "xiv": lambda k: Neuron(f"sinusoid:{k}"),
    "xv": lambda k: PolyNet(k),
    "*i": lambda k: MLP(k),
    "*ii": lambda k: MLP(k, f"power:{k}"),
    "*iii": lambda k: Transformer(),
}
"""The 18 settings of barak2022, Appendix D.2: a network for each degree k."""

NAMES = tuple(BARAK2022)


def barak2022(setting: str, k: int, lr: float = 0.1, batch: int = 32) -> Learner:
    """The Learner of one of barak2022's settings (i)-(xv), (*i)-(*iii).

    Hinge loss, PyTorch's default initialisation, plain SGD (Adam for the Transformer, setting ``*iii``).

    >>> barak2022("iv", k=3).network.activation.spec
    'power:3'
    """
    if setting not in BARAK2022:
        raise unknown("barak2022 setting", setting, BARAK2022)
    require(k >= 1, f"the settings of barak2022 need k of at least 1, not {k}")
    optimiser = Adam(lr) if setting == "*iii" else SGD(lr)
    return Learner(BARAK2022[setting](k), optimiser=optimiser, batch=batch)


learner = barak2022
"""What ``paritylab measure --setting barak2022:NAME`` asks for."""
