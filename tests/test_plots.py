"""Figures are written whole, say what they show, and survive samples with nothing in them."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from lengths import long_but
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.text import Text

from paritylab import plots
from paritylab.errors import InvalidInput
from paritylab.storage.records import CENSORED, DIVERGED, SOLVED, Records


def sample(runs: int = 200, mean: float = 300, horizon: int = 1000, seed: int = 0) -> Records:
    times = 10 * np.ceil(np.random.default_rng(seed).geometric(1 / mean, runs) / 10).astype(int)
    status = np.where(times <= horizon, SOLVED, CENSORED)
    solved = status == SOLVED
    return Records(
        np.arange(runs), status, np.where(solved, times, -1), np.minimum(times, horizon), solved, ~solved
    )


def unsolved(status: int, steps: int = 1000) -> Records:
    return Records(range(5), [status] * 5, [-1] * 5, [steps] * 5, [0.5] * 5, [1.0] * 5)


def texts(figure: Figure) -> list[str]:
    figure.draw_without_rendering()
    return [text.get_text() for text in figure.findobj(Text) if text.get_visible() and text.get_text()]


STEPS = np.arange(0, 1000, 10)
FIGURES = {
    "survival": lambda: plots.survival_plot({"width 10": sample(), "width 20": sample(seed=1)}),
    "histogram": lambda: plots.histogram_plot(
        {"width 10": sample(), "width 20": sample(seed=1)}, reference=300
    ),
    "training": lambda: plots.training_curve_plot(STEPS, np.exp(-STEPS), np.tanh(STEPS), 810, "one run"),
}
LABELS = {
    "survival": {"steps", "fraction unsolved", "width 10", "width 20"},
    "histogram": {
        "steps to convergence",
        "fraction of runs",
        "width 10 (4 % unsolved)",
        "geometric, mean 300",
    },
    "training": {"steps", "error", "loss", "$t_c$ = 810", "one run"},
}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_says_what_it_shows_in_type_that_can_be_read(name):
    figure = FIGURES[name]()
    assert LABELS[name] <= set(texts(figure))
    assert figure.get_figwidth() == plots.WIDTHS["single"] == 3.3
    sizes = {text.get_fontsize() for text in figure.findobj(Text) if text.get_visible() and text.get_text()}
    assert min(sizes) >= 7


@pytest.mark.parametrize("name", long_but(FIGURES, "survival", "training"))
def test_a_figure_is_saved_in_three_formats_that_are_the_same_every_time(name, tmp_path):
    first = plots.save(FIGURES[name](), tmp_path / "new" / "figure7.5")
    assert [path.name for path in first] == ["figure7.5.png", "figure7.5.svg", "figure7.5.pdf"]
    for path, magic in zip(first, (b"\x89PNG", b"<?xml", b"%PDF"), strict=True):
        assert path.read_bytes().startswith(magic)
    assert sorted(path.parent for path in first) == [tmp_path / "new"] * 3
    assert len(list((tmp_path / "new").iterdir())) == 3
    for path, again in zip(first, plots.save(FIGURES[name](), tmp_path / "again"), strict=True):
        assert path.read_bytes() == again.read_bytes()


def test_a_save_that_fails_leaves_the_old_figure(tmp_path, monkeypatch):
    figure = FIGURES["training"]()
    before = {path: path.read_bytes() for path in plots.save(figure, tmp_path / "figure")}

    def fail(*_: object) -> None:
        raise OSError("no space")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="no space"):
        plots.save(figure, tmp_path / "figure")
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize(
    "samples",
    [
        {},
        {"a": Records.empty()},
        {"a": unsolved(CENSORED)},
        {"a": unsolved(DIVERGED)},
        {"a": unsolved(CENSORED, steps=0)},
        {"a": sample(), "b": Records.empty(), "c": unsolved(CENSORED)},
        {"a": Records([0], [SOLVED], [0], [0], [1], [0])},
    ],
)
@pytest.mark.parametrize("plot", [plots.survival_plot, plots.histogram_plot])
@pytest.mark.filterwarnings("error")
def test_samples_with_little_or_nothing_in_them_can_be_drawn(samples, plot, tmp_path):
    assert len(plots.save(plot(samples), tmp_path / "figure")) == 3


@pytest.mark.filterwarnings("error")
def test_an_empty_training_curve_can_be_drawn(tmp_path):
    assert len(plots.save(plots.training_curve_plot([], [], []), tmp_path / "figure")) == 3


def test_a_negative_loss_stays_in_view():
    _, below = plots.training_curve_plot([0, 10], [0.0, -1.0], [0.5, 1]).axes
    assert below.get_ylim()[0] <= -1


def test_lines_differ_in_grey_as_well_as_in_colour():
    axes = plots.survival_plot({str(seed): sample(seed=seed) for seed in range(7)}).axes[0]
    curves = [line for line in axes.lines if not line.get_label().startswith("_")]
    assert len({to_hex(line.get_color()) for line in curves}) == 7
    for line, following in pairwise(curves):
        assert (
            line.get_linestyle() != following.get_linestyle() or line._dash_pattern != following._dash_pattern
        )


def test_the_survival_curve_drawn_goes_through_the_true_fractions_and_marks_the_censored():
    records = sample(1000)
    axes = plots.survival_plot({"a": records}).axes[0]
    curve, censored = axes.lines
    for step, fraction in list(zip(*curve.get_data(), strict=True))[1:]:
        assert fraction == pytest.approx(np.mean((records.status != SOLVED) | (records.t_c > step)))
    assert censored.get_xdata().tolist() == [1000]


def test_a_curve_of_very_many_runs_is_drawn_with_few_points():
    times = np.arange(1, 100_001)
    records = Records(times, np.zeros(100_000), times, times, np.ones(100_000), np.zeros(100_000))
    assert len(plots.survival_plot({"a": records}).axes[0].lines[0].get_xdata()) <= 1001


def test_histogram_and_geometric_reference_add_up_to_what_was_solved():
    """Bins hold equally many evaluation steps, so counts follow the law they were drawn from (chi-square)."""
    records = sample(20_000, mean=300, horizon=1000)
    axes = plots.histogram_plot({"a": records}, reference=300).axes[0]
    heights, edges, _ = axes.patches[0].get_data()
    assert heights.sum() == pytest.approx(np.mean(records.status == SOLVED))
    assert len(set(np.diff(edges))) == 1
    expected = axes.lines[0].get_ydata()
    full = edges[1:] < 1000  # the last bin may reach beyond the horizon
    deviation = 20_000 * ((heights - expected)[full] ** 2 / expected[full]).sum()
    assert (
        deviation < 2 * full.sum()
    )  # false-alarm rate below 1e-3 for 30 bins or more, and the seed is fixed


@pytest.mark.parametrize("arguments", [{"bins": 0}, {"reference": 0.5}])
def test_impossible_histograms_are_refused(arguments):
    with pytest.raises(InvalidInput):
        plots.histogram_plot({"a": sample()}, **arguments)


@pytest.mark.long
def test_plots_need_neither_pyplot_nor_a_display():
    code = "import sys; import paritylab.plots; sys.exit('matplotlib.pyplot' in sys.modules)"
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "MPLBACKEND")}
    source = str(Path(plots.__file__).parents[2])
    assert (
        subprocess.run([sys.executable, "-c", code], env=environment | {"PYTHONPATH": source}).returncode == 0
    )


@pytest.mark.filterwarnings("error")
def test_what_was_not_reached_breaks_a_curve_and_points_beyond_the_axis():
    medians, lows, highs = [10, math.inf, 30, math.nan], [5, 8, 20, math.nan], [20, math.inf, math.inf, math.nan]
    axes = plots.scaling_plot({"a": plots.Series([1, 2, 3, 4], medians, lows, highs)}, "x", "y").axes[0]
    np.testing.assert_equal(axes.lines[0].get_ydata(), [10, math.nan, 30, math.nan])
    (arrows,) = (line for line in axes.lines if line.get_marker() == "^")
    assert arrows.get_xdata().tolist() == [2, 3]
    bars = axes.collections[-1]
    assert [segment[0].tolist() for segment in bars.get_segments()] == [[2, 8], [3, 30]]
    assert {segment[1, 1] for segment in bars.get_segments()} == {axes.get_ylim()[1]}


@pytest.mark.parametrize(("label", "columns"), [("k = 2", 3), ("random search, n = 30", 2), ("a" * 50, 1)])
def test_a_legend_has_as_many_columns_as_fit(label, columns):
    figure = plots.scaling_plot({label + " " * i: plots.Series([1, 2], [1, 2]) for i in range(6)}, "x", "y")
    (legend,) = figure.legends
    assert legend._ncols == columns
    figure.draw_without_rendering()
    assert legend.get_window_extent().width <= figure.bbox.width or columns == 1
