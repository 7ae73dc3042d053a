"""``paritylab results``: questions to the store."""

from __future__ import annotations

import argparse
import io
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paritylab.cli.parser import Parser, add_common, count
from paritylab.errors import InvalidInput, require, unknown

if TYPE_CHECKING:
    import polars as pl

    from paritylab.storage.store import Store

COLUMNS = ("setup_id", "n", "k", "network", "batch", "lr", "engine", "seed", "runs", "solved", "p10", "median", "p90")
TEXTS = ("setup_id", "network", "engine", "status", "state")


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "results",
        help="ask the store: filters, groups, percentiles, tables",
        description="One line for each Setup, engine and seed in the store under --out; with --group, for each group of"
        " them; with --records, for each run. Columns are the Setup's parameters (n, k, width, lr, loss, ...) and"
        " statistics (runs, solved, median, median_low, ...). Runs that stopped with a stage of a race count as"
        " censored there.",
    )
    add_filters(parser)
    parser.add_argument("--group", nargs="+", default=[], metavar="NAME",
                        help="pool the runs of Setups with equal values of these parameters")
    parser.add_argument("--pivot", metavar="NAME", help="the values of this parameter side by side; of --value")
    parser.add_argument("--value", default="median", metavar="NAME", help="what --pivot shows")
    parser.add_argument("--percentiles", nargs="+", type=float, default=[10.0, 50.0, 90.0], metavar="Q",
                        help="percentiles of t_c, with their 95 %% intervals")
    parser.add_argument("--sort", nargs="+", default=[], metavar="NAME", help="columns to sort by")
    parser.add_argument("--descending", action="store_true", help="the largest first")
    parser.add_argument("--limit", type=count, metavar="N", help="so many lines at most")
    parser.add_argument("--columns", nargs="+", metavar="NAME", help="the columns to show")
    parser.add_argument("--records", action="store_true", help="every run instead of summaries")
    parser.add_argument("--csv", action="store_true", help="comma-separated values instead of a table")
    parser.add_argument("--parquet", type=Path, metavar="FILE", help="write a Parquet file instead")
    add_common(parser, run)


def add_filters(parser: Any) -> None:
    """What commands take that ask the store."""
    parser.add_argument("--where", default="", metavar="CONDITION",
                        help="only what this holds of, such as 'n == 30 and lr >= 0.1'")
    parser.add_argument("--setup", default="", metavar="ID", help="only this Setup (the beginning of its id is enough)")
    parser.add_argument("--n", type=count, help="only problems with this many inputs")
    parser.add_argument("--k", type=count, help="only supports of this size")
    parser.add_argument("--engine", help="only this engine's records: lanes, or lanes_2 in one version")
    parser.add_argument("--seed", type=count, help="only this seed")


def the_store(out: Path) -> Store:
    """The store under a folder."""
    from paritylab.storage.store import Store

    root = out / "store"
    if not root.exists():
        raise InvalidInput(f"there is no store at {root}; 'paritylab measure --out {out}' makes one")
    return Store(root)


def run(options: argparse.Namespace) -> None:
    require(not (options.json and options.csv), "--json and --csv exclude each other")
    require(not (options.records and (options.group or options.pivot)), "--records are not grouped")
    require(options.limit is None or options.limit >= 0, f"--limit must be at least 0, not {options.limit}")
    store = the_store(options.out)
    table = records(store, options) if options.records else asked(store, options)
    table = finite(table) if options.parquet is None else table
    if options.columns:
        table = chosen(table, options.columns)
    if options.parquet is not None:
        write_parquet(table, options.parquet)
    if options.json:
        print(as_json(store, table, options))
    elif options.parquet is not None:
        print(f"{table.height} rows: {options.parquet}")
    elif options.csv:
        sys.stdout.write(table.write_csv())
    else:
        print_frame(shown_table(store, table, options))


def asked(store: Store, options: argparse.Namespace) -> pl.DataFrame:
    """Summaries, as they are asked for."""
    from paritylab.statistics import results

    group = [*options.group, *([options.pivot] if options.pivot else [])]
    table = results.answer(
        store, where(options), setup=options.setup, engine=options.engine, seed=options.seed,
        group=list(dict.fromkeys(group)), qs=options.percentiles, sort=[] if options.pivot else options.sort,
        descending=options.descending, limit=None if options.pivot else options.limit,
    )
    if options.pivot:
        table = results.pivot(finite(table), options.pivot, options.value)
        table = table if options.limit is None else table.head(options.limit)
    return table


def where(options: argparse.Namespace) -> list[str]:
    """The conditions, with what --n and --k ask for."""
    return [options.where, *(f"{name} == {value}" for name in ("n", "k")
                             if (value := getattr(options, name)) is not None)]


def records(store: Store, options: argparse.Namespace) -> pl.DataFrame:
    """Every run, with the parameters of its Setup that the question names."""
    import polars as pl

    from paritylab.engines.arithmetic import versions
    from paritylab.statistics import filters, results
    from paritylab.storage.gathered import KEY, RECORD, Wanted

    about = results.setups(store).filter(pl.col("setup_id").str.starts_with(options.setup))
    about = about.rename({"loss": "learner_loss"}, strict=False)
    schema = {**about.schema, **RECORD, **KEY}
    some = [each for text in where(options) if text.strip() for each in filters.conditions(text, schema)]
    early = [each.expression for each in some if each.names <= set(about.columns)]
    late = [each for each in some if not each.names <= set(about.columns)]
    about = about.filter(early) if early else about
    engines = None if options.engine is None else versions(options.engine)
    rows = store.gather(Wanted(frozenset(about["setup_id"]), engines, options.seed)).rows()
    names = {name for each in late for name in each.names} | {*options.sort, *(options.columns or ())}
    for name in names - {*rows.columns, *about.columns}:
        raise unknown("column", name, [*rows.columns, *about.columns])
    more = [name for name in about.columns if name in names and name not in rows.columns]
    if more:
        rows = rows.join(about.select("setup_id", *more), on="setup_id", how="left", maintain_order="left")
    rows = rows.filter([each.expression for each in late]) if late else rows
    if options.sort:
        rows = rows.sort(options.sort, descending=options.descending, nulls_last=True, maintain_order=True)
    return rows if options.limit is None else rows.head(options.limit)


def finite(table: pl.DataFrame) -> pl.DataFrame:
    """What is not reached, or not defined, is left empty."""
    import polars as pl
    import polars.selectors as cs

    return table.with_columns(pl.when(cs.float().is_finite()).then(cs.float()))


def chosen(table: pl.DataFrame, names: list[str]) -> pl.DataFrame:
    for name in names:
        if name not in table.columns:
            raise unknown("column", name, table.columns)
    return table.select(*dict.fromkeys(names))


def write_parquet(table: pl.DataFrame, path: Path) -> None:
    from paritylab.storage.files import write_atomically

    buffer = io.BytesIO()
    table.write_parquet(buffer)
    try:
        write_atomically(path, buffer.getvalue())
    except OSError as error:
        raise InvalidInput(f"cannot write {path}: {error.strerror or error}") from error


def as_json(store: Store, table: pl.DataFrame, options: argparse.Namespace) -> str:
    """One object. The Setups in it are the store's own texts, which are JSON already."""
    import polars as pl

    ends = [name.removesuffix("_low") for name in table.columns if name.endswith("_low")]
    pairs = [name for name in ends if f"{name}_high" in table.columns]
    both = [pl.concat_list(f"{name}_low", f"{name}_high").alias(f"{name}_interval") for name in pairs]
    table = table.with_columns(both).drop(f"{name}_{end}" for name in pairs for end in ("low", "high"))
    rows = (line[:-1] for line in table.write_ndjson().splitlines())
    if "setup_id" in table.columns and not (options.records or options.group or options.columns):
        texts = store.texts(None if options.limit is None else table["setup_id"].unique().to_list())
        setups = (f', "setup": {texts[setup_id]}' for setup_id in table["setup_id"])
        rows = (row + setup for row, setup in zip(rows, setups, strict=True))
    head = json.dumps({"store": str(options.out / "store")})[:-1]
    return f'{head}, "results": [{", ".join(row + "}" for row in rows)}]}}'


def shown_table(store: Store, table: pl.DataFrame, options: argparse.Namespace) -> pl.DataFrame:
    """The columns that a table of summaries shows unless said, with the network in words."""
    if options.records or options.group or options.pivot or options.columns:
        return table
    from paritylab.statistics import results

    standard = ("p10", "median", "p90")
    percentiles = tuple(name for name in table.columns if f"{name}_low" in table.columns and name != "solved")
    names = (*(name for name in COLUMNS if name not in standard), *percentiles)
    named = [name for name in (*options.sort, *condition_names(options)) if name in table.columns and name not in names]
    words = results.networks_in_words(store, table)
    return table.with_columns(words.alias("network")).select(*names[:6], *dict.fromkeys(named), *names[6:])


def condition_names(options: argparse.Namespace) -> list[str]:
    import re

    return re.findall(r"[A-Za-z_]\w*", re.sub(r"'[^']*'|\"[^\"]*\"", "", options.where))


def print_frame(table: pl.DataFrame) -> None:
    """Aligned columns, never cut: a narrow terminal wraps, a pipe gets everything."""
    if not table.height:
        print("nothing matches")
        return
    columns = [[name, *map(shown, table[name].to_list())] for name in table.columns]
    aligned = [align_column(name, cells) for name, cells in zip(table.columns, columns, strict=True)]
    sys.stdout.write("".join("  ".join(line).rstrip() + "\n" for line in zip(*aligned, strict=True)))


def align_column(name: str, cells: list[str]) -> list[str]:
    width = max(map(len, cells))
    return [cell.ljust(width) for cell in cells] if name in TEXTS else [cell.rjust(width) for cell in cells]


def print_table(rows: list[dict[str, Any]], names: tuple[str, ...]) -> None:
    """The same of rows."""
    aligned = [align_column(name, [name, *(shown(row[name]) for row in rows)]) for name in names]
    if rows:
        sys.stdout.write("".join("  ".join(line).rstrip() + "\n" for line in zip(*aligned, strict=True)))
    else:
        print("nothing matches")


def shown(value: Any) -> str:
    if value is None:
        return "-"
    return f"{value:g}" if isinstance(value, float) else str(value)
