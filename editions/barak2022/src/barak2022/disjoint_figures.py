"""Figures of the claims about the disjoint-PolyNet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.ticker import EngFormatter

from paritylab import plots
from paritylab.aliases import Floats

Rows = Sequence[Mapping[str, Any]]


@plots.styled
def descent(times: Mapping[int, Floats], levels: Sequence[float]) -> plots.Figure:
    """The error as a function of time / T0: median of the starts, with quartiles."""
    figure = plots.blank(2.3)
    axes = figure.add_subplot(xlabel=r"steps / steps to error < $10^{-3}$", ylabel="error", xlim=(0, 1), ylim=(0, 0.51))
    styles = zip(times.items(), plots.COLOURS, plots.LINES, strict=False)
    for (block, steps), colour, line in styles:
        low, middle, high = np.quantile(steps / steps[:, -1:], [0.25, 0.5, 0.75], axis=0)
        axes.plot(np.append(0, middle), np.append(0.5, levels), color=colour, linestyle=line, label=f"n' = {block}")
        axes.fill_betweenx(levels, low, high, color=colour, alpha=0.2, linewidth=0)
    for reference, colour in ((0.26, plots.COLOURS[0]), (0.80, plots.COLOURS[1])):
        axes.plot([reference], [levels[0]], "v", color=colour, markersize=5, fillstyle="none", clip_on=False)
    axes.plot([], [], "v", color=plots.GREY, fillstyle="none", label="reference median of T49/T0")
    axes.legend(loc="lower left")
    return figure


@plots.styled
def runs(steps: np.ndarray, error: Floats, positive: np.ndarray) -> plots.Figure:
    """One line for each run, up to where its weights overflow."""
    figure = plots.blank(2.3)
    axes = figure.add_subplot(xlabel="steps", ylabel="error", ylim=(0, 0.55))
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    for chosen, colour, line, label in ((~positive, plots.GREY, "dotted", r"$\prod v_i(0) < 0$"),
                                        (positive, plots.COLOURS[0], "solid", r"$\prod v_i(0) > 0$")):
        for i, curve in enumerate(error[chosen]):
            axes.plot(steps, curve, color=colour, linestyle=line, linewidth=0.8, label=label if i == 0 else None)
    axes.axhline(0.05, color=plots.COLOURS[1], linestyle="dashed", linewidth=0.8, label="error 0.05")
    axes.set_xlim(0, 1.02 * steps[np.isfinite(error).any(axis=0)][-1])
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, 1.17), ncols=3, columnspacing=1.0)
    return figure


def rest(curves: Mapping[str, Rows]) -> Any:
    """1 - T(.49)/T(0) against n', with the theorem's power of n' through each curve's last point."""
    series, x, y = {}, [], []
    for name, rows in curves.items():
        blocks, values = np.array([row["block"] for row in rows]), np.array([row["rest"] for row in rows])
        ends = [np.array([row[end] for row in rows]) for end in ("low", "high")] if "low" in rows[0] else [None, None]
        series[name] = plots.Series(blocks, values, *ends)
        x += [*blocks[[0, -1]], np.nan]
        y += [*values[-1] * (blocks[[0, -1]] / blocks[-1]) ** (1 - rows[0]["k"] / 2), np.nan]
    return plots.scaling_plot(series, "inputs per block n'", "1 - T(.49)/T(0)", {r"$n'^{1-k/2}$": (x, y)})


@plots.styled
def gammas(data: Rows) -> plots.Figure:
    """Left: 1 - ratio against gamma at the largest n'. Right: the scaled quantity, its range over gamma."""
    figure = plots.blank(2.3)
    left, right = figure.subplots(1, 2)
    left.set(xscale="log", yscale="log", xlabel=r"$\gamma$", ylabel=r"1 - T(1/2 - $\gamma$)/T(0)")
    right.set(xscale="log", yscale="log", xlabel="inputs per block n'", ylabel="scaled by the bound's order")
    blocks = sorted({row["block"] for row in data})
    for k, colour, line, marker in zip((3, 4), plots.COLOURS, plots.LINES, "os", strict=False):
        last = [row for row in data if row["k"] == k and row["block"] == blocks[-1]]
        x, y = (np.array([row[name] for row in last]) for name in ("gamma", "rest"))
        left.plot(x, y, marker, color=colour, linestyle=line, markersize=3, label=f"k = {k}")
        left.plot(x, y[-1] * (x / x[-1]) ** (2 / k - 1), color=plots.GREY, linewidth=0.8,
                  label=r"$\gamma^{2/k-1}$" if k == 4 else None)
        scaled = np.array([[row["scaled"] for row in data if row["k"] == k and row["block"] == b] for b in blocks])
        right.fill_between(blocks, scaled.min(1), scaled.max(1), color=colour, alpha=0.3, linewidth=0)
        right.plot(blocks, scaled.max(1), marker, color=colour, linestyle=line, markersize=3)
    right.axhline(10, color=plots.COLOURS[2], linestyle="dashed", linewidth=0.8)
    right.annotate("asked: at most 10", (blocks[0], 10), (0, -3), textcoords="offset points", va="top", fontsize=7)
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


@plots.styled
def margins(samples: Mapping[str, Floats]) -> plots.Figure:
    """How far the two bounds are from the times: 1 is equality, below 1 a violation."""
    figure = plots.blank(2.3)
    panels = ("lower: $T_i(b)$ / bound", "log"), ("upper: bound / rest", "linear")
    for column, (axes, (name, scale)) in enumerate(zip(figure.subplots(1, 2, sharey=True), panels, strict=True)):
        axes.set(xscale=scale, xlabel=name, ylim=(0, 1))
        for (label, values), colour, line in zip(samples.items(), plots.COLOURS, plots.LINES, strict=False):
            levels = np.linspace(0, 0.99, 199)
            axes.plot(np.quantile(values[:, column], levels), levels, color=colour, linestyle=line, label=label)
        axes.axvline(1, color=plots.GREY, linestyle="dotted", linewidth=0.8)
    left = figure.axes[0]
    left.set_ylabel("cumulative fraction")
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure


@plots.styled
def bounds(rows: Rows) -> plots.Figure:
    """The error and its bounds against v/||u||, for one network."""
    figure = plots.blank(2.5)
    axes = figure.add_subplot(xlabel=r"$v_i/\|u_i\|$ (n' = 50, k = 3, signs)", ylabel="error", yscale="log")
    axes.set_ylim(1e-6, 2)
    x = [row["ratio"] for row in rows]
    styles = {"error": ("solid", plots.COLOURS[3]), "high": ("dashed", plots.COLOURS[0]),
              "low": ("dashdot", plots.COLOURS[0]), "printed high": ("dashed", plots.COLOURS[1]),
              "printed low": ("dashdot", plots.COLOURS[1])}
    labels = {"error": "exact", "high": "upper, corrected", "low": "lower, corrected", "printed high": "upper, printed",
              "printed low": "lower, printed"}
    for name, (line, colour) in styles.items():
        axes.plot(x, [row[name] for row in rows], linestyle=line, color=colour, label=labels[name])
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3, columnspacing=0.8,
                  handlelength=1.8)
    return figure


@plots.styled
def adaptive(data: Rows) -> plots.Figure:
    """A circle for each start with prod v > 0: its error at the end, and its largest irrelevant weight on the way."""
    data = [row for row in data if row["positive"]]
    cells = sorted({(row["batch"], row["k"], row["block"]) for row in data})
    figure = plots.blank(0.8 + 0.17 * max(4, len(cells)))
    left, right = figure.subplots(1, 2, sharey=True)
    left.set(xlabel="error after T steps", ylabel="n', k, B", xlim=(-0.01, max(0.1, *(row["error"] for row in data))))
    right.set(xlabel="irrelevant weight", ylim=(len(cells) - 0.5, -0.5))
    left.set_yticks(range(len(cells)), [f"{block}, {k}, {batch}" for batch, k, block in cells])
    for place, cell in enumerate(cells):
        rows = [row for row in data if (row["batch"], row["k"], row["block"]) == cell]
        for axes, name in ((left, "error"), (right, "largest irrelevant")):
            axes.plot([row[name] for row in rows], [place] * len(rows), "o", color=plots.COLOURS[0], markersize=3,
                      fillstyle="none")
    for axes, bound in ((left, 0.05), (right, 1.5)):
        axes.axvline(bound, color=plots.COLOURS[1], linestyle="dashed", linewidth=0.8)
    return figure
