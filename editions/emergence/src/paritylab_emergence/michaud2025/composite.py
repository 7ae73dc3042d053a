"""The composite with its parts and without them: whether it is learned, after what, and how soon (Figure 2)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from paritylab import plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Rule, at_least, at_most, claim, holds, significant, size
from paritylab.claims.intervals import estimate, proportion, share
from paritylab.claims.published import fisher
from paritylab.engines.curves import Curves
from paritylab_emergence.michaud2025.common import Composite, Losses, Row, counts
from paritylab_emergence.michaud2025.figures import arrivals, shares

STOPPED = """Runs stop at 4e8 examples: no published run of this network converged later. Losses are taken every 50
steps and at each of the last 100, where the published ones are of every step."""
SMALLER = "A smaller problem: parts of 3 bits instead of 4, 32 task bits, widths of 64, 400 examples of a task."


@claim(
    "michaud2025.broad",
    where="Figure 2 (bottom left); released figure notebook, counting cells",
    kind="empirical",
    title="With its parts in the data, a 16-bit parity is learned",
    statement="""Trained on four 4-bit parities together with the parity of all their 16 bits, about two thirds of
    networks learn the composite.""",
    published="27 of 40 networks converged: 0.675, 95 % interval 0.51 to 0.81",
)
class Broad(Composite):
    """The share of networks with two hidden layers that learn the composite beside its parts."""

    agrees = at_least("Fisher's p of the share that converged against 27 of 40", 0.01, exact=True, only=("full",))
    most = at_least("share of runs with a loss on the composite below 0.5 bits at the end", 0.5, only=("standard",))
    learns = at_most("loss on the composite at the end in bits, run {run}", 0.5, only=("quick",))

    def work(self, lab: Lab) -> list[Curves]:
        return self.broad(lab)

    def judge(self, got: list[Curves]) -> Findings:
        losses = Losses.of(got)
        converged, total = int(losses.converged.sum()), len(losses.converged)
        if self.size == "full":
            checks = [self.agrees(fisher((converged, total), counts(2, self.width)))]
        elif self.size == "standard":
            checks = [self.most(*share([loss < 0.5 for loss, _ in losses.final]))]
        else:
            checks = [self.learns(*final, run=run) for run, final in enumerate(losses.final)]
        value, (low, high) = proportion(converged, total)
        numbers = {"share that converged": value, "lower end": low, "upper end": high}
        return Findings(checks, rows(losses), numbers, STOPPED if self.size == "full" else SMALLER)

    def draw(self, got: list[Curves]) -> plots.Figure:
        losses = Losses.of(got)
        shown = {"the composite": losses.bits[..., -1], "its parts, mean": losses.bits[..., :-1].mean(axis=-1)}
        return plots.bands_plot({label: (self.examples(losses.steps[1:]), values[:, 1:])
                                 for label, values in shown.items()},
                                "loss in bits", "examples", log="x", rising=False)


def rows(losses: Losses) -> list[Row]:
    """What each run does."""
    names = ["composite"] if losses.bits.shape[-1] == 1 else [*(f"part {i + 1}" for i in range(4)), "composite"]
    return [{"run": run, "converged": bool(converged), "final loss in bits": final,
             **{f"step, {name}": int(time) if np.isfinite(time) else None
                for name, time in zip(names, times, strict=True)}}
            for run, (converged, (final, _), times) in
            enumerate(zip(losses.converged, losses.final, losses.times, strict=True))]


# --- the composite alone --------------------------------------------------------------------------------------------


class Both(NamedTuple):
    """Runs on the composite alone, and with its parts."""

    alone: list[Curves]
    broad: list[Curves]


@claim(
    "michaud2025.narrow",
    where="Figure 2 (bottom left); released figure notebook, counting cells",
    kind="empirical",
    title="On the composite alone nothing is learned",
    statement="""The same network trained only on the 16-bit parity stays at chance for 2e9 examples in every run.""",
    published="0 of 40 networks converged: 95 % interval 0 to 0.09",
)
class Narrow(Composite):
    """The same network on the composite alone, as many steps as there were published."""

    alone_steps = size(quick=8000, standard=12_000, full=1_000_000, label="steps on the composite alone")
    alone_every = size(quick=50, standard=50, full=500, label="steps from check to check on the composite alone")
    alone_runs = size(quick=1, standard=20, full=40, label="runs on the composite alone")

    agrees = at_least("Fisher's p of the share that converged against 0 of 40", 0.01, exact=True, only=("full",))
    apart = significant("Fisher's p of the difference to the runs with parts", 1e-6, only=("standard", "full"))
    chance = at_least("loss on the composite at the end in bits, run {run}", 0.95, only=("quick",))

    def work(self, lab: Lab) -> Both:
        setup = self.setup([self.width] * 2, alone=True)
        alone = self.record(lab, setup, self.alone_steps, self.alone_every, self.alone_runs)
        return Both(alone, self.broad(lab))

    def judge(self, got: Both) -> Findings:
        alone, broad = Losses.of(got.alone), Losses.of(got.broad)
        found, with_parts = ((int(each.converged.sum()), len(each.converged)) for each in (alone, broad))
        checks = [self.apart(fisher(found, with_parts))] if self.size != "quick" else \
            [self.chance(*final, run=run) for run, final in enumerate(alone.final)]
        if self.size == "full":
            checks.insert(0, self.agrees(fisher(found, counts(2, self.width, alone=True))))
        value, (_, high) = proportion(*found)
        numbers = {"share that converged": value, "upper end": high, "share with parts": proportion(*with_parts)[0]}
        return Findings(checks, rows(alone), numbers, STOPPED if self.size == "full" else SMALLER)

    def draw(self, got: Both) -> plots.Figure:
        ours = {"with its parts": Losses.of(got.broad), "alone": Losses.of(got.alone)}
        found = {label: (int(each.converged.sum()), len(each.converged)) for label, each in ours.items()}
        published = {"with its parts": counts(2, 128), "alone": counts(2, 128, alone=True)}
        return shares(found, published, self.size != "full")


# --- when -----------------------------------------------------------------------------------------------------------


@claim(
    "michaud2025.order",
    where="Figure 2 (top)",
    kind="empirical",
    title="Parts first, composite after",
    statement="In runs that learn the composite, all four parts are learned before it.",
    published="the drawn run learns its parts at 1.1e7 to 2e7 examples and the composite at about 5e7",
)
class Order(Composite):
    """The first steps with losses below 0.1 bits: of the parts, and of the composite."""

    last = Rule("share of converged runs that learn the composite last",
                "at least 0.95, and the lower end of its 95 % interval at least 0.9", only=("standard", "full"))
    later = at_least("median steps to the composite / to the last part", 1.5, only=("standard", "full"))
    always = holds("the composite is learned last, or not yet when all parts are, run {run}", exact=True,
                   only=("quick",))

    def work(self, lab: Lab) -> list[Curves]:
        return self.broad(lab)

    def judge(self, got: list[Curves]) -> Findings:
        losses = Losses.of(got)
        times = losses.times[losses.converged]
        parts, composite = times[:, :-1].max(axis=1, initial=0), times[:, -1]
        if self.size == "quick":
            checks = [self.always(comes_last(each), run=run) for run, each in enumerate(losses.times)]
        elif not len(times):
            checks = [self.last(None, passed=None), self.later(None)]
        else:
            value, (low, high) = share(composite > parts)
            checks = [self.last(value, passed=value >= LAST_SHARE and low >= LAST_LOW, interval=(low, high),
                                certain=high < LAST_SHARE),
                      self.later(*estimate(np.median, composite / parts, rng=self.rng(0)))]
        return Findings(checks, rows(losses), {"converged runs": float(len(times))},
                        STOPPED if self.size == "full" else SMALLER)

    def draw(self, got: list[Curves]) -> plots.Figure:
        losses = Losses.of(got)
        times, end = self.examples(losses.times), self.examples(self.steps)
        tasks = {**{f"part {i + 1}": times[:, i] for i in range(times.shape[1] - 1)}, "composite": times[:, -1]}
        return arrivals(tasks, end, "share of runs that learned it")


LAST_SHARE, LAST_LOW = 0.95, 0.9


def comes_last(times: Floats) -> bool | None:
    """Whether the last of these tasks is learned after the others; None where it is not told by the end of the run.

    >>> comes_last(np.array([3, 2, 5])), comes_last(np.array([3, 2, np.inf])), comes_last(np.array([3, 7, 5]))
    (True, True, False)
    """
    parts, composite = float(times[:-1].max()), float(times[-1])
    return None if np.isinf(parts) and np.isinf(composite) else composite > parts


@claim(
    "michaud2025.speed",
    where="Section 2 (text on the broad distribution); Figure 2 (bottom left)",
    kind="empirical",
    title="Converged runs need at most 2e8 examples",
    statement="""Networks with two hidden layers that learn the composite from the broad data do so within 2e8
    examples.""",
    published="all 27 converged runs within 2e8 examples (20,000 steps); 95 % interval of that share 0.87 to 1",
)
class Speed(Composite):
    """How many of the runs that converge by 4e8 examples do so by 2e8."""

    soon = at_least("Fisher's p of the share of converged runs that learn by 2e8 examples against 27 of 27", 0.01,
                    exact=True)

    bound = 2e8

    def work(self, lab: Lab) -> list[Curves]:
        return self.broad(lab)

    def judge(self, got: list[Curves]) -> Findings:
        losses = Losses.of(got)
        needed = self.examples(losses.times[losses.converged, -1])
        numbers = {"converged runs": float(len(needed)),
                   "median examples of converged runs": float(np.median(needed)) if len(needed) else None,
                   "most examples of a converged run": float(needed.max()) if len(needed) else None}
        if self.size != "full":
            note = f"{SMALLER} The bound is one of the published problem: nothing is judged at this size."
            return Findings([self.soon(None)], rows(losses), numbers, note)
        soon = int(np.sum(needed <= self.bound))
        numbers["of them by 2e8 examples"] = float(soon)
        checks = [self.soon(fisher((soon, len(needed)), (27, 27)) if len(needed) else None)]
        return Findings(checks, rows(losses), numbers, STOPPED)

    def draw(self, got: list[Curves]) -> plots.Figure:
        bounds = {"the published bound": self.bound} if self.size == "full" else {}
        return arrivals({"composite": self.examples(Losses.of(got).times[:, -1])}, self.examples(self.steps),
                        "share of runs that learned", bounds)
