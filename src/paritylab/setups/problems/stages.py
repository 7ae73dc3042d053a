"""Stages: how training changes along the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from paritylab.errors import flag, real, require, whole
from paritylab.later import jnp
from paritylab.setups.problems import laws


@dataclass(frozen=True)
class Stage:
    """What holds until a step; after the last stage all is as the Problem and the Learner say.

    Args:
        until: the first step that is no longer of this stage, counted from 0.
        inputs: the law of inputs; the Problem's unless said.
        slide: whether the law moves to the next one meanwhile: an input is of the next law with a probability that
            grows linearly from 0 to 1.
        lr: what the learning rate is multiplied by, beside its schedule.
        batch: examples of a batch, at most the Learner's; as many as that unless said.
        noise: the probability that a label is flipped; the Problem's unless said.

    >>> Stage(1000, "biased:0.9", lr=0.5).inputs
    Biased(p=0.9)
    """

    until: int
    inputs: Any = None
    slide: bool = False
    lr: float = 1.0
    batch: int | None = None
    noise: float | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "until", whole("until", self.until))
        require(1 <= self.until < 2**31, f"until must be from 1 to 2^31 - 1, not {self.until}")
        if self.inputs is not None:
            object.__setattr__(self, "inputs", laws.law(self.inputs))
            require(laws.sampler_of(self.inputs) is None, "the inputs of a stage are a law of this package")
        object.__setattr__(self, "slide", flag("slide", self.slide))
        object.__setattr__(self, "lr", real("lr", self.lr))
        require(self.lr >= 0, f"lr must be at least 0, not {self.lr:g}")
        if self.batch is not None:
            object.__setattr__(self, "batch", whole("batch", self.batch))
            require(self.batch >= 1, f"batch must be at least 1, not {self.batch}")
        if self.noise is not None:
            object.__setattr__(self, "noise", laws.probability("noise", self.noise))


def starts(stages: Sequence[Stage]) -> list[int]:
    """The first step of each stage.

    >>> starts([Stage(10), Stage(30)])
    [0, 10]
    """
    return [0, *(stage.until for stage in stages)][: len(stages)]


def at_stage(stages: Sequence[Stage], step: Any, values: Sequence[Any], last: Any) -> Any:
    """The value of the stage that a step is in; ``last`` after the last stage."""
    for stage, value in zip(reversed(stages), reversed(values), strict=True):
        last = jnp.where(step < stage.until, value, last)
    return last
