"""What the kernels are told of a program: one description for ``lanes``, for ``warps`` and for ``native/config.h``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from paritylab.engines import sources
from paritylab.setups.networks import MLP, Neuron, PolyNet
from paritylab.setups.optimisers import SGD, Adam, Optimiser, RMSProp, SignSGD
from paritylab.setups.setup import Setup

Family = Literal["mlp", "neuron", "polynet"]
FAMILIES: dict[type, Family] = {MLP: "mlp", Neuron: "neuron", PolyNet: "polynet"}


RULES: dict[type, Callable[[Any], tuple[str, tuple[float, ...]]]] = {
    SGD: lambda o: ("momentum", (o.momentum, float(o.nesterov))) if o.momentum else ("sgd", ()),
    Adam: lambda o: ("adam", (o.b1, o.b2, o.eps)),
    RMSProp: lambda o: ("rmsprop", (o.alpha, o.eps, o.momentum)),
    SignSGD: lambda o: ("sign", (o.b1, o.b2)),
}


def rule_of(optimiser: Optimiser) -> tuple[str, list[float]]:
    """The kernels' name for an optimiser, and its numbers."""
    rule, numbers = RULES[type(optimiser)](optimiser)
    return rule, [float(number) for number in numbers]


@dataclass(frozen=True)
class Configuration:
    """What every run of a program has in common, in the words of ``struct Config``."""

    n: int
    family: Family
    width: int
    below: list[int]
    """Widths of the layers below the last hidden one, from the inputs up."""
    outputs: int
    bias: bool
    head_bias: bool
    """Whether the output has one too."""
    bits: bool
    """Whether inputs of +1 and -1 are read as 0 and 1."""
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
    rule: str
    """What becomes of a gradient: sgd, momentum, adam, rmsprop or sign."""
    rule_params: list[float]
    clip: float
    """The largest norm of a gradient; 0 for any."""
    decay_gradient: float
    skips_satisfied: bool
    problem: dict[str, Any] | None
    """What is learned; None for parities of uniform inputs."""
    sample: int
    """Examples of a finite sample; 0 for fresh inputs every step."""
    replacement: bool
    short_last: bool
    eval_every: int
    eval_size: int
    eval_fresh: bool
    allowed_errors: int
    within: float
    """How far from its label an output is right; -1 where its sign decides."""
    consecutive: int

    @classmethod
    def of(cls, program: Setup) -> Configuration:
        """That of a program which the kernels can train: see :func:`paritylab.engines.lanes.refusal`."""
        network, loss, optimiser = program.learner.network, program.learner.loss, program.learner.optimiser
        problem, protocol = program.problem, program.protocol
        family = FAMILIES[type(network)]
        activation, numbers = network.activation.native if family != "polynet" else ("power", (1.0,))
        widths = network.widths if isinstance(network, MLP) else [network.degree if family == "polynet" else 1]
        rates = [float(rate) for rate in optimiser.rates or [1.0]]
        rule, rule_params = rule_of(optimiser)
        decays = {form: float(optimiser.weight_decay) * (optimiser.decay_form == form)
                  for form in ("coupled", "decoupled", "plain")}
        if rule == "sgd" and not optimiser.clip and not optimiser.skip_satisfied:  # the same, and faster
            decays = {"coupled": 0.0, "decoupled": decays["coupled"] + decays["decoupled"], "plain": decays["plain"]}
        return cls(
            n=problem.n,
            family=family,
            width=widths[-1],
            below=list(widths[:-1]),
            outputs=getattr(network, "outputs", 1),
            bias=getattr(network, "bias", True),
            head_bias=getattr(network, "output_bias", True),
            bits=getattr(network, "inputs", "signs") == "bits",
            batch=program.learner.batch,
            activation=activation,
            activation_params=[float(x) for x in numbers],
            loss=loss.native[0],
            loss_params=[float(x) for x in loss.native[1]],
            schedule=sources.factors(problem, optimiser.schedule),
            rates=rates + rates[-1:] * (len(widths) + 1 - len(rates)),
            decay_coupled=decays["decoupled"],
            decay_plain=decays["plain"],
            rule=rule,
            rule_params=rule_params,
            clip=float(optimiser.clip or 0.0),
            decay_gradient=decays["coupled"],
            skips_satisfied=optimiser.skip_satisfied,
            problem=sources.told(problem, protocol, program.learner.batch),
            sample=problem.examples,
            replacement=problem.replacement,
            short_last=problem.short_last,
            eval_every=protocol.eval_every,
            eval_size=protocol.eval_size,
            eval_fresh=protocol.fresh,
            allowed_errors=protocol.allowed_errors,
            within=-1.0 if protocol.within is None else protocol.within,
            consecutive=protocol.consecutive,
        )

    @property
    def sizes(self) -> list[int]:
        """Inputs, units of each layer from the inputs up, and the outputs where they are a layer of their own."""
        return [self.n, *self.below, self.width] + [self.outputs] * (self.family == "mlp")

    @property
    def plain(self) -> bool:
        """Whether the sums of a batch move the weights as they are."""
        return self.rule == "sgd" and not self.clip and not self.skips_satisfied

    def to_dict(self) -> dict[str, Any]:
        """The keywords of the kernel's constructor."""
        return dict(vars(self))
