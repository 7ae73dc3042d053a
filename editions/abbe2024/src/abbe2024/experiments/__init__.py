"""The experiment that this paper brings to 'Play'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from paritylab.site.play import Experiment

if TYPE_CHECKING:
    from paritylab.setups.setup import Setup


def _starts() -> Mapping[str, Setup]:
    from paritylab import MLP, SGD, Learner, Parity, Protocol, Setup

    return {name: Setup(Parity(12, 12), Learner(MLP(128), law, optimiser=SGD(0.05)), Protocol(4000, 20, 128))
            for name, law in (("from signs", "rademacher"), ("from Gaussian weights", "gaussian"))}


EXPERIMENTS = (
    Experiment("starts", "The wrong initialisation",
               "The product of all twelve bits, the hardest parity for many methods. Weights that start at plus or"
               " minus one size learn it in a thousand steps. Gaussian weights of the same variance, with the same"
               " network, rate and batches, do not: what matters is how well the start is aligned with the target.",
               "abbe2024.summary-exp2", _starts, runs=32, speed="fast"),
)
