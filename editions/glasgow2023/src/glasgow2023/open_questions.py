"""What Section 5 leaves open: batches of one sample, and Gaussian inputs."""

from __future__ import annotations

import math

import numpy as np

from glasgow2023.common import Watch, network, tracked, watched
from glasgow2023.theory import xor
from glasgow2023.theory.xor.phases import Phases, growth_rate
from paritylab import Protocol, plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Rule, Trial, at_least, at_most, between, claim, size
from paritylab.claims.intervals import bootstrap, mean, share
from paritylab.claims.medians import exponent, samples, spread
from paritylab.running.sweeps import Result


@claim(
    "glasgow2023.open-batch1",
    where="Section 5 (open question)",
    kind="empirical",
    title="Batch size one",
    statement="""Whether plain SGD with one sample per step also needs only about d samples is left open; a scaling
    experiment can probe it.""",
    published="no published value",
)
class OpenBatch1(Trial):
    """Samples to 99 % with one sample a step, at rates 0.25/d and 1/d."""

    d = size(quick=[20, 40, 80], full=[20, 40, 80, 160])
    seeds = size(10)
    rates = (0.25, 1.0)

    slope = Rule("slope of log median samples on log d, eta = {rate:g}/d", "95 % interval in 0.8 to 1.7")

    def work(self, lab: Lab) -> list[list[Result]]:
        protocols = {d: Protocol(max_steps=400 * d, eval_every=d // 4, eval_size=4000, threshold=0.99) for d in self.d}
        return [lab.sweep([network(d, 128, 0.3, rate / d, 1, protocols[d]) for d in self.d], self.seeds)
                for rate in self.rates]

    def needed(self, got: list[list[Result]]) -> dict[float, list[Floats]]:
        """Samples of each run, for each d, at each rate."""
        return {rate: [samples(result.records, 1) for result in results]
                for rate, results in zip(self.rates, got, strict=True)}

    def judge(self, got: list[list[Result]]) -> Findings:
        checks, rows = [], []
        for rate, needed in self.needed(got).items():
            slope, interval = exponent(self.d, needed)
            supported = None if math.isnan(slope) else interval[0] >= 0.8 and interval[1] <= 1.7
            checks.append(self.slope(slope, passed=supported, interval=interval, rate=rate))
            rows += [{"eta": rate / d, "d": d, "run": run, "samples": float(value) if value < np.inf else None}
                     for d, values in zip(self.d, needed, strict=True) for run, value in enumerate(values)]
        return Findings(checks, rows)

    def draw(self, got: list[list[Result]]) -> plots.Figure:
        needed = self.needed(got)
        law = np.array([min(self.d), max(self.d)], float)
        start = float(np.asarray(spread(self.d, needed[1.0]).y)[0]) / (law[0] * math.log(law[0]))
        return plots.scaling_plot({rf"$\eta = {rate:g}/d$": spread(self.d, each) for rate, each in needed.items()},
                                  "inputs $d$", "samples to 99 %, one a step",
                                  {r"$\propto d\,\ln d$": (law, start * law * np.log(law))})


@claim(
    "glasgow2023.open-gaussian",
    where="Section 5 (open question)",
    kind="empirical",
    title="Gaussian instead of Boolean inputs",
    statement="""The proof covers only the cube; the same training on N(0,I) inputs with y = -sign(x1 x2) is expected to
    pass phase 1, phase 2 is unclear.""",
    published="no published value",
)
class OpenGaussian(Trial):
    """Growth of |w_sig| and final accuracy with N(0, I) inputs, the label still the sign of x1 x2."""

    d = size(quick=[32], full=[32, 64, 128])
    width = size(256)
    theta = eta = 0.1
    seeds = size(quick=3, full=20)
    fit = at_least("median R^2 of the log-linear fit of median |w_sig| up to theta, d = {d}", 0.98, part="phase 1")
    rate = between("mean growth rate of median |w_sig|, d = {d}", round(0.9 * xor.GAUSSIAN_RATE, 4),
                   round(1.1 * xor.GAUSSIAN_RATE, 4), part="phase 1", claimed=xor.GAUSSIAN_RATE)
    balanced = at_least("share of runs whose margins end within 1.15, all d", 0.8, part="phase 2")
    accuracy = at_least("mean accuracy at T, d = {d}", 0.95, part="phase 2")
    falling = at_most("slope of log median error at T on log d", 0, part="phase 2", only=("standard", "full"))

    def watch(self, d: int) -> Watch:
        about = {"d": d, "width": self.width, "theta": self.theta, "eta": self.eta, "batch": 4 * d}
        return Watch(about, math.ceil(12 * math.log(d) / self.eta), 5, self.seeds, eval_size=4000, gaussian=True)

    def work(self, lab: Lab) -> list[Phases]:
        return watched(lab, tracked, [self.watch(d) for d in self.d])

    def judge(self, got: list[Phases]) -> Findings:
        checks, rows, numbers = [], [], {}
        for d, phases in zip(self.d, got, strict=True):
            rates, fits = np.array([growth_rate(phases["time"], sig, self.theta) for sig in phases["sig"]]).T
            accuracy, margins = phases["accuracy"][:, -1], phases["margins"][:, -1]
            checks += [self.fit(float(np.median(fits)), bootstrap(np.median, fits, rng=self.rng(d)), d=d),
                       self.rate(*mean(rates), d=d), self.accuracy(*mean(accuracy), d=d)]
            numbers[f"growth rate of |w_sig|, d = {d}"] = float(np.median(rates))
            numbers[f"final accuracy, median, d = {d}"] = float(np.median(accuracy))
            numbers[f"final accuracy, least, d = {d}"] = float(accuracy.min())
            rows += [{"d": d, "run": run, "rate": float(rates[run]), "r_squared": float(fits[run]),
                      "accuracy": float(accuracy[run]), "loss": float(phases["loss"][run, -1]),
                      "margin_ratio": float(margins[run].max() / margins[run].min())} for run in range(len(rates))]
        ends = np.concatenate([phases["margins"][:, -1] for phases in got])
        checks.append(self.balanced(*share(ends.max(1) <= 1.15 * ends.min(1))))
        if len(self.d) > 1:
            checks.append(self.falling(*exponent(self.d, [1 - phases["accuracy"][:, -1] for phases in got])))
        numbers["predicted growth rate, sqrt(2/pi) / pi"] = xor.GAUSSIAN_RATE
        return Findings(checks, rows, numbers)

    def draw(self, got: list[Phases]) -> plots.Figure:
        return gaussian_plot({f"d = {d}": phases for d, phases in zip(self.d, got, strict=True)}, self.theta)


@plots.styled
def gaussian_plot(made: dict[str, Phases], theta: float) -> plots.Figure:
    figure = plots.blank(2.3)
    left, right = figure.subplots(1, 2)
    for (name, phases), colour, line in zip(made.items(), plots.COLOURS, plots.LINES, strict=False):
        left.plot(phases["time"], np.median(phases["sig"], axis=0), color=colour, linestyle=line, label=name)
        right.plot(phases["time"], np.median(phases["accuracy"], axis=0), color=colour, linestyle=line)
    left.axhline(theta, color=plots.GREY, linewidth=0.8, linestyle="dotted")
    left.annotate(r"$\theta$", (0.97, theta), (0, 2), xycoords=("axes fraction", "data"), textcoords="offset points",
                  fontsize=7, color=plots.GREY)
    left.set(yscale="log", xlabel=r"time $\eta t$", ylabel="median $|w_{sig}|$")
    right.set(xlabel=r"time $\eta t$", ylabel="accuracy", ylim=(0.45, 1.02))
    figure.legend(*left.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure
