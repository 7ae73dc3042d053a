"""What is learned, as constants of the kernels: see ``kernels/problems.cuh``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from paritylab.engines.configuration import Configuration
from paritylab.setups.problems import AnyProblem, Tasks

NOT_JUDGED = 2**31 - 1  # errors that a task may make which nobody judges


def constants(configuration: Configuration) -> dict[str, Any]:
    """Laws of inputs, stages, the target and what is judged."""
    told, words = configuration.problem or _parity(configuration), -(-configuration.n // 32)
    target = told["target"]
    unit = (target != "sum" or told["sign"]) and abs(told["scale"]) == 1
    leak = told["leak"]
    allowed = told["task_allowed"] if target == "tasks" else [configuration.allowed_errors]
    judged = next(task for task, errors in enumerate(allowed) if errors >= 0)
    return {
        "STRIDE": told["stride"],
        "LAW": told["law"],
        "EVALUATION_LAW": told["evaluation_law"],
        "LEAKS": leak is not None,
        "LEAK": f"{leak or 0}u",
        "TARGET": target.upper(),
        "SCALE": told["scale"],
        "UNIT_LABELS": unit,
        "SIGN_OF_SUM": told["sign"],
        "WITHIN": configuration.within,
        "TERM_COUNT": len(told["terms"]),
        "COEFFICIENTS_OF_TERMS": np.array([number for number, _ in told["terms"]], np.float32),
        "TERM_MASKS": np.array([mask for _, mask in told["terms"]], np.uint32),
        "PLACE_COUNT": len(told["places"]),
        "PLACES": np.array(told["places"], np.int32),
        "ENTRIES": told["table"],
        "TASK_COUNT": len(told["task_masks"]),
        "TASK_MASKS": told["task_masks"],
        "TASK_CUMULATIVE": told["task_cumulative"],
        "ALLOWED_ERRORS": np.array([errors if errors >= 0 else NOT_JUDGED for errors in allowed], np.int32),
        "SCREENED": judged,
        "ALLOWED": allowed[judged],
        **_laws(told["laws"], words),
        **_stages([] if configuration.sample else told["stages"]),
    }


def controls(problem: AnyProblem) -> dict[str, Any]:
    """The control bits of tasks, and how tasks come about."""
    target = getattr(problem, "target", None)
    tasks = target if isinstance(target, Tasks) else None
    composed = tasks is not None and tasks.controls is not None
    return {
        "CONTROL_BITS": tasks.control_bits if tasks else 0,
        "COMPOSED": composed,
        "TASK_CONTROLS": tasks.control_masks(problem.n) if tasks and composed else np.zeros(0, np.uint32),
        "TASKS_IN_TURN": tasks is not None and tasks.in_turn,
    }


def _parity(configuration: Configuration) -> dict[str, Any]:
    """That of parities of uniform inputs, in the words of ``sources.told``."""
    words = -(-configuration.n // 32)
    none = np.zeros(0, np.uint32)
    uniform = (none, np.zeros((1, 1, words), np.uint32), np.zeros((1, words), np.uint32), [[]], True)
    return {
        "stride": words, "laws": [uniform], "law": 0, "evaluation_law": 0, "stages": [], "leak": None, "scale": 1.0,
        "target": "product", "terms": [], "sign": False, "places": [], "table": none, "task_cumulative": none,
        "task_masks": none.reshape(0, words), "task_allowed": [],
    }


def _laws(laws: Sequence[Any], words: int) -> dict[str, Any]:
    """All components one after the other, with the digits that any of them needs."""
    planes = np.concatenate([law[1] for law in laws])
    used = np.flatnonzero(planes.any(axis=(0, 2)))
    digits = int(used[-1]) + 1 if len(used) else 1
    copies = [pairs for law in laws for pairs in law[3]]
    pairs = np.array([pair for each in copies for pair in each], np.int32).reshape(-1, 2)
    sizes = [len(law[1]) for law in laws]
    return {
        "UNIFORM": all(law[4] for law in laws),
        "CHOOSES": len(planes) > 1,
        "LAW_FIRST": np.cumsum([0, *sizes]).astype(np.int32),
        "CUMULATIVE": np.concatenate([np.append(law[0], np.uint32(0)) for law in laws]).astype(np.uint32),
        "DIGITS": digits,
        "PLANES": planes[:, :digits].astype(np.uint32),
        "ALWAYS": np.concatenate([law[2] for law in laws]).astype(np.uint32),
        "COPIES": len(pairs),
        "COPY_FIRST": np.cumsum([0, *map(len, copies)]).astype(np.int32),
        "COPY_FROM": pairs[:, 0],
        "COPY_TO": pairs[:, 1],
    }


def _stages(stages: Sequence[Any]) -> dict[str, Any]:
    until, law, following, flip, batch = np.array(stages, np.int64).reshape(-1, 5).T
    return {
        "STAGES": len(stages),
        "MOVES": bool(np.any(law != following)),
        "STAGE_UNTIL": until.astype(np.int32),
        "STAGE_LAW": law.astype(np.int32),
        "STAGE_NEXT": following.astype(np.int32),
        "STAGE_FLIPS": (flip >= 0).astype(np.int32),
        "STAGE_FLIP": np.maximum(flip, 0).astype(np.uint32),
        "STAGE_BATCH": batch.astype(np.int32),
    }
