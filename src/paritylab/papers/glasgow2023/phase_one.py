"""Phase 1, the signal is found: equation 4.3, Lemma 4.1, and the balance of the layers (Lemma B.13)."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from paritylab import Protocol, plots
from paritylab.claims.intervals import mean
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, at_most, between
from paritylab.papers.glasgow2023.common import Floats, network, tracked
from paritylab.theory import xor
from paritylab.theory.xor_gradients import active_mean
from paritylab.theory.xor_phases import Phases, growth_rate


@reproduces("glasgow2023.eq4-3-rate")
def exponential_growth(lab: Lab) -> Outcome:
    """Medians of |w_sig| and |w_opp| against time, near the population's gradient."""
    sizes = lab.pick("d", quick=[64], full=[64, 256])
    rates = lab.pick("eta", quick=[0.1], full=[0.02, 0.1])
    width = lab.pick("width", quick=256, full=512)
    samples = lab.pick("batch / d", quick=32, full=50)
    runs = lab.pick("seeds", quick=3, full=5)
    theta, checks, rows, numbers = 0.1, [], [], {}
    shown: dict[str, tuple[Phases, float]] = {}
    for d, eta in itertools.product(sizes, rates):
        batch, where = samples * d, f"d = {d}, eta = {eta:g}"
        steps = math.ceil((math.log(0.45 * math.sqrt(d)) / 0.36 + 0.5) / eta)
        phases = tracked(lab, network(d, width, theta, eta, batch, Protocol(eval_size=200)), steps, 1, runs)
        windows = [Window(phases, run, theta, batch) for run in range(runs)]
        slopes = {part: mean([getattr(window, part) for window in windows]) for part in ("sig", "opp")}
        checks.append(between(f"slope of log median |w_sig|, {where}", slopes["sig"][0], 0.36, 0.44, slopes["sig"][1]))
        checks.append(between(f"slope of log median |w_opp|, {where}", slopes["opp"][0], -0.6, -0.25, slopes["opp"][1]))
        for part in ("perp", "a"):
            change = max(window.change(part) for window in windows)
            checks.append(at_most(f"largest relative change of |{part}|, {where}", change, 0.15))
        ratio = np.mean([window.sig / window.predicted for window in windows])
        numbers[f"measured / predicted growth of |w_sig|, {where}"] = float(ratio)
        rows += [{"d": d, "eta": eta, "run": run, "time": float(time), **{name: float(phases[name][run][i]) for name in
                  ("sig", "opp", "perp", "a")}} for run in range(runs) for i, time in enumerate(phases["time"])]
        if eta == rates[-1]:
            shown[f"d = {d}"] = phases, 2 * theta / math.sqrt(batch)
            numbers[f"exact population gradient / equation 4.3 at the start, d = {d}"] = exact_ratio(lab, d)
    return Outcome(checks, rows, growth_plot(shown), numbers)


class Window:
    """One run until median |w_sig| = 0.3 theta: measured slopes, and the one that equation 4.3 predicts at finite d."""

    def __init__(self, phases: Phases, run: int, theta: float, batch: int) -> None:
        sig = phases["sig"][run]
        over = np.flatnonzero(sig >= 0.3 * theta)
        self._end = int(over[0]) if len(over) else len(sig) - 1
        self._phases, self._run = phases, run
        time = phases["time"][: self._end + 1]
        self.sig = growth_rate(time, self["sig"])[0]
        floor = np.flatnonzero(self["opp"] <= 2 * theta / math.sqrt(batch))
        until = int(floor[0]) if len(floor) else len(time)
        self.opp = growth_rate(time[:until], self["opp"][:until])[0] if until >= 3 else math.nan
        eta = time[1] - time[0]
        steps = np.log1p(eta * xor.growth(self["a"], self["perp"], self["sig"]))[:-1]
        self.predicted = growth_rate(time, np.exp(np.concatenate([[0.0], np.cumsum(steps)])))[0]

    def __getitem__(self, name: str) -> Floats:
        return self._phases[name][self._run][: self._end + 1]

    def change(self, name: str) -> float:
        return abs(float(self[name][-1] / self[name][0]) - 1)


def exact_ratio(lab: Lab, d: int, neurons: int = 100) -> float:
    """-w_sig . grad L0 of random neurons, exact, over what equation 4.3 makes of it: a mean weighted by |w_sig|^2."""
    w = lab.rng(d).standard_normal((neurons, d))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    sig = (w[:, 0] + w[:, 1]) / math.sqrt(2)
    exact = np.array([active_mean(each)[:2].sum() for each in w]) / math.sqrt(2) * sig
    return float(exact.sum() / (xor.RATE * sig**2).sum())


@plots.styled
def growth_plot(shown: dict[str, tuple[Phases, float]]) -> Any:
    figure = plots.blank(2.6)
    panels = np.ravel(figure.subplots(1, len(shown), sharey=True, squeeze=False))
    for axes, (title, (phases, floor)) in zip(panels, shown.items(), strict=True):
        time = phases["time"]
        for name, colour, label in (("sig", 0, "$|w_{sig}|$"), ("opp", 1, "$|w_{opp}|$"), ("perp", 3, r"$|w_\perp|$"),
                                    ("a", 2, "$|a|$")):
            for run, values in enumerate(phases[name]):
                axes.plot(time, values, color=plots.COLOURS[colour], linewidth=0.8,
                          linestyle=("solid", "dashed", "dashdot", "dotted")[(0, 1, 3, 2).index(colour)],
                          label=label if run == 0 else None)
        for sign, name in ((1, "sig"), (-1, "opp")):
            law = phases[name][:, 0].mean() * np.exp(sign * xor.RATE * time)
            axes.plot(time, law, color=plots.GREY, linewidth=1.2, linestyle=(0, (1, 1)),
                      label=r"$e^{\pm t/\sqrt{2\pi}}$" if sign > 0 else None)
        axes.axhline(floor, color=plots.GREY, linewidth=0.6)
        axes.annotate("noise floor", (0.02, floor), (0, 1), xycoords=("axes fraction", "data"),
                      textcoords="offset points", fontsize=6, color=plots.GREY)
        axes.set(yscale="log", xlabel=r"time $\eta t$", title=title)
    panels[0].set_ylabel("median over neurons")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=5, columnspacing=1.0, handlelength=1.8)
    return figure


@reproduces("glasgow2023.lemma4-1")
def end_of_phase_one(lab: Lab) -> Outcome:
    """The neurons at T1: which point to which cluster, and what mass is not signal."""
    sizes = lab.pick("d", quick=[64], full=[64, 256])
    width, runs = lab.pick("width", quick=256, full=512), lab.pick("seeds", quick=5, full=5)
    theta = eta = 0.1
    checks: list[Check] = []
    rows: list[dict[str, Any]] = []
    numbers: dict[str, float | None] = {}
    clouds: dict[str, xor.Neurons] = {}
    for d in sizes:
        last = round((0.5 * math.log(d) + 2) / (0.4 * eta))
        made = lab.curves(network(d, width, theta, eta, 8 * d), [0, last], runs=runs, weights=True)
        neurons = xor.Neurons.of(made.weights)
        first, after = (xor.Neurons(neurons.w[:, i], neurons.a[:, i]) for i in range(2))
        rest = after.perp**2 + after.opp**2
        heavy = np.abs(after.sig) >= 3 * np.sqrt(rest)
        towards = (after.w[..., :2] @ xor.CLUSTERS.T > 0) & (after.a[..., None] * xor.LABELS > 0)  # w_sig . mu > 0
        shares = np.mean(heavy[..., None] & towards, axis=1)
        mass, product = rest.mean(1), np.mean(np.abs(after.a) * after.size, axis=1)
        good = (shares.min(1) >= 0.1) & (mass <= 4 * theta**2) & (product <= 1)
        checks.append(at_least(f"share of seeds with all three conditions, d = {d}", float(good.mean()), 0.8))
        whole = [np.mean(part.size**2, axis=1) for part in (first, after)]
        before = np.mean(first.perp**2 + first.opp**2, axis=1) / whole[0]
        numbers |= {
            f"least share of neurons of a direction, over all seeds, d = {d}": float(shares.min()),
            f"largest E|w_perp + w_opp|^2 / theta^2, d = {d}": float(mass.max()) / theta**2,
            f"largest E|a w|, d = {d}": float(product.max()),
            f"share of non-signal mass at the start, d = {d}": float(np.median(before)),
            f"share of non-signal mass at T1, d = {d}": float(np.median(mass / whole[1])),
        }
        rows += [{"d": d, "run": run, "steps": last, **{f"share_{i + 1}": float(shares[run, i]) for i in range(4)},
                  "nonsignal_mass": float(mass[run]), "nonsignal_share": float(mass[run] / whole[1][run]),
                  "nonsignal_share_at_start": float(before[run]), "mean_aw": float(product[run])}
                 for run in range(runs)]
        clouds[f"d = {d}, step {last}"] = xor.Neurons(after.w[0], after.a[0])
    return Outcome(checks, rows, cloud_plot(clouds), numbers)


@plots.styled
def cloud_plot(clouds: dict[str, xor.Neurons]) -> Any:
    """Each neuron of one run by its signal and the rest, and the line beyond which it counts."""
    figure = plots.blank(2.3)
    panels = np.ravel(figure.subplots(1, len(clouds), sharey=True, squeeze=False))
    for axes, (title, neurons) in zip(panels, clouds.items(), strict=True):
        rest = np.hypot(neurons.perp, neurons.opp)
        for sign, marker, colour, label in ((1, "o", 0, "$a > 0$"), (-1, "x", 1, "$a < 0$")):
            mine = np.sign(neurons.a) == sign
            axes.plot(neurons.sig[mine], rest[mine], marker, markersize=2, color=plots.COLOURS[colour], label=label,
                      fillstyle="none", markeredgewidth=0.6)
        reach = np.abs(neurons.sig).max()
        axes.plot([-reach, 0, reach], [reach / 3, 0, reach / 3], color=plots.GREY, linewidth=0.8,
                  label=r"$|w_{sig}| = 3\,|w_\perp + w_{opp}|$")
        axes.set(title=title, xlabel=r"$w_{sig}$, signed", ylim=(-0.02 * rest.max(), 1.1 * rest.max()))
    panels[0].set_ylabel(r"$|w_\perp + w_{opp}|$")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, columnspacing=1.0)
    return figure


@reproduces("glasgow2023.lemma-b13")
def layers_stay_balanced(lab: Lab) -> Outcome:
    """|w|^2 - a^2 of every neuron at every step."""
    sizes = lab.pick("d", quick=[32], full=[32, 128])
    width, runs = lab.pick("width", quick=64, full=128), lab.pick("seeds", quick=5, full=5)
    theta, fast, slow = 0.3, 0.25, 0.05
    checks: list[Check] = []
    rows: list[dict[str, Any]] = []
    curves: dict[str, plots.Series] = {}
    for d in sizes:
        drifts = {}
        for eta in (fast, slow):
            balance = kept_balance(lab, d, width, theta, eta, runs)
            where = f"d = {d}, eta = {eta:g}"
            share = float(balance["violations"].sum() / balance["pairs"].sum())
            checks.append(Check(f"share of (neuron, step) pairs with too large a growth, {where}", share, "< 0.001",
                                share < 1e-3))
            checks.append(at_most(f"largest |a| / |w|, {where}", float(balance["ratio"].max()), 1 + 1e-5))
            drifts[eta] = balance["drift"]
            rows += [{"d": d, "eta": eta, "run": run, "violations": int(balance["violations"][run]),
                      "largest_ratio": float(balance["ratio"][run]), "drift": float(balance["drift"][run])}
                     for run in range(runs)]
            series = np.median(balance["series"], axis=0)
            some = np.unique(np.geomspace(1, len(series) - 1, 40).astype(int))
            curves[rf"$d = {d}$, $\eta = {eta:g}$"] = plots.Series(eta * some, series[some])
        shrinks = float(np.mean(drifts[fast]) / np.mean(drifts[slow]))
        checks.append(between(f"drift at eta = 0.25 / at 0.05, d = {d}", shrinks, 3.0, 8.0))
    figure = plots.scaling_plot(curves, r"time $\eta t$", r"largest $1 - |a|/|w|$ of a network")
    return Outcome(checks, rows, figure)


def kept_balance(lab: Lab, d: int, width: int, theta: float, eta: float, runs: int) -> dict[str, Floats]:
    """Over all neurons and steps of each run: broken inequalities, largest |a|/|w|, largest 1 - |a|/|w|."""
    from paritylab import curves, engines

    steps, batch = math.ceil(12 * math.log(d) / eta), round(d * math.log(d) ** 2)
    setup = network(d, width, theta, eta, batch, Protocol(eval_size=200))
    chosen = engines.choose(setup, lab.engine, curves=True)

    def make() -> dict[str, Any]:
        found: dict[str, list[Any]] = {name: [] for name in ("violations", "pairs", "ratio", "drift", "series")}
        for run in range(runs):
            made = curves(setup, steps, 1, [run], lab.seed, chosen, lab.threads, weights=True, progress=lab.progress)
            neurons = xor.Neurons.of(made.weights)
            a, size = np.abs(neurons.a[0]).astype(float), np.sqrt(np.sum(neurons.w[0].astype(float) ** 2, axis=-1))
            growth = np.diff(size**2 - a**2, axis=0)
            found["violations"].append(np.sum(growth > 4 * eta**2 * a[:-1] ** 2))
            found["pairs"].append(growth.size)
            found["ratio"].append(np.max(a / size))
            found["series"].append(np.max(1 - a / size, axis=1))
            found["drift"].append(np.max(np.abs(a / size - 1)))
        return {name: np.array(values) for name, values in found.items()}

    key = {"setup": setup.id, "engine": chosen, "steps": steps, "runs": runs}
    balance = lab.kept_old("xor-balance", key, make)
    lab.count(setup, chosen, runs, runs * steps)
    return balance
