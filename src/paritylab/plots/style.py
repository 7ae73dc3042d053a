"""How figures look: two widths, two typefaces that papers are set in, one palette.

Everything needed is shipped, by matplotlib or beside this file: no TeX, and the same figure on a bare machine.
"""

# matplotlib leaves its keyword arguments untyped.
# pyright: reportUnknownMemberType=false

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import Any, Literal, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import fontManager
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullFormatter

from paritylab.errors import unknown
from paritylab.palette import GREY

WIDTHS = {"single": 3.3, "double": 6.9}
"""Inches, of one column of a paper and of both."""
LINES: tuple[Any, ...] = ("solid", "dashed", "dashdot", "dotted", (0, (6, 1, 1, 1, 1, 1)))
MARKERS = "osD^v*P"
FONTS = {
    "cm": {"font.family": ["Paritylab Roman", "STIXGeneral", "DejaVu Sans"], "mathtext.fontset": "cm"},
    "times": {"font.family": ["STIXGeneral", "DejaVu Sans"], "mathtext.fontset": "stix"},
}
"""Computer Modern, as LaTeX has it unless told otherwise, and Times, as many conferences ask for."""

fontManager.addfont(Path(__file__).parent / "fonts" / "roman.ttf")
_typeface: ContextVar[str] = ContextVar("typeface", default="cm")

_STYLE: Mapping[str, Any] = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 2.4,
    "legend.labelspacing": 0.3,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "axes.formatter.use_mathtext": True,
    "lines.linewidth": 1.2,
    "hatch.linewidth": 0.5,
    "pdf.fonttype": 42,
    "svg.fonttype": "none",
    "svg.hashsalt": "paritylab",
}

P = ParamSpec("P")
R = TypeVar("R")


@contextmanager
def typeface(name: str) -> Iterator[None]:
    """Set the figures that are made meanwhile in ``"cm"`` (Computer Modern, the default) or ``"times"``.

    >>> with typeface("times"):
    ...     figure = blank(2.0)
    """
    if name not in FONTS:
        raise unknown("typeface", name, FONTS)
    token = _typeface.set(name)
    try:
        yield
    finally:
        _typeface.reset(token)


def style() -> Any:
    """matplotlib's settings for a figure that is made now."""
    return {**_STYLE, **FONTS[_typeface.get()]}


def styled(function: Callable[P, R]) -> Callable[P, R]:
    """Draw in the style of all figures here; every function that makes a figure wears this.

    What is drawn into axes of others (``ax=``) is in the style of their figure.
    """

    @wraps(function)
    def drawn(*args: P.args, **kwargs: P.kwargs) -> R:
        ax: Any = kwargs.get("ax")
        owner = None if ax is None else figure_of(ax)
        with mpl.rc_context(style() if ax is None else owner.style if isinstance(owner, PaperFigure) else {}):
            return function(*args, **kwargs)

    return drawn


class PaperFigure(Figure):
    """A Figure that keeps its style, whoever draws it, and shows itself as the value of a notebook's cell.

    pyplot does not know it: it is shown once.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.style = style()
        with mpl.rc_context(self.style):
            super().__init__(*args, **kwargs)

    def add_subplot(self, *args: Any, **kwargs: Any) -> Any:
        with mpl.rc_context(self.style):
            return super().add_subplot(*args, **kwargs)

    def draw(self, renderer: Any) -> None:
        with mpl.rc_context(self.style):  # matplotlib makes ticks when it needs them
            super().draw(renderer)

    def _repr_png_(self) -> bytes:
        buffer = io.BytesIO()
        self.savefig(buffer, format="png", dpi=200)
        return buffer.getvalue()


def figure_of(axes: Axes) -> Figure:
    """The whole figure that axes are in."""
    figure: Any = axes.figure
    while not isinstance(figure, Figure):  # of a figure within a figure
        figure = figure.figure
    return figure


def blank(height: float, column: str = "single") -> Figure:
    """An empty figure, as wide as one column of a paper or as both (``"double"``)."""
    if column not in WIDTHS:
        raise unknown("column", column, WIDTHS)
    return PaperFigure(figsize=(WIDTHS[column], height), layout="constrained")


def canvas(ax: Axes | None, height: float, column: str) -> tuple[Figure, Axes]:
    """Where to draw: in the caller's axes, or in those of a new figure."""
    if ax is None:
        figure = blank(height, column)
        return figure, figure.add_subplot()
    return figure_of(ax), ax


def readable_log(axes: Axes) -> None:
    """Label 1, 2, 5 times powers of ten in plain numbers on log axes that span less than two decades."""
    for axis, limits in ((axes.xaxis, axes.get_xlim()), (axes.yaxis, axes.get_ylim())):
        if axis.get_scale() != "log" or isinstance(axis.get_major_locator(), FixedLocator):
            continue
        axis.set_minor_formatter(NullFormatter())
        if limits[0] > 0 and limits[1] / limits[0] < 100:
            axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))


def own_ticks(axes: Axes, values: Sequence[float]) -> None:
    """Let a log axis across span these values, and label it there if they are few and far enough from each other."""
    places = np.log(np.unique(values)) if len(values) and min(values) > 0 else np.zeros(0)
    if axes.get_xscale() != "log" or len(places) < 2:
        return
    margin = 0.05 * (places[-1] - places[0])
    axes.set_autoscalex_on(False)
    axes.set_xlim(float(np.exp(places[0] - margin)), float(np.exp(places[-1] + margin)))
    if len(places) <= 8 and np.diff(places).min() > 1.8 * margin:
        shown = np.exp(places).tolist()
        axes.set_xticks(shown, [f"{value:.4g}" for value in shown])
        axes.xaxis.set_minor_locator(FixedLocator([]))


def legend_above(figure: Figure, *axes: Axes, most: int = 3) -> None:
    """All labels above the axes, in as many columns as fit; one that several axes have, once."""
    every = [pair for each in axes for pair in zip(*each.get_legend_handles_labels(), strict=True)]
    found = {label: handle for handle, label in reversed(every)}
    labels = sorted(found, key=[label for _, label in every].index)
    handles = [found[label] for label in labels]
    for columns in range(most, 0, -1):
        legend = figure.legend(handles, labels, loc="outside upper center", ncols=columns, columnspacing=1.2)
        if columns == 1 or legend.get_window_extent().width <= 0.98 * figure.bbox.width:
            return
        legend.remove()


def explain(figure: Figure, axes: Axes, own: bool, loc: Literal["best", "lower left"] = "best") -> None:
    """Say what curves are: above the axes of a figure of ours, within those of a caller."""
    if own:
        legend_above(figure, axes, most=3 if figure.get_figwidth() < WIDTHS["double"] else 6)
    else:
        axes.legend(loc=loc)


def say(figure: Figure, axes: Axes, text: str) -> Figure:
    axes.text(0.5, 0.5, text, transform=axes.transAxes, ha="center", color=GREY)
    axes.set(xticks=[], yticks=[])
    axes.minorticks_off()
    return figure


def short(value: float) -> str:
    """A number in few signs.

    >>> short(0.5), short(1234), short(25400), short(3.2e6), short(float("inf"))
    ('0.5', '1.23k', '25.4k', '3.2M', '∞')
    """
    if value == float("inf"):
        return "∞"
    for size, sign in ((1e6, "M"), (1e3, "k")):
        if abs(value) >= size:
            return f"{value / size:.3g}{sign}"
    return f"{value:.3g}"


def spread_out(values: Sequence[float]) -> bool:
    """Whether values ask for a log axis: all above 0, and over more than a factor of three.

    >>> spread_out([1, 10]), spread_out([0, 10]), spread_out([10, 20])
    (True, False, False)
    """
    return len(values) > 0 and min(values) > 0 and max(values) > 3 * min(values)
