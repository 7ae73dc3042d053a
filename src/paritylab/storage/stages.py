"""What a store knows of a Setup whose runs were trained under several step limits.

A race keeps runs that ended under its own Setup, and runs that stopped with one of its stages under that stage's: the
same Setup with a lower step limit. Each alone would be a choice of fast or of slow runs; here they are put together.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from paritylab.storage.records import CENSORED, SOLVED, Records

if TYPE_CHECKING:
    from paritylab.storage.store import Store


@dataclass(frozen=True)
class Series:
    """The runs of one Setup, engine and seed, as far as a store can tell how they went."""

    setup_id: str
    setup: dict[str, Any]
    engine: str
    seed: int
    records: Records


def series(
    store: Store,
    setups: Iterable[tuple[str, dict[str, Any]]],
    asked: Callable[[str, dict[str, Any]], bool] = lambda setup_id, setup: True,
) -> Iterator[Series]:
    """Every engine and seed with records of the Setups ``asked`` for, completed by what stages of a race left."""
    families: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for setup_id, setup in setups:
        families.setdefault(_family(setup), []).append((setup_id, setup))
    for members in families.values():
        if not any(asked(*member) for member in members):
            continue
        keys = {key for setup_id, _ in members for key in store.series(setup_id)}
        for engine, seed in sorted(keys):
            held = [Series(*member, engine, seed, store.records(member[0], engine, seed)) for member in members]
            held = [each for each in held if len(each.records)]
            for each in (each for each in held if asked(each.setup_id, each.setup)):
                yield Series(each.setup_id, each.setup, engine, seed, _completed(each, held))


def _family(setup: dict[str, Any]) -> str:
    """What Setups share that differ in nothing but their step limits."""
    protocol = setup.get("protocol")
    free = {"protocol": protocol | {"max_steps": None}} if isinstance(protocol, dict) else {}
    return json.dumps(setup | free, sort_keys=True)


def _completed(own: Series, held: list[Series]) -> Records:
    """The records of a series, and those of others of its family that a race may have kept apart from them.

    A race leaves nothing but stopped runs under its stages, and those are missing from its other runs.
    """
    if len(held) == 1:
        return own.records
    others = [each for each in held if each is not own and (_stopped(own) or _stopped(each))]
    parts = [own.records, *(_seen_by(own, each) for each in others)]
    records = Records.concatenate(parts)
    origin = np.repeat(range(len(parts)), [len(part) for part in parts]) > 0
    # Of each run: its own record, or else one that ended, or else the one that was followed furthest.
    order = np.lexsort((-records.steps, records.status == CENSORED, origin, records.run))
    return records.take(order[np.unique(records.run[order], return_index=True)[1]])


def _stopped(each: Series) -> bool:
    return bool(np.all(each.records.status == CENSORED))


def _seen_by(own: Series, other: Series) -> Records:
    """What the records of another step limit would have been under this one, as far as they tell."""
    most, limit = (each.setup["protocol"]["max_steps"] for each in (own, other))
    every, records = own.setup["protocol"]["eval_every"], other.records
    # A check at a step limit that is no multiple of eval_every is one that other limits do not have.
    beyond = records.steps > most
    unknown = beyond | ((records.status == SOLVED) & (records.steps == limit) & (limit % every > 0))
    last = np.where(beyond, most - most % every, limit - limit % every)
    return Records(records.run, np.where(unknown, CENSORED, records.status), np.where(unknown, -1, records.t_c),
                   np.where(unknown, last, records.steps), np.where(unknown, np.nan, records.accuracy),
                   np.where(unknown, np.nan, records.loss))
