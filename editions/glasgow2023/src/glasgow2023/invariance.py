"""Rotations: training does not see the basis (Remark 2.1), so about d samples are needed (Proposition F.1)."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
from matplotlib.ticker import NullLocator

from glasgow2023.common import network, ratio_of_means
from glasgow2023.gradients import fresh, signs
from glasgow2023.theory import xor
from paritylab import Parity, Protocol, Setup, plots
from paritylab.aliases import Floats
from paritylab.baselines import kernels
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, between, claim, computation, rng, size
from paritylab.claims.intervals import bootstrap
from paritylab.claims.medians import samples
from paritylab.running.sweeps import Result


@claim(
    "glasgow2023.remark2-1-rotation",
    where="Remark 2.1",
    kind="exact",
    title="Training is rotation equivariant",
    statement="""Rotating the data and the initial weights by the same orthogonal matrix rotates the whole trajectory,
    so results hold for a cube in any basis.""",
    published="training is rotationally invariant (Remark 2.1); identical outputs (computed here)",
)
class Remark21Rotation(Trial):
    """Two runs in double precision, one of them rotated; samples to 99 % with the cube in either basis."""

    d = size(32)
    width = size(64)
    steps = size(50)
    theta, eta, batch = 0.3, 0.25, 128
    gap = at_most("largest |f_A(x) - f_B(Qx)| after {steps} steps, in double precision", 1e-8)
    seeds = size(quick=40, full=200)
    alike = between("mean samples to 99 %, rotated / axis-aligned", 0.9, 1.1, claimed=1.0)

    def work(self, lab: Lab) -> list[Result]:
        protocol = Protocol(max_steps=1000, eval_every=1, eval_size=4000, threshold=0.99)
        straight = network(self.d, self.width, self.theta, self.eta, self.batch, protocol)
        turned = replace(straight, learner=xor.rotated(straight.learner, self.turn(self.rng(self.d))))
        return lab.sweep([straight, turned], self.seeds)

    def turn(self, generator: np.random.Generator) -> Floats:
        """The rotation: what the trial's random numbers begin with."""
        return np.linalg.qr(generator.standard_normal((self.d, self.d)))[0]

    @functools.cached_property
    def gaps(self) -> list[float]:
        """How far the outputs of the two runs are apart after each step."""
        generator = self.rng(self.d)
        turn = self.turn(generator)
        one = fresh(generator, self.d, self.width, self.theta)
        other = xor.Neurons(one.w @ turn.T, one.a)
        shown = signs(generator, 1000, self.d)
        gaps: list[float] = []
        for _ in range(self.steps):
            x = signs(generator, self.batch, self.d)
            y = x[:, 0] * x[:, 1]
            one, other = xor.step(one, x, y, self.eta), xor.step(other, x @ turn.T, y, self.eta)
            gaps.append(float(np.abs(one(shown) - other(shown @ turn.T)).max()))
        return gaps

    def judge(self, got: list[Result]) -> Findings:
        straight, turned = (samples(result.records, self.batch) for result in got)
        interval = bootstrap(ratio_of_means, turned, straight, rng=self.rng(self.d, 1))
        checks = [self.gap(self.gaps[-1], steps=self.steps), self.alike(ratio_of_means(turned, straight), interval)]
        rows = [{"basis": basis, "run": run, "samples": float(value) if value < np.inf else None}
                for basis, values in (("axes", straight), ("rotated", turned)) for run, value in enumerate(values)]
        return Findings(checks, rows)

    def draw(self, got: list[Result]) -> plots.Figure:
        return rotation_plot(self.gaps, [samples(result.records, self.batch) for result in got])


@plots.styled
def rotation_plot(gaps: list[float], needed: list[Floats]) -> plots.Figure:
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


@claim(
    "glasgow2023.prop-f1",
    where="Proposition F.1; Appendix F",
    kind="theory",
    title="Rotation-invariant learners need about d samples",
    statement="""Any rotation-invariant algorithm given n < d/log^2 d samples errs with probability at least 0.03 on XOR
    with a random pair of coordinates.""",
    published="error of at least 0.03 for n < d / log^2(d) (Proposition F.1); near 0.5 (computed here)",
)
class PropF1(Trial):
    """Test errors of learners that cannot tell one basis from another, and of one that can, from n samples."""

    d = size(quick=[64, 256], full=[64, 256, 1024])
    pairs = size(20)

    error = at_least("mean error - 3 s.e. of {learner}, d = {d}, n = {n}", xor.ROTATION_ERROR, exact=True)

    @property
    def points(self) -> list[tuple[int, int]]:
        return [(d, n) for d in self.d for n in (xor.rotation_samples(d), d // 4, d // 2, d)]

    def work(self, lab: Lab) -> tuple[list[Result], list[dict[str, Floats]]]:
        return (lab.sweep([many_passes(d, n) for d, n in self.points], self.pairs),
                lab.compute_each(few_samples, [{"d": d, "n": n, "pairs": self.pairs} for d, n in self.points]))

    def errors(self, got: tuple[list[Result], list[dict[str, Floats]]]) -> dict[str, dict[tuple[int, int], Floats]]:
        """Of each learner and each d and n, over pairs."""
        found = {"network": [1 - result.records.accuracy for result in got[0]],
                 "NTK": [each["ntk"] for each in got[1]], "best pair": [each["pair"] for each in got[1]]}
        return {name: dict(zip(self.points, values, strict=True)) for name, values in found.items()}

    def judge(self, got: tuple[list[Result], list[dict[str, Floats]]]) -> Findings:
        errors, checks, numbers = self.errors(got), [], {}
        for d in self.d:
            n = xor.rotation_samples(d)
            for name in ("network", "NTK"):
                values = errors[name][d, n]
                low = float(values.mean() - 3 * values.std(ddof=1) / np.sqrt(len(values)))
                checks.append(self.error(low, learner=name, d=d, n=n))
            numbers[f"bound with the proof's constants worked out, d = {d}, n = {n}"] = xor.rotation_bound(d, n)
        rows = [{"learner": name, "d": d, "n": n, "pair": i, "error": float(value)} for name, points in errors.items()
                for (d, n), values in points.items() for i, value in enumerate(values)]
        note = ("The contrast is the best single product x_i x_j: it knows the basis. Least squares on all products is "
                "not one, as its kernel is a function of inner products and so rotation invariant.")
        return Findings(checks, rows, numbers, note)

    def draw(self, got: tuple[list[Result], list[dict[str, Floats]]]) -> plots.Figure:
        return few_samples_plot(self.errors(got), self.d)


def many_passes(d: int, n: int) -> Setup:
    """The paper's network, many passes over n samples. Inputs and start are exchangeable: any pair will do."""
    learner = xor.learner(256, 0.3, 0.25, min(n, 128))
    return Setup(Parity(d, 2, sample=n), learner, Protocol(max_steps=400, eval_every=400, eval_size=2000))


@computation
def few_samples(seed: int, d: int, n: int, pairs: int, test: int = 2000) -> dict[str, Floats]:
    """Errors of the tangent kernel and of the product x_i x_j that fits the samples best (the first of several)."""
    made: dict[str, list[float]] = {"ntk": [], "pair": []}
    for number in range(pairs):
        generator = rng(seed, d, n, number)
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
def few_samples_plot(errors: dict[str, dict[tuple[int, int], Floats]], sizes: list[int]) -> plots.Figure:
    figure = plots.blank(2.3)
    panels = np.ravel(figure.subplots(1, len(sizes), sharey=True, squeeze=False))
    for axes, d in zip(panels, sizes, strict=True):
        styles = zip(plots.COLOURS, "osD", plots.LINES, strict=False)
        for (name, points), (colour, marker, line) in zip(errors.items(), styles, strict=False):
            mine = {n: values for (inputs, n), values in points.items() if inputs == d}
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
