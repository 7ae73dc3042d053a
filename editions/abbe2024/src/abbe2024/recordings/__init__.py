"""The recorded runs that this paper brings to 'Watch it learn'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from paritylab.site.watch import Recording, evenly

if TYPE_CHECKING:
    from paritylab.setups.setup import Setup


def _starts() -> Mapping[str, Setup]:
    from paritylab import MLP, SGD, Learner, Parity, Setup

    return {name: Setup(Parity(20, 20), Learner(MLP(512), name.lower(), optimiser=SGD(0.01), batch=64))
            for name in ("Rademacher", "Gaussian")}


RECORDINGS = (
    Recording("starts", "Rademacher beside Gaussian",
              "The same network, batches and learning rate on the parity of all 20 bits: from weights ±1 it is learned,"
              " from Gaussian weights of the same variance it is not (abbe2024). 24 of 512 neurons are shown.",
              "paritylab curves --n 20 --k 20 --width 512 --init rademacher --lr 0.01 --batch 64 --steps 20000"
              " --every 100 --weights",
              _starts, evenly(20_000, 100)),
)
