"""One large step on the first layer, then the second layer alone: Theorem 4, Lemmas 3 and 4, Claim 5."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from barak2022.theory import bumps, two_stage
from barak2022.theory.expressing import expresses_parity
from barak2022.theory.large_batch import streamed_gradient
from paritylab import plots
from paritylab.claims import Check, Findings, Lab, Trial, at_least, at_most, between, claim, computation, rng, size
from paritylab.claims.intervals import mean, share
from paritylab.measures.fourier import majority_coefficient
from paritylab.statistics import solved_fraction

Runs = Sequence[Mapping[str, np.ndarray]]


class Network(NamedTuple):
    n: int
    k: int
    width: int
    samples: int | None
    """Of the first step; None for its expectation."""
    steps: int
    seeds: int

    @property
    def name(self) -> str:
        return f"n = {self.n}, k = {self.k}, " + ("exact" if self.samples is None else f"B0 = {self.samples:g}")


QUICK = [[31, 2, 32, 20_000, 1500, 5], [101, 4, 512, None, 1500, 2]]
STANDARD = [[51, 2, 64, 20_000, 4000, 40], [101, 2, 64, 50_000, 4000, 40], [101, 4, 512, None, 4000, 40]]
FULL = [*STANDARD, [101, 4, 512, 1_000_000_000, 4000, 20]]


def last_accuracy(run: Any) -> float:
    return float(run["accuracy"][-1])


def lowest_loss(run: Any) -> float:
    return float(run["loss"].min())


@computation
def trained_large(seed: int, n: int, k: int, width: int, samples: int | None, steps: int, run: int) -> dict[str, Any]:
    """As ``two_stage.trained``, with the samples of the first step streamed through JAX."""
    generator = rng(seed, 4, n, k, width, samples or 0, run)
    start = two_stage.initialise(n, k, width, generator)
    layer = two_stage.first_step(start, range(k))
    if samples is not None:
        rate = 1 / (k * abs(majority_coefficient(n, k - 1)))
        by_weight, by_bias = streamed_gradient(start, range(k), samples, int(generator.integers(2**31)))
        layer = two_stage.Layer(-rate * by_weight, start.b - rate * by_bias, np.zeros(width))
    aligned = layer.w[two_stage.good_neurons(start, range(k))]
    found = two_stage.train_top(layer, range(k), steps, rate=0.5, batch=256, test=8192, seed=generator)
    return {"steps": found.steps, "accuracy": found.accuracy, "loss": found.loss,
            "relevant": aligned[:, :k].ravel(), "irrelevant": np.abs(aligned[:, k:]).ravel()}


@claim(
    "barak2022.thm4-two-stage",
    where="Theorem 4 / Theorem 10; Appendix B.1",
    kind="theory",
    title="One big-batch step then training the top layer solves even parities",
    statement="""With sign weights and mirrored output signs, one gradient step whose weight decay erases the initial
    weights leaves first-layer features concentrated on S; fitting only the second layer afterwards drives the hinge
    loss down.""",
    published="An expected hinge loss of at most epsilon (Theorem 4).",
)
class Thm4TwoStage(Trial):
    """Weights of aligned neurons after the first step, and accuracy after training the second layer at rate 0.5."""

    shapes = size(quick=QUICK, standard=STANDARD, full=FULL, label="n, k, width, B0 (null: exact), steps, seeds")
    pairs = at_least("share of seeds with accuracy >= 0.99 and smallest hinge loss <= 0.1, {network}", 0.9,
                     part="k = 2")
    exact = at_least("share of seeds with accuracy >= 0.99, {network}", 0.9, part="k = 4, exact first gradient")
    sampled = at_least("share of seeds with accuracy >= 0.95, {network}", 0.8, only=("full",),
                       part="k = 4, sampled first gradient")
    relevant = between("mean relevant weight x 2k of aligned neurons, {network}", 0.8, 1.2, part="{part}")
    irrelevant = at_most("mean |irrelevant weight| x 2k of them, {network}", 0.25, part="{part}")

    @property
    def networks(self) -> list[Network]:
        return [Network(*shape) for shape in self.shapes]

    def work(self, lab: Lab) -> list[dict[str, np.ndarray]]:
        return lab.compute_each(trained_large, [
            {"n": net.n, "k": net.k, "width": net.width, "samples": net.samples, "steps": net.steps, "run": run}
            for net in self.networks for run in range(net.seeds)])

    def by_network(self, got: Runs) -> Iterator[tuple[Network, Runs]]:
        rest = iter(got)
        for net in self.networks:
            yield net, [next(rest) for _ in range(net.seeds)]

    def judge(self, got: Runs) -> Findings:
        checks: list[Check] = []
        rows: list[dict[str, Any]] = []
        numbers: dict[str, float] = {}
        for net, runs in self.by_network(got):
            final, lowest = (np.array([pick(run) for run in runs]) for pick in (last_accuracy, lowest_loss))
            rule, right = self.asked(net, final, lowest)
            relevant, irrelevant = (mean([2 * net.k * run[part].mean() for run in runs])
                                    for part in ("relevant", "irrelevant"))
            checks += [rule(*share(right), network=net.name),
                       self.relevant(*relevant, network=net.name, part=rule.part),
                       self.irrelevant(*irrelevant, network=net.name, part=rule.part)]
            numbers |= {f"lowest accuracy, {net.name}": float(final.min())}
            rows += curve_rows(net, runs)
        note = "" if self.size == "full" else "without the sampled first step at k = 4, which full size has"
        return Findings(checks, rows, numbers, note)

    def draw(self, got: Runs) -> plots.Figure:
        return draw_training({net.name: runs for net, runs in self.by_network(got)})

    def asked(self, net: Network, final: np.ndarray, lowest: np.ndarray) -> tuple[Any, np.ndarray]:
        """The rule of a network, and which of its seeds do as it asks."""
        if net.k == 2:
            return self.pairs, (final >= 0.99) & (lowest <= 0.1)
        return (self.exact, final >= 0.99) if net.samples is None else (self.sampled, final >= 0.95)


def curve_rows(net: Network, runs: Runs) -> list[dict[str, Any]]:
    return [{"n": net.n, "k": net.k, "width": net.width, "B0": net.samples, "seed": seed, "steps": int(step),
             "accuracy": float(accuracy), "loss": float(loss)} for seed, run in enumerate(runs)
            for step, accuracy, loss in zip(run["steps"], run["accuracy"], run["loss"], strict=True)]


DELTA, DRAWS = 0.1, 2000


@claim(
    "barak2022.lemma4-features",
    where="Lemma 3, Lemma 4, Claim 5",
    kind="exact",
    title="Good neurons exist and express the parity",
    statement="""With r >= k 2^k log(k/delta) mirrored sign neurons every required bias value occurs on a neuron aligned
    with S, and the corresponding ReLU bumps combine to the parity.""",
    published="""With probability at least 1 - 2 delta output weights of at most 8k exist (Lemma 4); k features make 2
    chi (Claim 5). The printed k are off at one value of z, and k + 1 with coefficients (..., 8k, -8k, 8k, -6k, 2k) give
    2 chi (computed here).""",
)
class Lemma4Features(Trial):
    """How often aligned neurons have all k biases at the lemma's width, and which functions their features make."""

    conclusion = at_least("share of starts with output weights as the lemma says, k = {k}, r = {width}", 1 - DELTA,
                          part="conclusion, at the printed width")
    covers = at_least("probability that aligned neurons have all k biases, k = {k}, r = {width}", 1 - DELTA,
                      part="proof as printed")
    printed = at_most("deviation of the k printed features of {name} from 2 chi", 1e-9, part="proof as printed")
    wide = at_least("probability that aligned neurons have all k biases, k = {k}, corrected r = {width}", 1 - DELTA,
                    part="proof, corrected")
    features = at_most("deviation of k + 1 features from 2 chi, k = 2, 4, 6, 8", 1e-9, part="proof, corrected")
    coefficient = at_most("their largest coefficient / k", 8, part="proof, corrected")

    def work(self, lab: Lab) -> None:
        return None

    @functools.cached_property
    def coverage(self) -> dict[int, np.ndarray]:
        """For each k, which of the starts at the lemma's width have all k biases on aligned neurons."""
        found: dict[int, np.ndarray] = {}
        for k in (2, 4):
            generator = self.rng(3, k)
            starts = (two_stage.initialise(2 * k + 1, k, printed_width(k), generator) for _ in range(DRAWS))
            found[k] = np.array([covered(start, k) for start in starts])
        return found

    def starts(self) -> list[dict[str, Any]]:
        return [{"k": k, "width": printed_width(k), "draws": DRAWS, "covered": int(covers.sum()),
                 "exact": bumps.coverage(k, printed_width(k))} for k, covers in self.coverage.items()]

    def judge(self, got: None) -> Findings:
        checks = []
        for k, right in self.expressed.items():
            printed, needed = printed_width(k), bumps.width_needed(k, DELTA)
            checks += [self.conclusion(*share(right), k=k, width=printed),
                       self.covers(bumps.coverage(k, printed), k=k, width=printed),
                       self.wide(bumps.coverage(k, needed), k=k, width=needed)]
        rows = [feature_row(k, name, *features) for k in (2, 4, 6, 8) for name, features in feature_sets(k).items()]
        sums, sizes = ({name: [row[column] for row in rows if row["features"] == name] for name in feature_sets(2)}
                       for column in ("largest deviation from 2 chi", "largest coefficient / k"))
        checks += [self.features(max(sums["k + 1 features"])), self.coefficient(max(sizes["k + 1 features"])),
                   *(self.printed(max(sums[name]), name=name) for name in ("Lemma 3", "Lemma 4"))]
        return Findings(checks, [*self.starts(), *rows])

    def draw(self, got: None) -> plots.Figure:
        return draw_coverage(self.starts(), 1 - DELTA)

    @functools.cached_property
    def expressed(self) -> dict[int, np.ndarray]:
        """For each k, which of the starts at the lemma's width have the output that it concludes."""
        found: dict[int, np.ndarray] = {}
        for k in (2, 4):
            generator = self.rng(4, k)
            starts = (two_stage.initialise(2 * k + 1, k, printed_width(k), generator) for _ in range(DRAWS))
            found[k] = np.array([expresses_parity(two_stage.first_step(start, range(k)), k) for start in starts])
        return found


# --- parts ------------------------------------------------------------------------------------------------------


@computation
def trained(seed: int, n: int, k: int, width: int, samples: int | None, steps: int, run: int) -> dict[str, Any]:
    return train(n, k, width, samples, steps, rng(seed, 4, n, k, width, samples or 0, run))


def printed_width(k: int) -> int:
    return bumps.width_needed(k, DELTA, printed=True)


def feature_sets(k: int) -> dict[str, tuple[Any, Any]]:
    """Biases and coefficients of features that should add up to the parity."""
    return {"k + 1 features": bumps.parity_features(k), "Lemma 3": bumps.printed_features(k, offset=1),
            "Lemma 4": bumps.printed_features(k, offset=0)}


def feature_row(k: int, name: str, biases: Any, coefficients: Any) -> dict[str, Any]:
    deviation = np.abs(bumps.feature_sum(k, biases, coefficients) - 2 * (-1.0) ** np.arange(k + 1)).max()
    return {"k": k, "features": name, "largest deviation from 2 chi": float(deviation),
            "largest coefficient / k": float(np.abs(coefficients).max() / k)}


def train(n: int, k: int, width: int, samples: int | None, steps: int, rng: np.random.Generator) -> dict[str, Any]:
    """The curve of one seed, and the weights of its aligned neurons after the first step."""
    support = range(k)
    start = two_stage.initialise(n, k, width, rng)
    layer = two_stage.first_step(start, support, samples, rng)
    aligned = layer.w[two_stage.good_neurons(start, support)]
    found = two_stage.train_top(layer, support, steps, rate=0.5, batch=256, test=8192, seed=rng)
    return {"steps": found.steps, "accuracy": found.accuracy, "loss": found.loss,
            "relevant": aligned[:, :k].ravel(), "irrelevant": np.abs(aligned[:, k:]).ravel()}


def covered(layer: two_stage.Layer, k: int) -> bool:
    """Whether every bias -1/2 + i/k, i = 1..k, is that of a neuron that agrees with the support."""
    found = np.round(k * (layer.b[two_stage.good_neurons(layer, range(k))] + 0.5)).astype(int)
    return set(range(1, k + 1)) <= set(found.tolist())


# --- figures ----------------------------------------------------------------------------------------------------


@plots.styled
def draw_training(shown: Mapping[str, Runs]) -> plots.Figure:
    """Error and hinge loss of the second layer: the median over seeds within the range of all of them.

    Values below the lower edge are drawn there.
    """
    figure = plots.blank(3.1)
    above, below = figure.subplots(2, 1, sharex=True)
    above.set(ylabel="error", yscale="log", ylim=(1e-4, 0.7))
    below.set(ylabel="hinge loss", xlabel="steps of the second layer", xscale="log", yscale="log", ylim=(1e-5, 20))
    for (name, runs), colour, line in zip(shown.items(), plots.COLOURS, plots.LINES, strict=False):
        steps, label = runs[0]["steps"], re.sub(r"B0 = 1e\+0*(\d+)", r"B0 = $10^{\1}$", name)
        for axes, values, edge in ((above, 1 - np.array([run["accuracy"] for run in runs]), 1e-4),
                                   (below, np.array([run["loss"] for run in runs]), 1e-5)):
            drawn = np.maximum(values, edge)
            axes.plot(steps, np.median(drawn, axis=0), color=colour, linestyle=line, label=label)
            axes.fill_between(steps, drawn.min(axis=0), drawn.max(axis=0), color=colour, alpha=0.2, linewidth=0)
    above.axhline(0.01, color=plots.GREY, linestyle="dotted", linewidth=0.8)
    below.axhline(0.1, color=plots.GREY, linestyle="dotted", linewidth=0.8)
    plots.legend_above(figure, above)
    figure.align_ylabels()
    return figure


@plots.styled
def draw_coverage(starts: Sequence[Mapping[str, Any]], asked: float) -> plots.Figure:
    """The exact probability against the width, with the measured one at the lemma's width."""
    figure = plots.blank(2.4)
    axes = figure.add_subplot(xlabel="hidden width r", ylabel="P(all k biases covered)", xscale="log", ylim=(0, 1.03))
    for row, colour, line, marker in zip(starts, plots.COLOURS, plots.LINES, "os", strict=False):
        k, width = row["k"], row["width"]
        widths = np.unique(2 * np.round(np.geomspace(width / 8, 4 * width, 60) / 2)).astype(int)
        axes.plot(widths, [bumps.coverage(k, int(each)) for each in widths], color=colour, linestyle=line,
                  label=f"exact, k = {k}")
        value, (low, high) = solved_fraction(np.arange(row["draws"]) >= row["covered"])
        axes.errorbar([width], [value], [[value - low], [high - value]], fmt=marker, color=colour, capsize=2,
                      markersize=4, label=f"sampled at the lemma's r = {width}")
    axes.axhline(asked, color=plots.GREY, linestyle="dotted", linewidth=0.8)
    axes.annotate(f"asked: {asked:.2f}", (1, asked), (0, -2), xycoords=("axes fraction", "data"),
                  textcoords="offset points", va="top", ha="right", fontsize=7)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=2, columnspacing=1.0)
    return figure
