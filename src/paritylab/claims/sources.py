"""What a trial stands on: every Setup (or computation) that the Lab answered, with a digest of the answer.

Evidence ships it as ``<claim>.<size>.records.csv.gz``, one line for each; ``paritylab store verify`` does them again. A
line holds the task itself, so nothing else is needed to do it.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from paritylab.errors import InvalidInput
from paritylab.running.keeping import KeptTask
from paritylab.running.races import Entry
from paritylab.running.tasks import AnyTask, ComputeTask, CurveTask, ParamsTask, Task, runs_of, task_of, to_text
from paritylab.storage.kept import digest_of_arrays
from paritylab.storage.records import Records

COLUMNS = ("what", "id", "engine", "seed", "runs", "steps", "digest", "task")
NOT_VALUES = ("engine", "seconds")
"""What kept arrays hold besides values."""
LATER = ("task_skill",)
"""Series that curves of before do not have."""


@dataclass(frozen=True)
class Source:
    """An answer: of which task, by which engine (its label), and the digest of its values.

    ``what`` says of what: ``records`` of runs, ``outcomes`` (the same without accuracy and loss, which a race does not
    know of runs that it stopped), ``curves``, ``params`` or ``arrays`` that were computed.
    """

    what: str
    task: AnyTask
    engine: str
    steps: int
    """Updates that it took, over all runs."""
    digest: str

    @property
    def id(self) -> str:
        """The Setup's id, or the name of the function."""
        return self.task.function if isinstance(self.task, ComputeTask) else self.task.setup.id

    def row(self) -> tuple[str, ...]:
        (task,) = json.loads(to_text([self.task]))["tasks"]
        text = json.dumps(task, separators=(",", ":"))
        numbers = map(str, (self.task.seed, runs_of(self.task), self.steps))
        return self.what, self.id, self.engine, *numbers, self.digest, text


def of_records(task: Task, engine: str, records: Records) -> Source:
    """The records of all runs of a task."""
    return Source("records", task, engine, int(records.steps.sum()), records.digest)


def of_entry(entry: Entry) -> Source:
    """What a race knows of a Setup: how its runs ended, or that they did not, up to its horizon."""
    stage = entry.setup.derived(protocol=replace(entry.setup.protocol, max_steps=entry.horizon))
    task, known = Task(stage, entry.seed, len(entry.runs)), outcomes(entry.records)
    return Source("outcomes", task, entry.engine, int(known.steps.sum()), known.digest)


def outcomes(records: Records) -> Records:
    """Records without accuracy and loss."""
    unknown = np.full(len(records), np.nan)
    return replace(records, accuracy=unknown, loss=unknown)


def of_arrays(task: KeptTask, arrays: Mapping[str, np.ndarray], leaving: Sequence[str] = ()) -> Source:
    """Arrays that are kept, or those that were before some, which are left out, were recorded too."""
    what = "curves" if isinstance(task, CurveTask) else "params" if isinstance(task, ParamsTask) else "arrays"
    values = {name: array for name, array in arrays.items() if name not in (*NOT_VALUES, *leaving)}
    steps = {"curves": lambda: values["steps"].max() * runs_of(task), "params": lambda: values["steps"].sum()}
    return Source(what, task, str(arrays.get("engine", "")), int(steps.get(what, int)()), digest_of_arrays(values))


def to_bytes(sources: Iterable[Source]) -> bytes:
    """A table of them, CSV by gzip; the same sources make the same bytes."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(sorted({source.row() for source in sources}))
    return gzip.compress(text.getvalue().encode(), mtime=0)


def from_bytes(data: bytes) -> list[dict[str, str]]:
    """The lines of such a table; InvalidInput if it is none."""
    try:
        rows = list(csv.DictReader(io.StringIO(gzip.decompress(data).decode())))
    except (OSError, EOFError, ValueError, csv.Error) as error:
        raise InvalidInput(f"not a table of records: {error}") from error
    if any(tuple(row) != COLUMNS or None in row.values() for row in rows):
        raise InvalidInput(f"not a table of records: its columns must be {', '.join(COLUMNS)}")
    return rows


def read(path: Path) -> list[dict[str, str]]:
    return from_bytes(path.read_bytes())


def source_of(row: Mapping[str, str], task: Callable[[dict[str, Any]], AnyTask] = task_of) -> Source:
    """The source of a line; ``task`` makes its task of plain JSON values."""
    return Source(row["what"], task(json.loads(row["task"])), row["engine"], int(row["steps"]), row["digest"])
