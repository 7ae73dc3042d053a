"""``paritylab theory learners``: what networks and other learners need to find a parity."""

from __future__ import annotations

import argparse
import math
from typing import Any

from paritylab.cli.crews import add_crew, hired, shows_script
from paritylab.cli.parser import Parser, add_common, add_seed, count, print_json
from paritylab.cli.problems import add_problem, make_problem
from paritylab.errors import require


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "learners",
        help="what networks and other learners need to find a parity",
        description="The fewest samples with which each learner finds a parity, or a polynomial: a table, a figure and"
        " the data under --out. With several --n the figure is against n. Runs that are there already are not"
        " repeated.",
        epilog="'paritylab theory learners --list' says what each learner does.",
    )
    add_problem(parser, several=True)
    parser.add_argument("--learners", default="sgd,gaussian-elimination,low-degree,ntk",
                        help="names, with commas; your own as MODULE:FUNCTION of an importable module")
    parser.add_argument("--runs", type=count, default=25, help="runs of each learner")
    add_seed(parser)
    parser.add_argument("--limit", type=count, help="the most samples of any learner; its own bound unless said")
    parser.add_argument("--threshold", type=float, default=0.99, help="accuracy that counts as solved, of predictions")
    parser.add_argument("--lr", type=float, help="learning rate of sgd (1 unless said)")
    parser.add_argument("--width", type=count, help="width of its network (10 unless said)")
    parser.add_argument("--batch", type=count, help="its batch size (32 unless said)")
    parser.add_argument("--list", action="store_true", help="list the learners and do nothing else")
    add_crew(parser)
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from paritylab import baselines, plots
    from paritylab.baselines import sgd
    from paritylab.baselines.comparison import as_parquet
    from paritylab.storage.files import write_atomically

    if options.list:
        list_learners(options.json)
        return
    if shows_script(options):
        return
    learners = [named(name.strip()) for name in options.learners.split(",")]
    require(len(set(options.n)) == len(options.n), "--n values must differ")
    problems = [make_problem(argparse.Namespace(**{**vars(options), "n": n})) for n in options.n]
    learner = sgd.with_options(options.lr, options.width, options.batch)
    with hired(options):
        records = baselines.compare(problems, learners, options.runs, options.seed, options.limit, options.threshold,
                                    learner, options.out, False if options.json else None)
    options.out.mkdir(parents=True, exist_ok=True)
    stem = options.out / "learners"
    write_atomically(stem.with_suffix(".csv"), baselines.frame(records).write_csv().encode())
    write_atomically(stem.with_suffix(".parquet"), as_parquet(records))
    files = [stem.with_suffix(".csv"), stem.with_suffix(".parquet")]
    files += plots.save(baselines.comparison_plot(records), stem)
    rows = baselines.summarise(records)
    if options.json:
        print_json({"rows": [plain(row) for row in rows], "files": [str(path) for path in files]})
        return
    from paritylab.setups.words import problem_in_words

    noise = f", noise {options.noise:g}" if options.noise else ""
    sample = f", at most {options.sample} examples" if options.sample else ""
    what = "; ".join(problem_in_words(problem) for problem in problems)
    print(f"{what}{noise}{sample}, {options.runs} runs; medians with 95 % intervals\n")
    print(table(rows))
    print()
    print(*files, sep="\n")


def named(text: str) -> Any:
    """A learner of paritylab's by its name, or the user's own function as ``module:function``."""
    from paritylab.functions.finding import imported

    module, colon, name = text.partition(":")
    if not colon:
        return text
    found = getattr(imported(module), name, None)
    require(found is not None, f"the module {module!r} has no {name!r}")
    return found


def list_learners(as_json: bool) -> None:
    from paritylab.baselines import descriptions
    from paritylab.baselines.registry import METHODS, in_words

    if as_json:
        targets = {name: list(method.targets) for name, method in METHODS.items()}
        print_json({"learners": descriptions(), "targets": targets})
        return
    for name, about in descriptions().items():
        print(f"{name:<21} {about}; finds {in_words(METHODS[name].targets)}")


def table(rows: list[dict[str, Any]]) -> str:
    """Aligned columns: learner, n, samples, solved share, seconds."""
    lines = [("learner", "n", "samples needed", "solved", "seconds", "")]
    for row in rows:
        low, high = (100 * end for end in row["solved_interval"])
        solved = f"{100 * row['solved_fraction']:.0f} % [{low:.0f}, {high:.0f}]"
        seconds = "" if row["seconds"] is None else f"{row['seconds']:.2g}"
        notes = "; ".join(row["notes"][:2])
        lines.append((row["learner"], str(row["n"]), samples(row), solved, seconds, notes))
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "\n".join("  ".join(f"{cell:<{w}}" for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines)


def samples(row: dict[str, Any]) -> str:
    unit = " queries" if row["unit"] == "queries" else ""
    if math.isinf(row["median"]):
        return f"not reached with {row['given']}{unit}"
    low, high = ("inf" if math.isinf(end) else f"{end:g}" for end in row["median_interval"])
    return f"{row['median']:g} [{low}, {high}]{unit}"


def plain(row: dict[str, Any]) -> dict[str, Any]:
    """A row with None for what is not finite."""

    def value(item: Any) -> Any:
        if isinstance(item, tuple):
            return [value(part) for part in item]
        return None if isinstance(item, float) and not math.isfinite(item) else item

    return {name: value(item) for name, item in row.items()}
