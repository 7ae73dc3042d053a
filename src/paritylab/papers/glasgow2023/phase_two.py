"""Phase 2, the features are tuned: margins (Lemma 4.4), signal-heavy networks (Definition 4.2), and a frozen layer."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from matplotlib.ticker import NullLocator

from paritylab import plots
from paritylab.claims.intervals import mean
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, at_most, between, holds
from paritylab.papers.glasgow2023.common import Floats, network, tracked
from paritylab.theory import xor
from paritylab.theory.xor_phases import Phases

STARTS = {"50/50 signs": 0.5, "70/30 signs": 0.7}


def margin_runs(lab: Lab) -> tuple[dict[str, Phases], int]:
    """Runs from balanced and unbalanced signs, watched every 5 steps until the loss is below 0.05."""
    rates = lab.pick("eta", quick=[0.1], full=[0.02, 0.1])
    width, runs = lab.pick("width", quick=256, full=512), lab.pick("seeds", quick=5, full=5)
    made: dict[str, Phases] = {}
    for eta, (name, share) in itertools.product(rates, STARTS.items()):
        setup = network(64, width, 0.1, eta, 2048, share=share)
        made[f"eta = {eta:g}, {name}"] = tracked(lab, setup, round(30 / eta), 5, runs)
    return made, runs


def second_phase(phases: Phases, run: int) -> slice:
    """The records from the first with less than 1 % of non-signal mass to the first with a loss below 0.05."""
    share = phases["rest2"][run] / phases["size2"][run]
    first = np.flatnonzero(share < 0.01)
    last = np.flatnonzero(phases["loss"][run] < 0.05)
    end = int(last[0]) + 1 if len(last) else len(share)
    return slice(int(first[0]), end) if len(first) else slice(0, 0)


@reproduces("glasgow2023.phase2-margins")
def margins_balance(lab: Lab) -> Outcome:
    """The weakest margin grows at the rate 2 tau g_max, and the margins become equal."""
    made, runs = margin_runs(lab)
    checks: list[Check] = []
    rows: list[dict[str, Any]] = []
    for name, phases in made.items():
        eta = float(phases["time"][1] / phases["steps"][1])
        rising, speeds, ended = [], [], []
        for run in range(runs):
            margins = phases["margins"][run][second_phase(phases, run)]
            least, most = margins.min(1), margins.max(1)
            rising.append(np.diff(least) >= 0)
            predicted = 2 * eta * xor.MARGIN_RATE * xor.slope(least[:-1])
            speeds.append(float(np.mean(np.diff(np.log(least)) / (5 * predicted))))
            ratios = most / least
            ended.append(bool(ratios[-1] <= 1.15 and ratios[-1] < ratios[0]))
            rows.append({"runs": name, "run": run, "records": len(margins), "rising": float(np.mean(rising[-1])),
                         "growth_over_predicted": speeds[-1], "ratio_at_start": float(ratios[0]),
                         "ratio_at_end": float(ratios[-1])})
        speed, interval = mean(speeds)
        checks += [
            at_least(f"share of records in which gamma_min does not fall, {name}", float(np.concatenate(rising).mean()),
                     0.98),
            between(f"mean growth of gamma_min / (2 eta tau g_max), {name}", speed, 0.8, 1.2, interval),
            at_least(f"share of seeds whose margins end within 1.15 and closer than at first, {name}",
                     float(np.mean(ended)), 0.8),
        ]
    return Outcome(checks, rows, margins_plot(made))


@plots.styled
def margins_plot(made: dict[str, Phases]) -> Any:
    """Above: least and largest margin of each run. Below: their ratio. One column for each kind of start."""
    chosen = [(name, phases) for name, phases in made.items() if name.startswith(list(made)[-1].split(",")[0])]
    figure = plots.blank(3.4)
    panels = figure.subplots(2, len(chosen), sharex=True, sharey="row", squeeze=False)
    for (above, below), (name, phases) in zip(panels.T, chosen, strict=True):
        for run in range(len(phases["loss"])):
            time, margins = phases["time"], phases["margins"][run]
            above.plot(time, margins.max(1), color=plots.COLOURS[1], linestyle="dashed", linewidth=0.7,
                       label=r"$\gamma_{max}$" if run == 0 else None)
            above.plot(time, margins.min(1), color=plots.COLOURS[0], linewidth=0.7,
                       label=r"$\gamma_{min}$" if run == 0 else None)
            part = second_phase(phases, run)
            below.plot(time[part], margins[part].max(1) / margins[part].min(1), color=plots.COLOURS[0], linewidth=0.7)
        below.axhline(1.15, color=plots.COLOURS[1], linestyle="dashed", linewidth=0.8)
        above.set_title(name.replace("eta", r"$\eta$"), fontsize=7)
        below.set(xlabel=r"time $\eta t$", yscale="log")
        below.set_yticks(ticks := [1, 1.5, 2, 3, 4], [f"{tick:g}" for tick in ticks])
        below.yaxis.set_minor_locator(NullLocator())
    panels[0, 0].set_ylabel("margin")
    panels[1, 0].set_ylabel(r"$\gamma_{max}/\gamma_{min}$ in phase 2")
    panels[0, 0].legend(loc="upper left")
    figure.align_ylabels()
    return figure


@reproduces("glasgow2023.def4-2-signal-heavy")
def stays_signal_heavy(lab: Lab) -> Outcome:
    """The smallest zeta of Definition 4.2 (relaxed: 1 in place of exp(6H)), and the mass outside the heavy set.

    Judged is the heavy set of each record's own zeta, as the setup records it; beside it one set S that is carried
    along as in Lemma D.3, the largest heavy one at the first zeta below 0.1.
    """
    made, runs = margin_runs(lab)
    checks: list[Check] = []
    rows: list[dict[str, Any]] = []
    numbers: dict[str, float | None] = {}
    for name, phases in made.items():
        kept: list[Any] = []
        rises: dict[str, list[float]] = {"followed": [], "light": []}
        for run in range(runs):
            zeta = phases["relaxed"][run]
            below = np.flatnonzero(zeta < 0.1)
            end = second_phase(phases, run).stop
            part = slice(int(below[0]), end) if len(below) else slice(0, 0)
            kept.append(zeta[part] <= 1.2 * np.minimum.accumulate(zeta[part]))
            rises["followed"].append(rise(phases["followed"][run][part]))
            rises["light"].append(rise(phases["light"][run][part]))
            rows += [{"runs": name, "run": run, "time": float(phases["time"][i]), "zeta": float(zeta[i]),
                      "strict_zeta": float(phases["zeta"][run][i]),
                      "outside_over_margin": float(phases["light"][run][i]),
                      "outside_S_over_margin": float(phases["followed"][run][i]),
                      "balance": float(phases["size2"][run][i] - phases["a2"][run][i])} for i in range(end)]
        checks += [
            at_least(f"share of records with zeta <= 1.2 of its least so far, {name}",
                     float(np.concatenate(kept).mean()) if sum(map(len, kept)) else None, 0.95),
            at_most(f"largest (mass outside the set / gamma_min) over its least so far, {name}",
                    max(rises["light"]), 1.2),
            at_most(f"largest |a| / |w|, {name}", float(phases["ratio"].max()), 1 + 1e-5),
        ]
        numbers[f"the same of one set carried along, {name}"] = max(rises["followed"])
    note = ("The heavy set of each record's own zeta shrinks with zeta, and a few of the last neurons that leave it "
            "raise its ratio; the mass outside one set that is carried along, as in the lemma, is among the numbers.")
    return Outcome(checks, rows, heaviness_plot(made), numbers, note)


def rise(values: Floats) -> float:
    """The largest value over the least before it; NaN for fewer than two."""
    return float(np.max(values[1:] / np.minimum.accumulate(values)[:-1])) if len(values) > 1 else math.nan


@plots.styled
def heaviness_plot(made: dict[str, Phases]) -> Any:
    chosen = [(name, phases) for name, phases in made.items() if name.startswith(list(made)[-1].split(",")[0])]
    figure = plots.blank(3.4)
    panels = figure.subplots(2, len(chosen), sharex=True, sharey="row", squeeze=False)
    for (above, below), (name, phases) in zip(panels.T, chosen, strict=True):
        for run in range(len(phases["loss"])):
            end = second_phase(phases, run).stop
            time = phases["time"][:end]
            above.plot(time, phases["relaxed"][run][:end], color=plots.COLOURS[0], linewidth=0.7,
                       label="factor 1" if run == 0 else None)
            above.plot(time, phases["zeta"][run][:end].clip(max=1e4), color=plots.COLOURS[1], linewidth=0.7,
                       linestyle="dashed", label="factor exp(6H)" if run == 0 else None)
            below.plot(time, phases["followed"][run][:end], color=plots.COLOURS[0], linewidth=0.7)
            below.plot(time, phases["light"][run][:end].clip(max=10), color=plots.COLOURS[2], linewidth=0.5,
                       linestyle="dotted")
        above.axhline(0.1, color=plots.GREY, linestyle="dotted", linewidth=0.8)
        above.set(yscale="log", ylim=(5e-3, 1e3))
        above.set_title(name.replace("eta", r"$\eta$"), fontsize=7)
        below.set(yscale="log", xlabel=r"time $\eta t$")
    panels[0, 0].set_ylabel(r"smallest $\zeta$")
    panels[1, 0].set_ylabel("mass outside $S$ / margin")
    for text, height, colour in (("one $S$", 0.9, 0), (r"$S$ of each $\zeta$", 0.8, 2)):
        panels[1, 0].annotate(text, (0.97, height), xycoords="axes fraction", ha="right", fontsize=6,
                              color=plots.COLOURS[colour])
    figure.legend(*panels[0, 0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    figure.align_ylabels()
    return figure


# --- a frozen second layer (Remark 4.3) -------------------------------------------------------------------------------


@reproduces("glasgow2023.remark4-3-frozen")
def frozen_layer(lab: Lab) -> Outcome:
    """Growth of the signal and of the margin with both layers trained, and with the second one frozen."""
    width, runs = lab.pick("width", quick=256, full=512), lab.pick("seeds", quick=10, full=10)
    batches = lab.pick("m", quick=[32, 2048], full=[32, 128, 2048])
    d, theta, eta, steps = 64, 0.1, 0.1, 400
    made: dict[tuple[int, str], Phases] = {}
    for m, (name, frozen) in itertools.product(batches, (("joint", False), ("frozen", True))):
        made[m, name] = tracked(lab, network(d, width, theta, eta, m, frozen=frozen), steps, 5, runs)
    joint, frozen = made[max(batches), "joint"], made[max(batches), "frozen"]
    at = joint["steps"]
    window = np.flatnonzero((at >= 100) & (at <= 200))
    fits = {"joint": [fit_both(at, joint["sig"][run], unsaturated(joint, run, window)) for run in range(runs)],
            "frozen": [fit_both(at, frozen["sig"][run], window) for run in range(runs)]}
    linear, exponential = (np.array([fit[i] for fit in fits["frozen"]]) for i in range(2))
    point = int(np.flatnonzero(at == 200)[0])
    least = {name: float(np.median(phases["margins"][:, point].min(1))) for name, phases in
             (("joint", joint), ("frozen", frozen))}
    share = {name: (made[min(batches), name]["rest2"] / made[min(batches), name]["size2"])[:, -1]
             for name in ("joint", "frozen")}
    checks = [
        holds("log-linear fit beats linear fit, joint, from step 100 until g_min < 1/2 (saturation) or step 200",
              bool(np.median([fit[1] - fit[0] for fit in fits["joint"]]) > 0), "larger R^2",
              float(np.median([fit[1] for fit in fits["joint"]]))),
        at_least("R^2 of the linear fit, frozen, steps 100 to 200", float(np.median(linear)), 0.99),
        holds("linear fit beats log-linear fit, frozen", bool(np.median(linear - exponential) > 0), "larger R^2",
              float(np.median(exponential))),
        at_least("gamma_min at step 200, joint / frozen", least["joint"] / least["frozen"], 20.0),
        at_least("share of seeds with more non-signal mass at T if frozen, m = d/2",
                 float(np.mean(share["frozen"] > share["joint"])), 0.8),
    ]
    numbers = {f"median |w_sig| at step 200, {name}": float(np.median(phases["sig"][:, point]))
               for name, phases in (("joint", joint), ("frozen", frozen))}
    numbers |= {f"gamma_min at step 200, {name}": value for name, value in least.items()}
    numbers |= {f"non-signal share at T, m = d/2, {name}": float(np.median(values)) for name, values in share.items()}
    rows = [{"m": m, "layer": name, "run": run, "step": int(at[i]), "sig": float(phases["sig"][run][i]),
             "gamma_min": float(phases["margins"][run][i].min()), "accuracy": float(phases["accuracy"][run][i]),
             "nonsignal_share": float(phases["rest2"][run][i] / phases["size2"][run][i])}
            for (m, name), phases in made.items() for run in range(runs) for i in range(0, len(at), 2)]
    return Outcome(checks, rows, frozen_plot(joint, frozen), numbers)


def unsaturated(phases: Phases, run: int, window: Any) -> Any:
    """The part of the window in which the loss's slope at the strongest cluster is still 1/2 at least."""
    fine = xor.slope(phases["margins"][run].max(1)[window]) >= 0.5
    return window[: max(3, int(np.argmin(fine)) if not fine.all() else len(window))]


def fit_both(x: Floats, y: Floats, window: Any) -> tuple[float, float]:
    """R^2 in y of a straight line, and of an exponential that is a straight line in log y."""
    at, values = np.asarray(x, float)[window], y[window]
    line = np.polyval(np.polyfit(at, values, 1), at)
    curve = np.exp(np.polyval(np.polyfit(at, np.log(values), 1), at))
    total = np.sum((values - values.mean()) ** 2)
    return 1 - float(np.sum((values - line) ** 2) / total), 1 - float(np.sum((values - curve) ** 2) / total)


@plots.styled
def frozen_plot(joint: Phases, frozen: Phases) -> Any:
    figure = plots.blank(2.3)
    left, right = figure.subplots(1, 2)
    for phases, colour, line, name in ((joint, 0, "solid", "both layers trained"),
                                       (frozen, 1, "dashed", "second layer frozen")):
        middle = np.median(phases["sig"], axis=0)
        left.plot(phases["steps"], middle, color=plots.COLOURS[colour], linestyle=line, label=name)
        right.plot(phases["steps"], np.median(phases["margins"].min(2), axis=0).clip(1e-5), color=plots.COLOURS[colour],
                   linestyle=line)
    left.set(yscale="log", xlabel="steps", ylabel="median $|w_{sig}|$")
    right.set(yscale="log", xlabel="steps", ylabel=r"smallest margin $\gamma_{min}$")
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure
