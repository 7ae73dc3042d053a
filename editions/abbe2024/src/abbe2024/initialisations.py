"""The initialisations of Appendix E.1."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import numpy as np

from paritylab import plots
from paritylab.claims import Findings, Lab, Trial, at_most, claim, computation, size
from paritylab.measures.alignment.laws import law
from paritylab.setups import inits
from paritylab.theory.infimum import moments

LAWS = ("gaussian", "rademacher", *(f"{kind}:{value:g}" for kind in ("perturbed-rademacher", "uniform-perturbed")
                                    for value in (0.1, 0.5, 1)),
        "sparse-rademacher:0.5", f"sparse-rademacher:{1 / 3!r}", "sparse-rademacher:0.2", "discrete:-2,-1,1,2")
ROUNDING = 2.0**-22
"""Of a variance or kurtosis of weights in single precision."""


Kept = list[dict[str, np.ndarray]]


@claim(
    "abbe2024.initialisations",
    where="Appendix E.1",
    kind="exact",
    title="Second moments of the five initialisations",
    statement="All five laws have mean 0 and variance 1/dim, so the pre-activation variance is 1.",
    published="the scales of five laws (Appendix E.1), 'such that the variance entering each neuron is 1' (Section 6)",
)
class Initialisations(Trial):
    """Sampled weights of every law and layer: variance times fan-in and kurtosis, against exact moments."""

    fan_in = size([50, 512, 64], label="fan-in")
    samples = size(1_000_000)

    exact = at_most("|exact variance * dim - 1|, largest", 1e-12)
    means = at_most("|mean| in standard errors, largest", 5)
    variances = at_most("|sample variance * dim - 1| in standard errors, largest", 5)
    kurtoses = at_most("|kurtosis - predicted| in standard errors, largest", 5)
    of_signs = at_most("predicted kurtosis of Rademacher less 1", 1e-12)
    of_discrete = at_most("predicted kurtosis of discrete less 1.36", 1e-12)

    def work(self, lab: Lab) -> Kept:
        return lab.compute_each(weight_moments, [
            {"place": place, "spec": spec, "fan_in": self.fan_in, "samples": self.samples}
            for place, spec in enumerate(LAWS)])

    def rows(self, got: Kept) -> list[dict[str, Any]]:
        rows = []
        for spec, arrays in zip(LAWS, got, strict=True):
            init = inits.init(spec)
            second, fourth = moments(law(spec))
            rows += [{"law": spec, "fan-in": dim, "exact variance": second * init.scale(dim, dim) ** 2 * dim,
                      "kurtosis predicted": fourth / second**2,
                      **{name: float(arrays[name][i]) for name in MOMENTS}} for i, dim in enumerate(self.fan_in)]
        return rows

    def judge(self, got: Kept) -> Findings:
        rows = self.rows(got)
        fourths = {row["law"]: row["kurtosis predicted"] for row in rows}
        worst = {name: max(abs(row[f"{name} z"]) for row in rows) for name in ("mean", "variance", "kurtosis")}
        return Findings([
            self.exact(max(abs(row["exact variance"] - 1) for row in rows)),
            self.means(worst["mean"]),
            self.variances(worst["variance"]),
            self.kurtoses(worst["kurtosis"]),
            self.of_signs(abs(fourths["rademacher"] - 1)),
            self.of_discrete(abs(fourths["discrete:-2,-1,1,2"] - 1.36)),
        ], rows)

    def draw(self, got: Kept) -> plots.Figure:
        return draw_moments(self.rows(got), self.fan_in)


@computation
def weight_moments(seed: int, place: int, spec: str, fan_in: list[int], samples: int) -> dict[str, Any]:
    """Moments of sampled weights times the root of the fan-in, for each fan-in."""
    init = inits.init(spec)
    second, fourth = moments(law(spec))
    found = []
    for dim in fan_in:
        key = jax.random.fold_in(jax.random.fold_in(jax.random.key(seed), place), dim)
        w = math.sqrt(dim) * init.scale(dim, dim) * np.asarray(init.sample(key, (samples,)), np.float64)
        found.append(sampled_moments(w, fourth / second**2))
    return {name: [each[name] for each in found] for name in MOMENTS}


MOMENTS = ("mean", "mean z", "variance", "variance error", "variance z", "kurtosis", "kurtosis error", "kurtosis z")


def sampled_moments(w: np.ndarray, kurtosis: float) -> dict[str, float]:
    """Moments about the known mean 0, with their distances from 0, 1 and ``kurtosis`` in standard errors."""
    squares = w * w
    variance, count = float(squares.mean()), len(w)
    found = float((squares**2).mean() / variance**2)
    # kurtosis m4/m2^2, by its derivatives in m4 and m2
    influence = squares**2 / variance**2 - 2 * found * squares / variance
    errors = [math.hypot(float(x.std()) / math.sqrt(count), ROUNDING) for x in (w, squares, influence)]
    return {"mean": float(w.mean()), "mean z": float(w.mean()) / errors[0], "variance": variance,
            "variance error": errors[1], "variance z": (variance - 1) / errors[1], "kurtosis": found,
            "kurtosis error": errors[2], "kurtosis z": (found - kurtosis) / errors[2]}


@plots.styled
def draw_moments(data: Sequence[Mapping[str, Any]], dims: Sequence[int]) -> plots.Figure:
    """Sample variances times fan-in with five standard errors, a row for each law."""
    names = list(dict.fromkeys(row["law"] for row in data))
    figure = plots.blank(0.9 + 0.17 * len(names))
    axes = figure.add_subplot(ylim=(len(names) - 0.4, -0.6), xlabel="variance $\\times$ fan-in $\\pm$ 5 s.e.")
    for shift, dim, colour, marker in zip((-0.22, 0, 0.22), dims, plots.COLOURS, "osD", strict=False):
        rows = [row for row in data if row["fan-in"] == dim]
        axes.errorbar([row["variance"] for row in rows], [names.index(row["law"]) + shift for row in rows],
                      xerr=[5 * row["variance error"] for row in rows], fmt=marker, color=colour, markersize=2.5,
                      elinewidth=0.8, label=f"fan-in {dim}")
    axes.axvline(1, color=plots.GREY, linestyle="dotted", linewidth=0.8)
    axes.set_yticks(range(len(names)), [name.replace(":", " ").replace(repr(1 / 3), "1/3") for name in names])
    plots.legend_above(figure, axes)
    return figure

