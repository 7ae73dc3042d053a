"""XOR with Gaussian inputs: the rate of phase 1, and phase 2 from unbalanced signs."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from glasgow2023.common import Watch, tracked, watched
from glasgow2023.theory import xor
from glasgow2023.theory.xor.phases import Phases, growth_rate

from paritylab import plots
from paritylab.aliases import Arrays, Floats
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, between, claim, computation, rng, size
from paritylab.claims.intervals import mean, share
from paritylab_beyond.beyond.theory import xor_gaussian as gaussian

EVERY = 10


@claim(
    "beyond.xor-gaussian",
    where="glasgow2023, Section 5: Boolean data vs Gaussian data",
    kind="empirical",
    title="Gaussian inputs: phase 1 at a rate that is known, phase 2 balances even 90/10 signs",
    statement="""With N(0, I) inputs |w_sig| grows at the rate that the exact gradient with minibatch noise gives,
    below the limit sqrt(2/pi)/pi; and from 50/50, 70/30 and 90/10 signs of the output weights the four margins become
    equal and the network accurate.""",
    published="""phase 1 is believed to extend; no way is known for phase 2, where very imbalanced margins might make
    w_sig grow in the wrong direction""",
)
class XorGaussian(Trial):
    """Growth of median |w_sig| against the chain that predicts it; margins and accuracy from three kinds of start."""

    d = size(quick=[32], full=[32, 128])
    seeds = size(quick=5, full=20)
    width = size(256)
    signs = size([0.5, 0.7, 0.9], label="share of positive output weights")
    chains = size(quick=20, full=60, label="predicted runs")
    theta = eta = 0.1
    end = 60.0

    rate = between("measured rate / predicted rate, d = {d}", 0.97, 1.03)
    unequal = at_least("mean log2 of the largest margin ratio after time 10 (at most 100), signs {signs}, d = {d}", 1.0)
    balanced = at_most("mean margin ratio at the end, signs {signs}, d = {d}", 1.1)
    every = at_least("share of runs with margins within 1.15 at the end, signs {signs}, d = {d}", 0.8,
                     only=("full",))
    accurate = at_least("mean accuracy at the end, signs {signs}, d = {d}", 0.95)

    @property
    def points(self) -> list[tuple[int, float]]:
        return list(itertools.product(self.d, self.signs))

    def watch(self, d: int, signs: float) -> Watch:
        about = {"d": d, "width": self.width, "theta": self.theta, "eta": self.eta, "batch": 4 * d, "share": signs}
        return Watch(about, round(self.end / self.eta), EVERY, self.seeds, eval_size=4000, gaussian=True)

    def work(self, lab: Lab) -> tuple[list[Phases], list[Arrays]]:
        asked = [{"d": d, "width": self.width, "theta": self.theta, "eta": self.eta, "batch": 4 * d,
                  "steps": math.ceil(12 * math.log(d) / self.eta), "runs": self.chains} for d in self.d]
        return (watched(lab, tracked, [self.watch(d, signs) for d, signs in self.points]),
                lab.compute_each(predicted_rates, asked))

    def judge(self, got: tuple[list[Phases], list[Arrays]]) -> Findings:
        checks, rows, numbers = [], [], {}
        predicted = dict(zip(self.d, got[1], strict=True))
        for (d, signs), phases in zip(self.points, got[0], strict=True):
            where = {"d": d, "signs": said(signs)}
            rates = np.array([growth_rate(phases["time"], sig, self.theta)[0] for sig in phases["sig"]])
            if signs == 0.5:
                checks.append(self.rate(*mean(rates / predicted[d]["rates"].mean()), d=d))
                numbers |= rate_numbers(d, rates, predicted[d])
            ratios, accuracy = self.ratios(phases), phases["accuracy"]
            checks += [self.balanced(*mean(ratios[:, -1]), **where), self.accurate(*mean(accuracy[:, -1]), **where)]
            if self.size == "full":
                checks.append(self.every(*share(ratios[:, -1] <= 1.15), **where))
            if signs != 0.5:
                checks.append(self.unequal(*mean(np.log2(ratios.max(axis=1).clip(max=100))), **where))
            rows += [{"d": d, "signs": signs, "run": run, "rate": float(rates[run]),
                      "largest_ratio": float(ratios[run].max()), "ratio_at_end": float(ratios[run, -1]),
                      "accuracy": float(accuracy[run, -1]), "loss": float(phases["loss"][run, -1])}
                     for run in range(self.seeds)]
        numbers["limit of the rate, sqrt(2/pi)/pi"] = xor.GAUSSIAN_RATE
        return Findings(checks, rows, numbers)

    def ratios(self, phases: Phases) -> Floats:
        """Largest margin over smallest, (runs, points) from time 10 on; infinite where one is not positive."""
        margins = phases["margins"][:, phases["time"] >= 10 - 1e-9]
        least, most = margins.min(axis=2), margins.max(axis=2)
        return np.where(least > 0, most / np.where(least > 0, least, 1.0), np.inf)

    def draw(self, got: tuple[list[Phases], list[Arrays]]) -> plots.Figure:
        d = max(self.d)
        chosen = {said(signs): phases for (each, signs), phases in zip(self.points, got[0], strict=True) if each == d}
        return draw_balance(chosen, self.theta, d)


def said(signs: float) -> str:
    """
    >>> said(0.7)
    '70/30'
    """
    return f"{round(100 * signs)}/{round(100 - 100 * signs)}"


def rate_numbers(d: int, rates: Floats, predicted: Arrays) -> dict[str, float]:
    """Measured and predicted rates, and what the bend of the ReLU and discrete steps alone leave."""
    measured, (low, high) = mean(rates)
    return {f"measured rate, d = {d}": measured, f"its lower end, d = {d}": low, f"its upper end, d = {d}": high,
            f"predicted rate, d = {d}": float(predicted["rates"].mean()),
            f"predicted rate without minibatch noise, d = {d}": float(predicted["quiet"].mean())}


@computation
def predicted_rates(
    seed: int, d: int, width: int, theta: float, eta: float, batch: int, steps: int, runs: int
) -> dict[str, Any]:
    """Rates fitted to the chain of :mod:`.theory.xor_gaussian` as to a run, with and without noise."""
    time = eta * np.arange(0, steps + 1, EVERY)
    found: dict[str, list[float]] = {"rates": [], "quiet": []}
    for name, run in itertools.product(found, range(runs)):
        signal = gaussian.median_signal(d, width, theta, eta, batch, steps, rng(seed, 31, d, run), name == "rates")
        found[name].append(growth_rate(time, signal[::EVERY], theta)[0])
    return found


@plots.styled
def draw_balance(made: dict[str, Phases], theta: float, d: int) -> plots.Figure:
    """From above: the signal beside its limiting law, margin ratios, accuracy; medians over runs."""
    figure = plots.blank(4.4)
    above, middle, below = figure.subplots(3, 1, sharex=True)
    for (name, phases), colour, line in zip(made.items(), plots.COLOURS, plots.LINES, strict=False):
        time, margins = phases["time"], phases["margins"]
        above.plot(time, np.median(phases["sig"], axis=0), color=colour, linestyle=line, label=f"signs {name}")
        late = time >= 10
        middle.plot(time[late], np.median(margins.max(2) / margins.min(2), axis=0)[late], color=colour, linestyle=line)
        below.plot(time, np.median(phases["accuracy"], axis=0), color=colour, linestyle=line)
    first = next(iter(made.values()))
    start, early = float(np.median(first["sig"][:, 0])), first["time"][first["time"] <= 20]
    above.plot(early, start * np.exp(xor.GAUSSIAN_RATE * early), color=plots.GREY, linewidth=0.8,
               linestyle="dotted", label=r"$e^{t\sqrt{2/\pi}/\pi}$")
    above.axhline(theta, color=plots.GREY, linewidth=0.5)
    above.set(yscale="log", ylabel="median $|w_{sig}|$", title=f"d = {d}, Gaussian inputs")
    middle.set(yscale="log", ylabel=r"$\gamma_{max}/\gamma_{min}$")
    middle.set_yticks(ticks := [1, 2, 5, 10, 20], [f"{tick}" for tick in ticks])
    middle.minorticks_off()
    below.set(xlabel=r"time $\eta t$", ylabel="accuracy", ylim=(0.45, 1.02))
    figure.legend(*above.get_legend_handles_labels(), loc="outside upper center", ncols=2)
    figure.align_ylabels()
    return figure
