"""Measured beside published: a figure that says what it shows, and survives rows with nothing in them."""

from __future__ import annotations

import math

import pytest
from barak2022 import comparison_plots
from matplotlib.text import Text

from paritylab import plots


def made():
    return comparison_plots.comparison_plot(
        [("n=30", 330, (310, 340), 320), comparison_plots.Compared("n=50", None, (900, math.inf), None)])


def test_it_says_what_it_shows_in_type_that_can_be_read():
    figure = made()
    figure.draw_without_rendering()
    texts = [text for text in figure.findobj(Text) if text.get_visible() and text.get_text()]
    assert {"steps", "n=30", "n=50", "measured", "published", "not reached"} <= {text.get_text() for text in texts}
    assert figure.get_figwidth() == plots.WIDTHS["single"]
    assert min(text.get_fontsize() for text in texts) >= 7


def test_it_is_the_same_every_time(tmp_path):
    for first, again in zip(plots.save(made(), tmp_path / "a"), plots.save(made(), tmp_path / "b"), strict=True):
        assert first.read_bytes() == again.read_bytes()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("rows", [[], [("a", None, None, None)], [("a", math.inf, (0.0, math.inf), 5.0)]])
def test_rows_with_little_or_nothing_in_them_can_be_drawn(rows, tmp_path):
    assert len(plots.save(comparison_plots.comparison_plot(rows), tmp_path / "figure")) == 3
