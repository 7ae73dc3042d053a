"""One panel, or several that differ in a parameter."""

# matplotlib leaves its keyword arguments untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from paritylab.errors import require, unknown
from paritylab.plots import words
from paritylab.plots.series import draw_beyond
from paritylab.plots.style import blank, canvas, explain, legend_above
from paritylab.statistics.groups import chosen
from paritylab.storage.gathered import Gathered

MOST_PANELS = 12
ACROSS = 4
"""Panels beside each other."""


def composed(
    found: Any,
    facet: str | None,
    ax: Axes | None,
    column: str | None,
    height: float,
    draw: Callable[[Axes, Any, dict[str, Any]], Any],
    title: str | None,
    named: bool,
    shared: bool = True,
) -> Figure:
    """One panel, or one for each value of a parameter.

    Args:
        found: what is drawn, samples or a table.
        facet: the parameter that panels differ in.
        ax: axes to draw in.
        column: how wide a new figure is; that of one panel is single, and of several double, unless said.
        height: of a figure with one panel.
        draw: draws one panel, without a legend; returns what goes beyond its axis.
        title: above the figure.
        named: whether there is a legend.
        shared: whether all panels have the same one.
    """
    if facet is None:
        figure, axes = canvas(ax, height, column or "single")
        beyond = draw(axes, found, {})
        axes.set_title(title or "")
        if beyond is not None:
            draw_beyond(axes, beyond)
        if named:
            explain(figure, axes, ax is None)
        return figure
    require(ax is None, "panels need a figure of their own: either facet or ax")
    parts = _parts(found, facet)
    require(0 < len(parts) <= MOST_PANELS, f"a figure has 1 to {MOST_PANELS} panels; {facet} has {len(parts)} values")
    most = (ACROSS if shared else ACROSS - 2) if column != "single" else 2
    rows = math.ceil(len(parts) / most)
    across = math.ceil(len(parts) / rows)
    figure = blank(0.3 + rows * height * 0.85, column or "double")
    grid = figure.subplots(rows, across, sharex=True, sharey=True, squeeze=False).ravel()
    drawn: list[tuple[Axes, Any, tuple[float, float]]] = []
    for axes, (value, part) in zip(grid, parts.items(), strict=False):
        drawn.append((axes, draw(axes, part, {facet: value}), axes.get_xlim()))
        axes.set_title(words.curve(facet, value))
    for axes in grid[len(parts):]:
        axes.remove()
    for place, (axes, beyond, _) in enumerate(drawn):
        if beyond is not None:
            draw_beyond(axes, beyond)
        else:
            axes.set_xlim(min(left for _, _, (left, _) in drawn), max(right for _, _, (_, right) in drawn))
        lowest = place + across >= len(parts)
        axes.xaxis.label.set_visible(lowest)
        axes.tick_params(labelbottom=lowest)
        axes.yaxis.label.set_visible(place % across == 0)
        if named and not shared:
            axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1), title=axes.get_title(), title_fontsize=8)
            axes.set_title("")
    if named and shared:
        legend_above(figure, *(axes for axes, _, _ in drawn), most=6)
    if title:
        figure.suptitle(title, fontsize=8)
    return figure


def _parts(found: Any, facet: str) -> dict[Any, Any]:
    """What goes into each panel."""
    table: pl.DataFrame = found.series if isinstance(found, Gathered) else found
    if facet not in table.columns:
        raise unknown("parameter", facet, table.columns)
    values = table[facet].unique().sort(nulls_last=True).to_list()
    masks = {value: table[facet].eq_missing(value).to_numpy() for value in values}
    return {value: chosen(found, mask) if isinstance(found, Gathered) else found.filter(mask)
            for value, mask in masks.items()}
