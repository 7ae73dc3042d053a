"""What a store knows of the runs that a sweep is asked for: by which engine, and by which version of its arithmetic."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from paritylab.engines import EngineNotice
from paritylab.engines.arithmetic import earlier, parsed
from paritylab.running.interfaces import RecordStore
from paritylab.setups.setup import Setup
from paritylab.storage.records import Records


@dataclass(frozen=True)
class Known:
    """Records of one Setup, and under which label those of its other runs will be kept."""

    label: str
    records: Records
    earlier: tuple[str, ...] = ()
    """Labels of earlier arithmetic that some of the records have."""


def look_up(
    store: RecordStore | None, setups: Sequence[Setup], labels: Sequence[str], seed: int, runs: range,
    any_engine: bool = False, any_arithmetic: bool = False,
) -> list[Known]:
    """What is known of each Setup by the engine of its label.

    With ``any_engine`` by another one where that has all the runs; with ``any_arithmetic`` also by earlier versions of
    its arithmetic. Without, a notice says which runs are trained again for that.
    """
    if store is None or not setups:
        return [Known(label, Records.empty()) for label in labels]
    asked = None if any_engine else {each for label in set(labels) for each in (label, *earlier(label))}
    found: dict[str, dict[str, Records]] = {}
    for (setup_id, label, _), records in store.find({setup.id for setup in setups}, asked, seed, runs).items():
        found.setdefault(setup_id, {})[label] = records
    stored = [found.get(setup.id, {}) for setup in setups]
    known: list[Known] = []
    for by_label, label in zip(stored, labels, strict=True):
        others = sorted(by_label) if any_engine else earlier(label) if any_arithmetic else ()
        complete = (each for each in (label, *others) if len(by_label.get(each, ())) == len(runs))
        known.append(_known(next(complete, label), by_label, any_arithmetic))
    if not any_arithmetic:
        _tell(list(zip(known, stored, strict=True)))
    return known


def _known(label: str, by_label: Mapping[str, Records], any_arithmetic: bool) -> Known:
    records, used = by_label.get(label, Records.empty()), list[str]()
    for older in earlier(label) if any_arithmetic else ():
        more = _besides(by_label, older, records)
        if len(more):
            records, used = Records.concatenate([records, more]).ordered(), [*used, older]
    return Known(label, records, tuple(used))


def _besides(by_label: Mapping[str, Records], label: str, records: Records) -> Records:
    """Records under a label, of other runs than these."""
    there = by_label.get(label, Records.empty())
    return there.take(~np.isin(there.run, records.run)) if len(there) else there


def _tell(found: Sequence[tuple[Known, Mapping[str, Records]]]) -> None:
    """Say which runs are trained again, and why."""
    again: dict[tuple[str, str], list[int]] = {}
    for known, by_label in found:
        for older in earlier(known.label):
            if count := len(_besides(by_label, older, known.records)):
                again.setdefault((known.label, older), []).append(count)
    for (label, older), counts in again.items():
        now, then = parsed(label), parsed(older)
        setups = f"{len(counts)} Setup{'s' * (len(counts) > 1)}"
        warnings.warn(f"{sum(counts):,} runs of {setups} are trained again: the store has them by arithmetic"
                      f" {then.version} of '{now.name}', this version has arithmetic {now.version}, which rounds"
                      " otherwise (any_arithmetic=True, --any-arithmetic: use them as they are)", EngineNotice,
                      stacklevel=4)
