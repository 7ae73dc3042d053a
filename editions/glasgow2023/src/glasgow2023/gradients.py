"""Population gradients: Lemmas B.12, C.2, C.3, C.4 and C.5, by enumeration of the cube."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from glasgow2023.theory.xor import Neurons, slope, step
from glasgow2023.theory.xor.gradients import lemma_c4, linear_gradients, network_gradients
from paritylab import plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Trial, at_least, at_most, between, claim, computation, rng, size
from paritylab.claims.intervals import bootstrap, mean, share


def fresh(generator: np.random.Generator, d: int, width: int, theta: float) -> Neurons:
    """A network as the paper starts it, in double precision."""
    w = generator.standard_normal((width, d))
    return Neurons(theta * w / np.linalg.norm(w, axis=1, keepdims=True), theta * generator.choice([-1.0, 1.0], width))


def signs(generator: np.random.Generator, count: int, d: int) -> Floats:
    return 1.0 - 2.0 * generator.integers(0, 2, (count, d))


def trained(neurons: Neurons, generator: np.random.Generator, steps: int) -> Neurons:
    """The network after some steps at rate 1/4, batches of 64."""
    for _ in range(steps):
        x = signs(generator, 64, neurons.w.shape[1])
        neurons = step(neurons, x, x[:, 0] * x[:, 1], 0.25)
    return neurons


@claim(
    "glasgow2023.lemma-c4",
    where="Lemma C.4 (B1-B4)",
    kind="exact",
    title="Population gradients of the linearised loss",
    statement="""-w_sig.grad = (sqrt2/4)|a| P(|w.xi| <= sqrt2 ||w_sig||) ||w_sig||; -w_opp.grad has the opposite sign
    with ||w_opp||; -w_perp.grad = +-(1/4)|a| E[1(|w.xi| between sqrt2||w_sig|| and sqrt2||w_opp||)|w.xi|], positive if
    ||w_opp|| > ||w_sig||; coordinate version for i >= 3 with intervals sqrt2||.|| -+ |w_i|.""",
    published="equalities (Lemma C.4)",
)
class LemmaC4(Trial):
    """Both sides of B1-B4 at random neurons."""

    d = size(quick=[6, 8, 10], full=[6, 8, 10, 12])
    draws = size(50)
    deviation = at_most("largest deviation of {item}", 1e-12, part="{part}")

    def work(self, lab: Lab) -> None:
        """Nothing that takes long."""

    def by_d(self) -> dict[int, dict[str, tuple[Floats, Floats]]]:
        """Left and right side of each item, for each d."""
        return {d: lemma_c4(fresh(self.rng(d), d, self.draws, 1.0)) for d in self.d}

    def sides(self) -> dict[str, tuple[Floats, Floats]]:
        """Those of all d."""
        made = list(self.by_d().values())
        return {name: (np.concatenate([each[name][0].ravel() for each in made]),
                       np.concatenate([each[name][1].ravel() for each in made])) for name in made[0]}

    def judge(self, got: None) -> Findings:
        sides = self.sides()
        printed = {"B4": "B4, exchanged"}
        checks = [self.deviation(float(np.abs(left - right).max()), item=name, part=printed.get(name, "B1 to B3"))
                  for name, (left, right) in sides.items()]
        left, right = sides["B4"]
        checks.append(self.deviation(float(np.abs(left + right).max()), item="B4 as printed", part="B4, as printed"))
        return Findings(checks, self.rows())

    def rows(self) -> list[dict[str, Any]]:
        return [{"d": d, "item": name, "deviation": float(np.abs(left - right).max()),
                 "largest": float(np.abs(left).max())}
                for d, items in self.by_d().items() for name, (left, right) in items.items()]

    def draw(self, got: None) -> plots.Figure:
        return sides_plot(self.sides())


@plots.styled
def sides_plot(sides: dict[str, Any]) -> plots.Figure:
    """The lemma's formula against the enumerated gradient, one panel for each item."""
    figure = plots.blank(3.4)
    panels = np.ravel(figure.subplots(2, 2))
    titles = {"B1": r"B1: $w_{sig}$", "B2": r"B2: $w_{opp}$", "B3": r"B3: $w_\perp$", "B4": r"B4: $w_i$, $i \geq 3$"}
    for axes, (name, (left, right)) in zip(panels, sides.items(), strict=True):
        axes.plot(left, right, ".", markersize=2, color=plots.COLOURS[0])
        ends = np.array([left.min(), left.max()])
        axes.plot(ends, ends, color=plots.GREY, linewidth=0.7)
        axes.set_title(titles[name])
    figure.supxlabel(r"$-w\cdot\nabla L_0$ by enumeration", fontsize=8)
    figure.supylabel("the lemma's formula", fontsize=8)
    return figure


# --- the linearised loss against the true one -------------------------------------------------------------------------

PRINTED = "C.5, label flips"
INEQUALITIES = ("C.2 by a", "C.2 by w", "C.3, factor 2 log d", "C.5, mean", "C.5, one flip", PRINTED)
SECOND_LINE = {"C.5, one flip": "C.5's second line, of l' - l0'", PRINTED: "C.5's second line, as printed"}


@claim(
    "glasgow2023.lemma-c2",
    where="Lemmas C.2, C.3, C.5",
    kind="theory",
    title="Distance between true and linearised gradients",
    statement="""|grad_a L0 - grad_a L| <= 2||w|| E||a w|| and ||grad_w L0 - grad_w L|| <= 2|a| E||a w||; coordinatewise
    the bound is much smaller when the coordinate carries little mass.""",
    published="inequalities (Lemmas C.2, C.3, C.5)",
)
class LemmaC2(Trial):
    """Every inequality of Lemmas C.2, C.3 and C.5 as left side over right side, over networks fresh and trained."""

    d = size(quick=8, full=10)
    widths = size([5, 50])
    theta = size([0.1, 0.5, 1.0])
    networks = size(quick=4, full=50)
    ratio = at_most("largest left side / right side, {inequality}", 1.0, part="{part}", exact=True)

    @property
    def points(self) -> list[tuple[int, float]]:
        return list(itertools.product(self.widths, self.theta))

    def work(self, lab: Lab) -> list[dict[str, Floats]]:
        return lab.compute_each(ratios, [{"d": self.d, "width": width, "theta": theta, "networks": self.networks}
                                         for width, theta in self.points])

    def found(self, got: list[dict[str, Floats]]) -> dict[str, Floats]:
        """The ratios of each inequality over all networks."""
        return {name: np.concatenate([each[name] for each in got]) for name in INEQUALITIES}

    def judge(self, got: list[dict[str, Floats]]) -> Findings:
        found = self.found(got)
        checks = [self.ratio(float(max(found[name])), inequality=name,
                             part=SECOND_LINE.get(name, "C.2, C.3 and C.5's first line")) for name in INEQUALITIES]
        return Findings(checks, self.rows(got))

    def rows(self, got: list[dict[str, Floats]]) -> list[dict[str, Any]]:
        return [{"width": width, "theta": theta, "network": number, "steps": int(each["steps"][number]),
                 **{name: float(each[name][number]) for name in INEQUALITIES}}
                for (width, theta), each in zip(self.points, got, strict=True) for number in range(self.networks)]

    def draw(self, got: list[dict[str, Floats]]) -> plots.Figure:
        return ratios_plot({name: values for name, values in self.found(got).items() if name != PRINTED})


@computation
def ratios(seed: int, d: int, width: int, theta: float, networks: int) -> dict[str, Any]:
    """The ratios of each network, every other one after some steps of training."""
    steps: list[int] = []
    found: dict[str, list[float]] = {name: [] for name in INEQUALITIES}
    for number in range(networks):
        generator = rng(seed, width, round(100 * theta), number)
        steps.append(int(generator.integers(0, 40)) if number % 2 else 0)
        neurons = trained(fresh(generator, d, width, theta), generator, steps[-1])
        for name, value in linearisation_ratios(neurons).items():
            found[name].append(value)
    return {"steps": steps, **found}


def linearisation_ratios(neurons: Neurons) -> dict[str, float]:
    """The largest left side over right side of each inequality, over neurons, coordinates and inputs."""
    d = neurons.w.shape[1]
    x = np.array(list(itertools.product([1.0, -1.0], repeat=d)))
    y = x[:, 0] * x[:, 1]
    by_w, by_a = network_gradients(neurons)
    linear_w, linear_a = linear_gradients(neurons)
    a, size = np.abs(neurons.a), neurons.size
    mass, masses = float(np.mean(a * size)), np.mean(a[:, None] * np.abs(neurons.w), axis=0)
    slopes = -y * slope(y * neurons(x))  # l', to be compared with l0' = -y
    products = np.abs((x @ neurons.w.T)[:, :, None] - x[:, None, :] * neurons.w)  # of w and x without input i
    near = np.mean(products <= np.abs(neurons.w), axis=0)
    coordinate = a[:, None] * (4 * masses + 2 * math.log(d) * mass * near)
    flipped = np.arange(len(x))[:, None] ^ 2 ** np.arange(d)[::-1]  # the row of x with input i flipped
    excess = slopes + y
    change = (excess[:, None] - excess[flipped]) ** 2 / (16 * masses**2)
    printed = (slopes[:, None] - slopes[flipped]) ** 2 / (16 * masses**2)
    return {
        "C.2 by a": float(np.max(np.abs(by_a - linear_a) / (2 * size * mass))),
        "C.2 by w": float(np.max(np.linalg.norm(by_w - linear_w, axis=1) / (2 * a * mass))),
        "C.3, factor 2 log d": float(np.max(np.abs(by_w - linear_w) / coordinate)),
        "C.5, mean": float(np.mean(excess**2) / (4 * mass**2)),
        "C.5, one flip": float(np.max(change)),
        PRINTED: float(np.max(printed[:, :2])),
    }


@plots.styled
def ratios_plot(found: dict[str, Floats]) -> plots.Figure:
    figure = plots.blank(0.8 + 0.3 * len(found))
    axes = figure.add_subplot(xscale="log", xlabel="left side / right side", ylim=(len(found) - 0.5, -0.5))
    for place, values in enumerate(found.values()):
        jitter = np.linspace(-0.25, 0.25, len(values))
        axes.plot(values, place + jitter, ".", markersize=2.5, color=plots.COLOURS[0])
    axes.axvline(1.0, color=plots.COLOURS[1], linewidth=0.9, linestyle="dashed")
    axes.set_yticks(range(len(found)), list(found))
    return figure


def line(logs: Floats, errors: Any) -> float:
    """The slope of the log of mean errors."""
    return float(np.polyfit(logs, np.log([np.mean(each) for each in errors]), 1)[0])


@computation
def concentration(seed: int, d: int, width: int, theta: float, m: list[int], batches: int) -> dict[str, Any]:
    """(sizes of batches, batches): mean squared errors, the largest over the bound, coordinates within theirs."""
    neurons = fresh(rng(seed, d), d, width, theta)
    population = network_gradients(neurons)[0] if d <= 16 else sampled_gradient(neurons, rng(seed, d, 1), 10**6)
    shape = len(m), batches
    made = {"error": np.empty(shape), "largest": np.empty(shape), "inside": np.empty(shape)}
    for i, count in enumerate(m):
        generator, bound = rng(seed, d, count), math.log(d) ** 2 * theta**2 / count
        for batch in range(batches):
            squares = (network_gradients(neurons, signs(generator, count, d))[0] - population) ** 2
            whole = squares.sum(1)
            made["error"][i, batch], made["largest"][i, batch] = whole.mean(), whole.max() / (d * bound)
            made["inside"][i, batch] = np.mean(squares <= bound)
    return made


# --- concentration ----------------------------------------------------------------------------------------------------


@claim(
    "glasgow2023.lemma-b12",
    where="Lemma B.12",
    kind="theory",
    title="Minibatch gradients concentrate",
    statement="""With m >= d log^2 d the batch gradient of every neuron is within d log^2(d) a^2/m of the population one
    in squared norm (log^2(d) a^2/m per coordinate).""",
    published="""squared errors of at most d log^2(d) a^2 / m, and log^2(d) a^2 / m for a coordinate, with probability
    1 - d^(-omega(1)) (Lemma B.12)""",
)
class LemmaB12(Trial):
    """Squared distances of batch gradients from the population's, over the lemma's bound."""

    d = size(quick=[12], full=[12, 64])
    width, theta = 20, 0.3
    batches = size(4000)
    within = at_least("share of batches with every neuron within the bound, d = {d}, m = {m}", 0.999, claimed=1.0)
    coordinates = at_least("share of coordinates within their bound, d = {d}, m = {m}", 0.999, claimed=1.0)
    slope = between("slope of log mean squared error on log m, d = {d}", -1.1, -0.9, claimed=-1.0)

    def m(self, d: int) -> list[int]:
        return [d, 4 * d, round(d * math.log(d) ** 2)]

    def work(self, lab: Lab) -> list[dict[str, Floats]]:
        return lab.compute_each(concentration, [{"d": d, "width": self.width, "theta": self.theta, "m": self.m(d),
                                                 "batches": self.batches} for d in self.d])

    def judge(self, got: list[dict[str, Floats]]) -> Findings:
        checks, rows = [], []
        for d, each in zip(self.d, got, strict=True):
            for i, m in enumerate(self.m(d)):
                if m >= round(d * math.log(d) ** 2):
                    checks += [self.within(*share(each["largest"][i] <= 1), d=d, m=m),
                               self.coordinates(*mean(each["inside"][i]), d=d, m=m)]
                rows += [{"d": d, "m": m, "batch": batch, "squared_error": float(each["error"][i, batch]),
                          "largest_over_bound": float(each["largest"][i, batch]),
                          "coordinates_inside": float(each["inside"][i, batch])} for batch in range(self.batches)]
            logs = np.log(self.m(d))
            interval = bootstrap(lambda *errors, logs=logs: line(logs, errors), *each["error"], rng=self.rng(d),
                                 resamples=500)
            checks.append(self.slope(line(logs, each["error"]), interval, d=d))
        return Findings(checks, rows)

    def draw(self, got: list[dict[str, Floats]]) -> plots.Figure:
        series: dict[str, plots.Series] = {}
        for d, each in zip(self.d, got, strict=True):
            m, means = np.array(self.m(d)), each["error"].mean(axis=1)
            series[f"measured, $d = {d}$"] = plots.Series(m, means / self.theta**2)
            series[f"bound, $d = {d}$"] = plots.Series(m, d * math.log(d) ** 2 / m)
        return plots.scaling_plot(series, "batch size $m$", "squared error / $a^2$")


@computation
def errors(seed: int, d: int, width: int, theta: float, m: list[int], batches: int) -> dict[str, Any]:
    """Squared errors (sizes of batches, batches, neurons) of one network's gradients, and its output weights."""
    neurons = fresh(rng(seed, d), d, width, theta)
    population = network_gradients(neurons)[0] if d <= 16 else sampled_gradient(neurons, rng(seed, d, 1), 10**6)
    found: list[list[Floats]] = []
    for count in m:
        generator = rng(seed, d, count)
        found.append([np.sum((network_gradients(neurons, signs(generator, count, d))[0] - population) ** 2, axis=1)
                      for _ in range(batches)])
    return {"errors": found, "a": neurons.a}


def sampled_gradient(neurons: Neurons, generator: np.random.Generator, count: int, chunk: int = 20_000) -> Floats:
    """The mean gradient by w over many samples."""
    d = neurons.w.shape[1]
    parts = [network_gradients(neurons, signs(generator, chunk, d))[0] for _ in range(count // chunk)]
    return np.mean(parts, axis=0)
