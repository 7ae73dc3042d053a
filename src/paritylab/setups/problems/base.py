"""What engines need of a Problem, whatever it is made of."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import Field
from typing import Any, ClassVar

import numpy as np

from paritylab import rng
from paritylab.errors import InvalidInput, flag, real, require, whole
from paritylab.later import jax, jnp
from paritylab.setups.problems import bits
from paritylab.setups.problems.stages import Stage, at_stage

Inputs = Callable[[Any, int, int], Any]


class AnyProblem(ABC):
    """A law of inputs, a target, label noise, and a stream or a finite sample.

    Inputs are drawn packed, or as reals by a user's function; ``signs`` and ``labels`` make of them what the network
    sees and what it is to say. What each run carries by itself (a mask of bits for the support, a threshold for label
    noise) is not part of the ``shared`` problem, for which a program is compiled.
    """

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]
    n: int
    noise: float
    sample: int | None
    replacement: bool
    short_last: bool
    stages: tuple[Stage, ...] = ()
    scale: float = 1.0

    def _validate(self) -> None:
        """Check the fields that all problems have."""
        object.__setattr__(self, "n", whole("n", self.n))
        if self.sample is not None:
            object.__setattr__(self, "sample", whole("sample", self.sample))
        object.__setattr__(self, "noise", real("noise", self.noise))
        object.__setattr__(self, "replacement", flag("replacement", self.replacement))
        object.__setattr__(self, "short_last", flag("short_last", self.short_last))
        require(1 <= self.n <= 2**20, f"n must be in 1..{2**20}, not {self.n}")
        require(0 <= self.noise <= 1, f"noise must be a probability, not {self.noise:g}")
        require(self.sample is None or self.sample >= 1, f"a sample must hold at least 1 example, not {self.sample}")
        require(self.sample is None or self.sample < 2**31, f"a sample must be below 2^31, not {self.sample}")
        require(self.sample is not None or not self.replacement, "replacement=True needs a finite sample")
        require(not self.short_last or (self.sample is not None and not self.replacement),
                "short_last=True is for a finite sample in passes")

    @property
    @abstractmethod
    def shared(self) -> AnyProblem:
        """The problem less what each run carries by itself."""

    @property
    def sampler(self) -> Inputs | None:
        """The user's function that draws inputs."""
        return None

    @property
    def packed(self) -> bool:
        """Whether inputs are drawn as packed bits."""
        return self.sampler is None

    @property
    @abstractmethod
    def support(self) -> Any:
        """The positions that the target depends on, in order; None where they are not known."""

    @property
    def k(self) -> int | None:
        """How many they are."""
        return None if self.support is None else len(self.support)

    @property
    def degree(self) -> int:
        """The same, as a number."""
        return self.k or 0

    @property
    def tasks(self) -> int:
        """How many tasks are evaluated apart; 0 where there is one target."""
        return 0

    @property
    def judged(self) -> tuple[int, ...]:
        """The tasks that decide whether a run is solved."""
        return ()

    @property
    def examples(self) -> int:
        """The size of the finite sample; 0 for a fresh batch each step."""
        return self.sample or 0

    @property
    def evaluated(self) -> int | None:
        """How many inputs there are to evaluate on; None where as many can be drawn as one likes."""
        return None

    @property
    def words(self) -> int:
        return bits.words(self.n)

    @property
    def numbered(self) -> int:
        """Random words that belong to an example."""
        return self.words

    @property
    def mask(self) -> np.ndarray:
        """What of the target a run carries by itself, as bits."""
        return np.zeros(self.words, np.uint32)

    def masks(self, keys: np.ndarray) -> np.ndarray:
        """The masks of the runs with these keys."""
        return np.tile(self.mask, (len(keys), 1))

    @property
    def flip(self) -> int:
        """Labels are flipped where a 32-bit word falls below this."""
        return flip_of(self.noise)

    @property
    def noisy(self) -> bool:
        """Whether labels are ever flipped."""
        return self.noise > 0 or any(stage.noise for stage in self.stages)

    def draw(self, key: Any, count: int, step: Any = None) -> Any:
        """``count`` inputs to train on, at a step or (None) for a finite sample."""
        if self.sampler is None:
            return jax.random.bits(key, (count, self.words))
        return self.sampler(key, count, self.n)

    def draw_block(self, key: Any, block: Any, size: int) -> Any:
        """Block number ``block`` of the inputs to evaluate on; consecutive rows of one draw, if they are packed."""
        if self.sampler is None:
            return rng.bits_at(key, block * size * self.words, size * self.words).reshape(size, self.words)
        return self.sampler(jax.random.fold_in(key, block), size, self.n)

    def signs(self, drawn: Any, mask: Any = None) -> Any:
        """What a network sees of drawn inputs; their law may depend on the support with this mask (its own if None)."""
        return bits.unpack(drawn, self.n) if self.packed else drawn

    @abstractmethod
    def labels(self, drawn: Any, mask: Any) -> Any:
        """The target at drawn inputs, for a run with this mask."""

    def flip_at(self, step: Any, flip: Any) -> Any:
        """Below which words flip labels at a step, where ``flip`` is the run's own."""
        noises = [flip if stage.noise is None else np.uint32(flip_of(stage.noise)) for stage in self.stages]
        return at_stage(self.stages, step, noises, flip)

    def rate_at(self, step: Any) -> Any:
        """What a stage multiplies the learning rate by."""
        return at_stage(self.stages, step, [np.float32(stage.lr) for stage in self.stages], np.float32(1))

    def batch_at(self, step: Any, batch: int) -> Any:
        """How many examples of a batch count at a step."""
        if self.short_last and self.sample:
            done = step % -(-self.sample // batch) * batch
            return jnp.minimum(self.sample - done, batch)
        return at_stage(self.stages, step, [stage.batch or batch for stage in self.stages], batch)

    @property
    def even(self) -> bool:
        """Whether all examples of a batch count at every step."""
        return not self.short_last and not any(stage.batch for stage in self.stages)

    def with_sampler(self, function: Inputs) -> AnyProblem:
        """The same with another function that draws inputs."""
        raise InvalidInput(f"a {type(self).__name__} has its own law of inputs")


def flip_of(noise: float) -> int:
    """The number below which a word flips a label."""
    return min(round(noise * 2**32), 2**32 - 1)
