"""Both phases of glasgow2023's training, watched: what the parts of the neurons, the margins and the accuracy do."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from glasgow2023.theory.xor import RATE, Heaviness, Neurons, heaviness, light_share, margins
from paritylab import plots
from paritylab.aliases import Floats
from paritylab.errors import require
from paritylab.setups.setup import Setup

Phases = dict[str, Floats]
"""What :func:`track` says, by name; leading axes (runs, points), but for ``steps`` and ``time``."""

MOST_BYTES = 5 * 10**8
HEAVY = 0.1
"""From the first record whose relaxed zeta is below this, its heavy set is followed."""
QUANTITIES = ("sig", "opp", "perp", "a", "size2", "a2", "rest2", "aw", "margins", "zeta", "relaxed", "light",
              "followed", "ratio")


def summarise(neurons: Neurons, followed: Heaviness | None = None) -> dict[str, Any]:
    """One network in numbers.

    ``sig``, ``opp``, ``perp`` and ``a`` are medians of |w_sig|, |w_opp|, |w_perp| and |a| over its neurons; ``size2``,
    ``a2`` and ``rest2`` means of |w|^2, a^2 and |w_perp + w_opp|^2, ``aw`` that of |a||w|; ``margins`` those of the
    four clusters; ``zeta`` the smallest for which Definition 4.2 holds, ``relaxed`` that with exp(6H) replaced by 1;
    ``light`` the mass outside the latter's heavy set over that set's margin, ``followed`` the same of the heavy set of
    an earlier network; ``ratio`` the largest |a| / |w|.
    """
    sig, opp, perp, size, a = neurons.sig, neurons.opp, neurons.perp, neurons.size, np.abs(neurons.a)
    relaxed = heaviness(neurons, strict=False)
    light = relaxed.outside / relaxed.margin if relaxed.margin > 0 else math.inf
    medians = {name: float(np.median(np.abs(value))) for name, value in
               (("sig", sig), ("opp", opp), ("perp", perp), ("a", a))}
    means = {name: float(np.mean(value.astype(np.float64))) for name, value in
             (("size2", size**2), ("a2", a**2), ("rest2", perp**2 + opp**2), ("aw", a * size))}
    return medians | means | {
        "margins": margins(neurons), "zeta": heaviness(neurons).zeta, "relaxed": relaxed.zeta, "light": light,
        "followed": light_share(neurons, followed.members) if followed else math.nan,
        "ratio": float(np.max(a / size)),
    }


def _along(networks: Neurons) -> list[dict[str, Any]]:
    """Summaries of one run's networks, (points, p, ...)."""
    found: list[dict[str, Any]] = []
    followed: Heaviness | None = None
    for w, a in zip(networks.w, networks.a, strict=True):
        neurons = Neurons(w, a)
        if followed is None and (now := heaviness(neurons, strict=False)).zeta < HEAVY:
            followed = now
        found.append(summarise(neurons, followed))
    return found


def track(
    setup: Setup, steps: int | Sequence[int], every: int | None = None, runs: Sequence[int] = (0,), seed: int = 0,
    **options: Any,
) -> Phases:
    """Train, and summarise the network at each of the chosen steps; arguments as in :func:`paritylab.curves`.

    >>> from paritylab import Parity
    >>> from glasgow2023.theory.xor import learner
    >>> phases = track(Setup(Parity(16, 2), learner(32)), steps=20, every=10)
    >>> phases["margins"].shape
    (1, 3, 4)
    """
    from paritylab.running.recording import curves

    rate = setup.learner.optimiser.lr
    width, d = setup.learner.network.width, setup.problem.n
    points = len(steps) if not isinstance(steps, int) else 2 + steps // (every or 1)
    size = 4 * width * (d + 1) * points
    require(size <= 8 * MOST_BYTES, f"the weights at {points} points take {size / 1e9:.1f} GB; choose fewer points")
    together = max(1, MOST_BYTES // size)
    parts: list[Phases] = []
    for first in range(0, len(runs), together):
        chosen = list(runs)[first : first + together]
        made = curves(setup, steps, every, chosen, seed=seed, weights=True, **options)
        networks = Neurons.of(made.weights)
        found = [_along(Neurons(*run)) for run in zip(networks.w, networks.a, strict=True)]
        summed = {name: np.array([[point[name] for point in run] for run in found]) for name in QUANTITIES}
        parts.append({"steps": made.steps, "accuracy": made.accuracy, "loss": made.loss, **summed})
    whole = {name: np.concatenate([part[name] for part in parts]) for name in ("accuracy", "loss", *QUANTITIES)}
    return {"steps": parts[0]["steps"], "time": rate * parts[0]["steps"], **whole}


def growth_rate(time: Floats, values: Floats, until: float = math.inf) -> tuple[float, float]:
    """Slope and R^2 of ln(values) against time, up to the first point that exceeds ``until``.

    >>> growth_rate(np.arange(5.0), np.exp(0.4 * np.arange(5.0)))
    (0.4, 1.0)
    """
    over = np.flatnonzero(values > until)
    end = len(values) if len(over) == 0 else max(int(over[0]), 2)
    x, y = time[:end], np.log(values[:end])
    slope, intercept = np.polyfit(x, y, 1)
    residual = float(np.sum((y - slope * x - intercept) ** 2))
    return round(float(slope), 12), 1 - residual / float(np.sum((y - y.mean()) ** 2))


@plots.styled
def phases_plot(phases: Mapping[str, Floats], run: int = 0, predicted: bool = True) -> Figure:
    """Both phases of one run at a glance: parts of its neurons, margins and accuracy against time t = eta steps."""
    time = phases["time"]
    figure = plots.blank(4.2)
    above, middle, below = figure.subplots(3, 1, sharex=True, height_ratios=[3, 2, 1.3])
    for name, label, colour, line in (("sig", "$|w_{sig}|$", 0, "solid"), ("opp", "$|w_{opp}|$", 1, "dashed"),
                                      ("perp", r"$|w_\perp|$", 3, "dashdot"), ("a", "$|a|$", 2, "dotted")):
        above.plot(time, phases[name][run], color=plots.COLOURS[colour], linestyle=line, label=label)
    if predicted:
        start = float(phases["sig"][run][0])
        law = start * np.exp(RATE * time)
        shown = law <= 1.5 * float(phases["sig"][run].max())
        above.plot(time[shown], law[shown], color=plots.GREY, linewidth=0.8, linestyle=(0, (1, 1)),
                   label=r"$e^{t/\sqrt{2\pi}}$ (4.3)")
    above.set(yscale="log", ylabel="median over neurons")
    names = ("$+(e_1+e_2)$", "$-(e_1+e_2)$", "$+(e_1-e_2)$", "$-(e_1-e_2)$")
    for column, (name, line) in enumerate(zip(names, plots.LINES, strict=False)):
        middle.plot(time, phases["margins"][run][:, column], color=plots.COLOURS[column], linestyle=line,
                    linewidth=1.0, label=name)
    middle.set(ylabel=r"margin $\gamma_\mu$")
    middle.legend(ncols=2, loc="upper left", fontsize=6, frameon=True, framealpha=1, edgecolor="none")
    below.plot(time, phases["accuracy"][run], color=plots.COLOURS[0])
    below.set(ylabel="accuracy", xlabel=r"time $t = \eta\,\cdot$ steps", ylim=(0.45, 1.03))
    signal = np.flatnonzero(phases["sig"][run] > phases["perp"][run])
    if len(signal):
        for axes in (above, middle, below):
            axes.axvline(time[signal[0]], color=plots.GREY, linewidth=0.6, linestyle="dotted")
        for place, name in ((time[signal[0]], "phase 1  "), (time[signal[0]], "  phase 2")):
            side = "right" if name.startswith("phase") else "left"
            above.annotate(name, (place, 1.0), xycoords=("data", "axes fraction"), ha=side, va="bottom", fontsize=6,
                           color=plots.GREY)
    figure.legend(*above.get_legend_handles_labels(), loc="outside upper center", ncols=5, columnspacing=1.0,
                  handlelength=1.8)
    figure.align_ylabels()
    return figure
