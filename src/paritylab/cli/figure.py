"""``paritylab figure``: a figure for a paper, from the store."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paritylab.cli.parser import Parser, add_common, print_json
from paritylab.cli.results import add_filters, the_store, where
from paritylab.errors import InvalidInput, require

if TYPE_CHECKING:
    from collections.abc import Mapping

    import polars as pl
    from matplotlib.figure import Figure

KINDS = {
    "lines": "a statistic (--y) against a parameter (--x), with intervals",
    "survival": "the fraction of runs still unsolved against steps, with bands",
    "scaling": "a percentile (--y) against a parameter (--x), with the fitted power law and its band",
    "heat": "a statistic (--value) over two parameters (--x and --y)",
    "compare": "two values of a parameter (--by) on the same runs",
    "curves": "accuracy, or what --y says, along training, from files of 'paritylab curves'",
}
TAKES = {
    "lines": ("x", "y", "by", "facet", "pool", "log", "xlabel", "ylabel"),
    "survival": ("by", "facet", "pool", "counts"),
    "scaling": ("x", "y", "by", "facet", "pool", "log", "xlabel", "ylabel"),
    "heat": ("x", "y", "value", "pool", "show", "xlabel", "ylabel"),
    "compare": ("by",),
    "curves": ("y", "by", "log", "ylabel"),
}
"""The options of each kind, besides those of all."""
NEEDS = {"lines": ("x",), "scaling": ("x",), "heat": ("x", "y"), "compare": ("by",)}


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "figure",
        help="a figure for a paper from the store, with its data beside it",
        description="Draws what the store holds, in the type and width of a paper: "
        + "; ".join(f"{kind}: {told}" for kind, told in KINDS.items())
        + ". Writes the figure, the numbers it shows (.csv) and what made it (.json), the same bytes each time."
        " Runs of Setups that differ in a parameter that the figure does not name are never pooled unasked.",
    )
    parser.add_argument("--kind", choices=list(KINDS), default="lines", help="what is drawn")
    parser.add_argument("--x", metavar="NAME", help="the parameter across")
    parser.add_argument("--y", metavar="NAME", help="the statistic (median unless said), or of a map the other"
                        " parameter, or of curves the series (accuracy unless said)")
    parser.add_argument("--by", metavar="NAME", help="the parameter that curves differ in")
    parser.add_argument("--facet", metavar="NAME", help="the parameter that panels differ in")
    parser.add_argument("--value", metavar="NAME", help="the statistic of a map; median unless said")
    parser.add_argument("--show", choices=("value", "interval", "nothing"),
                        help="what a map writes into its cells; the value unless said")
    parser.add_argument("--counts", action="store_true", help="say below survival curves how many runs were still"
                        " training")
    parser.add_argument("--pool", action="store_true", help="make one sample of Setups that differ otherwise")
    parser.add_argument("--level", type=float, default=0.95, help="of intervals and bands")
    parser.add_argument("--log", choices=("none", "x", "y", "xy"), help="logarithmic axes; by the values unless said")
    for name in ("xlabel", "ylabel", "title"):
        parser.add_argument(f"--{name}", metavar="TEXT", help="mathematics between dollars" if name == "title" else
                            "instead of the parameter's name")
    parser.add_argument("--column", choices=("single", "double"), help="3.3 or 6.9 inches wide; panels are double, the"
                        " rest single unless said")
    parser.add_argument("--font", choices=("cm", "times"), default="cm", help="Computer Modern, or Times")
    filters = parser.add_argument_group("what is drawn")
    filters.add_argument("--results", type=Path, default=Path("out"), metavar="DIR", help="where results are kept")
    add_filters(filters)
    parser.add_argument("--out", type=Path, default=Path("figure.pdf"), metavar="FILE",
                        help="a .pdf, .svg or .png file; all three if it has no such ending")
    add_common(parser, run, out=False)


def run(options: argparse.Namespace) -> None:
    from paritylab import plots

    check(options)
    chosen = {name: value for name in TAKES[options.kind] if (value := getattr(options, name)) not in (None, False)}
    if "log" in chosen:
        chosen["log"] = chosen["log"].replace("none", "")
    chosen |= {"title": options.title, "column": options.column}
    with plots.typeface(options.font):
        figure, setups = from_curves(options, chosen) if options.kind == "curves" else from_store(options, chosen)
        files = plots.save(figure, options.out, about(options, setups))
    table = plots.data(figure)
    assert table is not None, "every kind of figure has its data"
    if options.json:
        print_json({"kind": options.kind, "setups": list(setups), "rows": table.height,
                    "files": [str(path) for path in files]})
        return
    print(f"{options.kind} of {len(setups)} Setups")
    for path in files:
        print(path)


def check(options: argparse.Namespace) -> None:
    """Options that this kind does not take are refused, not passed over."""
    every = dict.fromkeys(name for names in TAKES.values() for name in names)
    for name in every:
        if name not in TAKES[options.kind] and getattr(options, name) not in (None, False):
            kinds = [kind for kind, names in TAKES.items() if name in names]
            raise InvalidInput(f"--{name} is for --kind {', '.join(kinds)}, not for {options.kind}")
    for name in NEEDS.get(options.kind, ()):
        require(getattr(options, name) is not None, f"--kind {options.kind} needs --{name}")
    require(not options.out.is_dir(), f"{options.out} is a folder; --out is the figure's file, such as figure.pdf,"
            " and --results says where results are kept")


def from_store(options: argparse.Namespace, chosen: dict[str, Any]) -> tuple[Figure, Mapping[str, str]]:
    """The figure, and the JSON of the Setups it shows by their ids."""
    from paritylab import plots
    from paritylab.statistics import results

    store = the_store(options.results)
    found = results.samples(store, where(options), setup=options.setup, engine=options.engine, seed=options.seed)
    require(found.series.height > 0, f"nothing in {options.results / 'store'} matches")
    draw: Any = getattr(plots, options.kind)
    figure = draw(found, level=options.level, **chosen)
    return figure, dict(sorted(store.texts(found.series["setup_id"].unique().to_list()).items()))


def from_curves(options: argparse.Namespace, chosen: dict[str, Any]) -> tuple[Figure, Mapping[str, str]]:
    """The same of what ``paritylab curves`` wrote."""
    from paritylab import plots
    from paritylab.plots import words

    table, kept = recorded(options)
    by, y = chosen.pop("by", None), chosen.get("y", "accuracy")
    names = [name for name in table.columns if name != "setup_id" and table[name].n_unique() > 1]
    require(by is not None or table.height == 1, f"there are curves of {table.height} Setups, which differ in"
            f" {', '.join(names)}; choose one, or draw them by a parameter")
    if by is not None:
        require(by in table.columns, f"unknown parameter {by!r}; allowed: {', '.join(table.columns)}")
        require(table[by].n_unique() == table.height, f"several of these Setups have one {by}; they differ in"
                f" {', '.join(names)}: choose some with --where")
        table = table.sort(by, nulls_last=True)
    labels = [words.curve(by, row[by]) if by is not None else "all" for row in table.iter_rows(named=True)]
    series = {label: Recorded(options.results / f"curves-{each}.parquet", y)
              for label, each in zip(labels, table["setup_id"], strict=True)}
    return plots.curves(series, **chosen), {each: json.dumps(kept[each]) for each in sorted(table["setup_id"])}


def recorded(options: argparse.Namespace) -> tuple[pl.DataFrame, dict[str, Any]]:
    """The parameters of Setups with curves that conditions leave, and the Setups."""
    import polars as pl

    from paritylab.setups import parameters
    from paritylab.statistics.filters import conditions
    from paritylab.storage.catalogue import column

    kept: dict[str, Any] = {}
    for path in sorted(options.results.glob("curves-*.json")):
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
            kept[str(found["setup_id"])] = dict(found["setup"])
        except (ValueError, KeyError, TypeError) as error:
            raise InvalidInput(f"{path} is not a file of 'paritylab curves': {error}") from None
    require(bool(kept), f"there are no curves in {options.results}; 'paritylab curves --out {options.results}' makes"
            " some")
    rows = [parameters.flattened(setup) for setup in kept.values()]
    names = parameters.ordered(dict.fromkeys(name for row in rows for name in row))
    table = pl.DataFrame([pl.Series("setup_id", list(kept)), *(column([row.get(name) for row in rows], name)
                                                               for name in names)])
    for text in where(options):
        if text.strip():
            table = table.filter([each.expression for each in conditions(text, table.schema)])
    table = table.filter(pl.col("setup_id").str.starts_with(options.setup))
    require(table.height > 0, f"no curves in {options.results} match")
    return table, kept


class Recorded:
    """A series of a file of curves, as ``pl.curves`` has it."""

    metrics = None

    def __init__(self, path: Path, name: str) -> None:
        import polars as pl

        from paritylab.errors import unknown

        try:
            table = pl.read_parquet(path)
        except (OSError, pl.exceptions.PolarsError) as error:
            raise InvalidInput(f"cannot read {path}: {' '.join(str(error).split())}") from None
        if name not in table.columns[2:]:
            raise unknown("recorded series", name, table.columns[2:])
        wide = table.select("run", "step", name).sort("run", "step").pivot("run", index="step", values=name)
        self.steps = wide["step"].to_numpy()
        self.metrics = {name: wide.drop("step").cast(pl.Float64()).fill_null(float("nan")).to_numpy().T}
        self.accuracy = self.loss = self.train_accuracy = self.train_loss = None


def about(options: argparse.Namespace, setups: Mapping[str, str]) -> dict[str, Any]:
    """What made the figure, without the time: the same figure has the same files."""
    from paritylab import __version__

    words = ["paritylab", "figure"]
    for action in options.parser._actions:
        value = getattr(options, action.dest, None)
        told = action.dest == "kind" or value != action.default
        if told and action.option_strings and action.dest not in ("help", "json", "papers"):
            words += [action.option_strings[0], *([] if value is True else [str(value)])]
    return {"command": shlex.join(words), "paritylab": __version__,
            "setups": {each: json.loads(text) for each, text in setups.items()}}
