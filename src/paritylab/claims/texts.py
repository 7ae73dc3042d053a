"""What people read about a claim's setup and rule, made from its code: sizes, requests, rules."""

from __future__ import annotations

import functools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from paritylab.claims.library import Claim
from paritylab.claims.reproduction import plan
from paritylab.claims.rules import SIZES, Size
from paritylab.claims.trial import size
from paritylab.running.tasks import AnyTask, ComputeTask, CurveTask, ParamsTask
from paritylab.setups.words import setups_in_words

NOWHERE = Path("nowhere-at-all")


@functools.cache
def size_lines(claim: Claim) -> list[str]:
    """The sizes of a trial: ``d: 32, 64 (quick), 32, 64, 128 (full)``."""
    return [f"{label}: {_by_size(each)}" for label, each in claim.trial.sizes().items()]


@functools.cache
def rule_lines(claim: Claim) -> list[str]:
    """The lines of its pass rule."""
    return [str(rule) for rule in claim.trial.rules()]


@functools.cache
def planned(claim: Claim, size: Size) -> tuple[list[AnyTask], bool]:
    """What a trial of this size asks for where nothing is known yet, and whether that is all."""
    return plan(claim, size, NOWHERE)


@functools.cache
def request_lines(claim: Claim, size: Size) -> list[str]:
    """The same in words."""
    tasks, all_ = planned(claim, size)
    groups: dict[tuple[Any, ...], list[AnyTask]] = {}
    for task in tasks:
        groups.setdefault(_alike(task), []).append(task)
    lines = [_group_in_words(group) for group in groups.values()]
    if not all_:
        lines.append("and more, which depends on what these give")
    return lines or ["nothing that takes long"]


def _alike(task: AnyTask) -> tuple[Any, ...]:
    if isinstance(task, ComputeTask):
        return "compute", task.function
    network = type(task.setup.learner.network).__name__
    if isinstance(task, CurveTask):
        return "curves", network, len(task.how.runs), task.how.weights
    return type(task).__name__, network, task.runs


def _group_in_words(tasks: Sequence[AnyTask]) -> str:
    first, count = tasks[0], len(tasks)
    if isinstance(first, ComputeTask):
        name = first.function.partition(":")[2]
        return f"{name}({_arguments([json.loads(task.arguments) for task in tasks if isinstance(task, ComputeTask)])})"
    setups = setups_in_words([task.setup for task in tasks if not isinstance(task, ComputeTask)])
    if isinstance(first, CurveTask):
        steps = first.how.steps if isinstance(first.how.steps, int) else first.how.steps[-1]
        what = f"training curves{' and weights' * first.how.weights} of {len(first.how.runs)} runs to step {steps}"
    elif isinstance(first, ParamsTask):
        what = f"{first.runs} runs and their final params"
    else:
        what = f"{first.runs} runs"
    return f"{what} of {_plural(count, 'Setup')}: {setups}"


def _arguments(calls: Sequence[dict[str, Any]]) -> str:
    names = dict.fromkeys(name for call in calls for name in call)
    values = {name: dict.fromkeys(_shown(call.get(name)) for call in calls) for name in names}
    return ", ".join(f"{name} = {' | '.join(each)}" for name, each in values.items())


def _by_size(each: size[Any]) -> str:
    groups: dict[str, list[str]] = {}
    for name in SIZES:
        groups.setdefault(_shown(each.values[name]), []).append(name)
    if len(groups) == 1:
        return next(iter(groups))
    return ", ".join(f"{value} ({' and '.join(names)})" for value, names in groups.items())


def _shown(value: Any) -> str:
    if isinstance(value, list | tuple | range):
        return f"[{', '.join(map(_shown, value))}]" if not isinstance(value, range) else f"[{value[0]}..{value[-1]}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}: {_shown(each)}' for name, each in value.items())}}}"
    return f"{value:g}" if isinstance(value, float) else str(value)


def _plural(count: int, word: str) -> str:
    return f"{count} {word}{'s' * (count != 1)}"
