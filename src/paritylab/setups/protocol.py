"""How a run is judged."""

from __future__ import annotations

from dataclasses import dataclass, replace

from paritylab.errors import flag, real, require, single, whole


@dataclass(frozen=True)
class Protocol:
    """How a run is judged.

    Every ``eval_every`` steps, and at the last one, accuracy is measured on ``eval_size`` clean inputs of the run's
    own: drawn once before training, or anew for each check if ``fresh``. A run is solved at the first check that
    completes ``consecutive`` checks in a row with accuracy of at least ``threshold``. An output is right if it has its
    label's sign (0 has none); with ``within``, if it is at most so far from its label, for targets that are numbers.
    Where there are several tasks, each must reach the threshold on its own share of the inputs. With ``until_loss`` a
    check asks something else: whether the loss on the finite training sample, with the labels it trains on, is below.
    """

    max_steps: int = 100_000
    eval_every: int = 10
    eval_size: int = 8192
    threshold: float = 1.0
    consecutive: int = 1
    fresh: bool = False
    within: float | None = None
    until_loss: float | None = None

    def __post_init__(self) -> None:
        for name in ("max_steps", "eval_every", "eval_size", "consecutive"):
            value = whole(name, getattr(self, name))
            object.__setattr__(self, name, value)
            require(value >= 1, f"{name} must be at least 1, not {value}")
            require(value < 2**31, f"{name} must be below 2^31, not {value}")
        require(self.eval_size <= 2**24, f"eval_size must be at most 2^24, not {self.eval_size}")
        object.__setattr__(self, "threshold", real("threshold", self.threshold))
        object.__setattr__(self, "fresh", flag("fresh", self.fresh))
        if self.within is not None:
            object.__setattr__(self, "within", single("within", self.within))
            require(self.within >= 0, f"within must be at least 0, not {self.within:g}")
        if self.until_loss is not None:
            object.__setattr__(self, "until_loss", single("until_loss", self.until_loss))
            require(self.threshold == 1, "until_loss takes the place of a threshold: give one of the two")
        require(0 < self.threshold <= 1, f"threshold must be in (0, 1], not {self.threshold:g}")

    @property
    def allowed_errors(self) -> int:
        """The most errors a check may show and still count."""
        return self.allowed_of(self.eval_size)

    def on_all(self, size: int) -> Protocol:
        """The same where there are just so many inputs to evaluate on."""
        require(self.eval_size in (size, Protocol.eval_size),
                f"eval_size must be {size}, the number of inputs to evaluate on, or not given; not {self.eval_size}")
        require(not self.fresh, "fresh=True draws inputs anew, and these are given")
        return replace(self, eval_size=size)

    def allowed_of(self, size: int) -> int:
        """The same of a part of the inputs."""
        return int((1 - self.threshold) * size + 1e-9)
