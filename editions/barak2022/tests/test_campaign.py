"""Counts, and the campaign that keeps nothing else."""

from __future__ import annotations

import dataclasses
import json
import warnings

import numpy as np
import polars as pl
import pytest
from barak2022 import campaign
from commands import run
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from paritylab import MLP, Learner, Parity, Setup, engines, sweep
from paritylab.cli import main
from paritylab.errors import InvalidInput
from paritylab.running import merging, offload
from paritylab.running.tasks import from_text
from paritylab.statistics import percentile, percentile_interval
from paritylab.statistics.fractions import share_interval
from paritylab.storage.counts import Counted, Counts, CountTask
from paritylab.storage.kept import load_arrays, save_arrays
from paritylab.storage.records import SOLVED, Records

RUNS = st.lists(st.tuples(st.integers(0, 2), st.integers(1, 9)), max_size=30)


def records(runs: list[tuple[int, int]]) -> Records:
    status = np.array([s for s, _ in runs], int)
    steps = np.array([10 * t for _, t in runs], int)
    zeros = np.zeros(len(runs))
    return Records(np.arange(len(runs)), status, np.where(status == SOLVED, steps, -1), steps, zeros, zeros)


def same(left: Counts, right: Counts) -> bool:
    numbers = ("censored", "diverged", "steps", "runs")
    return (np.array_equal(left.t_c, right.t_c) and np.array_equal(left.solved, right.solved)
            and all(getattr(left, name) == getattr(right, name) for name in numbers))


@given(RUNS, RUNS)
def test_counts_of_parts_add_up_to_those_of_the_whole(first, second):
    assert same(Counts.sum([Counts.of(records(first)), Counts.of(records(second))]), Counts.of(records(first + second)))


@given(RUNS.filter(len), st.sampled_from([1, 10, 50, 99]))
def test_percentiles_of_counts_are_those_of_the_records(runs, q):
    whole = records(runs)
    counts = Counts.of(whole)
    assert campaign.percentile_of(counts.times(), counts.runs, q) == percentile(whole.t_c, whole.status, q)
    ends = campaign.percentile_interval_of(counts.times(), counts.runs, q, 0.95)
    assert ends == percentile_interval(whole.t_c, whole.status, q)


@given(st.lists(st.floats(1, 1e12), min_size=1, max_size=20), st.integers(25, 10**6))
def test_all_runs_are_given_out_and_none_gets_too_few(costs, each):
    runs = each * len(costs)
    given_out = campaign.allot(costs, runs)
    assert sum(given_out) == runs
    assert min(given_out) >= 25 or each == 25
    order = np.argsort(costs)
    spread = np.diff(np.array(given_out)[order])
    assert np.all(spread <= len(costs))  # who costs more gets no more, but for what rounding leaves over


@given(RUNS.filter(len))
def test_histograms_hold_every_solved_run_and_end_at_the_solved_share(runs):
    counts = Counts.of(records(runs))
    rows = list(campaign._histogram(counts))
    assert sum(row["runs"] for row in rows) == counts.solved.sum()
    for row in rows:
        assert row["share"] == counts.solved[counts.t_c <= row["until"]].sum() / counts.runs
        assert row["low"] <= row["share"] <= row["high"]
        assert (row["low"], row["high"]) == share_interval(round(row["share"] * counts.runs), counts.runs)


@given(st.integers(0, 500), st.integers(1, 500))
def test_the_interval_of_a_share_is_wilsons(count, total):
    count = min(count, total)
    theirs = stats.binomtest(count, total).proportion_ci(method="wilson")
    assert share_interval(count, total) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_bins_are_at_most_a_check_or_a_twentieth_wide():
    ends = campaign.edges(10, 100_000)
    assert ends[0] == 0
    assert ends[-1] == 100_000
    assert np.all(ends % 10 == 0)
    assert np.all(np.diff(ends)[1:] <= np.maximum(10, 0.055 * ends[1:-1] + 10))


# --- the command --------------------------------------------------------------------------------------------

SMALL = ["barak2022", "campaign", "--settings", "i", "iv", "--n", "10", "--k", "2", "--batch", "32", "--runs", "3000",
         "--json"]


def test_a_campaign_counts_what_a_sweep_records(tmp_path, capsys):
    assert main([*SMALL, "--out", str(tmp_path)]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["cells"] == 2
    assert said["runs"] == said["planned_runs"] == 3000
    shares, seed = campaign.load_plan(tmp_path / "campaign")
    found = campaign.Campaign.read(tmp_path / "campaign")
    for share, counts in zip(shares, found.counts, strict=True):
        assert same(counts, Counts.of(sweep([share.setup], share.runs)[0].records))
    assert seed == 0
    cells = pl.read_parquet(tmp_path / "campaign" / "campaign.parquet")
    assert cells["runs"].sum() == 3000
    assert cells["model_steps"].sum() == said["model_steps"]


@pytest.mark.long
def test_a_campaign_goes_on_where_it_was(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(campaign, "BLOCK", 500)
    assert main([*SMALL, "--out", str(tmp_path)]) == 0
    first = json.loads(capsys.readouterr().out)
    files = sorted((tmp_path / "campaign").glob("counts-*.npz"))
    assert len(files) >= 6
    written = [path.stat().st_mtime_ns for path in files]
    files[2].unlink()
    assert main([*SMALL, "--out", str(tmp_path)]) == 0
    again = json.loads(capsys.readouterr().out)
    assert again["solved"] == first["solved"]
    assert [path.stat().st_mtime_ns == t for path, t in zip(files, written, strict=True)].count(False) == 1


@pytest.mark.long
def test_damaged_counts_are_noted_and_made_again(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(campaign, "BLOCK", 500)
    assert main([*SMALL, "--out", str(tmp_path)]) == 0
    first = json.loads(capsys.readouterr().out)
    files = sorted((tmp_path / "campaign").glob("counts-*.npz"))
    kept = [load_arrays(path) for path in files]
    wounds = (lambda data: data[:40], lambda data: b"", lambda data: data[:90] + b"\xff" + data[91:],
              lambda data: files[-1].read_bytes())
    for path, wound in zip(files, wounds, strict=False):
        path.write_bytes(wound(path.read_bytes()))
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        status, out, err = run(capsys, *SMALL, "--out", str(tmp_path))
    assert status == 0
    assert err.count("paritylab: note: not used: ") == err.count("\n") == 4
    assert all(str(path) in err for path in files[:4])
    again = json.loads(out)
    assert {name: again[name] for name in ("runs", "solved")} == {name: first[name] for name in ("runs", "solved")}
    for path, before in zip(files, kept, strict=True):
        after = load_arrays(path)
        assert all(np.array_equal(after[name], before[name]) for name in before if name not in merging.TIMING)


def test_counts_of_other_runs_are_not_taken(tmp_path):
    task = CountTask(campaign.Cell("i", 10, 2, 32).setups()[0], 0, 0, 50)
    offload.work([task], tmp_path)
    other = dataclasses.replace(task, first=50)
    arrays = load_arrays(task.path(tmp_path))
    save_arrays(other.path(tmp_path), arrays)
    save_arrays(tmp_path / "counts-odd.npz", {"t_c": arrays["t_c"]})
    for path in (other.path(tmp_path), tmp_path / "counts-odd.npz"):
        with pytest.raises(InvalidInput, match="does not hold counts"):
            Counted.load(path)


def test_on_a_gpu_engines_take_turns(tmp_path, monkeypatch):
    setups = [Setup(Parity(6, 2), Learner(MLP(width))) for width in (3, (3, 3), 4, (4, 4))]
    batches = offload.batches_of([CountTask(setup, 0, 0, 5) for setup in setups])
    monkeypatch.setattr(engines, "on_gpu", lambda: True)
    monkeypatch.setattr(engines, "choose", lambda setup, **_: "warps" if setup in setups[::2] else "jax")
    monkeypatch.setattr(offload, "work", lambda batch, *_: 0)
    done = [batch[0].setup.id for batch, _ in offload.done_batches(batches, tmp_path, 1)]
    first, second = ({setup.id for setup in part} for part in (setups[::2], setups[1::2]))
    assert (set(done[:2]), set(done[2:])) == (first, second)


def test_exported_work_done_elsewhere_completes_the_campaign(tmp_path, capsys, monkeypatch):
    work, there, out = tmp_path / "work.json", tmp_path / "there", tmp_path / "out"
    assert main([*SMALL, "--out", str(out), "--export", str(work)]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == 3000
    tasks = from_text(work.read_text())
    assert all(isinstance(task, CountTask) for task in tasks)
    monkeypatch.setattr(engines, "on_gpu", lambda: True)  # several at a time, in threads
    assert sum(left for _, left in offload.done_batches(offload.batches_of(tasks), there, 2)) == 0
    assert main(["store", "merge", str(there), "--out", str(out), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["counts"] == len(tasks)
    again = tmp_path / "again"
    assert sum(left for _, left in offload.done_batches(offload.batches_of(tasks), again, 2)) == 0
    assert main(["store", "merge", str(again), "--out", str(out), "--json"]) == 0  # known by now, whenever it was made
    assert json.loads(capsys.readouterr().out)["counts"] == 0
    monkeypatch.setattr(offload, "work", None)  # nothing is left to train
    assert main([*SMALL, "--out", str(out)]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == 3000


def test_at_a_deadline_unfinished_blocks_are_left(tmp_path):
    task = CountTask(campaign.Cell("i", 10, 2, 32).setups()[0], 0, 0, 50)
    assert offload.work([task], tmp_path, over=lambda: True) == 1
    assert not list(tmp_path.iterdir())
    assert offload.work([task], tmp_path) == 0
    assert Counted.load(tmp_path / f"{task.name}.npz").task == task


@pytest.mark.parametrize(
    ("options", "why"),
    [(["--settings", "*iii"], "setting"), (["--runs", "10"], "at least"), (["--k", "11", "--n", "10"], "--k")],
)
def test_what_is_wrong_is_said_in_a_line(options, why, tmp_path, capsys):
    assert main(["barak2022", "campaign", "--n", "10", "--out", str(tmp_path), *options]) == 2
    said = capsys.readouterr().err
    assert why in said
    assert len(said.splitlines()) == 1


def test_damaged_counts_are_refused(tmp_path):
    (tmp_path / "counts-x.npz").write_bytes(b"no")
    with pytest.raises(InvalidInput, match="is damaged"):
        Counted.load(tmp_path / "counts-x.npz")
    (tmp_path / "plan.json").write_text("{}")
    with pytest.raises(InvalidInput, match="not the plan of a campaign"):
        campaign.load_plan(tmp_path)


# --- what is shipped ----------------------------------------------------------------------------------------


def test_the_published_tables_agree_with_each_other(capsys):
    cells, times = campaign.published()
    assert len(cells) == 765
    assert cells["runs"].sum() == 100_000_000
    assert (cells["solved"] + cells["censored"] + cells["diverged"] == cells["runs"]).all()
    keys = ["setting", "n", "k", "batch"]
    some = cells.filter(pl.col("solved") > 0).join(times.group_by(keys).agg(pl.col("runs").sum().alias("sum")), keys)
    assert len(some) == cells.filter(pl.col("solved") > 0).height
    assert (some["sum"] == some["solved"]).all()
    by_median = times.join(cells.select(*keys, "p50"), keys).filter(pl.col("until") < pl.col("p50"))
    assert (by_median["share"] <= 0.5).all()
    assert main(["barak2022", "campaign", "--published"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 766
    assert main(["barak2022", "campaign", "--published", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)) == 765
