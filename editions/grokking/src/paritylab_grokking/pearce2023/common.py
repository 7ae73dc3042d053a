"""What the claims share: the networks of the sweep, trained, and what becomes of them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from paritylab import MLP, AdamW, Learner, Parity, Protocol, Setup
from paritylab.aliases import Floats
from paritylab.claims import Check, Lab, Trial, at_least, size
from paritylab.claims.intervals import share
from paritylab.engines.curves import Curves
from paritylab_grokking.pearce2023.outcomes import OUTCOMES, Cell, Networks, outcomes

N, K, TESTED = 30, 3, 5000
STEPS, EVERY = 20_000, 100
DECAYS = [0.01, 0.03, 0.1, 0.3, 1.0]
WIDTHS = [16, 32, 64, 128, 258]
SAMPLES = [750, 1000, 1250, 1500, 1750]
EACH = 225
"""Published networks of one weight decay, width or sample size."""


def setup(decay: float, width: int, sample: int) -> Setup:
    """One cell of the sweep, with the whole sample in each step; the 31st input, always 1, is a bias here."""
    optimiser = AdamW(0.003, weight_decay=decay, b1=0.99, b2=0.98)
    network = MLP(width, output_bias=False, inputs="bits")
    learner = Learner(network, "truncated:1", "clipped-logistic:1e-7", optimiser, sample)
    return Setup(Parity(N, K, sample=sample), learner, Protocol(eval_size=TESTED))


class Sweep(Trial):
    """A trial on cells of the sweep."""

    decays = size(quick=[0.01, 0.1, 1.0], full=DECAYS, label="weight decay")
    widths = size(quick=[16], full=WIDTHS, label="width")
    samples = size(quick=[750, 1750], full=SAMPLES, label="sample")
    seeds = size(quick=2, standard=9, full=36)

    likely = at_least("share of networks that end as most published ones of their cell", 0.5, only=("quick",))

    expected: ClassVar[Mapping[Cell, str]]
    """What most published networks of quick cells do."""

    @property
    def cells(self) -> list[Cell]:
        return list(itertools.product(self.decays, self.widths, self.samples))

    def work(self, lab: Lab) -> list[Curves]:
        return lab.curves_each([setup(*cell) for cell in self.cells], STEPS, EVERY, self.seeds, train=True)

    def found(self, got: Sequence[Curves]) -> Found:
        return Found({cell: Ends.of(curves) for cell, curves in zip(self.cells, got, strict=True)})

    def quickly(self, networks: Networks) -> list[Check]:
        """The quick rule."""
        return [self.likely(*share(np.concatenate([networks.cells[cell] == OUTCOMES.index(outcome)
                                                   for cell, outcome in self.expected.items()])))]


@dataclass(frozen=True)
class Ends:
    """Of each network the smallest losses and the largest ratio of test to training loss over all checks."""

    train: Floats
    test: Floats
    ratio: Floats

    @classmethod
    def of(cls, curves: Curves) -> Ends:
        """A network that diverged has not fitted, whatever it did before."""
        assert curves.train_loss is not None
        ratio = curves.loss / curves.train_loss
        return cls(curves.train_loss.min(axis=1), curves.loss.min(axis=1), ratio.max(axis=1))

    @property
    def outcomes(self) -> np.ndarray:
        return outcomes(self.train, self.test, self.ratio)


@dataclass(frozen=True)
class Found:
    """What became of all networks."""

    ends: Mapping[Cell, Ends]

    @property
    def networks(self) -> Networks:
        return Networks({cell: ends.outcomes for cell, ends in self.ends.items()})

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One for each network."""
        return [{"weight decay": decay, "width": width, "sample": sample, "run": run,
                 "smallest train loss": float(ends.train[run]), "smallest test loss": float(ends.test[run]),
                 "largest ratio": float(ends.ratio[run]), "outcome": OUTCOMES[ends.outcomes[run]]}
                for (decay, width, sample), ends in self.ends.items() for run in range(len(ends.train))]
