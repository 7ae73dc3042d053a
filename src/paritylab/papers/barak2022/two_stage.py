"""One large step on the first layer, then the second layer alone: Theorem 4, Lemmas 3 and 4, Claim 5."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from paritylab import plots
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, at_most, between
from paritylab.papers.barak2022.disjoint import share
from paritylab.statistics import solved_fraction
from paritylab.theory import bumps, two_stage

SMALL = [[31, 2, 32, 20_000, 2000, 5], [101, 4, 512, None, 3000, 2]]
EXACT = [[51, 2, 64, 20_000, 20_000, 10], [101, 2, 64, 50_000, 20_000, 10], [101, 4, 512, None, 20_000, 10]]
SAMPLED = [[101, 4, 512, 40_000_000, 20_000, 10]]


@reproduces("barak2022.thm4-two-stage")
def two_stages(lab: Lab) -> Outcome:
    """Weights of aligned neurons after the first step, and accuracy after training the second layer at rate 0.5."""
    networks = lab.pick("n, k, width, B0 (null: exact), steps, seeds", quick=SMALL, standard=EXACT,
                        full=[*EXACT, *SAMPLED])
    checks: list[Check] = []
    data: list[dict[str, Any]] = []
    numbers: dict[str, float] = {}
    shown: dict[str, list[dict[str, np.ndarray]]] = {}
    for n, k, width, samples, steps, seeds in networks:
        name = f"n = {n}, k = {k}, " + ("exact" if samples is None else f"B0 = {samples:g}")
        runs = [
            lab.kept_old("two-stage", {"n": n, "k": k, "width": width, "samples": samples, "steps": steps, "seed": seed},
                     partial(train, n, k, width, samples, steps, lab.rng(4, n, k, width, samples or 0, seed)))
            for seed in range(seeds)
        ]
        final = np.array([run["accuracy"][-1] for run in runs])
        lowest = np.array([run["loss"].min() for run in runs])
        if k == 2:
            checks.append(share(f"share of seeds with accuracy >= 0.99 and smallest hinge loss <= 0.1, {name}",
                                (final >= 0.99) & (lowest <= 0.1), 0.9))
        elif samples is None:
            checks.append(share(f"share of seeds with accuracy >= 0.99, {name}", final >= 0.99, 0.9))
        else:
            checks.append(share(f"share of seeds with accuracy >= 0.95, {name}", final >= 0.95, 0.8))
        relevant, irrelevant = (2 * k * np.concatenate([run[part] for run in runs])
                                for part in ("relevant", "irrelevant"))
        checks += [
            between(f"mean relevant weight x 2k of aligned neurons, {name}", float(relevant.mean()), 0.8, 1.2),
            at_most(f"mean |irrelevant weight| x 2k of them, {name}", float(irrelevant.mean()), 0.25),
        ]
        numbers |= {f"share of single relevant weights within 20 %, {name}": float(np.mean(abs(relevant - 1) <= 0.2)),
                    f"lowest accuracy, {name}": float(final.min())}
        shown[name] = runs
        data += [{"n": n, "k": k, "width": width, "B0": samples, "seed": seed, "steps": int(step),
                  "accuracy": float(accuracy), "loss": float(loss)} for seed, run in enumerate(runs)
                 for step, accuracy, loss in zip(run["steps"], run["accuracy"], run["loss"], strict=True)]
    return Outcome(checks, data, draw_training(shown), numbers)


@reproduces("barak2022.lemma4-features")
def good_neurons(lab: Lab) -> Outcome:
    """How often aligned neurons have all k biases at the lemma's width, and which functions their features make."""
    draws, delta = 2000, 0.1
    checks: list[Check] = []
    data: list[dict[str, Any]] = []
    numbers: dict[str, float] = {}
    for k in (2, 4):
        width = bumps.width_needed(k, delta, printed=True)
        rng = lab.rng(3, k)
        covers = np.array([covered(two_stage.initialise(2 * k + 1, k, width, rng), k) for _ in range(draws)])
        checks.append(share(f"share of starts with all k biases on aligned neurons, k = {k}, r = {width}", covers,
                            1 - delta - 0.03))
        enough = bumps.width_needed(k, delta)
        numbers |= {f"exact probability, k = {k}, r = {width}": bumps.coverage(k, width),
                    f"width that suffices, k = {k}": float(enough)}
        data.append({"k": k, "width": width, "draws": draws, "covered": int(covers.sum()),
                     "exact": bumps.coverage(k, width)})
    sums: dict[str, list[float]] = {"k + 1 features": [], "Lemma 3": [], "Lemma 4": []}
    for k in (2, 4, 6, 8):
        biases, coefficients = bumps.parity_features(k)
        parts = {"k + 1 features": (biases, coefficients), "Lemma 3": bumps.printed_features(k, offset=1),
                 "Lemma 4": bumps.printed_features(k, offset=0)}
        for name, features in parts.items():
            deviation = np.abs(bumps.feature_sum(k, *features) - 2 * (-1.0) ** np.arange(k + 1)).max()
            sums[name].append(float(deviation))
            data.append({"k": k, "features": name, "largest deviation from 2 chi": float(deviation),
                         "largest coefficient / k": float(np.abs(features[1]).max() / k)})
    checks += [
        at_most("deviation of k + 1 features from 2 chi, k = 2, 4, 6, 8", max(sums["k + 1 features"]), 1e-9),
        at_most("their largest coefficient / k", max(row.get("largest coefficient / k", 0) for row in data
                                                     if row.get("features") == "k + 1 features"), 8),
        *(at_least(f"deviation of the k printed features of {name}", min(sums[name]), 1)
          for name in ("Lemma 3", "Lemma 4")),
    ]
    note = ("A mirrored pair is aligned and has a given bias with probability 2^(1-k)/(2k-1), not 2^(1-k)/k: "
            "the printed width is nearly half of what the union bound needs.")
    return Outcome(checks, data, draw_coverage(data, 1 - delta - 0.03), numbers, note)


# --- parts ------------------------------------------------------------------------------------------------------


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
def draw_training(shown: Mapping[str, Sequence[Mapping[str, np.ndarray]]]) -> Any:
    """Error and hinge loss of the second layer, one line for each seed; values of 0 are drawn at the lower edge."""
    figure = plots.blank(2.9)
    above, below = figure.subplots(2, 1, sharex=True)
    above.set(ylabel="error", yscale="log", ylim=(1e-4, 0.7))
    below.set(ylabel="hinge loss", xlabel="steps of the second layer", xscale="log", yscale="log", ylim=(1e-5, 20))
    for (name, runs), colour, line in zip(shown.items(), plots.COLOURS, plots.LINES, strict=False):
        for i, run in enumerate(runs):
            for axes, values, edge in ((above, 1 - run["accuracy"], 1e-4), (below, run["loss"], 1e-5)):
                axes.plot(run["steps"], np.maximum(values, edge), color=colour, linestyle=line, linewidth=0.7,
                          label=name if i == 0 else None)
    above.axhline(0.01, color=plots.GREY, linestyle="dotted", linewidth=0.8)
    below.axhline(0.1, color=plots.GREY, linestyle="dotted", linewidth=0.8)
    figure.legend(*above.get_legend_handles_labels(), loc="outside upper center", ncols=2, columnspacing=1.0)
    figure.align_ylabels()
    return figure


@plots.styled
def draw_coverage(data: Sequence[Mapping[str, Any]], asked: float) -> Any:
    """The exact probability against the width, with the measured one at the lemma's width."""
    figure = plots.blank(2.4)
    axes = figure.add_subplot(xlabel="hidden width r", ylabel="P(all k biases covered)", xscale="log", ylim=(0, 1.03))
    found = [row for row in data if "covered" in row]
    for row, colour, line, marker in zip(found, plots.COLOURS, plots.LINES, "os", strict=False):
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
