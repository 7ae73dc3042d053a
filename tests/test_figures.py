"""Figures by the names of parameters: they show what the statistics say, and nothing else."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import matplotlib as mpl
import numpy as np
import polars as pl
import pytest
from drawn_records import drawn, kept
from lengths import long_but
from matplotlib.figure import Figure
from matplotlib.text import Text

import paritylab
from paritylab import plots, statistics
from paritylab.engines.curves import Curves
from paritylab.errors import InvalidInput
from paritylab.plots.bands import quantiles
from paritylab.statistics.results import samples
from paritylab.storage.gathered import Gathered, to_frame
from paritylab.storage.records import CENSORED, SOLVED, Records

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def out(tmp_path_factory) -> Path:
    return kept(tmp_path_factory.mktemp("out"))


def found(out: Path, where: str = "") -> Gathered:
    return samples(paritylab.Store(out / "store"), where)


def texts(figure: Figure) -> list[str]:
    figure.draw_without_rendering()
    return [text.get_text() for text in figure.findobj(Text) if text.get_visible() and text.get_text()]


def curves(diverged: bool = False) -> Curves:
    accuracy = np.linspace(0.5, 1, 5) ** np.arange(1, 12)[:, None]
    if diverged:
        accuracy[0, 2:] = np.nan
    return Curves(np.arange(5), accuracy, 1 - accuracy)


FIGURES = {
    "survival": lambda out: plots.survival(found(out, "k == 3 and lr == 0.1"), by="n", counts=True),
    "panels": lambda out: plots.survival(found(out), by="n", facet="k", pool=True),
    "scaling": lambda out: plots.scaling(found(out, "lr == 0.1"), "n", by="k"),
    "laws in panels": lambda out: plots.scaling(found(out, "lr == 0.1"), "n", "p90", facet="k"),
    "heat": lambda out: plots.heat(found(out, "k == 3"), "lr", "n"),
    "intervals": lambda out: plots.heat(found(out, "k == 3"), "lr", "n", "p90", show="interval", column="double"),
    "compare": lambda out: plots.compare(found(out, "k == 3"), "lr"),
    "lines": lambda out: plots.lines(found(out, "k == 3"), "n", "solved_fraction", by="lr"),
    "curves": lambda _: plots.curves({"a": curves(), "b_1 < c": curves(True)}),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("font", ["cm", pytest.param("times", marks=pytest.mark.long)])
@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_fits_its_column_in_type_that_can_be_read_and_has_every_sign(out, name, font, caplog):
    with plots.typeface(font):
        figure = FIGURES[name](out)
    assert figure.get_figwidth() == plots.WIDTHS["double" if "panels" in name or name == "intervals" else "single"]
    assert texts(figure)
    sizes = {text.get_fontsize() for text in figure.findobj(Text) if text.get_visible() and text.get_text()}
    assert min(sizes) >= 7
    families = {text.get_fontfamily()[0] for text in figure.findobj(Text)}
    assert families == {"Paritylab Roman" if font == "cm" else "STIXGeneral"}
    assert plots.data(figure).height > 0
    assert caplog.text == ""  # matplotlib says so where a sign is missing


@pytest.mark.parametrize("name", long_but(["heat", "scaling", "survival", "compare"], "heat"))
def test_the_same_figure_gives_the_same_files(out, name, tmp_path):
    first, second = (plots.save(FIGURES[name](out), tmp_path / where / "f", {"command": "x"}) for where in "ab")
    assert [path.suffix for path in first] == [".png", ".svg", ".pdf", ".csv", ".json"]
    for path, again in zip(first, second, strict=True):
        assert path.read_bytes() == again.read_bytes(), path.suffix


def test_a_name_with_an_ending_is_one_file(tmp_path):
    figure = plots.survival_plot({"a": drawn(10, 2, 0.1)})
    assert [path.name for path in plots.save(figure, tmp_path / "f.svg")] == ["f.svg"]
    assert [path.name for path in plots.save(figure, tmp_path / "f7.5")] == ["f7.5.png", "f7.5.svg", "f7.5.pdf"]


# --- what they show is what the statistics say -----------------------------------------------------------------------


def test_a_survival_curve_has_the_numbers_of_the_statistics(out):
    table = plots.data(FIGURES["survival"](out))
    for n in (10, 20, 40):
        rows, records = table.filter(n=n), drawn(n, 3, 0.1)
        curve = statistics.survival(records)
        for column, values in (("step", curve.steps), ("unsolved", curve.unsolved), ("low", curve.low),
                               ("high", curve.high), ("given_up", curve.censored)):
            assert np.array_equal(rows[column].to_numpy(), values), column
        assert (rows["low"] <= rows["unsolved"]).all()
        assert (rows["unsolved"] <= rows["high"]).all()
        ends = np.where(records.status == SOLVED, records.t_c, records.steps)
        assert rows["still_training"].to_list() == [(ends >= step).sum() for step in curve.steps]


def test_a_law_has_the_numbers_of_the_fit_and_lies_in_its_band(out):
    figure = FIGURES["scaling"](out)
    table = plots.data(figure)
    for k in (2, 3):
        rows, runs = table.filter(k=k), [drawn(n, k, 0.1) for n in (10, 20, 40)]
        medians = [statistics.summary(records) for records in runs]
        assert rows["median"].to_list() == [each.median for each in medians]
        assert rows.select("median_low", "median_high").rows() == [each.median_interval for each in medians]
        reached = np.isfinite(rows["median"].to_numpy())
        if reached.sum() < 3:
            assert rows["law"].null_count() == 3
            continue
        fit = statistics.power_law_fit_runs([10, 20, 40], runs)
        assert rows["exponent"].to_list() == [fit.power.exponent] * 3
        assert rows.select("exponent_low", "exponent_high").row(0) == fit.power.exponent_interval
        assert np.allclose(rows["law"], fit.power([10, 20, 40]))
        assert ((rows["law_low"] <= rows["law"]) & (rows["law"] <= rows["law_high"])).all()
        low, high = fit.power.exponent_interval
        assert any(f"{fit.power.exponent:.2f}}}$ [{low:.2f}, {high:.2f}]" in text for text in texts(figure))
    assert table.filter(k=2)["exponent"][0] == pytest.approx(1, abs=0.3)


def test_the_band_of_a_law_holds_the_true_one_as_often_as_it_says():
    """200 laws of three points: 95 % of bands at the middle should hold it; fewer than 176 do in 1 of 10^4 trials."""
    held = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        runs = []
        for n in (1, 2, 4):
            times = np.ceil(1e6 * n * rng.exponential(size=80)).astype(int)
            runs.append(Records(range(80), [0] * 80, times, times, [1] * 80, [0] * 80))
        (low,), (high,) = statistics.power_law_band([1, 2, 4], runs, [2], resamples=300, seed=seed)
        held += low <= 2e6 * np.log(2) <= high
    assert held >= 176


def test_what_was_not_reached_is_not_fitted_and_the_legend_says_so():
    times = [np.full(50, 10 * n) for n in (1, 2, 3)] + [np.full(50, -1)]
    parts = [Records(range(50), np.where(t < 0, CENSORED, SOLVED), t, np.where(t < 0, 100, t), [1] * 50, [0] * 50)
             for t in times]
    series = pl.DataFrame({"setup_id": list("abcd"), "n": [1, 2, 3, 4], "engine": "jax", "seed": 0, "count": 50})
    figure = plots.scaling(Gathered(series, to_frame(Records.concatenate(parts))), "n")
    assert any("(3 of 4 points)" in text for text in texts(figure))
    assert plots.data(figure)["exponent"].to_list() == pytest.approx([1.0] * 4)
    (arrow,) = (line for line in figure.axes[0].lines if line.get_marker() == "^")
    assert arrow.get_xdata().tolist() == [4]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("kind", [plots.scaling, plots.lines])
def test_where_nothing_was_reached_a_figure_says_so(kind, tmp_path):
    never = Records(range(4), [CENSORED] * 4, [-1] * 4, [100] * 4, [0] * 4, [1] * 4)
    series = pl.DataFrame({"setup_id": ["a", "b"], "n": [1, 2], "engine": "jax", "seed": 0, "count": 4})
    figure = kind(Gathered(series, to_frame(Records.concatenate([never, never]))), "n")
    assert "not reached" in texts(figure)
    assert plots.data(figure)["median"].to_list() == [np.inf] * 2


def test_a_map_has_the_numbers_of_summaries_and_marks_what_was_not_reached(out):
    figure = plots.heat(found(out, "k == 3"), "lr", "n", "p90")
    table = plots.data(figure)
    unreached = 0
    for row in table.iter_rows(named=True):
        told = statistics.summary(drawn(row["n"], 3, row["lr"]))
        assert (row["p90"], (row["p90_low"], row["p90_high"])) == (told.p90, told.p90_interval)
        unreached += np.isinf(row["p90"])
    hatched = [patch for patch in figure.axes[0].patches if patch.get_hatch()]
    assert len(hatched) == unreached > 0
    assert "not reached" in texts(figure)


def test_an_open_interval_is_marked_and_a_missing_cell_is_empty():
    figure = plots.heat_plot([[10.0, np.nan]], [1, 2], [3], "x", "y", "z", [[5.0, np.nan]], [[np.inf, np.nan]])
    assert {"10", "interval without upper end"} <= set(texts(figure))
    assert "not reached" not in texts(figure)
    with pytest.raises(InvalidInput, match="no room for intervals"):
        plots.heat_plot(np.ones((1, 9)), range(9), [1], "x", "y", "z", show="interval")


def test_a_comparison_pairs_runs_by_their_numbers(out):
    figure = plots.compare(found(out, "k == 3 and n == 20"), "lr")
    told = statistics.paired(drawn(20, 3, 0.1), drawn(20, 3, 1.0))
    low, high = told.ratio_interval
    assert f"[{low:.3g}, {high:.3g}], $p < 0.001$, 60 pairs" in figure.axes[0].get_title()
    table = plots.data(figure)
    assert table["run"].to_list() == list(range(60))
    assert table["t_c_1"].fill_null(-1).to_list() == drawn(20, 3, 0.1).t_c.tolist()
    assert table["t_c_2"].fill_null(-1).to_list() == drawn(20, 3, 1.0).t_c.tolist()
    assert plots.data(plots.compare(found(out), "lr"))["run"].len() == 6 * 60  # within each n and k
    with pytest.raises(InvalidInput, match="two values of n are needed, not 3"):
        plots.compare(found(out), "n")


def test_quantiles_of_curves_are_percentiles_and_a_diverged_run_is_the_worst():
    values = np.random.default_rng(0).random((11, 7))
    assert np.allclose(quantiles(values, [10, 50, 90], True), np.percentile(values, [10, 50, 90], axis=0))
    assert np.allclose(quantiles(values, [10, 50, 90], False), np.percentile(values, [10, 50, 90], axis=0))
    values[3, 4:] = np.nan
    worst = np.where(np.isnan(values), -9, values)
    assert np.allclose(quantiles(values, [50, 90], True), np.percentile(worst, [50, 90], axis=0))
    worst = np.where(np.isnan(values), 9, values)
    assert np.allclose(quantiles(values, [10, 50], False), np.percentile(worst, [10, 50], axis=0))
    table = plots.data(plots.curves(curves(diverged=True)))
    assert table["diverged"].to_list() == [0, 0, 1, 1, 1]
    for low, high in (("p10", "p25"), ("p25", "median"), ("median", "p75"), ("p75", "p90")):
        assert (table[low] <= table[high]).all()


def test_runs_of_different_setups_are_never_one_sample_unasked(out):
    for draw in (lambda **more: plots.survival(found(out, "k == 3"), by="n", **more),
                 lambda **more: plots.lines(found(out, "k == 3"), "n", **more),
                 lambda **more: plots.scaling(found(out, "k == 3"), "n", **more)):
        with pytest.raises(InvalidInput, match="several Setups have one n and differ in lr: "):
            draw()
        assert draw(pool=True)
    table = plots.data(plots.lines(found(out, "k == 3"), "n", pool=True))
    both = statistics.summary(Records.concatenate([drawn(20, 3, 0.1), drawn(20, 3, 1.0)]))
    assert table.filter(n=20)["median"].item() == both.median


# --- in notebooks, and with others' axes ------------------------------------------------------------------------------


def test_a_figure_goes_into_axes_of_the_caller_and_in_his_style(out):
    theirs = Figure()
    left, right = theirs.subplots(1, 2)
    figure = plots.survival(found(out, "k == 3 and lr == 0.1"), by="n", ax=left)
    assert figure is theirs
    plots.heat(found(out, "k == 3"), "lr", "n", ax=right)
    assert left.get_xlabel() == "steps"
    assert left.get_legend().get_texts()[0].get_fontfamily() == mpl.rcParams["font.family"]
    assert plots.data(theirs).height > 12
    ours = plots.blank(2)
    axes = plots.lines(found(out, "k == 3"), "n", by="lr", ax=ours.add_subplot()).axes[0]
    assert axes.get_legend().get_texts()[0].get_fontfamily()[0] == "Paritylab Roman"
    with pytest.raises(InvalidInput, match="either facet or ax"):
        plots.survival(found(out), by="n", facet="k", pool=True, ax=left)


def test_a_figure_shows_itself_once_and_leaves_the_settings_alone(out):
    before = dict(mpl.rcParams)
    figure = FIGURES["scaling"](out)
    assert getattr(figure, "_repr_png_")().startswith(b"\x89PNG")  # noqa: B009
    assert dict(mpl.rcParams) == before
    assert "matplotlib.pyplot" not in sys.modules or figure not in map(
        sys.modules["matplotlib.pyplot"].figure, sys.modules["matplotlib.pyplot"].get_fignums())


# --- files ------------------------------------------------------------------------------------------------------------


def test_text_stays_text_and_its_glyphs_are_in_the_file(out, tmp_path):
    _, svg, pdf, csv = plots.save(FIGURES["scaling"](out), tmp_path / "f")
    text = svg.read_text()
    assert ">median steps</text>" in text
    families = set(re.findall(r"font-family:'([^']*)';src:url\(data:font/woff;base64,", text))
    assert {"Paritylab Roman", "cmr10", "cmmi10", "cmsy10"} <= families
    for name in re.findall(r"'([^']+)'", " ".join(re.findall(r"<tspan[^>]*style=\"([^\"]*)", text))):
        assert name in families
    assert b"/FontFile2" in pdf.read_bytes()
    assert b"/Type3" not in pdf.read_bytes()
    assert pl.read_csv(csv)["n"].unique().sort().to_list() == [10, 20, 40]


def test_the_font_has_every_sign_of_a_text_in_its_place():
    """cmr10 has other glyphs where a text says < > _ { | } and a backslash."""
    from fontTools.ttLib import TTFont

    with TTFont(Path(plots.__file__).parent / "fonts" / "roman.ttf") as font:
        glyphs = font.getBestCmap()
        assert {chr(code) for code in glyphs} >= {chr(code) for code in range(0x20, 0x7F)}
        assert (glyphs[ord("A")], glyphs[ord("%")], glyphs[ord("–")]) == ("A", "percent", "endash")  # noqa: RUF001
        wrong = ("exclamdown", "questiondown", "dotaccent", "emdash", "endash", "hungarumlaut", "quotedblleft")
        assert not {glyphs[ord(sign)] for sign in "<>_{|}\\"} & set(wrong)


def test_the_font_is_what_its_tool_makes(tmp_path, monkeypatch):
    """With the versions that the tool names; others may write the same glyphs in other bytes."""
    import fontTools

    monkeypatch.syspath_prepend(ROOT / "tools")
    import text_font

    shipped = text_font.FONT.read_bytes()
    if (mpl.__version__, fontTools.version) != ("3.11.2", "4.68.0"):
        pytest.skip("made with matplotlib 3.11.2 and fonttools 4.68.0")
    monkeypatch.setattr(text_font, "FONT", tmp_path / "roman.ttf")
    text_font.main()
    assert (tmp_path / "roman.ttf").read_bytes() == shipped
