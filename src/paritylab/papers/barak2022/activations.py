"""Activations that take the values of a parity: Figure 18."""

from __future__ import annotations

import itertools
from typing import Any

import jax
import jax.experimental
import numpy as np

from paritylab import plots
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Outcome, at_most
from paritylab.measures.fourier import cube
from paritylab.papers.barak2022.common import Floats
from paritylab.setups.networks.activations import Activation, activation

NAMES = {"zigzag": "k-zigzag", "oscillating": "degree-k polynomial", "infinite-zigzag": "$\\infty$-zigzag",
         "sinusoid": "sinusoid"}
KINKED = ("zigzag", "infinite-zigzag")


@reproduces("barak2022.fig18")
def activations_interpolate(lab: Lab) -> Outcome:
    """sigma(w_S.x) against the parity of S on all inputs, and sigma' against differences of sigma."""
    degrees = lab.pick("k", quick=list(range(1, 11)), full=list(range(1, 11)))
    data, x = [], cube(max(degrees))
    for name, k in itertools.product(NAMES, degrees):
        sigma = activation(f"{name}:{k}")
        values = evaluate(sigma, x[:, :k].sum(1))[0]
        z = np.linspace(-k - 2, k + 2, len(x))
        errors = np.abs(evaluate(sigma, z)[1] - difference(sigma, z))
        data.append({"activation": name, "k": k, "deviation": float(np.abs(values - x[:, :k].prod(1)).max()),
                     "derivative deviation": float(errors[off_kinks(z, k) if name in KINKED else slice(None)].max())})
    checks = [at_most(f"{what} of {name}", max(row[column] for row in data if row["activation"] == name), bound)
              for name in NAMES for what, column, bound in (
                  ("largest |sigma(w_S.x) - chi_S(x)|", "deviation", 1e-9),
                  ("largest |derivative - difference| off the kinks", "derivative deviation", 1e-6))]
    return Outcome(checks, data, draw())


def evaluate(sigma: Activation, z: Floats) -> tuple[Floats, Floats]:
    """Values and derivatives, in double precision."""
    experimental: Any = jax.experimental
    double = jax.enable_x64 if hasattr(jax, "enable_x64") else experimental.enable_x64  # where it was before JAX 0.8
    with double(True):
        values, slopes = jax.vmap(jax.value_and_grad(sigma.function))(np.asarray(z, np.float64))
        return np.asarray(values), np.asarray(slopes)


def difference(sigma: Activation, z: Floats, step: float = 1e-3) -> Floats:
    """The derivative by central differences of fourth order."""
    one, two = (evaluate(sigma, z + m * step)[0] - evaluate(sigma, z - m * step)[0] for m in (1, 2))
    return (8 * one - two) / (12 * step)


def off_kinks(z: Floats, k: int) -> Any:
    """Whether points are farther than 0.01 from k, k - 2, k + 2, ...

    >>> off_kinks(np.array([3.0, 2.5, 1.005, 0.0, -1.02]), 3).tolist()
    [False, True, False, True, True]
    """
    return np.abs((z - k + 1) % 2 - 1) > 0.01


@plots.styled
def draw() -> Any:
    """Each activation for two degrees, with the points it goes through."""
    figure = plots.blank(3.0)
    panels = np.ravel(figure.subplots(2, 2, sharex=True, sharey=True))
    for axes, (name, title) in zip(panels, NAMES.items(), strict=True):
        axes.set(title=title, ylim=(-2.2, 2.2))
        for k, colour, line, marker in zip((3, 4), plots.COLOURS, plots.LINES, "os", strict=False):
            z = np.linspace(-6, 6, 1024)
            axes.plot(z, evaluate(activation(f"{name}:{k}"), z)[0], color=colour, linestyle=line, linewidth=0.9)
            order = np.arange(k + 1)
            axes.plot(k - 2 * order, (-1.0) ** order, marker, color=colour, markersize=3.5, label=f"k = {k}")
        axes.set_xticks(range(-6, 7, 2))
    figure.supxlabel("$w_S \\cdot x$", fontsize=8)
    figure.supylabel("$\\sigma(w_S \\cdot x)$", fontsize=8)
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure
