"""The campaign: every cell of barak2022's table at its fastest rate, with as many runs as one likes.

Runs are given to cells so that each takes about the same work; of the runs only Counts are kept. A campaign lives in a
folder: ``plan.json`` says how many runs each cell gets, a file for each block of runs what came of them.
"""

from __future__ import annotations

import io
import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from barak2022 import figure7, settings
from paritylab import plots
from paritylab.errors import InvalidInput, require
from paritylab.progress import Bar
from paritylab.running.cost import step_flops
from paritylab.running.races import Entry, extend, race
from paritylab.setups.problems import Parity
from paritylab.setups.setup import Protocol, Setup
from paritylab.statistics.fractions import share_interval
from paritylab.statistics.percentiles import percentile_interval_of, percentile_of
from paritylab.storage.counts import Counted, Counts, CountTask, wall_seconds
from paritylab.storage.files import write_atomically
from paritylab.storage.kept import load_document, recall, save_document

if TYPE_CHECKING:
    from paritylab.storage.store import Store

FORMAT = 1
SETTINGS = tuple(name for name in settings.BARAK2022 if name != "*iii")
SIZES = (10, 20, 30)
PROTOCOL = Protocol(eval_size=128)
PILOT = 25  # runs of each rate
BLOCK = 2**18  # runs that are kept, or lost, together
MOST = 1_000_000  # runs of a cell
LEAST_FLOPS = 2e4  # what a step costs, however small the network
QUANTILES = (1, 10, 50, 90, 99)
BINS = 48  # a decade


@dataclass(frozen=True)
class Cell:
    """A setting of barak2022 on an (n, k) parity with a batch size."""

    setting: str
    n: int
    k: int
    batch: int

    def setups(self) -> list[Setup]:
        """One for each rate."""
        problem = Parity(self.n, self.k)
        return [Setup(problem, settings.barak2022(self.setting, self.k, lr, self.batch), PROTOCOL)
                for lr in figure7.grid(self.setting)]


@dataclass(frozen=True)
class Share:
    """What a cell is to get: so many runs of the Setup with its fastest rate."""

    cell: Cell
    setup: Setup
    runs: int

    def tasks(self, seed: int) -> Iterator[CountTask]:
        for first in range(0, self.runs, BLOCK):
            yield CountTask(self.setup, seed, first, min(BLOCK, self.runs - first))


def cells(
    names: Iterable[str] = SETTINGS,
    sizes: Iterable[int] = SIZES,
    degrees: Iterable[int] = figure7.DEGREES,
    batches: Iterable[int] = figure7.BATCHES,
) -> list[Cell]:
    """The cells of a table, each once.

    >>> len(cells()), len(cells(["i", "i"], [10], [2], [32]))
    (765, 1)
    """
    return list(dict.fromkeys(Cell(*values) for values in itertools.product(names, sizes, degrees, batches)))


def plan(
    chosen: Sequence[Cell],
    runs: int,
    seed: int = 0,
    store: Store | None = None,
    progress: bool | None = None,
) -> list[Share]:
    """The fastest rate of each cell, by a race, then ``runs`` in all, so that all cells take about the same work."""
    require(runs >= PILOT * len(chosen), f"{len(chosen)} cells need at least {PILOT * len(chosen)} runs, not {runs}")
    best: list[Entry] = []
    with Bar("fastest rates", len(chosen), progress) as bar:
        for cell in chosen:
            bar.show(len(best), f"({cell.setting}) n={cell.n} k={cell.k} B={cell.batch}")
            winner = race(cell.setups(), 10, PILOT, seed=seed, store=store, progress=False).best
            best.append(extend(winner, PROTOCOL.max_steps, store=store, progress=False))
    given = allot([run_cost(entry) for entry in best], runs)
    return [Share(cell, entry.setup, count) for cell, entry, count in zip(chosen, best, given, strict=True)]


def run_cost(entry: Entry) -> float:
    """FLOPs of a run, on average."""
    return float(np.mean(entry.records.steps)) * max(step_flops(entry.setup), LEAST_FLOPS)


def allot(costs: Sequence[float], runs: int) -> list[int]:
    """``runs`` in all, in inverse proportion to the costs; at least a hundredth of an equal share, as far as 1,000.

    >>> allot([1.0, 3.0], 400), sum(allot([1.0, 1e9, 2.0], 2_000_000))
    ([300, 100], 2000000)
    """
    inverse = 1 / np.asarray(costs)
    runs = min(runs, MOST * len(costs))
    least = min(max(runs // (100 * len(costs)), PILOT), 1000)
    low, high = 0.0, MOST / float(inverse.min())
    for _ in range(200):  # the sum grows with the factor
        middle = (low + high) / 2
        low, high = (middle, high) if np.clip(middle * inverse, least, MOST).sum() < runs else (low, middle)
    given = np.clip(high * inverse, least, MOST).round().astype(int)
    free = int(np.argmax(np.where(given < MOST, given, 0)))
    given[free] += runs - given.sum()
    return given.tolist()


def save_plan(shares: Sequence[Share], seed: int, directory: Path) -> None:
    rows = [asdict(share.cell) | {"setup": share.setup.to_json(), "runs": share.runs} for share in shares]
    save_document(directory / "plan.json", {"format": FORMAT, "seed": seed, "cells": rows})


def load_plan(directory: Path) -> tuple[list[Share], int]:
    """The shares and the seed; InvalidInput where there is no plan or none that can be read."""
    path = directory / "plan.json"
    try:
        document = load_document(path)
        require(document["format"] == FORMAT, f"not of format {FORMAT}")
        shares = [Share(Cell(row["setting"], row["n"], row["k"], row["batch"]), Setup.from_json(row["setup"]),
                        int(row["runs"])) for row in document["cells"]]
        return shares, int(document["seed"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidInput(f"{path} is not the plan of a campaign: {error}") from error


def missing(shares: Sequence[Share], seed: int, directory: Path) -> list[CountTask]:
    """The blocks that are not there, those of large networks first."""
    tasks = [task for share in shares for task in share.tasks(seed)
             if recall(task.path(directory), Counted.load) is None]
    return sorted(tasks, key=lambda task: -step_flops(task.setup))


# --- what came of it ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Campaign:
    """The counts of each cell, as far as they are there."""

    shares: Sequence[Share]
    counts: Sequence[Counts]
    engines: Sequence[str]
    seconds: float
    """Wall time."""

    @classmethod
    def read(cls, directory: Path) -> Campaign:
        shares, seed = load_plan(directory)
        paths = [[task.path(directory) for task in share.tasks(seed)] for share in shares]
        found = [[recall(path, Counted.load) for path in blocks] for blocks in paths]
        done = [[block for block in blocks if block is not None] for blocks in found]
        together = [Counts.sum(block.counts for block in blocks) for blocks in done]
        names = [" ".join(sorted({block.engine for block in blocks})) for blocks in done]
        return cls(shares, together, names, wall_seconds([block for blocks in done for block in blocks]))

    @property
    def runs(self) -> int:
        return sum(counts.runs for counts in self.counts)

    @property
    def model_steps(self) -> int:
        return sum(counts.steps for counts in self.counts)

    @property
    def flops(self) -> float:
        return sum(counts.steps * step_flops(share.setup)
                   for share, counts in zip(self.shares, self.counts, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """What it took, as plain JSON values."""
        return {
            "cells": len(self.shares), "runs": self.runs, "planned_runs": sum(share.runs for share in self.shares),
            "solved": int(sum(counts.solved.sum() for counts in self.counts)), "model_steps": self.model_steps,
            "flops": self.flops, "seconds": self.seconds,
            "runs_per_second": self.runs / self.seconds if self.seconds else None,
            "engines": sorted(set(self.engines) - {""}),
        }

    def cells(self) -> pl.DataFrame:
        """A row for each cell: its runs, and percentiles of t_c with 95 % intervals (infinite: not reached)."""
        return pl.DataFrame([_cell_row(*each) for each in zip(self.shares, self.counts, self.engines, strict=True)])

    def times(self) -> pl.DataFrame:
        """Histograms of t_c: in each bin (after, until] the runs solved, and the share solved by its end."""
        parts = [asdict(share.cell) | row for share, counts in zip(self.shares, self.counts, strict=True)
                 for row in _histogram(counts)]
        return pl.DataFrame(parts).with_columns(pl.col("share", "low", "high").cast(pl.Float32))

    def write(self, directory: Path) -> list[Path]:
        """Both tables as Parquet."""
        files = {"campaign.parquet": self.cells(), "campaign_times.parquet": self.times()}
        for name, table in files.items():
            buffer = io.BytesIO()
            table.write_parquet(buffer, compression="zstd", compression_level=19)
            write_atomically(directory / name, buffer.getvalue())
        return [directory / name for name in files]


def _cell_row(share: Share, counts: Counts, engine: str) -> dict[str, Any]:
    times, runs = counts.times(), counts.runs
    solved = int(counts.solved.sum())
    low, high = share_interval(solved, runs)
    row = asdict(share.cell) | {
        "lr": share.setup.learner.optimiser.lr, "runs": runs, "solved": solved, "censored": counts.censored,
        "diverged": counts.diverged, "solved_low": low, "solved_high": high,
    }
    for q in QUANTILES if runs else ():
        ends = percentile_interval_of(times, runs, q, 0.95)
        row |= {f"p{q}": percentile_of(times, runs, q), f"p{q}_low": ends[0], f"p{q}_high": ends[1]}
    fastest = int(counts.t_c[0]) if solved else None
    return row | {"fastest": fastest, "model_steps": counts.steps, "engine": engine}


def edges(every: int, last: int) -> np.ndarray:
    """Ends of bins, multiples of the steps between two checks, BINS a decade or as near as those allow.

    >>> edges(10, 60).tolist()
    [0, 10, 20, 30, 40, 50, 60]
    """
    count = math.ceil(BINS * math.log10(max(last / every, 1))) + 1
    ends = every * np.unique(np.rint(np.geomspace(1, max(last // every, 1), count)).astype(int))
    return np.concatenate([[0], ends])


def _histogram(counts: Counts) -> Iterator[dict[str, Any]]:
    ends = edges(PROTOCOL.eval_every, PROTOCOL.max_steps)
    inside = np.histogram(counts.t_c, ends + 0.5, weights=counts.solved)[0].astype(int)
    by_then = 0
    for after, until, runs in zip(ends, ends[1:], inside, strict=False):
        if runs:
            by_then += int(runs)
            low, high = share_interval(by_then, counts.runs)
            yield {"after": int(after), "until": int(until), "runs": int(runs), "share": by_then / counts.runs,
                   "low": low, "high": high}


FAMILIES = {
    "ReLU networks": ("i", "ii", "iii", "*i"),
    "$z^k$ networks": ("iv", "v", "vi", "*ii"),
    "one waving unit": ("vii", "viii", "ix", "x", "xi", "xii", "xiii", "xiv"),
    "PolyNets": ("xv",),
}


@plots.styled
def luck_plot(cells: pl.DataFrame) -> plots.Figure:
    """How early lucky runs are: the 1st percentile over the median, a point for each cell that has both."""
    figure = plots.blank(2.6)
    axes = figure.add_subplot(xlabel="median steps to convergence", ylabel="1st percentile / median")
    axes.set(xscale="log", yscale="log")
    reached = cells.filter((pl.col("p50") < math.inf) & (pl.col("p50") > 10 * PROTOCOL.eval_every))
    for (name, members), colour, marker in zip(FAMILIES.items(), plots.COLOURS, "osD^", strict=False):
        some = reached.filter(pl.col("setting").is_in(members))
        axes.plot(some["p50"], some["p1"] / some["p50"], marker, color=colour, fillstyle="none", markersize=3,
                  label=name)
    blind = math.log(0.99) / math.log(0.5)
    axes.axhline(blind, color=plots.GREY, linestyle="dotted", label="blind search")
    plots.legend_above(figure, axes)
    return figure


def published() -> tuple[pl.DataFrame, pl.DataFrame]:
    """The tables of the campaign that the package ships: ``Campaign.cells`` and ``Campaign.times``."""
    data = resources.files("barak2022").joinpath("data")
    names = ("campaign.parquet", "campaign_times.parquet")
    cells, times = (pl.read_parquet(io.BytesIO(data.joinpath(name).read_bytes())) for name in names)
    return cells, times
