"""What the kernels are told of a program: one description for ``lanes``, for ``warps`` and for ``native/config.h``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from paritylab.setups.networks import MLP, Neuron, PolyNet
from paritylab.setups.optimisers import SGD
from paritylab.setups.setup import Setup

Family = Literal["mlp", "neuron", "polynet"]
FAMILIES: dict[type, Family] = {MLP: "mlp", Neuron: "neuron", PolyNet: "polynet"}


@dataclass(frozen=True)
class Configuration:
    """What every run of a program has in common, in the words of ``struct Config``."""

    n: int
    family: Family
    width: int
    below: list[int]
    """Widths of the layers below the last hidden one, from the inputs up."""
    bias: bool
    batch: int
    activation: str
    activation_params: list[float]
    loss: str
    loss_params: list[float]
    schedule: Callable[[int], np.ndarray] | None
    """The factors of the learning rate in a block of steps; None where it stays as it is."""
    rates: list[float]
    """A factor for each layer."""
    decay_coupled: float
    decay_plain: float
    sample: int
    """Examples of a finite sample; 0 for fresh inputs every step."""
    replacement: bool
    eval_every: int
    eval_size: int
    eval_fresh: bool
    allowed_errors: int
    consecutive: int

    @classmethod
    def of(cls, program: Setup) -> Configuration:
        """That of a program which the kernels can train: see :func:`paritylab.engines.lanes.refusal`."""
        network, loss, optimiser = program.learner.network, program.learner.loss, program.learner.optimiser
        problem, protocol = program.problem, program.protocol
        assert isinstance(optimiser, SGD)
        family = FAMILIES[type(network)]
        activation, numbers = network.activation.native if family != "polynet" else ("power", (1.0,))
        widths = network.widths if isinstance(network, MLP) else [network.degree if family == "polynet" else 1]
        rates = [float(rate) for rate in optimiser.rates or [1.0]]
        plain = optimiser.decay_form == "plain"
        return cls(
            n=problem.n,
            family=family,
            width=widths[-1],
            below=list(widths[:-1]),
            bias=getattr(network, "bias", True),
            batch=program.learner.batch,
            activation=activation,
            activation_params=[float(x) for x in numbers],
            loss=loss.native[0],
            loss_params=[float(x) for x in loss.native[1]],
            schedule=None if optimiser.schedule.constant else optimiser.schedule.block,
            rates=rates + rates[-1:] * (len(widths) + 1 - len(rates)),
            decay_coupled=0.0 if plain else float(optimiser.weight_decay),
            decay_plain=float(optimiser.weight_decay) if plain else 0.0,
            sample=problem.examples,
            replacement=problem.replacement,
            eval_every=protocol.eval_every,
            eval_size=protocol.eval_size,
            eval_fresh=protocol.fresh,
            allowed_errors=protocol.allowed_errors,
            consecutive=protocol.consecutive,
        )

    def to_dict(self) -> dict[str, Any]:
        """The keywords of the kernel's constructor."""
        return dict(vars(self))
