"""Activations that take the values of a parity: Figure 18."""

from __future__ import annotations

from typing import Any

import jax
import jax.experimental
import numpy as np

from paritylab import plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Trial, at_most, claim, computation, size
from paritylab.measures.fourier import cube
from paritylab.setups.networks.activations import Activation, activation

NAMES = {"zigzag": "k-zigzag", "oscillating": "degree-k polynomial", "infinite-zigzag": "$\\infty$-zigzag",
         "sinusoid": "sinusoid"}
KINKED = ("zigzag", "infinite-zigzag")


@claim(
    "barak2022.fig18",
    where="Figure 18; Appendix D.1.2",
    kind="exact",
    title="Activation functions interpolate the parity",
    statement="""Each special activation takes the parity value on w_S.x with w_S = sum of e_i over S: k-zigzag and the
    degree-k polynomial through the k+1 points (k-2j, (-1)^j), the triangle wave and the sinusoid for every k with a
    k-dependent shift.""",
    published="'Then, sigma(w_S.x) = chi_S(x)' (Section D.1.2).",
)
class Fig18(Trial):
    """sigma(w_S.x) against the parity of S on all inputs, and sigma' against differences of sigma."""

    k = size([*range(1, 11)])

    values = at_most("largest |sigma(w_S.x) - chi_S(x)| of {name}", 1e-9)
    slopes = at_most("largest |derivative - difference| off the kinks of {name}", 1e-6)

    def work(self, lab: Lab) -> list[dict[str, np.ndarray]]:
        return lab.compute_each(deviations, [{"name": name, "degrees": self.k} for name in NAMES])

    def judge(self, got: list[dict[str, np.ndarray]]) -> Findings:
        checks, rows = [], []
        for name, found in zip(NAMES, got, strict=True):
            checks += [self.values(found["values"].max(), name=name), self.slopes(found["slopes"].max(), name=name)]
            rows += [{"activation": name, "k": k, "deviation": float(value), "derivative deviation": float(slope)}
                     for k, value, slope in zip(self.k, found["values"], found["slopes"], strict=True)]
        return Findings(checks, rows)

    def draw(self, got: Any) -> plots.Figure:
        return shapes()


@computation
def deviations(seed: int, name: str, degrees: list[int]) -> dict[str, list[float]]:
    """The largest deviations of values and of derivatives, for each k; all degrees on the inputs of the largest."""
    x = cube(max(degrees))
    found: dict[str, list[float]] = {"values": [], "slopes": []}
    for k in degrees:
        sigma = activation(f"{name}:{k}")
        values = evaluate(sigma, x[:, :k].sum(1))[0]
        z = np.linspace(-k - 2, k + 2, len(x))
        errors = np.abs(evaluate(sigma, z)[1] - difference(sigma, z))
        found["values"].append(float(np.abs(values - x[:, :k].prod(1)).max()))
        found["slopes"].append(float(errors[off_kinks(z, k) if name in KINKED else slice(None)].max()))
    return found


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
def shapes() -> plots.Figure:
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
