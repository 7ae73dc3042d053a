"""Phase 2, the features are tuned: margins (Lemma 4.4), signal-heavy networks (Definition 4.2), and a frozen layer."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from matplotlib.ticker import NullLocator

from glasgow2023.common import Watch, tracked, watched
from glasgow2023.theory import xor
from glasgow2023.theory.xor.phases import HEAVY, Phases, summarise
from paritylab import curves, plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, between, claim, computation, size
from paritylab.claims.intervals import bootstrap, mean, share
from paritylab.claims.medians import ratio_of_medians

STARTS = {"50/50 signs": 0.5, "70/30 signs": 0.7}


class MarginRuns(Trial):
    """Runs from balanced and unbalanced signs, watched every 5 steps until the loss is below 0.05."""

    eta = size(quick=[0.1], full=[0.02, 0.1])
    width = size(quick=256, full=512)
    seeds = size(5)

    def work(self, lab: Lab) -> list[Phases]:
        about = {"d": 64, "width": self.width, "theta": 0.1, "batch": 2048}
        return watched(lab, tracked, [Watch(about | {"eta": eta, "share": share}, round(30 / eta), 5, self.seeds)
                                      for eta, share in itertools.product(self.eta, STARTS.values())])

    def named(self, got: list[Phases]) -> dict[str, Phases]:
        names = [f"eta = {eta:g}, {name}" for eta, name in itertools.product(self.eta, STARTS)]
        return dict(zip(names, got, strict=True))


def second_phase(phases: Phases, run: int) -> slice:
    """The records from the first with less than 1 % of non-signal mass to the first with a loss below 0.05."""
    share = phases["rest2"][run] / phases["size2"][run]
    first = np.flatnonzero(share < 0.01)
    last = np.flatnonzero(phases["loss"][run] < 0.05)
    end = int(last[0]) + 1 if len(last) else len(share)
    return slice(int(first[0]), end) if len(first) else slice(0, 0)


def start_of(name: str) -> str:
    """The kind of start in the name of runs.

    >>> start_of("eta = 0.1, 50/50 signs")
    '50/50 signs'
    """
    return name.rpartition(", ")[2]


def margin_growth(phases: Phases, run: int) -> dict[str, float]:
    """Of phase 2 of a run: how often gamma_min rises, both margins' growth over the lemma's, and their ratios."""
    time, margins = phases["time"], phases["margins"][run][second_phase(phases, run)]
    least, most = margins.min(1), margins.max(1)
    speeds = [float(np.mean(np.diff(np.log(each)) / (2 * (time[1] - time[0]) * xor.MARGIN_RATE * xor.slope(each[:-1]))))
              for each in (least, most)]
    return {"records": len(margins), "rising": float(np.mean(np.diff(least) >= 0)), "least_over_predicted": speeds[0],
            "most_over_predicted": speeds[1], "ratio_at_start": float(most[0] / least[0]),
            "ratio_at_end": float(most[-1] / least[-1])}


@claim(
    "glasgow2023.phase2-margins",
    where="Lemma 4.4 / Lemma D.3 items 2-3",
    kind="theory",
    title="Phase 2: smallest margin grows fastest and margins balance",
    statement="""The weakest cluster margin grows at rate 2 tau g_max and the strongest at 2 tau g_min with
    tau = sqrt2/4 and g = |l'(mu)|, so margins grow and equalise.""",
    published="""rates 2 tau g_max and 2 tau g_min, tau = sqrt2/4 (Lemma 4.4); gamma_max/gamma_min from about 1.5 to
    below 1.1, such as 0.263/0.385 at step 120 and 2.78/2.93 at step 200, theta=eta=0.1, d=64 (computed here)""",
)
class Phase2Margins(MarginRuns):
    """The weakest margin grows at the rate 2 tau g_max, and the margins become equal."""

    seeds = size(quick=5, full=17)
    rising = at_least("share of runs whose gamma_min falls in at most 2 % of records, {runs}", 0.8, part="{start}")
    speed = between("mean growth of gamma_min / (2 eta tau g_max), {runs}", 0.9, 1.1, part="{start}", claimed=1.0)
    slower = at_most("mean growth of gamma_max / (2 eta tau g_min), {runs}", 1.1, part="{start}", claimed=1.0)
    equal = at_least("share of runs whose margins end within 1.15 and closer than at first, {runs}", 0.8,
                     part="{start}")

    def judge(self, got: list[Phases]) -> Findings:
        checks, rows = [], []
        for name, phases in self.named(got).items():
            made = [margin_growth(phases, run) for run in range(self.seeds)]
            where: dict[str, Any] = {"runs": name, "start": start_of(name)}
            checks += [self.rising(*share([each["rising"] >= 0.98 for each in made]), **where),
                       self.speed(*mean([each["least_over_predicted"] for each in made]), **where),
                       self.slower(*mean([each["most_over_predicted"] for each in made]), **where),
                       self.equal(*share([each["ratio_at_end"] <= min(1.15, each["ratio_at_start"]) for each in made]),
                                  **where)]
            rows += [{"runs": name, "run": run, **each} for run, each in enumerate(made)]
        return Findings(checks, rows)

    def draw(self, got: list[Phases]) -> plots.Figure:
        return margins_plot(self.named(got))


@plots.styled
def margins_plot(made: dict[str, Phases]) -> plots.Figure:
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


CARRIED, AS_PRINTED = "one set carried along, factor 1 for exp(6H)", "as printed, at d = 64"
SERIES = {"zeta": "relaxed", "strict_zeta": "zeta", "strict_zeta_asked": "asked", "zeta_of_S": "kept",
          "outside_S_over_margin": "followed"}


def heavy_part(phases: Phases, run: int) -> slice:
    """The records from the one whose heavy set is carried along to the end of phase 2."""
    below = np.flatnonzero(phases["relaxed"][run] < HEAVY)
    return slice(int(below[0]), second_phase(phases, run).stop) if len(below) else slice(0, 0)


@computation
def carried(seed: int, engine: str, **about: Any) -> Phases:
    """As ``tracked``; ``kept`` is the largest relaxed zeta in the carried set, ``asked`` is exp(-10 H)."""
    watch = Watch(**about)
    made: list[dict[str, Floats]] = []
    for run in range(watch.runs):
        found = curves(watch.setup, watch.steps, watch.every, [run], seed=seed, engine=engine, weights=True,
                       progress=False)
        networks = xor.Neurons.of(found.weights)
        records = carry([xor.Neurons(w, a) for w, a in zip(networks.w[0], networks.a[0], strict=True)])
        made.append({"steps": found.steps, "loss": found.loss[0],
                     **{name: np.array([record[name] for record in records]) for name in records[0]}})
    steps = made[0].pop("steps")
    whole = {name: np.stack([each[name] for each in made]) for name in made[0]}
    return {"steps": steps, "time": watch.about["eta"] * steps, **whole}


def carry(networks: list[xor.Neurons]) -> list[dict[str, Any]]:
    """Summaries of a run's networks with one set S, the heavy one of the first relaxed zeta below 0.1."""
    followed: xor.Heaviness | None = None
    found: list[dict[str, Any]] = []
    for neurons in networks:
        if followed is None and (now := xor.heaviness(neurons, strict=False)).zeta < HEAVY:
            followed = now
        ratio = (neurons.perp + np.abs(neurons.opp)) / np.abs(neurons.sig)
        height = max(1.0, float(np.mean(neurons.size.astype(float) ** 2)) / 2)
        found.append(summarise(neurons, followed) | {
            "kept": float(ratio[followed.members].max()) if followed else math.nan, "asked": math.exp(-10 * height)})
    return found


@claim(
    "glasgow2023.def4-2-signal-heavy",
    where="Definition 4.2; Lemma 4.4 item 1",
    kind="theory",
    title="Signal-heavy condition persists",
    statement="""Once most mass sits in neurons with exp(6H)||w_perp|| + ||w_opp|| <= zeta ||w_sig||, and the remaining
    mass is below zeta times the smallest margin, this stays true.""",
    published="""zeta grows at most by the factor 1 + 10 eta zeta H in a step, zeta < exp(-10 H) (Definition 4.2, Lemma
    4.4); with 1 for exp(6H) zeta falls through phase 2 (computed here)""",
)
class Def42SignalHeavy(MarginRuns):
    """The smallest zeta of Definition 4.2 (relaxed: 1 in place of exp(6H)), and the mass outside the heavy set.

    Judged is the heavy set of each record's own zeta, as the setup records it; beside it one set S that is carried
    along as in Lemma D.3, the largest heavy one at the first zeta below 0.1.
    """

    seeds = size(quick=3, full=10)
    zeta = at_most("mean over runs of the largest rise of the carried set's zeta, {runs}", 1.2, part=CARRIED)
    outside = at_most("mean over runs of the largest rise of (mass outside S / gamma_min), {runs}", 1.2, part=CARRIED)
    ratio = at_least("share of runs with |a| <= (1 + 1e-5) |w| throughout, all starts", 0.8, part=CARRIED)
    printed = at_least("share of runs that are signal-heavy with zeta < exp(-10 H) at some record, all starts", 0.8,
                       part=AS_PRINTED)

    def judge(self, got: list[Phases]) -> Findings:
        checks, rows, smallest = [], [], []
        for name, phases in self.named(got).items():
            parts = [heavy_part(phases, run) for run in range(self.seeds)]
            checks += [rule(*mean([rise(phases[series][run][part]) for run, part in enumerate(parts)]), runs=name)
                       for rule, series in ((self.zeta, "kept"), (self.outside, "followed"))]
            smallest += [float(phases["zeta"][run][: part.stop].min()) for run, part in enumerate(parts)]
            rows += [{"runs": name, "run": run, "time": float(phases["time"][i]),
                      **{label: float(phases[series][run][i]) for label, series in SERIES.items()}}
                     for run, part in enumerate(parts) for i in range(part.stop)]
        within = np.concatenate([phases["ratio"].max(1) <= 1 + 1e-5 for phases in got])
        heavy = np.concatenate([np.any(phases["zeta"] < phases["asked"], axis=1) for phases in got])
        checks += [self.ratio(*share(within)), self.printed(*share(heavy))]
        return Findings(checks, rows, {"smallest zeta with the printed factor": min(smallest)})

    def draw(self, got: list[Phases]) -> plots.Figure:
        return heaviness_plot(self.named(got))

    def work(self, lab: Lab) -> list[Phases]:
        about = {"d": 64, "width": self.width, "theta": 0.1, "batch": 2048}
        return watched(lab, carried, [Watch(about | {"eta": eta, "share": share}, round(30 / eta), 5, self.seeds)
                                      for eta, share in itertools.product(self.eta, STARTS.values())])


def rise(values: Floats) -> float:
    """The largest value over the least before it; NaN for fewer than two."""
    return float(np.max(values[1:] / np.minimum.accumulate(values)[:-1])) if len(values) > 1 else math.nan


@plots.styled
def heaviness_plot(made: dict[str, Phases]) -> plots.Figure:
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


@claim(
    "glasgow2023.remark4-3-frozen",
    where="Remark 4.3",
    kind="empirical",
    title="Freezing the second layer loses the exponential feedback",
    statement="""If output weights are fixed in size the signal grows only linearly after phase 1, at a rate non-signal
    neurons can match, so the ratio between them is not maintained.""",
    published="""a linear rate if frozen, exponential growth if both layers are trained (Remark 4.3); at step 200, d=64,
    m=2048: median |w_sig| 1.89 and gamma_min 2.8, frozen 0.56 and 0.017 (computed here)""",
)
class Remark43Frozen(Trial):
    """Growth of the signal and of the margin with both layers trained, and with the second one frozen."""

    width = size(quick=256, full=512)
    m = size(quick=[32, 2048], full=[32, 128, 2048])
    seeds = size(quick=10, full=60)
    exponential = at_least(
        "median R^2 of the log-linear fit less the linear one, joint, from step 100 until g_min < 1/2 or step 200", 0,
        part="growth")
    linear = at_least("median R^2 of the linear fit, frozen, steps 100 to 200", 0.99, part="growth")
    beats = at_least("median R^2 of the linear fit less the log-linear one, frozen, steps 100 to 200", 0, part="growth")
    margin = at_least("gamma_min at step 200, joint / frozen, of medians", 20.0, part="growth")
    mass = at_least("share of runs with more non-signal mass at T if frozen, m = d/2", 0.8, part="non-signal mass")

    @property
    def points(self) -> list[tuple[int, str]]:
        return list(itertools.product(self.m, ("joint", "frozen")))

    def work(self, lab: Lab) -> list[Phases]:
        about = {"d": 64, "width": self.width, "theta": 0.1, "eta": 0.1}
        return watched(lab, tracked, [Watch(about | {"batch": m, "frozen": name == "frozen"}, 400, 5, self.seeds)
                                      for m, name in self.points])

    def both(self, got: list[Phases], m: int) -> dict[str, Phases]:
        """Both kinds of training with batches of m."""
        made = dict(zip(self.points, got, strict=True))
        return {name: made[m, name] for name in ("joint", "frozen")}

    def fits(self, got: list[Phases]) -> tuple[Floats, Floats]:
        """(runs, 2): R^2 of a line and of an exponential, with both layers trained and with the second one frozen."""
        joint, frozen = self.both(got, max(self.m)).values()
        at = joint["steps"]
        window = np.flatnonzero((at >= 100) & (at <= 200))
        return (np.array([fit_both(at, joint["sig"][run], unsaturated(joint, run, window))
                          for run in range(self.seeds)]),
                np.array([fit_both(at, frozen["sig"][run], window) for run in range(self.seeds)]))

    def least(self, got: list[Phases]) -> dict[str, Floats]:
        """The smallest margin of each run at step 200, for each kind of training."""
        large = self.both(got, max(self.m))
        return {name: phases["margins"][:, at_step(phases, 200)].min(1) for name, phases in large.items()}

    def shares(self, got: list[Phases]) -> dict[str, Floats]:
        """The share of mass that is not signal at the end, with the smallest batches."""
        return {name: (phases["rest2"] / phases["size2"])[:, -1]
                for name, phases in self.both(got, min(self.m)).items()}

    def judge(self, got: list[Phases]) -> Findings:
        joints, frozens = self.fits(got)
        least, shares = self.least(got), self.shares(got)
        medians = ((self.exponential, joints[:, 1] - joints[:, 0]), (self.linear, frozens[:, 0]),
                   (self.beats, frozens[:, 0] - frozens[:, 1]))
        checks = [rule(float(np.median(values)), bootstrap(np.median, values, rng=self.rng(place)))
                  for place, (rule, values) in enumerate(medians)]
        checks += [self.margin(ratio_of_medians(least["joint"], least["frozen"]),
                               bootstrap(ratio_of_medians, least["joint"], least["frozen"], rng=self.rng(3))),
                   self.mass(*share(shares["frozen"] > shares["joint"]))]
        return Findings(checks, self.rows(got), self.numbers(got))

    def numbers(self, got: list[Phases]) -> dict[str, float]:
        large = self.both(got, max(self.m))
        numbers = {f"median |w_sig| at step 200, {name}": float(np.median(phases["sig"][:, at_step(phases, 200)]))
                   for name, phases in large.items()}
        numbers |= {f"gamma_min at step 200, {name}": float(np.median(values))
                    for name, values in self.least(got).items()}
        return numbers | {f"non-signal share at T, m = d/2, {name}": float(np.median(values))
                          for name, values in self.shares(got).items()}

    def rows(self, got: list[Phases]) -> list[dict[str, Any]]:
        return [{"m": m, "layer": name, "run": run, "step": int(phases["steps"][i]),
                 "sig": float(phases["sig"][run][i]), "gamma_min": float(phases["margins"][run][i].min()),
                 "accuracy": float(phases["accuracy"][run][i]),
                 "nonsignal_share": float(phases["rest2"][run][i] / phases["size2"][run][i])}
                for (m, name), phases in zip(self.points, got, strict=True) for run in range(self.seeds)
                for i in range(0, len(phases["steps"]), 2)]

    def draw(self, got: list[Phases]) -> plots.Figure:
        return frozen_plot(**self.both(got, max(self.m)))


def at_step(phases: Phases, step: int) -> int:
    """The place of a step among the records."""
    return int(np.flatnonzero(phases["steps"] == step)[0])


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
def frozen_plot(joint: Phases, frozen: Phases) -> plots.Figure:
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
