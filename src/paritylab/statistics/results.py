"""What a store says, as tables: one row for each Setup, engine and seed, or for each group of them."""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from paritylab.engines.arithmetic import versions
from paritylab.errors import require, unknown
from paritylab.setups import parameters
from paritylab.setups.words import network_in_words
from paritylab.statistics.filters import Condition, conditions
from paritylab.statistics.groups import chosen, pooled, reordered
from paritylab.statistics.tables import PERCENTILES, summaries
from paritylab.storage import stages
from paritylab.storage.gathered import KEY, Gathered, Wanted

if TYPE_CHECKING:
    from paritylab.storage.store import Store

NEEDED = pl.Schema({"family": pl.String(), "problem": pl.String(), "network": pl.String(), "n": pl.Int64(),
                    "k": pl.Int64(), "batch": pl.Int64(), "lr": pl.Float64(), "max_steps": pl.Int64(),
                    "eval_every": pl.Int64()})


def setups(store: Store) -> pl.DataFrame:
    """The parameters of the Setups of this version that a store holds; others are noted."""
    from paritylab.storage.store import StoreWarning

    table = store.parameters().collect()
    absent = [pl.lit(None, kind).alias(name) for name, kind in NEEDED.items() if name not in table.columns]
    table = table.with_columns(absent)
    known = pl.all_horizontal(pl.col("problem", "batch", "max_steps").is_not_null())
    for setup_id in table.filter(~known)["setup_id"]:
        warnings.warn(f"not used: {setup_id} holds no Setup of this version", StoreWarning, stacklevel=2)
    return table.filter(known).sort("setup_id")


def answer(
    store: Store,
    where: str | Sequence[str] = (),
    *,
    setup: str = "",
    engine: str | None = None,
    seed: int | None = None,
    group: Sequence[str] = (),
    qs: Sequence[float] = PERCENTILES,
    sort: Sequence[str] = (),
    descending: bool = False,
    limit: int | None = None,
) -> pl.DataFrame:
    """A table of summaries: key, parameters and statistics; or, of groups, what they have in common and statistics.

    Args:
        store: where the records are.
        where: conditions on parameters and statistics (:func:`paritylab.statistics.filters.conditions`), one or
            several.
        setup: the beginning of a Setup's id.
        engine: only this engine's records: ``lanes`` in each version of its arithmetic, ``lanes_2`` in one.
        seed: only this seed.
        group: pool the runs of Setups with equal values of these parameters. Of Setups that differ in their step limit
            alone the one with the highest counts, and engines are kept apart.
        qs: which percentiles.
        sort: columns to sort by; by key unless said.
        descending: the largest first; what is not there, or not reached, is last in either case.
        limit: so many rows at most.
    """
    statistics = summaries(Gathered.empty(), qs).schema
    about, late = _asked(store, where, setup, statistics)
    for name in group:
        if name not in (names := [*about.columns, *KEY]):
            raise unknown("column to group by", name, names)
    found = gathered(store, about, engine, seed)
    if group:
        table = summaries(_pooled(found, about, list(group)), qs)
    else:
        table = summaries(found, qs).join(about, on="setup_id", how="left", maintain_order="left")
        own = parameters.ordered(name for name in about.columns if name not in ("setup_id", "family"))
        table = table.select("setup_id", *own, "engine", "seed", *(name for name in statistics if name not in KEY))
    for name in {name for each in late for name in each.names} | set(sort):
        if name not in table.columns:
            raise unknown("column of groups" if group else "column", name, table.columns)
    table = _filtered(table, late)
    if sort:
        table = table.sort([_last(table, name) for name in sort], descending=descending, nulls_last=True,
                           maintain_order=True)
    return table if limit is None else table.head(limit)


def _asked(
    store: Store, where: str | Sequence[str], setup: str, statistics: pl.Schema
) -> tuple[pl.DataFrame, list[Condition]]:
    """The Setups that conditions on parameters leave, and the other conditions, which are on statistics."""
    about = setups(store).filter(pl.col("setup_id").str.starts_with(setup))
    texts = [where] if isinstance(where, str) else where
    both = [each for text in texts if text.strip() for each in conditions(text, about.schema | statistics)]
    about = _filtered(about, [each for each in both if each.names <= set(about.columns)])
    return about, [each for each in both if not each.names <= set(about.columns)]


def samples(
    store: Store,
    where: str | Sequence[str] = (),
    *,
    setup: str = "",
    engine: str | None = None,
    seed: int | None = None,
) -> Gathered:
    """The records that :func:`answer` summarises, each series with the parameters of its Setup: what figures take.

    Conditions on statistics are on those of each Setup, engine and seed.
    """
    statistics = summaries(Gathered.empty()).schema
    about, late = _asked(store, where, setup, statistics)
    found = gathered(store, about, engine, seed)
    series = found.series.join(about, on="setup_id", how="left", maintain_order="left")
    found = Gathered(series, found.records)
    if late:
        table = summaries(found)
        held = table.with_row_index("place").filter([each.expression for each in late])["place"].to_numpy()
        found = chosen(found, np.isin(np.arange(table.height), held))
    return chosen(found, _longest(found.series))


def gathered(store: Store, about: pl.DataFrame, engine: str | None = None, seed: int | None = None) -> Gathered:
    """The records of these Setups, each series completed by what stages of a race left."""
    every = store.parameters().select("setup_id", "family", *(
        pl.col(name) if name in store.parameters().collect_schema() else pl.lit(None, pl.Int64()).alias(name)
        for name in ("max_steps", "eval_every"))).collect()
    ids = stages.members(every, about["setup_id"])
    some = None if len(ids) == every.height else frozenset(ids)
    found = stages.completed(store.gather(Wanted(some, None if engine is None else versions(engine), seed)), every)
    found = chosen(found, found.series["setup_id"].is_in(about["setup_id"].implode()).to_numpy())
    order = found.series.with_row_index("place").sort(*KEY)["place"].to_numpy()
    return reordered(found, order) if (order[1:] < order[:-1]).any() else found


def _longest(series: pl.DataFrame) -> np.ndarray:
    """Of Setups that differ in their step limit alone, the one with the highest counts."""
    counted = pl.col("max_steps") == pl.col("max_steps").max().over("family", "engine", "seed")
    return series.select(counted).to_series().to_numpy()


def _pooled(found: Gathered, about: pl.DataFrame, group: list[str]) -> Gathered:
    """The runs of series that have these columns in common as one."""
    series = found.series.join(about, on="setup_id", how="left", maintain_order="left")
    found = chosen(Gathered(series, found.records), _longest(series))
    apart = ["engine"] if found.series["engine"].n_unique() > 1 and "engine" not in group else []
    return pooled(found, [*group, *apart])


def _filtered(table: pl.DataFrame, some: list[Condition]) -> pl.DataFrame:
    return table.filter([each.expression for each in some]) if some else table


def _last(table: pl.DataFrame, name: str) -> pl.Expr:
    """What is infinite is not there: it comes last."""
    column = pl.col(name)
    return pl.when(column.is_finite()).then(column) if table.schema[name].is_float() else column


def pivot(table: pl.DataFrame, on: str, value: str) -> pl.DataFrame:
    """A table of groups with the values of one of their columns side by side."""
    for name in (on, value):
        if name not in table.columns:
            raise unknown("column", name, table.columns)
    statistics = set(summaries(Gathered.empty(), ()).columns) | {"runs"}
    index = [name for name in table.columns[: table.columns.index("runs")] if name != on]
    require(on not in statistics, f"{on} is not a parameter")
    if not index:
        table, index = table.with_columns(value=pl.lit(value)), ["value"]
    return table.sort(on, nulls_last=True, maintain_order=True).pivot(
        on, index=index, values=value, aggregate_function="first").sort(*index, nulls_last=True)


def networks_in_words(store: Store, table: pl.DataFrame) -> pl.Series:
    """The network of each row in a few words."""
    names = [name for name in table.columns if name in parameters.FIELDS["network"] or name.startswith("network")]
    kinds = table.select("setup_id", *names).unique(names, keep="first", maintain_order=True)
    texts = store.texts(kinds["setup_id"].to_list())
    words = [network_in_words(json.loads(texts[each])["learner"]["network"]) for each in kinds["setup_id"]]
    known = kinds.select(*names).with_columns(pl.Series("words", words, pl.String()))
    return table.select(*names).join(known, on=names, how="left", nulls_equal=True, maintain_order="left")["words"]
