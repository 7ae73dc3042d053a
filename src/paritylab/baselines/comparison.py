"""Many learners on the same Problems: what each needs, in a table and a figure."""

from __future__ import annotations

import io
import json
import math
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from paritylab import plots, statistics
from paritylab.baselines.attempts import THRESHOLD, bound, check_threshold, needed
from paritylab.baselines.own import Learning, Own, chosen, made, name_of
from paritylab.baselines.records import Record, as_records, details, frame, identity
from paritylab.baselines.registry import check_reach
from paritylab.errors import InvalidInput, require
from paritylab.memory import Part, require_room
from paritylab.progress import Bar
from paritylab.running import crews
from paritylab.running.luggage import by_value
from paritylab.setups.problems import AnyProblem
from paritylab.storage.kept import KeptWarning, load_arrays, recall, save_arrays

FLUSH_SECONDS = 2.0
ROW_BYTES = 1000
"""What a run takes, in lists and tables."""


def compare(
    problems: Sequence[AnyProblem], learners: Sequence[Learning], runs: int = 25, seed: int = 0,
    limit: int | None = None, threshold: float = THRESHOLD, learner: Any = None, out: Path | None = None,
    progress: bool | None = None,
) -> list[Record]:
    """What each learner needs on each Problem, for runs 0, 1, ...: see :func:`paritylab.baselines.needed`.

    Learners are names, and functions of your own (:func:`paritylab.baselines.learner`). With ``out``, Records are kept
    there as they come, and what is there already is not computed again; a function that has changed is another one.
    ``learner`` is the network of ``sgd``; ``limit`` bounds every learner's samples, in place of bounds of their own.

    >>> from paritylab import Parity
    >>> records = compare([Parity(n=10, k=2)], ["exhaustive", "gaussian-elimination"], runs=3)
    >>> [record.status for record in records]
    ['solved', 'solved', 'solved', 'solved', 'solved', 'solved']
    """
    require(runs >= 1, f"runs must be at least 1, not {runs}")
    learners = [each if isinstance(each, str) else made(each) for each in learners]
    require(len(set(map(name_of, learners))) == len(learners) > 0, "say each learner once, and one at least")
    require(len(set(problems)) == len(problems) > 0, "say each problem once, and one at least")
    check_threshold(threshold)
    each = "runs" if len(problems) * len(learners) == 1 else f"runs of each of {len(problems) * len(learners)} cells"
    require_room("this comparison", {each: Part(runs, ROW_BYTES * len(problems) * len(learners))})
    cells = [(problem, each) for problem in problems for each in learners]
    for problem, each in cells:
        bound(each, problem, limit)
        check_reach(name_of(each), chosen(each, problem).method, problem, threshold)
    known = [_kept(out, each, problem, seed, limit, threshold, learner) for problem, each in cells]
    missing = [sorted(set(range(runs)) - {row.run for row in rows}) for rows, _ in known]
    with Bar("runs", len(cells) * runs, progress) as bar:
        done = len(cells) * runs - sum(map(len, missing))
        for (problem, each), (rows, keep), left in zip(cells, known, missing, strict=True):
            if each == "sgd" and left:
                bar.show(done, f"sgd, n = {problem.n}")
                rows += _train(problem, left, seed, limit, threshold, learner, out)
                keep(rows)
                done += len(left)
                left.clear()
        asked = [(cell, run) for cell, left in enumerate(missing) for run in left]
        calls = [(*cells[cell][::-1], run, seed, limit, threshold) for cell, run in asked]
        same = {cell: (identity(cells[cell][0]), chosen(*cells[cell][::-1]).function) for cell, _ in asked}
        changed, kept = set[int](), time.perf_counter()
        try:
            for place, record in crews.each(needed, calls):
                cell, _ = asked[place]
                about, function = same[cell]
                require(record.problem == about and (record.function == function or by_value(function)),
                        f"{record.learner} or the Problem computes something else than at first: on a worker, or by"
                        " what it has changed itself")
                known[cell][0].append(record)
                changed.add(cell)
                done += 1
                bar.show(done, f"{record.learner}, n = {record.n}")
                if time.perf_counter() - kept > FLUSH_SECONDS:
                    _flush(known, changed)
                    kept = time.perf_counter()
        finally:
            _flush(known, changed)
    return [row for rows, _ in known for row in sorted(rows, key=lambda row: row.run) if row.run < runs]


def _flush(known: Sequence[tuple[list[Record], Callable[[list[Record]], None]]], changed: set[int]) -> None:
    """Keep the Records of the cells that have new ones."""
    while changed:
        rows, keep = known[changed.pop()]
        keep(rows)


def _train(
    problem: AnyProblem, runs: list[int], seed: int, limit: int | None, threshold: float, learner: Any, out: Path | None
) -> list[Record]:
    from paritylab.baselines import sgd
    from paritylab.storage.store import Store

    store = None if out is None else Store(out / "store")
    return sgd.train(problem, runs, seed, bound("sgd", problem, limit), threshold, learner, store, progress=False)


def _kept(
    out: Path | None, method: Learning, problem: AnyProblem, seed: int, limit: int | None, threshold: float,
    learner: Any,
) -> tuple[list[Record], Callable[[list[Record]], None]]:
    """The Records of one learner and Problem that are on disk, and the function that puts them there."""
    if out is None:
        return [], lambda rows: None
    import polars as pl

    from paritylab.baselines import sgd
    from paritylab.running.tasks import kept_name
    from paritylab.setups.setup import Setup, encode

    trained = encode(Setup(problem, learner or sgd.LEARNER).now().learner) if method == "sgd" else None
    parameters = {"learner": name_of(method), "problem": identity(problem), "limit": limit, "threshold": threshold,
                  "sgd": trained} | ({"own": method.told(problem)} if isinstance(method, Own) else {})
    path = out / "kept" / f"{kept_name('compare', parameters, seed)}.npz"
    earlier = path.with_suffix(".parquet")
    if earlier.exists() and not path.exists():
        warnings.warn(f"not used: {earlier} has no digest to verify it by; its runs are done again", KeptWarning,
                      stacklevel=2)

    def keep(rows: list[Record]) -> None:
        save_arrays(path, {"parquet": np.frombuffer(as_parquet(rows), np.uint8)})

    def read(path: Path) -> list[Record]:
        arrays = load_arrays(path)
        try:
            table = pl.read_parquet(io.BytesIO(arrays["parquet"].tobytes()))
            return [Record.from_dict(row) for row in table.iter_rows(named=True)]
        except (KeyError, TypeError, pl.exceptions.PolarsError) as error:
            raise InvalidInput(f"{path} does not hold records: {error}") from error

    return recall(path, read) or [], keep


def as_parquet(rows: Sequence[Record]) -> bytes:
    """A Parquet file of Records."""
    buffer = io.BytesIO()
    frame(rows).write_parquet(buffer)
    return buffer.getvalue()


def summarise(records: Sequence[Record]) -> list[dict[str, Any]]:
    """One row for each Problem and learner: median samples, solved share (95 % intervals), median seconds.

    A median or an end of its interval is ``inf`` where too few runs were solved. ``problem`` is the Problem as plain
    JSON values (None where the Records do not say), ``details`` what it is beside n, k and noise.

    >>> rows = [Record("exhaustive", 9, 2, 0.0, run, "solved", 16 + run, "examples", 0.1, None, 1.0)
    ...         for run in range(3)]
    >>> summarise(rows)[0]["median"]
    17.0
    """
    cells: dict[tuple[Any, ...], list[Record]] = {}
    for record in records:
        cells.setdefault(_cell(record), []).append(record)
    rows = []
    for members in cells.values():
        first = members[0]
        summary = statistics.summary(as_records(members))
        times = sorted(record.seconds for record in members if record.seconds is not None)
        notes = sorted({record.note for record in members if not record.solved and record.note})
        rows.append({
            "learner": first.learner, "function": first.function, "n": first.n, "k": first.k, "noise": first.noise,
            "details": details(first.problem), "problem": json.loads(first.problem) if first.problem else None,
            "unit": first.unit, "runs": summary.runs,
            "median": summary.median, "median_interval": summary.median_interval, "solved": summary.solved,
            "solved_fraction": summary.solved_fraction, "solved_interval": summary.solved_interval,
            "refused": sum(record.status == "refused" for record in members),
            "seconds": times[len(times) // 2] if times else None, "given": summary.max_horizon,
            "accuracy": float(sum(record.accuracy for record in members) / len(members)), "notes": notes,
        })
    return rows


def _cell(record: Record) -> tuple[Any, ...]:
    """What the Records of one learner on one Problem share."""
    return record.problem, record.n, record.k, record.noise, record.learner, record.function


@plots.styled
def comparison_plot(records: Sequence[Record]) -> plots.Figure:
    """Samples needed against n, or one row of runs for each learner and Problem where there is but one n.

    A hollow triangle: the median run was not solved with so many samples.
    """
    rows = summarise(records)
    labels = _labels(rows)
    if len({row["n"] for row in rows}) == 1:
        return _one_size(records, rows, labels)
    cells: dict[str, list[dict[str, Any]]] = {}
    for label, row in sorted(zip(labels, rows, strict=True), key=lambda each: each[1]["n"]):
        cells.setdefault(label, []).append(row)
    cells = {label: cells[label] for label in dict.fromkeys(labels)}
    figure = plots.scaling_plot({label: _series(mine) for label, mine in cells.items()}, "input bits n",
                                "samples needed (median)")
    for mine, colour in zip(cells.values(), cycle(plots.COLOURS), strict=False):
        beyond = [(row["n"], row["given"]) for row in mine if math.isinf(row["median"])]
        figure.axes[0].plot(*np.array(beyond).reshape(-1, 2).T, "^", color=colour, fillstyle="none", markersize=5)
    return figure


def _labels(rows: list[dict[str, Any]]) -> list[str]:
    """The learner of each row, and as much of its Problem, beside n, as is not the same in all rows."""
    shown = [name for name in ("k", "noise", "details") if len({row[name] for row in rows}) > 1]
    states = {(row["learner"], row["function"]) for row in rows}
    changed = {name for name, _ in states if sum(name == other for other, _ in states) > 1}

    def label(row: dict[str, Any]) -> str:
        learner = f"{row['learner']} (queries)" if row["unit"] == "queries" else row["learner"]
        learner += f" {row['function']}" if row["learner"] in changed else ""
        parts = [row[name] if name == "details" else f"{name} {row[name]:g}" for name in shown]
        return ", ".join([learner, *filter(None, parts)])

    return [label(row) for row in rows]


def _series(rows: list[dict[str, Any]]) -> plots.Series:
    """Medians against n; what is not reached, or not bounded, is not drawn."""
    y = np.array([row["median"] for row in rows])
    low, high = np.array([row["median_interval"] for row in rows]).T
    y = np.where(np.isfinite(y), y, np.nan)
    return plots.Series([row["n"] for row in rows], y, np.where(low > 0, low, y), high)


def _one_size(records: Sequence[Record], rows: list[dict[str, Any]], labels: list[str]) -> Any:
    cells = dict.fromkeys(map(_cell, records))  # in the order of the rows
    figure = plots.blank(0.7 + 0.3 * max(2, len(rows)))
    axes = figure.add_subplot(xscale="log", xlabel="samples needed", ylim=(len(rows) - 0.4, -0.6))
    for place, (row, cell) in enumerate(zip(rows, cells, strict=True)):
        shown = [record.samples for record in records if _cell(record) == cell and record.solved]
        axes.plot(shown, [place] * len(shown), "o", color=plots.COLOURS[0], alpha=0.25, markersize=3)
        if math.isfinite(row["median"]):
            axes.plot(row["median"], place, "|", color=plots.COLOURS[1], markersize=11, markeredgewidth=2)
        if row["solved"] < row["runs"]:
            text = f"{row['runs'] - row['solved']} of {row['runs']} not solved"
            axes.plot(row["given"], place, ">", color=plots.GREY, markersize=4)
            axes.annotate(text, (row["given"], place), (3, 5), textcoords="offset points", ha="right",
                          fontsize=6, color=plots.GREY)
    axes.set_yticks(range(len(rows)), labels)
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.12)
    plots.readable_log(axes)
    return figure
