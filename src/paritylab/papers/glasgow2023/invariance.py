"""Rotations: training does not see the basis (Remark 2.1), so about d samples are needed (Proposition F.1)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.ticker import NullLocator
from scipy import stats

from paritylab import Parity, Protocol, Setup, plots
from paritylab.baselines import kernels
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, at_most
from paritylab.papers.glasgow2023.common import Floats, network, samples
from paritylab.papers.glasgow2023.gradients import draw, signs
from paritylab.theory import xor


@reproduces("glasgow2023.remark2-1-rotation")
def rotation_equivariant(lab: Lab) -> Outcome:
    """Two runs in double precision, one of them rotated; samples to 99 % with the cube in either basis."""
    d, width = lab.pick("d", quick=32, full=32), lab.pick("width", quick=64, full=64)
    steps, runs = lab.pick("steps", quick=50, full=50), lab.pick("seeds", quick=10, full=20)
    theta, eta, batch = 0.3, 0.25, 128
    generator = lab.rng(d)
    turn = np.linalg.qr(generator.standard_normal((d, d)))[0]
    one = draw(generator, d, width, theta)
    other = xor.Neurons(one.w @ turn.T, one.a)
    shown = signs(generator, 1000, d)
    gaps: list[float] = []
    for _ in range(steps):
        x = signs(generator, batch, d)
        y = x[:, 0] * x[:, 1]
        one, other = xor.step(one, x, y, eta), xor.step(other, x @ turn.T, y, eta)
        gaps.append(float(np.abs(one(shown) - other(shown @ turn.T)).max()))
    protocol = Protocol(max_steps=1000, eval_every=1, eval_size=4000, threshold=0.99)
    straight = network(d, width, theta, eta, batch, protocol)
    turned = replace(straight, learner=xor.rotated(straight.learner, turn))
    needed = [samples(result.records, batch) for result in lab.sweep([straight, turned], runs)]
    p_value = float(stats.mannwhitneyu(needed[0], needed[1]).pvalue)
    checks = [
        at_most(f"largest |f_A(x) - f_B(Qx)| after {steps} steps, in double precision", gaps[-1], 1e-8),
        at_least("Mann-Whitney p of samples to 99 %, axis-aligned against rotated", p_value, 0.01),
    ]
    rows = [{"basis": basis, "run": run, "samples": float(value) if value < np.inf else None}
            for basis, values in zip(("axes", "rotated"), needed, strict=True) for run, value in enumerate(values)]
    return Outcome(checks, rows, rotation_plot(gaps, needed))


@plots.styled
def rotation_plot(gaps: list[float], needed: list[Floats]) -> Any:
    figure = plots.blank(2.2)
    left, right = figure.subplots(1, 2)
    left.plot(range(1, len(gaps) + 1), np.maximum(gaps, 1e-17), color=plots.COLOURS[0])
    left.axhline(1e-8, color=plots.COLOURS[1], linestyle="dashed", linewidth=0.9)
    left.set(yscale="log", xlabel="steps", ylabel="largest $|f_A(x) - f_B(Qx)|$")
    for values, colour, line, name in zip(needed, plots.COLOURS, plots.LINES, ("axes", "rotated"), strict=False):
        right.step(np.sort(values), np.arange(1, len(values) + 1) / len(values), where="post", color=colour,
                   linestyle=line, label=name)
    right.set(xlabel="samples to 99 %", ylabel="share of runs", ylim=(0, 1.03))
    right.legend(loc="lower right")
    return figure


# --- Proposition F.1 --------------------------------------------------------------------------------------------------


@reproduces("glasgow2023.prop-f1")
def rotation_lower_bound(lab: Lab) -> Outcome:
    """Test errors of learners that cannot tell one basis from another, and of one that can, from n samples."""
    sizes = lab.pick("d", quick=[64, 256], full=[64, 256, 1024])
    pairs = lab.pick("pairs", quick=20, full=20)
    errors: dict[str, dict[tuple[int, int], Floats]] = {name: {} for name in ("network", "NTK", "best pair")}
    for d in sizes:
        for n in (xor.rotation_samples(d), d // 4, d // 2, d):
            errors["network"][d, n] = network_errors(lab, d, n, pairs)
            found = lab.kept_old("xor-few-samples", {"d": d, "n": n, "pairs": pairs},
                             lambda d=d, n=n: few_samples(lab, d, n, pairs))
            errors["NTK"][d, n], errors["best pair"][d, n] = found["ntk"], found["pair"]
    checks: list[Check] = []
    for d in sizes:
        n = xor.rotation_samples(d)
        for name in ("network", "NTK"):
            values = errors[name][d, n]
            low = float(values.mean() - 3 * values.std(ddof=1) / np.sqrt(len(values)))
            checks.append(at_least(f"mean error - 3 s.e. of {name}, d = {d}, n = {n}", low, xor.ROTATION_ERROR))
    numbers: dict[str, float | None] = {
        f"bound with the proof's constants worked out, d = {d}, n = {xor.rotation_samples(d)}":
            xor.rotation_bound(d, xor.rotation_samples(d)) for d in sizes}
    rows = [{"learner": name, "d": d, "n": n, "pair": i, "error": float(value)} for name, points in errors.items()
            for (d, n), values in points.items() for i, value in enumerate(values)]
    note = ("The contrast is the best single product x_i x_j: it knows the basis. Least squares on all products is not "
            "one, as its kernel is a function of inner products and so rotation invariant.")
    return Outcome(checks, rows, few_samples_plot(errors, sizes), numbers, note)


def network_errors(lab: Lab, d: int, n: int, runs: int) -> Floats:
    """Of the paper's network after many passes over n samples. Inputs and start are exchangeable: any pair will do."""
    steps = 400
    protocol = Protocol(max_steps=steps, eval_every=steps, eval_size=2000)
    learner = xor.learner(256, 0.3, 0.25, min(n, 128))
    return 1 - lab.measure(Setup(Parity(d, 2, sample=n), learner, protocol), runs).records.accuracy


def few_samples(lab: Lab, d: int, n: int, pairs: int, test: int = 2000) -> dict[str, Floats]:
    """Errors of the tangent kernel and of the product x_i x_j that fits the samples best (the first of several)."""
    made: dict[str, list[float]] = {"ntk": [], "pair": []}
    for number in range(pairs):
        generator = lab.rng(d, n, number)
        i, j = generator.choice(d, 2, replace=False)
        x, z = signs(generator, n, d), signs(generator, test, d)
        y, truth = x[:, i] * x[:, j], z[:, i] * z[:, j]
        scores = kernels.kernel_classifier(kernels.ntk, x, y, 1e-6 * n)(z)
        made["ntk"].append(float(np.mean(scores * truth <= 0)))
        fits = np.triu((x * y[:, None]).T @ x, k=1)
        best = np.flatnonzero(fits == fits.max())
        first, second = np.unravel_index(generator.choice(best), fits.shape)
        made["pair"].append(float(np.mean(z[:, first] * z[:, second] != truth)))
    return {name: np.array(values) for name, values in made.items()}


@plots.styled
def few_samples_plot(errors: dict[str, dict[tuple[int, int], Floats]], sizes: list[int]) -> Any:
    figure = plots.blank(2.3)
    panels = np.ravel(figure.subplots(1, len(sizes), sharey=True, squeeze=False))
    for axes, d in zip(panels, sizes, strict=True):
        styles = zip(plots.COLOURS, "osD", plots.LINES, strict=False)
        for (name, points), (colour, marker, line) in zip(errors.items(), styles, strict=False):
            mine = {n: values for (size, n), values in points.items() if size == d}
            means = np.array([values.mean() for values in mine.values()])
            spread = [1.96 * values.std(ddof=1) / np.sqrt(len(values)) for values in mine.values()]
            axes.errorbar(list(mine), means, spread, color=colour, marker=marker, markersize=3, linestyle=line,
                          capsize=1.5, linewidth=1.0, label=name)
        axes.axhline(xor.ROTATION_ERROR, color=plots.GREY, linewidth=0.8, linestyle="dotted")
        axes.axvline(xor.rotation_samples(d), color=plots.GREY, linewidth=0.6)
        axes.set(xscale="log", title=f"d = {d}", xlabel="samples $n$", ylim=(-0.02, 0.56))
        axes.set_xticks(ticks := [xor.rotation_samples(d), d // 4, d], [str(n) for n in ticks], fontsize=6)
        axes.xaxis.set_minor_locator(NullLocator())
    panels[0].set_ylabel("test error")
    panels[0].annotate("0.03", (0.02, xor.ROTATION_ERROR), (0, 1), xycoords=("axes fraction", "data"), fontsize=6,
                       textcoords="offset points", color=plots.GREY)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=3, columnspacing=1.0)
    return figure
