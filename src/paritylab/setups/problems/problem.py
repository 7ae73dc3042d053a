"""Problems put together from a target, a law of inputs and stages."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from paritylab.errors import real, require
from paritylab.later import jnp
from paritylab.setups.problems import bits, draws, laws, targets
from paritylab.setups.problems.base import AnyProblem, Inputs
from paritylab.setups.problems.stages import Stage, at_stage, starts


@dataclass(frozen=True)
class Problem(AnyProblem):
    """Learn any function of signs, from inputs of any law, in stages if wanted.

    Args:
        n: number of inputs.
        target: what is learned: a support (then it is a parity), a name on the first bits (``"majority:5"``,
            ``"staircase:4"``, ``"leap:1,3"``, ``"mod:3,6"``, ``"tribes:2,3"``, ``"address:2"``, ``"random:8"``),
            ``pl.Sum``, ``pl.Table``, ``pl.Tasks``, ``pl.Outputs``, or a function of your own from signs (count, n) to
            labels (count,) or (count, outputs).
        inputs: the law of inputs: ``"uniform"``, ``"biased:0.3"``, ``"mixture:0.2,biased:0.9"``, ``"active:10"``, one
            of ``pl.laws``, or a function ``(key, count, n) -> (count, n)`` of your own.
        noise: probability that a training label is flipped (its sign changes). Evaluation is always clean.
        sample: None for a fresh batch each step, or the size m of a finite training sample.
        replacement: how batches come from a finite sample: in passes, reshuffled each time, or with replacement.
        scale: what labels are multiplied by.
        stages: what holds at first, one :class:`Stage` after the other.
        evaluation: the law that runs are judged on, if it is not ``inputs``.
        short_last: whether each pass over a finite sample ends with a batch of what is left.

    >>> Problem(30, "majority:5", "biased:0.3").support
    (0, 1, 2, 3, 4)
    >>> Problem(30, [0, 1, 2], stages=[Stage(1000, "biased:0.9")]).degree
    3
    """

    n: int
    target: Any
    inputs: Any = "uniform"
    noise: float = 0.0
    sample: int | None = None
    replacement: bool = False
    scale: float = 1.0
    stages: Any = ()
    evaluation: Any = None
    short_last: bool = field(default=False)

    def __post_init__(self) -> None:
        self._validate()
        object.__setattr__(self, "target", targets.target(self.target))
        object.__setattr__(self, "inputs", laws.law(self.inputs))
        if self.evaluation is not None:
            object.__setattr__(self, "evaluation", laws.law(self.evaluation))
        object.__setattr__(self, "scale", real("scale", self.scale))
        require(self.scale != 0, "scale must not be 0")
        stages = tuple(self.stages)
        require(all(isinstance(stage, Stage) for stage in stages), f"stages must be Stages, not {self.stages!r}")
        ends = [stage.until for stage in stages]
        require(all(a < b for a, b in itertools.pairwise(ends)), "each stage must end after the one before")
        object.__setattr__(self, "stages", stages)
        known = isinstance(self.target, targets.Target)
        require(not known or all(j < self.n for j in self.target.bits),
                f"the target's positions must be in 0..{self.n - 1}: n = {self.n} inputs are too few for it")
        require(self.sample is None or not any(stage.inputs for stage in stages),
                "a finite sample is drawn once: its stages cannot change the law of inputs")
        require(self.sample is None or all(stage.noise is None for stage in stages),
                "a finite sample is drawn once: its stages cannot change the noise of its labels")
        require(self.sample is None or not any(stage.batch for stage in stages),
                "a finite sample is gone through in batches of one size")
        require(self.even or getattr(self.target, "counted", None) is None,
                "shares of a batch that count (counted=) need batches of one size: no short_last, no batch of a stage")
        own = laws.sampler_of(self.inputs) is not None
        if own:
            require(not isinstance(self.target, targets.Tasks), "tasks need a law of inputs of this package")
            require(self.evaluation is None and not any(stage.inputs for stage in stages),
                    "inputs by a function of your own are the same in every stage and at evaluation")
        else:
            for law in (self.inputs, self.evaluation, *(stage.inputs for stage in stages)):
                if law is not None:
                    law.components(self.n)  # says what does not fit

    @property
    def shared(self) -> Problem:
        """A parity's support is of each run; another target is of the program."""
        target = targets.Product(()) if isinstance(self.target, targets.Product) else self.target
        return replace(self, target=target, noise=float(self.noise > 0))

    @property
    def sampler(self) -> Inputs | None:
        return laws.sampler_of(self.inputs)

    @property
    def support(self) -> tuple[int, ...] | None:
        return self.target.bits if isinstance(self.target, targets.Target) else None

    @property
    def tasks(self) -> int:
        return len(self.target.supports) if isinstance(self.target, targets.Tasks) else 0

    @property
    def judged(self) -> tuple[int, ...]:
        return self.target.judged if isinstance(self.target, targets.Tasks) else ()

    @property
    def mask(self) -> np.ndarray:
        return bits.mask(self.target.support if isinstance(self.target, targets.Product) else (), self.n)

    @property
    def numbered(self) -> int:
        return self.words + (0 if self.simple else draws.EXTRA)

    @functools.cached_property
    def simple(self) -> bool:
        """Whether random words are the inputs as they come: then they are those of a Parity."""
        return self.packed and not self.tasks and all(draws.drawn(law.components(self.n), self.n).plain
                                                      for law in self.laws)

    @property
    def laws(self) -> list[laws.Law]:
        """The laws of all stages, of what comes after them, and of evaluation."""
        by_stage = [stage.inputs or self.inputs for stage in self.stages]
        return [*by_stage, self.inputs, self.evaluation or self.inputs]

    def draw(self, key: Any, count: int, step: Any = None) -> Any:
        if not self.packed or self.simple:
            return super().draw(key, count)
        made = _Examples(self, key, 0, count)
        packed = made(self.inputs) if step is None or not self.stages else self._staged(made, step)
        if not self.tasks:
            return packed
        return self.target.controlled(packed, self.target.chosen(made.task), self.n)

    def draw_block(self, key: Any, block: Any, size: int) -> Any:
        if not self.packed or self.simple:
            return super().draw_block(key, block, size)
        made = _Examples(self, key, block * size, size)
        packed = made(self.evaluation or self.inputs)
        if not self.tasks:
            return packed
        return self.target.controlled(packed, (block * size + jnp.arange(size)) % self.tasks, self.n)

    def labels(self, drawn: Any, mask: Any) -> Any:
        """The target's values; a parity's support is that of the mask."""
        if not isinstance(self.target, targets.Target):
            return self._scaled(self.target(self.signs(drawn)))
        packed = drawn if self.packed else bits.pack(drawn)
        if isinstance(self.target, targets.Product):
            return self._scaled(bits.parity(packed, mask))
        return self._scaled(self.target.values(packed, self.n))

    def with_sampler(self, function: Inputs) -> Problem:
        return replace(self, inputs=laws.Sampler(function))

    def _scaled(self, values: Any) -> Any:
        return values if self.scale == 1 else np.float32(self.scale) * values

    def _staged(self, made: _Examples, step: Any) -> Any:
        """Inputs of the stage that a step is in."""
        packed = [made(law) for law in self.laws[:-1]]
        here = list(packed[:-1])
        for i, (stage, start) in enumerate(zip(self.stages, starts(self.stages), strict=True)):
            if stage.slide:
                moved = draws.high_word(made.law, stage.until - start) < (step - start).astype(jnp.uint32)
                here[i] = jnp.where(moved[:, None], packed[i + 1], packed[i])
        return at_stage(self.stages, step, here, packed[-1])


class _Examples:
    """The random words of consecutive examples of a stream; called with a law, their inputs."""

    def __init__(self, problem: Problem, key: Any, first: Any, count: int) -> None:
        self._n, words = problem.n, problem.words
        numbers = (first + jnp.arange(count))[:, None] * problem.numbered + jnp.arange(problem.numbered)
        a, b = draws.words_at(key, numbers.astype(jnp.uint32))
        self._a, self._b = a[:, :words], b[:, :words]
        self._component, self.law, self.task = ((a ^ b)[:, words + i] for i in range(draws.EXTRA))

    def __call__(self, law: laws.Law) -> Any:
        return draws.inputs_of(draws.drawn(law.components(self._n), self._n), self._a, self._b, self._component)
