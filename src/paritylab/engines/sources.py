"""What the native kernel is told of a problem that is not a parity of uniform inputs: see ``native/problem.h``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from paritylab.engines.evaluation import task_sizes
from paritylab.setups.problems import (
    LeakyParity,
    Outputs,
    Parity,
    Polynomial,
    Problem,
    Product,
    Sum,
    Table,
    Tasks,
    bits,
    draws,
)
from paritylab.setups.problems.base import AnyProblem, flip_of
from paritylab.setups.problems.laws import Uniform
from paritylab.setups.schedules import BLOCK, Schedule
from paritylab.setups.setup import Protocol

PROBLEMS = (Parity, LeakyParity, Polynomial, Problem)
TARGETS = (Product, Sum, Table, Tasks, Outputs)
NO_WORDS = np.zeros(0, np.uint32)


def refusal(problem: AnyProblem) -> str | None:
    """Why the kernel cannot draw a problem, or None if it can."""
    if type(problem) not in PROBLEMS:
        return f"it has no {type(problem).__name__}"
    if problem.sampler is not None:
        return "it draws no inputs by a function"
    if isinstance(problem, Problem) and type(problem.target) not in TARGETS:
        return "it has no target by a function"
    return None


def plain(problem: AnyProblem) -> bool:
    """Whether it is a parity of uniform inputs, and the same at all steps but for the learning rate."""
    if any(stage.batch or stage.noise is not None for stage in problem.stages):
        return False
    if isinstance(problem, Problem):
        return problem.simple and isinstance(problem.target, Product) and problem.scale == 1
    return type(problem) is Parity


def told(problem: AnyProblem, protocol: Protocol, batch: int) -> dict[str, Any] | None:
    """The keywords of the kernel's Problem; None where it is plain."""
    if plain(problem):
        return None
    by_law, places = _laws(problem)
    stages = [
        (stage.until, places[i], places[i + 1] if stage.slide else places[i],
         -1 if stage.noise is None else flip_of(stage.noise), stage.batch or batch)
        for i, stage in enumerate(problem.stages)
    ]
    leak = round(problem.leak * 2**31) if isinstance(problem, LeakyParity) else None
    return {
        "n": problem.n, "stride": problem.numbered, "laws": by_law, "law": places[-2], "evaluation_law": places[-1],
        "stages": stages, "leak": leak, "scale": float(problem.scale), **_target(problem, protocol, batch),
    }


def _laws(problem: AnyProblem) -> tuple[list[Any], list[int]]:
    """The different laws, and which of them are those of the stages, after them, and of evaluation."""
    given = problem.laws if isinstance(problem, Problem) else [Uniform(), Uniform()]
    different: list[Any] = []
    for law in given:
        if law not in different:
            different.append(law)
    made = [draws.drawn(law.components(problem.n), problem.n) for law in different]
    told = [(law.cumulative, law.planes, law.always, [list(pairs) for pairs in law.copies], law.plain) for law in made]
    return told, [different.index(law) for law in given]


def _target(problem: AnyProblem, protocol: Protocol, batch: int) -> dict[str, Any]:
    target, no_masks = getattr(problem, "target", Product(())), NO_WORDS.reshape(0, problem.words)
    found: dict[str, Any] = {
        "target": type(target).__name__.lower(), "terms": [], "sign": False, "places": [], "table": NO_WORDS,
        "task_cumulative": NO_WORDS, "task_masks": no_masks, "task_allowed": [], "task_controls": no_masks,
        "in_turn": False, "output_masks": no_masks, "counted": [],
    }
    if isinstance(target, Sum):
        masks = [(float(c), bits.mask(support, problem.n)) for c, support in target.terms]
        found |= {"terms": masks, "sign": target.sign}
    if isinstance(target, Table):
        size = -(-len(target.array) // 32) * 32
        minus = np.append(target.array < 0, np.zeros(size - len(target.array), bool))
        packed = np.packbits(minus, bitorder="little").view("<u4").astype(np.uint32)
        found |= {"places": list(target.places), "table": packed}
    if isinstance(target, Tasks):
        sizes = task_sizes(protocol.eval_size, problem.tasks)
        allowed = [protocol.allowed_of(size) if t in target.judged else -1 for t, size in enumerate(sizes)]
        controls = no_masks if target.controls is None else target.control_masks(problem.n)
        found |= {"task_cumulative": target.cumulative, "task_masks": target.masks(problem.n), "task_allowed": allowed,
                  "task_controls": controls, "in_turn": target.in_turn}
    if isinstance(target, Outputs):
        masks = np.stack([bits.mask(support, problem.n) for support in target.supports])
        found |= {"output_masks": masks, "counted": list(target.counts(batch))}
    return found


def factors(problem: AnyProblem, schedule: Schedule) -> Callable[[int], np.ndarray] | None:
    """From the number of a block of steps to what the learning rate is multiplied by; None where it stays as it is."""
    if all(stage.lr == 1 for stage in problem.stages):
        return None if schedule.constant else schedule.block

    def block(number: int) -> np.ndarray:
        steps = np.arange(number * BLOCK, (number + 1) * BLOCK)
        rates = np.array([*(stage.lr for stage in problem.stages), 1], np.float32)
        stage = np.searchsorted([stage.until for stage in problem.stages], steps, side="right")
        return schedule.block(number) * rates[stage]

    return block


def numbers(problem: AnyProblem) -> int:
    """About how many 32-bit words describe a problem."""
    if plain(problem):
        return 0
    given = problem.laws if isinstance(problem, Problem) else []
    components = sum(len(law.components(problem.n)) for law in given)
    target = getattr(problem, "target", None)
    table = 2 ** len(target.places) // 32 if isinstance(target, Table) else 0
    composed = isinstance(target, Tasks) and target.controls is not None
    masks = len(target.terms) if isinstance(target, Sum) else problem.tasks * (1 + composed)
    masks += len(target.supports) if isinstance(target, Outputs) else 0
    return (components * (draws.DIGITS + 1) + masks) * problem.words + table
