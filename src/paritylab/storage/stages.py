"""What a store knows of a Setup whose runs were trained under several step limits.

A race keeps runs that ended under its own Setup, and runs that stopped with one of its stages under that stage's: the
same Setup with a lower step limit. Each alone would be a choice of fast or of slow runs; here they are put together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from paritylab.storage.gathered import KEY, Gathered, Key, as_arrays, to_frame
from paritylab.storage.records import CENSORED, SOLVED, Records


@dataclass(frozen=True)
class _Series:
    """The runs of one Setup, engine and seed, with what of its Protocol decides when they stop."""

    place: int
    max_steps: int
    eval_every: int
    records: Records


def members(setups: pl.DataFrame, setup_ids: pl.Series) -> pl.Series:
    """These Setups and those that differ from them in their step limits alone."""
    families = setups.filter(pl.col("setup_id").is_in(setup_ids.implode()))["family"]
    return setups.filter(pl.col("family").is_in(families.unique().implode()))["setup_id"]


def completed(found: Gathered, setups: pl.DataFrame) -> Gathered:
    """Every series with what stages of a race left of it; ``setups`` says what Setups are of one family.

    Its columns are setup_id, family, max_steps and eval_every.
    """
    about = found.series.with_row_index("place").join(setups, on="setup_id", how="left", maintain_order="left")
    together = about.filter(
        pl.len().over("family", "engine", "seed") > 1, pl.col("max_steps", "eval_every", "family").is_not_null()
    )
    if not together.height:
        return found
    columns = as_arrays(found.records)
    ends = found.ends
    starts = ends - found.series["count"].to_numpy()
    # A race leaves nothing but stopped runs under its stages: where none of a family has such, nothing is missing.
    still = np.logical_and.reduceat(columns[1] == CENSORED, starts)
    raced = together.with_columns(still=still[together["place"].to_numpy()]).filter(
        pl.col("still").any().over("family", "engine", "seed")
    )
    changed: dict[int, Records] = {}
    for group in raced.partition_by("family", "engine", "seed"):
        held = [_Series(place, most, every, Records.of_arrays([each[starts[place] : ends[place]] for each in columns]))
                for place, most, every in group.select("place", "max_steps", "eval_every").iter_rows()]
        changed |= {own.place: _completed(own, held) for own in held}
    return _replaced(found, changed)


def _replaced(found: Gathered, changed: dict[int, Records]) -> Gathered:
    """The same with other records of some series."""
    if not changed:
        return found
    kept = found.series.with_row_index("place").filter(~pl.col("place").is_in(list(changed)))
    mask = np.isin(found.places(), list(changed), invert=True)
    keys: list[Key] = [found.series.select(*KEY).row(place) for place in changed]
    rows = pl.DataFrame([(*key, len(records)) for key, records in zip(keys, changed.values(), strict=True)],
                        schema=found.series.schema, orient="row")
    return Gathered(pl.concat([kept.drop("place"), rows]), pl.concat(
        [found.records.filter(mask), to_frame(Records.concatenate(list(changed.values())))]))


def _completed(own: _Series, held: list[_Series]) -> Records:
    """The records of a series, and those of others of its family that a race may have kept apart from them.

    A race leaves nothing but stopped runs under its stages, and those are missing from its other runs.
    """
    others = [each for each in held if each is not own and (_stopped(own) or _stopped(each))]
    parts = [own.records, *(_seen_by(own, each) for each in others)]
    records = Records.concatenate(parts)
    origin = np.repeat(range(len(parts)), [len(part) for part in parts]) > 0
    # Of each run: its own record, or else one that ended, or else the one that was followed furthest.
    order = np.lexsort((-records.steps, records.status == CENSORED, origin, records.run))
    return records.take(order[np.unique(records.run[order], return_index=True)[1]])


def _stopped(each: _Series) -> bool:
    return bool(np.all(each.records.status == CENSORED))


def _seen_by(own: _Series, other: _Series) -> Records:
    """What the records of another step limit would have been under this one, as far as they tell."""
    most, limit, every, records = own.max_steps, other.max_steps, own.eval_every, other.records
    # A check at a step limit that is no multiple of eval_every is one that other limits do not have.
    beyond = records.steps > most
    unknown = beyond | ((records.status == SOLVED) & (records.steps == limit) & (limit % every > 0))
    last = np.where(beyond, most - most % every, limit - limit % every)
    return Records(records.run, np.where(unknown, CENSORED, records.status), np.where(unknown, -1, records.t_c),
                   np.where(unknown, last, records.steps), np.where(unknown, np.nan, records.accuracy),
                   np.where(unknown, np.nan, records.loss))
