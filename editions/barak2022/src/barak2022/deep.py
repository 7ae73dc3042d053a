"""What networks can and cannot learn: depth (C.7), biases (C.2), degree (D.1.1)."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from barak2022.common import FIXED_8192, by_run, times_plot
from paritylab import MLP, SGD, Learner, Parity, Setup, plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, between, claim, computation, rng, size
from paritylab.claims.intervals import mean, share
from paritylab.measures.fourier import cube
from paritylab.running.sweeps import Result
from paritylab.setups.inits import Init
from paritylab.statistics import solved_fraction
from paritylab.storage.records import SOLVED, Records

QUADRATIC = SGD(0.01)
"""The optimiser of all quadratic networks here; their batches are of 32."""


# --- C.7: deep quadratic networks -----------------------------------------------------------------------------------


def quadratic(n: int, k: int, widths: tuple[int, ...], max_steps: int) -> Setup:
    return Setup(Parity(n, k), Learner(MLP(widths, "power:2"), optimiser=QUADRATIC),
                 replace(FIXED_8192, max_steps=max_steps))


DEEP = {
    f"L={len(widths) + 1}, n={n}, k={k}": quadratic(n, k, widths, max_steps) for widths, max_steps, tasks in (
        ((2, 1), 20_000, itertools.product((10, 20, 30), range(1, 5))),
        ((10, 10, 1), 50_000, itertools.product((10, 20, 30), range(1, 7))),
        ((10, 10, 1), 500_000, ((10, 7), (20, 7), (30, 7), (10, 8))),
    ) for n, k in tasks
}
"""Networks and tasks, by name."""


@claim(
    "barak2022.c7-deep-quadratic",
    where="Appendix C.7",
    kind="empirical",
    title="End-to-end training of deep z^2 networks beats layer-wise training",
    statement="""Stacked quadratic layers trained jointly learn parities of degree above 2, although each layer alone
    has zero correlation with the label.""",
    published="""'Over 10 random seeds, all models converged within 20000 iterations' (L = 3), 'within 50000 iterations'
    (L = 4), and k = 7, 8 'within 500000 iterations' (Appendix C.7).""",
)
class C7DeepQuadratic(Trial):
    """z^2 networks of three and four layers, trained end to end on parities of degree above 2."""

    cases = size(quick=[f"L=3, n=10, k={k}" for k in (2, 3, 4)], full=list(DEEP), label="networks and tasks")
    runs = size(quick=20, full=100)
    solved = at_least("share of runs solved, {case}", "0.9 (0.6 for k = 7 and 8)", part="{part}", claimed=1.0)
    some = at_least("share of runs solved at all, {case}", 0.1, part="some runs succeed on every task")

    def work(self, lab: Lab) -> list[Result]:
        return lab.sweep([DEEP[case] for case in self.cases], self.runs)

    def judge(self, got: list[Result]) -> Findings:
        checks = []
        for case, result in zip(self.cases, got, strict=True):
            hard = case.endswith(("k=7", "k=8"))
            part = "L = 4, k = 7 and 8" if hard else "L = 4, k <= 6" if case.startswith("L=4") else "L = 3"
            value = share(result.records.status == SOLVED)
            checks += [self.solved(*value, case=case, part=part, low=0.6 if hard else 0.9),
                       self.some(*value, case=case)]
        return Findings(checks, by_case(self.cases, got))

    def draw(self, got: list[Result]) -> plots.Figure:
        return draw_cases(self.cases, got)


def by_case(cases: Sequence[str], results: Sequence[Result]) -> list[dict[str, Any]]:
    return [{"case": case, **row} for case, result in zip(cases, results, strict=True)
            for row in by_run(result.records)]


def draw_cases(cases: Sequence[str], results: Sequence[Result]) -> plots.Figure:
    return times_plot({case: result.records for case, result in zip(cases, results, strict=True)})


SHALLOW = {f"L={len(widths) + 1}, k={k}": (widths, k)
           for widths, degrees in (((10,), (3, 4)), ((10, 10), (5, 6))) for k in degrees}
DEEP_ENOUGH = {"L=2, k=2": ((10,), 2), "L=3, k=4": ((10, 10), 4)}
"""The same networks with the largest degree that they can represent."""


@claim(
    "barak2022.c7-sanity",
    where="Appendix C.7",
    kind="empirical",
    title="Too-shallow quadratic networks fail",
    statement="""If k exceeds 2^(L-1) the quadratic network cannot represent the parity and training never leaves
    chance.""",
    published="'the models failed to converge in experimental setups where k > 2^(L-1)' (Appendix C.7); no numbers.",
)
class C7Sanity(Trial):
    """Quadratic networks too shallow for the degree: no check of any run may show more than 53 %."""

    cases = size(quick=["L=2, k=3"], full=list(SHALLOW), label="networks and tasks")
    max_steps = size(quick=5000, full=50_000)
    runs = size(quick=20, full=40)
    control = size(quick=["L=2, k=2"], full=list(DEEP_ENOUGH), label="networks and tasks of the control")
    failed = at_most("share of runs that converge, {case}", 0.1, part="too shallow: no convergence", claimed=0.0)
    deep_enough = at_least("share of runs that converge, {case}", 0.5, part="control: deep enough")

    def work(self, lab: Lab) -> Any:
        shapes = [SHALLOW[case] for case in self.cases] + [DEEP_ENOUGH[case] for case in self.control]
        return lab.sweep([quadratic(10, k, widths, self.max_steps) for widths, k in shapes], self.runs)

    def judge(self, got: list[Any]) -> Findings:
        names = [*self.cases, *self.control]
        checks = []
        for case, result in zip(names, got, strict=True):
            rule = self.failed if case in SHALLOW else self.deep_enough
            checks.append(rule(*share(result.records.status == SOLVED), case=case))
        numbers = {f"highest accuracy at the last check, {case}": float(result.records.accuracy.max())
                   for case, result in zip(names, got, strict=True)}
        return Findings(checks, by_case(names, got), numbers)

    def draw(self, got: Any) -> plots.Figure:
        return draw_cases([*self.cases, *self.control], got)


# --- C.2: biases ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Unbiased(MLP):
    """A perceptron without any biases; its weights start as those of the MLP."""

    def init(self, key: Any, n: int, init: Init) -> Any:
        return [{"w": layer["w"]} for layer in super().init(key, n, init)]

    def apply(self, params: Any, x: Any) -> Any:
        for layer in params[:-1]:
            x = self.activation(x @ layer["w"])
        return jnp.sum(x * params[-1]["w"][:, 0], axis=-1)


@claim(
    "barak2022.c2-bias-needed",
    where="Appendix C.2",
    kind="empirical",
    title="Odd k needs biases",
    statement="""Unbiased threshold gates have no even-degree Fourier mass, so for odd k a bias-free ReLU network gets
    no first-order signal and fails where a biased one succeeds.""",
    published="""'certain variants of the setups in Section 3 fail for odd k. Bias terms (trainable or fixed) are
    necessary to break this symmetry, in theory and practice' (Appendix C.2); no numbers.""",
)
class C2BiasNeeded(Trial):
    """A ReLU network on a parity of odd degree, with biases and without."""

    n = size(quick=12, full=20)
    width = size(quick=20, full=30)
    max_steps = size(quick=4000, full=20_000)
    biased = at_least("share of runs solved, with biases", 0.9)
    unbiased = at_most("share of runs solved, without", 0.2)
    gradient = at_most("largest population gradient of a unit without bias", 1e-12, exact=True)
    cases = ("with biases", "without")
    runs = size(quick=40, full=100)

    def work(self, lab: Lab) -> list[Result]:
        protocol = replace(FIXED_8192, max_steps=self.max_steps)
        return lab.sweep([Setup(Parity(self.n, 3), Learner(network, optimiser=SGD(0.3)), protocol)
                          for network in (MLP(self.width), Unbiased(self.width))], self.runs)

    def judge(self, got: list[Result]) -> Findings:
        biased, unbiased = (solved_fraction(result.records.status) for result in got)
        checks = [self.biased(*biased), self.unbiased(*unbiased),
                  self.gradient(float(np.abs(unbiased_gradients(11, 3)).max()))]
        return Findings(checks, by_case(self.cases, got))

    def draw(self, got: list[Result]) -> plots.Figure:
        return draw_cases(self.cases, got)


def unbiased_gradients(n: int, k: int) -> Floats:
    """E chi_S(x) x_j 1[w.x > 0] for all sign vectors w (rows) and all j, by enumeration.

    >>> float(abs(unbiased_gradients(5, 3)).max()), float(abs(unbiased_gradients(5, 2)).max())
    (0.0, 0.1875)
    """
    x = cube(n)
    chi = x[:, :k].prod(axis=1)
    return (x @ x.T > 0) @ (chi[:, None] * x) / 2**n


# --- D.1.1: degree --------------------------------------------------------------------------------------------------


PAIRS = tuple(itertools.combinations(range(1, 6), 2))
"""Degrees of networks, with the degrees above them of parities."""


@claim(
    "barak2022.d1-low-degree-fails",
    where="Appendix D.1.1; Equation (1)",
    kind="exact",
    title="Polynomials of degree below k have zero correlation with the parity",
    statement="Any polynomial of degree k' < k is orthogonal to a k-parity, so z^(k') MLPs cannot beat chance.",
    published="'incapable of representing any function that has a nonzero correlation with parity' (Section D.1.1).",
)
class D1LowDegreeFails(Trial):
    """Polynomials of degree below k are orthogonal to the parity, and z^2 networks stay near chance on k = 3."""

    draws = size(quick=20, full=1000)
    orthogonal = at_most("largest |E f chi_S| / max |f| of random networks", 1e-10)
    runs = size(quick=20, full=100, label="trained runs")
    level = between("mean accuracy of trained runs on all inputs", 0.48, 0.52)
    near = at_least("share of trained runs with an accuracy between 0.4 and 0.6", 0.9)

    def work(self, lab: Lab) -> tuple[dict[str, np.ndarray], tuple[Records, Any]]:
        return (lab.compute(correlations, draws=self.draws),
                lab.final_params(quadratic(10, 3, (30,), 10_000), self.runs))

    def judge(self, got: tuple[dict[str, np.ndarray], tuple[Records, Any]]) -> Findings:
        drawn, (_, params) = got
        x = cube(10)
        y = x[:, :3].prod(axis=1)
        right = np.array([np.mean(forward(layers_of(params, run), x, np.square) * y > 0) for run in range(self.runs)])
        rows = [{"degree": degree, "k": k, "draws": self.draws, "correlation": float(value), "accuracy": None}
                for (degree, k), value in zip(PAIRS, drawn["largest"], strict=True)]
        rows += [{"degree": 2, "k": 3, "draws": None, "correlation": None, "accuracy": float(v)} for v in right]
        checks = [self.orthogonal(drawn["largest"].max()), self.level(*mean(right)),
                  self.near(*share(abs(right - 0.5) <= 0.1))]
        return Findings(checks, rows, {"highest accuracy of a trained run": float(right.max())})

    def draw(self, got: tuple[dict[str, np.ndarray], tuple[Records, Any]]) -> plots.Figure:
        return orthogonality(dict(zip(PAIRS, got[0]["largest"], strict=True)))


@computation
def correlations(seed: int, draws: int) -> dict[str, list[float]]:
    """For each pair of degrees, the largest |E f chi_S| / max |f| of random networks f."""
    x, generator = cube(10), rng(seed)
    largest = []
    for degree, k in PAIRS:
        values = [random_net(generator, x, 8, degree) for _ in range(draws)]
        chi = x[:, :k].prod(axis=1)
        largest.append(float(max(abs(f @ chi) / len(x) / np.abs(f).max() for f in values)))
    return {"largest": largest}


def random_net(rng: np.random.Generator, x: Floats, width: int, degree: int) -> Floats:
    """The values of a random two-layer network with z^degree units."""
    w, b, u = rng.normal(size=(x.shape[1], width)), rng.normal(size=width), rng.normal(size=width)
    return (x @ w + b) ** degree @ u


@plots.styled
def orthogonality(largest: Mapping[tuple[int, int], float]) -> plots.Figure:
    """The largest correlations, by the degrees of network and parity."""
    figure = plots.blank(2.2)
    axes = figure.add_subplot(xlabel="degree of the parity", ylabel="largest $|E f \\chi_S| / \\max |f|$", yscale="log")
    for degree, colour, marker in zip(range(1, 5), plots.COLOURS, "osD^", strict=False):
        shown = [(k, value) for (below, k), value in largest.items() if below == degree]
        axes.plot(*zip(*shown, strict=True), marker=marker, markersize=4, color=colour, label=f"$z^{degree}$")
    axes.axhline(1e-10, color=plots.GREY, linestyle="dotted", linewidth=0.8, label="asked")
    axes.set_xticks((2, 3, 4, 5))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=5, columnspacing=1)
    return figure


def layers_of(params: Any, run: int) -> list[dict[str, Floats]]:
    """The layers of one run, in double precision."""
    return [{name: np.asarray(value[run], np.float64) for name, value in layer.items()} for layer in params]


def forward(layers: Sequence[Mapping[str, Floats]], x: Floats, activation: Any) -> Floats:
    """The outputs of a two-layer network."""
    hidden, output = layers
    return activation(x @ hidden["w"] + hidden["b"]) @ output["w"][:, 0] + output["b"][0]
