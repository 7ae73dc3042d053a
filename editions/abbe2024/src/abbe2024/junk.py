"""The junk flow, and how far training on a parity can be from it: Definition 6, Lemma 3."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from abbe2024.theory import high_degree
from abbe2024.theory.junk_flow import alignment_gap, random_gradient
from abbe2024.theory.one_step import full_parity
from paritylab import plots
from paritylab.aliases import Arrays, Floats, Interval
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, claim, computation, rng, size
from paritylab.measures.fourier import cube
from paritylab.plots import Series

Rows = Sequence[Mapping[str, Any]]
Layers = Sequence[Floats]
# --- Definition 6 -------------------------------------------------------------------------------------------------


INPUTS, WIDTH, RATE, TAU = 8, 10, 0.1, 0.5
TIMES = tuple(range(0, 51, 10))
VARIANCES = {"hidden weights": 1 / INPUTS, "biases": 1.0, "output weights": 1 / WIDTH}
"""At the start."""


@claim(
    "abbe2024.junk-flow",
    where="Definition 6; Remark 4",
    kind="exact",
    title="Junk flow under the correlation loss is pure Gaussian diffusion",
    statement="""For the correlation loss the random-label population gradient vanishes, so psi^t = psi^0 + sqrt(t)
    gamma tau H.""",
    published=""""Since for the correlation loss Gamma_r(theta) = 0, the junk flow just adds independent Gaussian
    noise" (Appendix B.1)""",
)
class JunkFlow(Trial):
    """The gradient on random labels under the correlation loss, and the variances of weights that follow it."""

    copies = size(quick=200, full=2000)

    still = at_most("|Gamma_r|, correlation loss, largest of 100 parameters", 1e-12)
    pulled = at_least("|Gamma_r|, hinge loss, root mean square over 100 parameters", 1e-3)
    diffusive = at_most("|variance / (Var(psi^0) + t gamma^2 tau^2) - 1| in standard errors, largest over coordinates"
                        " and t", 5.0)

    def work(self, lab: Lab) -> Arrays:
        return lab.compute(diffusion, copies=self.copies)

    def rows(self, got: Arrays) -> list[dict[str, Any]]:
        rows = []
        for t, found in zip(TIMES, got["ratios"].tolist(), strict=True):
            for layer, (mean, least, most) in zip(VARIANCES, found, strict=True):
                law = expected_variance(layer, t)
                rows.append({"t": t, "layer": layer, "variance": mean * law, "law": law, "smallest ratio": least,
                             "largest ratio": most})
        return rows

    def judge(self, got: Arrays) -> Findings:
        away = float(np.abs(got["ratios"][..., 1:] - 1).max()) / math.sqrt(2 / (self.copies - 1))
        hinge = got["hinge"]
        checks = [self.still(float(got["correlation"].max())), self.pulled(float(np.sqrt(np.mean(hinge**2)))),
                  self.diffusive(away)]
        numbers = {"|Gamma_r|, hinge loss, smallest": float(hinge.min()),
                   "|Gamma_r|, hinge loss, largest": float(hinge.max())}
        return Findings(checks, self.rows(got), numbers)

    def draw(self, got: Arrays) -> plots.Figure:
        rows = {layer: [row for row in self.rows(got) if row["layer"] == layer] for layer in VARIANCES}
        series = {layer: Series(TIMES, [row["variance"] for row in found]) for layer, found in rows.items()}
        laws = {"_" * i + "Var $+ t\\gamma^2\\tau^2$": (TIMES, [row["law"] for row in found])
                for i, found in enumerate(rows.values())}
        return plots.scaling_plot(series, "steps of the junk flow", "mean variance of a weight", laws, log="y")


def expected_variance(layer: str, t: int) -> float:
    return VARIANCES[layer] + t * (RATE * TAU) ** 2


@computation
def diffusion(seed: int, copies: int) -> dict[str, Any]:
    """Norms of the gradient on random labels by loss; variances of the weights of copies over those expected.

    The ratios are the mean, smallest and largest of a layer's weights, for each time and layer.
    """
    generator = rng(seed, 4)

    def start(count: int) -> Layers:
        shapes = (count, WIDTH, INPUTS), (count, WIDTH), (count, WIDTH)
        return [math.sqrt(v) * generator.standard_normal(s) for v, s in zip(VARIANCES.values(), shapes, strict=True)]

    found: dict[str, Any] = {loss: norms(random_label_gradient(loss, start(100))) for loss in ("correlation", "hinge")}
    psi, ratios = start(copies), []
    for t in range(TIMES[-1] + 1):
        if t:
            drift = random_label_gradient("correlation", psi)
            psi = [p - RATE * (g + TAU * generator.standard_normal(p.shape)) for p, g in zip(psi, drift, strict=True)]
        if t in TIMES:
            each = [part.reshape(copies, -1).var(0, ddof=1) / expected_variance(layer, t)
                    for layer, part in zip(VARIANCES, psi, strict=True)]
            ratios.append([(part.mean(), part.min(), part.max()) for part in each])
    return found | {"ratios": ratios}


def random_label_gradient(loss: str, layers: Layers) -> Layers:
    """Gamma_r of two-layer ReLU networks (copies first) over all inputs, by automatic differentiation."""
    import jax.numpy as jnp

    found = _gradient(loss, layers[0].shape[-1])(*(jnp.asarray(part, jnp.float32) for part in layers))
    return [np.asarray(part, np.float64) for part in found]


@functools.cache
def _gradient(loss: str, d: int) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    from paritylab.setups.losses import loss as named

    x, function = cube(d), named(loss)

    def mean_loss(w: Any, b: Any, v: Any) -> Any:
        f = jnp.maximum(x @ w.T + b, 0) @ v
        return jnp.mean(function(f, 1.0) + function(f, -1.0)) / 2

    return jax.jit(jax.vmap(jax.grad(mean_loss, (0, 1, 2))))


def norms(layers: Layers) -> Floats:
    return np.sqrt(sum(np.square(part).reshape(len(part), -1).sum(1) for part in layers))


# --- Lemma 3 ------------------------------------------------------------------------------------------------------


D = 5
WITH_BIAS = np.hstack([cube(D), np.ones((2**D, 1))])


def correlation_gap(theta: Floats) -> Floats:
    """Gamma_f - Gamma_r of relu(w.x + b) by (w, b) under the correlation loss, -E chi(x) (x, 1) 1[w.x + b > 0]."""
    return -((theta @ WITH_BIAS.T > 0) * full_parity(D)) @ WITH_BIAS / 2**D


class Neuron(NamedTuple):
    """One ReLU neuron: its inputs, Gamma_f - Gamma_r and Gamma_r. Without a bias the correlation loss has neither."""

    inputs: Floats
    gap: Callable[[Floats], Floats]
    drift: Callable[[Floats], Floats]


NEURONS = {"hinge": Neuron(cube(D), alignment_gap, random_gradient),
           "correlation": Neuron(WITH_BIAS, correlation_gap, np.zeros_like)}


def around(value: float, error: float) -> Interval:
    """The 95 % interval of a mean."""
    return value - 1.96 * error, value + 1.96 * error


@claim(
    "abbe2024.lemma3-tv",
    where="Lemma 3, Equation (49)",
    kind="theory",
    title="Total variation between true and junk dynamics",
    statement="TV(theta^T, psi^T) <= (1/(2 tau)) sum_t sqrt(GAL(psi^t)).",
    published="the inequality (Equation 49)",
)
class Lemma3Tv(Trial):
    """A ReLU neuron trained on the parity beside one trained on random labels: how far apart their laws are."""

    starts = size(quick=40_000, full=100_000)
    times = size([1, 2, 5], label="T")
    below = at_most("lower estimate - bound, largest upper end over losses, tau and T", 0.0)

    def work(self, lab: Lab) -> list[Arrays]:
        return lab.compute_each(distances, [
            {"number": number, "loss": loss, "tau": tau, "starts": self.starts, "times": self.times}
            for number, (loss, tau) in enumerate(CASES)])

    def rows(self, got: list[Arrays]) -> list[dict[str, Any]]:
        return [{"loss": loss, "tau": tau, "T": t, **{name: float(arrays[name][i]) for name in DISTANCES}}
                for (loss, tau), arrays in zip(CASES, got, strict=True) for i, t in enumerate(self.times)]

    def judge(self, got: list[Arrays]) -> Findings:
        rows = self.rows(got)
        worst = max(rows, key=lambda row: row["lower"] + 1.96 * row["error"] - row["bound"])
        away = worst["lower"] - worst["bound"]
        numbers = {"lower estimate / bound, largest": max(row["lower"] / row["bound"] for row in rows),
                   "sum of conditional TVs / bound, largest": max(row["upper"] / row["bound"] for row in rows)}
        return Findings([self.below(away, around(away, worst["error"]))], rows, numbers)

    def draw(self, got: list[Arrays]) -> plots.Figure:
        return draw_distances(self.rows(got))


CASES = list(itertools.product(NEURONS, (0.1, 0.5, 1.0)))
"""Loss and tau."""
DISTANCES = ("lower", "error", "upper", "bound")


@computation
def distances(seed: int, number: int, loss: str, tau: float, starts: int, times: list[int]) -> dict[str, Any]:
    """At each time: the best test's distance and its error, the sum of conditional TVs, and the bound of Lemma 3."""
    inputs, gap, drift = NEURONS[loss]
    generator = rng(seed, 3, number)
    theta, psi = generator.standard_normal((2, starts, inputs.shape[1])) / math.sqrt(D)
    alignments, upper, found = [], 0.0, []
    for t in range(1, max(times) + 1):
        sizes = np.linalg.norm(gap(psi), axis=1)
        alignments.append(float(np.mean(sizes**2)))
        upper += float(high_degree.total_variation(sizes, tau).mean())
        theta = theta - gap(theta) - drift(theta) - tau * generator.standard_normal(theta.shape)
        psi = psi - drift(psi) - tau * generator.standard_normal(psi.shape)
        if t in times:
            lower, error = best_test(observed(theta, NEURONS[loss]), observed(psi, NEURONS[loss]))
            found.append((lower, error, upper, high_degree.lemma3(alignments, tau)))
    return dict(zip(DISTANCES, zip(*found, strict=True), strict=True))


def observed(theta: Floats, neuron: Neuron) -> list[Floats]:
    """The accuracy of each neuron on the parity, and <Gamma_f, theta>."""
    right = (theta @ neuron.inputs.T > 0) & (full_parity(D) > 0)
    return [right.mean(1), ((neuron.gap(theta) + neuron.drift(theta)) * theta).sum(1)]


def best_test(first: Sequence[Floats], second: Sequence[Floats]) -> tuple[float, float]:
    """P(s > c | first) - P(s > c | second), or its negative, with its standard error.

    Statistic, c and sign are the best on one half of the samples, and judged on the other.

    >>> rng = np.random.default_rng(0)
    >>> found, error = best_test([rng.standard_normal(20000) + 1], [rng.standard_normal(20000)])
    >>> abs(found - 0.3829) < 4 * error
    True
    """
    half = len(first[0]) // 2
    best = (-1.0, 0, 0.0, 1.0)
    for number, (one, two) in enumerate(zip(first, second, strict=True)):
        cuts = np.quantile(np.concatenate([one[:half], two[:half]]), np.linspace(0.005, 0.995, 199))
        above = [1 - np.searchsorted(np.sort(s[:half]), cuts, side="right") / half for s in (one, two)]
        place = int(np.abs(above[0] - above[1]).argmax())
        difference = float(above[0][place] - above[1][place])
        best = max(best, (abs(difference), number, float(cuts[place]), math.copysign(1.0, difference)))
    _, number, cut, sign = best
    shares = [float((s[number][half:] > cut).mean()) for s in (first, second)]
    rest = len(first[0]) - half
    return sign * (shares[0] - shares[1]), math.sqrt(sum(p * (1 - p) for p in shares) / rest)


@plots.styled
def draw_distances(data: Rows) -> plots.Figure:
    """A panel for each loss: the bound (lines) and the lower estimate (points) against tau, by T."""
    figure = plots.blank(2.5)
    panels = figure.subplots(1, 2, sharey=True)
    for axes, loss in zip(panels, NEURONS, strict=True):
        axes.set(xlabel="noise level $\\tau$", title=f"{loss} loss", xscale="log", yscale="log")
        steps = sorted({row["T"] for row in data})
        for t, colour, line in zip(steps, plots.COLOURS, plots.LINES, strict=False):
            rows = [row for row in data if (row["loss"], row["T"]) == (loss, t)]
            taus = [row["tau"] for row in rows]
            axes.plot(taus, [row["bound"] for row in rows], color=colour, linestyle=line, label=f"bound, T = {t}")
            axes.errorbar(taus, [row["lower"] for row in rows], [3 * row["error"] for row in rows], fmt="o",
                          color=colour, markersize=3, elinewidth=0.8, capsize=1.5, label=f"measured, T = {t}")
        axes.set_ylim(1e-3, 3)
        plots.readable_log(axes)
    panels[0].set_ylabel("total variation")
    plots.legend_above(figure, panels[0])
    return figure
