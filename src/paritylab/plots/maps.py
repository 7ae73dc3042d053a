"""A statistic over two parameters, as a map of cells."""

# matplotlib leaves its keyword arguments untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch, Rectangle
from numpy.typing import ArrayLike

from paritylab.aliases import Floats
from paritylab.errors import require
from paritylab.palette import GREY
from paritylab.plots.style import canvas, say, short, spread_out, styled

COLOURS = "cividis"
"""From dark to light, alike to every eye, and in grey."""
SHOWN = ("value", "interval", "nothing")
HATCH = "////"
UNREACHED: dict[str, Any] = {"facecolor": "#eeeeee", "edgecolor": GREY, "linewidth": 0}
WIDE = 0.28, 0.6
"""Inches that a value, and an interval, take in a cell."""


@styled
def heat_plot(
    values: ArrayLike,
    xs: Sequence[Any],
    ys: Sequence[Any],
    xlabel: str,
    ylabel: str,
    label: str,
    low: ArrayLike | None = None,
    high: ArrayLike | None = None,
    *,
    show: str = "value",
    log: bool | None = None,
    ax: Axes | None = None,
    column: str = "single",
) -> Figure:
    """Values over two parameters, a cell for each pair, with their intervals where they are known.

    A hatched cell is infinite: the statistic was not reached. A cell with a rim of its own and a triangle has an
    interval without an upper end. An empty cell is nan: nothing was measured.

    Args:
        values: (rows, columns).
        xs: what the columns are.
        ys: what the rows are, from below.
        xlabel: of the columns.
        ylabel: of the rows.
        label: of the values, beside their colours.
        low: lower ends of intervals.
        high: upper ends.
        show: ``"value"`` writes values into the cells where they fit, ``"interval"`` the ends below them, too.
        log: whether colours are logarithmic; unless said, where values above 0 span more than a factor of three.
        ax: axes to draw in, instead of those of a new figure.
        column: how wide a new figure is, ``"single"`` or ``"double"``.

    >>> heat_plot([[1.0, float("inf")]], [20, 30], [3], "n", "k", "median").axes[0].get_xlabel()
    'n'
    """
    require(show in SHOWN, f"show must be one of {', '.join(SHOWN)}, not {show!r}")
    cells = np.asarray(values, np.float64)
    require(cells.shape == (len(ys), len(xs)), f"{len(ys)} rows of {len(xs)} values are needed")
    ends = [np.full(cells.shape, np.nan) if each is None else np.asarray(each, np.float64) for each in (low, high)]
    lines = 2 if show == "interval" else 1
    figure, axes = canvas(ax, max(1.6, 0.95 + (0.17 + 0.11 * lines) * len(ys)), column)
    finite = cells[np.isfinite(cells)]
    log = spread_out(finite.tolist()) if log is None else log
    if not cells.size or np.isnan(cells).all():
        return say(figure, axes, "no values")
    scale = (LogNorm if log else Normalize)(*((finite.min(), finite.max()) if finite.size else (1, 10)))
    image = axes.imshow(np.where(np.isfinite(cells), cells, np.nan), origin="lower", aspect="auto", cmap=COLOURS,
                        norm=scale, interpolation="nearest")
    axes.set_xticks(range(len(xs)), [_word(x) for x in xs])
    axes.set_yticks(range(len(ys)), [_word(y) for y in ys])
    axes.tick_params(length=0)
    axes.set(xlabel=xlabel, ylabel=ylabel)
    axes.spines[:].set_visible(False)
    if finite.size:
        _draw_colours(figure, axes, image, label)
    told = _draw_marks(axes, cells, ends[1])
    width = figure.get_figwidth() * 0.68 if ax is None else axes.get_window_extent().width / figure.dpi
    if show in SHOWN[:2] and width / len(xs) > WIDE[show == "interval"]:
        _draw_texts(axes, image, cells, ends, show)
    else:
        require(show != "interval", f"{len(xs)} columns leave no room for intervals; make the figure wider")
    if told:
        axes.legend(handles=told, loc="upper left", bbox_to_anchor=(-0.02, -0.3 * 1.8 / figure.get_figheight()),
                    borderaxespad=0, ncols=2, columnspacing=1.2, handlelength=1.4)
    return figure


def _word(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _draw_colours(figure: Figure, axes: Axes, image: Any, label: str) -> None:
    bar: Any = figure.colorbar(image, ax=axes, fraction=0.06, pad=0.03)
    bar.set_label(label)
    bar.outline.set_visible(False)
    bar.solids.set_rasterized(True)  # as shapes they have seams
    low, high = image.norm.vmin, image.norm.vmax
    if isinstance(image.norm, LogNorm) and high < 100 * low:
        ticks = [digit * 10.0**power for power in range(-12, 13) for digit in (1, 2, 5)]
        bar.set_ticks([tick for tick in ticks if low <= tick <= high])
        bar.ax.set_yticklabels([short(tick) for tick in bar.get_ticks()])
        bar.ax.minorticks_off()


def _draw_marks(axes: Axes, cells: Floats, high: Floats) -> list[Any]:
    """What is not reached, and what may not be; what the marks mean."""
    told: list[Any] = []
    for y, x in np.argwhere(np.isposinf(cells)):
        axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, hatch=HATCH, **UNREACHED))
    if np.isposinf(cells).any():
        told.append(Patch(hatch=HATCH, label="not reached", **UNREACHED))
    may = np.isposinf(high) & np.isfinite(cells)
    if may.any():
        y, x = np.nonzero(may)
        axes.plot(x + 0.4, y + 0.36, "^", color="white", markeredgecolor="black", markeredgewidth=0.5, markersize=4)
        told.append(Line2D([], [], marker="^", linestyle="none", color="white", markeredgecolor="black",
                           markeredgewidth=0.5, markersize=4, label="interval without upper end"))
    return told


def _draw_texts(axes: Axes, image: Any, cells: Floats, ends: Sequence[Floats], show: str) -> None:
    for (y, x), value in np.ndenumerate(cells):
        if np.isnan(value):
            continue
        ground = np.asarray(image.cmap(image.norm(value))[:3]) if np.isfinite(value) else np.ones(3)
        ink = "black" if ground**2.2 @ (0.2126, 0.7152, 0.0722) > 0.18 else "white"  # of equal contrast at 0.18
        text = short(float(value)) if np.isfinite(value) else ""
        if show == "interval" and np.isfinite(ends[0][y, x]):
            text += "\n[{}, {}]".format(*(short(float(end[y, x])) for end in ends))
        box = {"facecolor": "#eeeeee", "edgecolor": "none", "pad": 0.8} if not np.isfinite(value) and text else None
        axes.text(x, y, text.strip(), ha="center", va="center", fontsize=7, color=ink, linespacing=1.1, bbox=box)
