"""Records that the page "Play" wrote: one JSON document, for ``paritylab store merge``."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np

from paritylab.engines.arithmetic import parsed
from paritylab.errors import InvalidInput, require, whole
from paritylab.setups.setup import Setup
from paritylab.storage.records import COLUMNS, STATUSES, Records

FORMAT = 1
ENGINE = "lanes"
"""What is compiled for browsers is this engine."""


def read(path: Path) -> tuple[Setup, str, int, Records]:
    """The Setup, engine, seed and Records of a file that the page wrote."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InvalidInput(f"{path} cannot be read: {getattr(error, 'strerror', None) or 'it is not JSON'}") from error
    try:
        require(document["paritylab"] == "records" and document["format"] == FORMAT, "it has another format")
        label = str(document["engine"])
        require(parsed(label).name == ENGINE, f"it must be of the engine {ENGINE}, not {label!r}")
        seed = whole("the seed", document["seed"])
        require(0 <= seed < 2**32, f"the seed must be in 0..2^32-1, not {seed}")
        setup = Setup.from_json(json.dumps(document["setup"]))
        return setup, label, seed, _records(document, setup)
    except (InvalidInput, ValueError, KeyError, TypeError, OverflowError) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise InvalidInput(f"{path} does not hold records of the page: {why}") from error


def _records(document: dict[str, Any], setup: Setup) -> Records:
    columns = {name: document[name] for name in COLUMNS}
    require(len({len(column) for column in columns.values()}) == 1, "its columns have different lengths")
    columns["status"] = [STATUSES.index(status) for status in columns["status"]]
    for name in ("accuracy", "loss"):
        columns[name] = [math.nan if value is None else float(value) for value in columns[name]]
    records = Records(*(np.array(columns[name]) for name in COLUMNS))
    require(len(np.unique(records.run)) == len(records), "it has a run twice")
    within = (records.steps >= 0) & (records.steps <= setup.protocol.max_steps)
    require(bool(within.all()), "it has more steps than its Setup")
    return records.take(np.argsort(records.run, kind="stable"))
