"""Tasks and records read from files: the users' functions in them are those of the claims that asked for them.

A function that another function made has no name that leads to it. But the trial that asked for its Setup makes it
again, wherever its paper is.
"""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paritylab.claims.registry import find
from paritylab.claims.reproduction import plan
from paritylab.errors import InvalidInput
from paritylab.running.tasks import AnyTask, ComputeTask, read, task_of
from paritylab.setups import identity


def rebuilt(text: str) -> tuple[list[AnyTask], list[str]]:
    """The tasks that a text holds and that can be done here; for each other one, why not."""
    document = read(text)
    found: list[AnyTask] = []
    failures: list[str] = []
    for row in document["tasks"]:
        try:
            one = task(row, *document.get("claims", ()))
            if isinstance(one, ComputeTask):
                one.checked()
            found.append(one)
        except InvalidInput as error:
            failures.append(str(error))
    return found, failures


def task(row: dict[str, Any], *claims: Mapping[str, Any]) -> AnyTask:
    """The task of a row, which one of these claims has asked for."""
    try:
        return task_of(row)
    except InvalidInput as error:
        for each in claims:
            if offered := _functions(str(each.get("claim")), each.get("size"), each.get("seed")):
                try:
                    return task_of(row, offered)
                except InvalidInput:
                    continue
        raise error


@functools.lru_cache(maxsize=64)
def _functions(key: str, size: Any, seed: Any) -> list[Any]:
    """The users' functions in the Setups that a trial asks for, as far as that is known before anything is done."""
    try:
        (claim,) = find([key])
        with tempfile.TemporaryDirectory(prefix="paritylab-plan-") as folder:
            tasks, _ = plan(claim, size, Path(folder), seed)
    except InvalidInput:
        return []  # it is not here, or not of this version
    setups = {setup.id: setup for each in tasks if (setup := getattr(each, "setup", None)) and setup.functions}
    return [part for setup in identity.traced(list(setups.values())) for part in identity.parts(setup)]
