"""Phase 1, the signal is found: equation 4.3, Lemma 4.1, and the balance of the layers (Lemma B.13)."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from glasgow2023.common import Watch, network, ratio_of_means, tracked, watched
from glasgow2023.theory import xor
from glasgow2023.theory.xor.gradients import active_mean
from glasgow2023.theory.xor.phases import Phases, growth_rate
from paritylab import Curves, curves, plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, between, claim, computation, rng, size
from paritylab.claims.intervals import bootstrap, mean, share


@claim(
    "glasgow2023.eq4-3-rate",
    where="Equation (4.3); Section 4.1; Appendix C.2",
    kind="empirical",
    title="Exponential growth of the signal component in phase 1",
    statement="""While the network output is small each neuron's signal part multiplies by
    1 + eta |a|/(||w|| sqrt(2 pi)) per step and its opposite part shrinks at the same rate; w_perp and |a| hardly
    move.""",
    published="""rate 1/sqrt(2 pi) = 0.3989 per unit of time eta t (Equation 4.3); median |w_sig| 0.0076, 0.0166, 0.0358
    at steps 0, 20, 40 with d=64, theta=eta=0.1 (computed here)""",
)
class Eq43Rate(Trial):
    """Medians of |w_sig| and |w_opp| against time, near the population's gradient."""

    d = size(quick=[64], full=[64, 256])
    eta = size(quick=[0.1], full=[0.02, 0.1])
    width = size(quick=256, full=512)
    share = size(quick=32, full=50, label="batch / d")
    seeds = size(quick=3, full=5)
    theta = 0.1
    signal = between("slope of log median |w_sig|, d = {d}, eta = {eta:g}", 0.36, 0.44)
    opposite = between("slope of log median |w_opp|, d = {d}, eta = {eta:g}", -0.44, -0.36, claimed=-0.3989)
    change = at_most("mean relative change of |{part}|, d = {d}, eta = {eta:g}", 0.15)

    def watch(self, d: int, eta: float) -> Watch:
        about = {"d": d, "width": self.width, "theta": self.theta, "eta": eta, "batch": self.share * d}
        return Watch(about, math.ceil((math.log(0.45 * math.sqrt(d)) / 0.36 + 0.5) / eta), 1, self.seeds, eval_size=200)

    def work(self, lab: Lab) -> tuple[list[Phases], list[dict[str, Floats]]]:
        watches = [self.watch(d, eta) for d, eta in itertools.product(self.d, self.eta)]
        return watched(lab, tracked, watches), lab.compute_each(exact_ratio, [{"d": d, "neurons": 100} for d in self.d])

    def judge(self, got: tuple[list[Phases], list[dict[str, Floats]]]) -> Findings:
        checks, rows, numbers = [], [], {}
        exact = dict(zip(self.d, got[1], strict=True))
        for (d, eta), phases in zip(itertools.product(self.d, self.eta), got[0], strict=True):
            where = f"d = {d}, eta = {eta:g}"
            windows = [Window(phases, run, self.theta, self.share * d) for run in range(self.seeds)]
            checks += [self.signal(*mean([window.sig for window in windows]), d=d, eta=eta),
                       self.opposite(*mean([window.opp for window in windows]), d=d, eta=eta)]
            checks += [self.change(*mean([window.change(part) for window in windows]), part=part, d=d, eta=eta)
                       for part in ("perp", "a")]
            ratio = np.mean([window.sig / window.predicted for window in windows])
            numbers[f"measured / predicted growth of |w_sig|, {where}"] = float(ratio)
            rows += [{"d": d, "eta": eta, "run": run, "time": float(time),
                      **{name: float(phases[name][run][i]) for name in ("sig", "opp", "perp", "a")}}
                     for run in range(self.seeds) for i, time in enumerate(phases["time"])]
            if eta == self.eta[-1]:
                numbers[f"exact population gradient / equation 4.3 at the start, d = {d}"] = float(exact[d]["ratio"])
        return Findings(checks, rows, numbers)

    def draw(self, got: tuple[list[Phases], list[dict[str, Floats]]]) -> plots.Figure:
        made = zip(itertools.product(self.d, self.eta), got[0], strict=True)
        return growth_plot({f"d = {d}": (phases, 2 * self.theta / math.sqrt(self.share * d))
                            for (d, eta), phases in made if eta == self.eta[-1]})


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


@computation
def exact_ratio(seed: int, d: int, neurons: int) -> dict[str, Any]:
    """-w_sig . grad L0 of random neurons, exact, over what equation 4.3 makes of it: a mean weighted by |w_sig|^2."""
    w = rng(seed, d).standard_normal((neurons, d))
    w /= np.linalg.norm(w, axis=1, keepdims=True)
    sig = (w[:, 0] + w[:, 1]) / math.sqrt(2)
    exact = np.array([active_mean(each)[:2].sum() for each in w]) / math.sqrt(2) * sig
    return {"ratio": exact.sum() / (xor.RATE * sig**2).sum()}


@plots.styled
def growth_plot(shown: dict[str, tuple[Phases, float]]) -> plots.Figure:
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


@claim(
    "glasgow2023.lemma4-1",
    where="Lemma 4.1 / Lemma C.1",
    kind="theory",
    title="State at the end of phase 1",
    statement="""After O(log d/eta) steps the non-signal mass is still small while for each of the four cluster
    directions at least 10% of the neurons are signal-dominated.""",
    published="""at least 0.1 of the neurons for each direction, E|w_perp + w_opp|^2 <= 4 theta^2, E|a w| <= 1 (Lemma
    C.1); about a quarter for each direction, non-signal mass from 0.98 to below 0.1 of the total (computed here)""",
)
class Lemma41(Trial):
    """The neurons at T1: which point to which cluster, and what mass is not signal."""

    d = size(quick=[64], full=[64, 256])
    width = size(quick=256, full=512)
    theta = eta = 0.1
    seeds = size(quick=5, full=20)
    good = at_least("share of runs with all three conditions, d = {d}", 0.8, claimed=1.0)

    def last(self, d: int) -> int:
        return round((0.5 * math.log(d) + 2) / (0.4 * self.eta))

    def work(self, lab: Lab) -> list[Curves]:
        return [lab.curves(network(d, self.width, self.theta, self.eta, 8 * d), [0, self.last(d)], runs=self.seeds,
                           weights=True) for d in self.d]

    def neurons(self, got: list[Curves]) -> dict[int, tuple[xor.Neurons, xor.Neurons]]:
        """Those of all runs at the start and at T1, for each d."""
        made = {d: xor.Neurons.of(recorded.weights) for d, recorded in zip(self.d, got, strict=True)}
        return {d: (xor.Neurons(all_.w[:, 0], all_.a[:, 0]), xor.Neurons(all_.w[:, 1], all_.a[:, 1]))
                for d, all_ in made.items()}

    def judge(self, got: list[Curves]) -> Findings:
        checks, rows, numbers = [], [], {}
        for d, (first, after) in self.neurons(got).items():
            rest = after.perp**2 + after.opp**2
            heavy = np.abs(after.sig) >= 3 * np.sqrt(rest)
            towards = (after.w[..., :2] @ xor.CLUSTERS.T > 0) & (after.a[..., None] * xor.LABELS > 0)  # w_sig . mu > 0
            shares = np.mean(heavy[..., None] & towards, axis=1)
            mass, product = rest.mean(1), np.mean(np.abs(after.a) * after.size, axis=1)
            good = (shares.min(1) >= 0.1) & (mass <= 4 * self.theta**2) & (product <= 1)
            checks.append(self.good(*share(good), d=d))
            whole = [np.mean(part.size**2, axis=1) for part in (first, after)]
            before = np.mean(first.perp**2 + first.opp**2, axis=1) / whole[0]
            numbers |= {
                f"least share of neurons of a direction, over all seeds, d = {d}": float(shares.min()),
                f"largest E|w_perp + w_opp|^2 / theta^2, d = {d}": float(mass.max()) / self.theta**2,
                f"largest E|a w|, d = {d}": float(product.max()),
                f"share of non-signal mass at the start, d = {d}": float(np.median(before)),
                f"share of non-signal mass at T1, d = {d}": float(np.median(mass / whole[1])),
            }
            rows += [{"d": d, "run": run, "steps": self.last(d),
                      **{f"share_{i + 1}": float(shares[run, i]) for i in range(4)},
                      "nonsignal_mass": float(mass[run]), "nonsignal_share": float(mass[run] / whole[1][run]),
                      "nonsignal_share_at_start": float(before[run]), "mean_aw": float(product[run])}
                     for run in range(self.seeds)]
        return Findings(checks, rows, numbers)

    def draw(self, got: list[Curves]) -> plots.Figure:
        return cloud_plot({f"d = {d}, step {self.last(d)}": xor.Neurons(after.w[0], after.a[0])
                           for d, (_, after) in self.neurons(got).items()})


@plots.styled
def cloud_plot(clouds: dict[str, xor.Neurons]) -> plots.Figure:
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


@claim(
    "glasgow2023.lemma-b13",
    where="Lemma B.13; footnote 4",
    kind="theory",
    title="Layer balance is preserved",
    statement="""With both layers trained, |a| <= ||w|| stays true and ||w||^2 - a^2 grows by at most 4 eta^2 a^2 per
    step.""",
    published="""|a| <= |w|, and growth of at most 4 eta^2 a^2 a step (Lemma B.13); | |a|/|w| - 1 | up to about 1 % at
    eta=0.1 (computed here)""",
)
class LemmaB13(Trial):
    """|w|^2 - a^2 of every neuron at every step."""

    d = size(quick=[32], full=[32, 128])
    width = size(quick=64, full=128)
    theta, fast, slow = 0.3, 0.25, 0.05
    drift = between("drift at eta = 0.25 / at 0.05, d = {d}", 3.0, 8.0)
    seeds = size(quick=5, full=10)
    growth = at_least("share of runs in which |w|^2 - a^2 never grows by more than 4 eta^2 a^2 in a step", 0.9,
                      claimed=1.0)
    ratio = at_least("share of runs with |a| <= (1 + 1e-5) |w| throughout", 0.9, claimed=1.0)

    @property
    def points(self) -> list[tuple[int, float]]:
        return list(itertools.product(self.d, (self.fast, self.slow)))

    def work(self, lab: Lab) -> list[dict[str, Floats]]:
        return watched(lab, balance, [self.watch(d, eta) for d, eta in self.points])

    def watch(self, d: int, eta: float) -> Watch:
        batch = round(d * math.log(d) ** 2)
        about = {"d": d, "width": self.width, "theta": self.theta, "eta": eta, "batch": batch}
        return Watch(about, math.ceil(12 * math.log(d) / eta), 1, self.seeds, eval_size=200)

    def judge(self, got: list[dict[str, Floats]]) -> Findings:
        found = dict(zip(self.points, got, strict=True))
        kept = np.concatenate([np.asarray(each["violations"]) == 0 for each in got])
        below = np.concatenate([np.asarray(each["ratio"]) <= 1 + 1e-5 for each in got])
        checks = [self.growth(*share(kept)), self.ratio(*share(below))]
        for d in self.d:
            fast, slow = (np.asarray(found[d, eta]["drift"], float) for eta in (self.fast, self.slow))
            interval = bootstrap(ratio_of_means, fast, slow, rng=self.rng(d))
            checks.append(self.drift(ratio_of_means(fast, slow), interval, d=d))
        return Findings(checks, self.rows(got))

    def rows(self, got: list[dict[str, Floats]]) -> list[dict[str, Any]]:
        return [{"d": d, "eta": eta, "run": run, "violations": int(each["violations"][run]),
                 "largest_ratio": float(each["ratio"][run]), "drift": float(each["drift"][run])}
                for (d, eta), each in zip(self.points, got, strict=True) for run in range(self.seeds)]

    def draw(self, got: list[dict[str, Floats]]) -> plots.Figure:
        series: dict[str, plots.Series] = {}
        for (d, eta), each in zip(self.points, got, strict=True):
            drift = np.median(each["series"], axis=0)
            some = np.unique(np.geomspace(1, len(drift) - 1, 40).astype(int))
            series[rf"$d = {d}$, $\eta = {eta:g}$"] = plots.Series(eta * some, drift[some])
        return plots.scaling_plot(series, r"time $\eta t$", r"largest $1 - |a|/|w|$ of a network")


@computation
def balance(seed: int, engine: str, **about: Any) -> dict[str, Any]:
    """Over all neurons and steps of each run: broken inequalities, largest |a|/|w|, largest 1 - |a|/|w|."""
    watch = Watch(**about)
    setup, eta = watch.setup, watch.about["eta"]
    found: dict[str, list[Any]] = {name: [] for name in ("violations", "pairs", "ratio", "drift", "series")}
    for run in range(watch.runs):
        made = curves(setup, watch.steps, watch.every, [run], seed=seed, engine=engine, weights=True, progress=False)
        neurons = xor.Neurons.of(made.weights)
        a, norm = np.abs(neurons.a[0]).astype(float), np.sqrt(np.sum(neurons.w[0].astype(float) ** 2, axis=-1))
        growth = np.diff(norm**2 - a**2, axis=0)
        found["violations"].append(np.sum(growth > 4 * eta**2 * a[:-1] ** 2))
        found["pairs"].append(growth.size)
        found["ratio"].append(np.max(a / norm))
        found["series"].append(np.max(1 - a / norm, axis=1))
        found["drift"].append(np.max(np.abs(a / norm - 1)))
    return found
