"""A spot of barak2022's Figure 7 at reduced size, measured beside published."""

import numpy as np
import pytest

import paritylab as pl
from paritylab import figure7
from paritylab.engines import lanes
from paritylab.published import barak2022_fig7


def test_the_published_table_has_265_numbers_and_all_of_them_are_even():
    values = [cell.p10 for cell in barak2022_fig7().values() if cell.p10 is not None]
    assert len(values) == 265
    assert all(value % 2 == 0 for value in values)  # interpolated percentiles of multiples of 10 over 25 seeds


@pytest.mark.skipif(lanes.kernel() is None, reason="the native kernel was not built")
def test_a_spot_of_figure_7_agrees_with_the_published_percentiles():
    # Eight cells with 100 runs each; 0.10 is the bar of the whole table. The seed is fixed, so only a change in the
    # arithmetic can raise a false alarm.
    cells = [*figure7.cells(["i", "ii", "xv"], [3], [32, 128]), *figure7.cells(["iv"], [2, 3], [32])]
    measured = [figure7.measure_cell(cell, runs=100, grid=(1.0, 0.1)[cell.setting == "iv" :]) for cell in cells]
    assert all(m.best.summary.solved == 100 for m in measured)
    assert figure7.rms_log_ratio(measured) <= 0.10


def test_a_rate_that_cannot_win_does_not_replace_the_best():
    cell = barak2022_fig7()["xv", 2, 128]
    best = figure7.measure_cell(cell, runs=20, grid=(1.0, 0.01), engine="auto")
    assert best.lr == 1.0
    assert best.best.setup.protocol == pl.Protocol(eval_size=128)


def test_a_later_rate_is_trained_as_long_as_its_interpolated_percentile_can_win(monkeypatch):
    # 25 runs: the percentile is 0.6 t(3) + 0.4 t(4), so with a best of 100 a rate can win while t(4) < 250
    limits = []

    def trained(setups, *_):
        limits.append(setups[0].protocol.max_steps)
        t_c = np.full(25, 100)
        return [figure7.Result(setups[0], "jax", 0, pl.Records(np.arange(25), 0 * t_c, t_c, t_c, t_c, t_c), 0.0)]

    monkeypatch.setattr(figure7, "sweep", trained)
    figure7.measure_cell(barak2022_fig7()["i", 3, 32], runs=25, grid=(1.0, 0.1))
    assert limits == [100_000, 250]
