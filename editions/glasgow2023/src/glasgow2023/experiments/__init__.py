"""The experiment that this paper brings to 'Play'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from paritylab.site.play import Experiment

if TYPE_CHECKING:
    from paritylab.setups.setup import Setup


def _xor() -> Mapping[str, Setup]:
    from glasgow2023.theory import xor
    from paritylab import Parity, Protocol, Setup

    return {"2 of 32 bits": Setup(Parity(32, 2), xor.learner(64, 0.1, 0.1, 64), Protocol(400, 5, 128))}


EXPERIMENTS = (
    Experiment("xor", "XOR in two phases",
               "XOR of two of 32 bits, from a small start. In the first phase the weights of the two bits grow at an"
               " exponential rate while the output is still nothing: the wall stays dark, the weights of one network"
               " already show two stripes. In the second the output follows and all four corners are learned together.",
               "glasgow2023.eq4-3-rate", _xor, runs=128, speed="1"),
)
