"""The second phase: Theorem 2, in practice and in its own regime, and Lemmas 13 and 14."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np

from daniely2020.common import Row, Trained, best, practical, train
from daniely2020.theory import leaky
from daniely2020.theory.leaky import Leaky
from daniely2020.theory.leaky import flow as leaky_flow
from daniely2020.theory.leaky import theorem as leaky_theorem
from daniely2020.theory.leaky.network import LeakyNet
from paritylab import SGD, LeakyParity, Learner, Protocol, Setup, plots
from paritylab.aliases import Arrays, Floats
from paritylab.baselines.kernels import feature_classifier
from paritylab.claims import Check, Findings, Lab, Trial, at_least, at_most, claim, computation, rng, size
from paritylab.claims.intervals import mean, share
from paritylab.engines.curves import Curves

# --- Theorem 2 ------------------------------------------------------------------------------------------------------

THREE = [[61, 3, 200, 5000, 5], [101, 3, 200, 5000, 5], [201, 3, 200, 5000, 5]]
FIVE = [[101, 5, 500, 100_000, 5]]


@dataclass(frozen=True)
class Phases:
    """Practical runs with their frozen controls, runs at the printed rate, and descent in the theorem's regime."""

    networks: list[Trained]
    printed: list[Trained]
    drawn: Arrays


OWN, SMALL = "its own schedule in its regime (k = 7, many units)", "its own schedule outside of it (k = 3, n = 61)"
THREE, FIVE = "another schedule, k = 3", "another schedule, k = 5"


@dataclass(frozen=True)
class Runs:
    """Practical runs and their frozen controls, runs at the theorem's rate, and descent in its regime."""

    networks: list[Trained]
    controls: list[Trained]
    printed: list[Trained]
    drawn: Arrays


@claim(
    "daniely2020.thm2",
    where="Theorem 2",
    kind="theory",
    title="Two-phase gradient descent learns the leaky parity",
    statement="""After one unit-rate step and T small steps on both layers, the best iterate has error O(k^10/q +
    k^8/sqrt q + q k/sqrt n + k^2 sqrt q/T).""",
    published="""the bound, for k >= 7, n >= k^10 up to constants and q >= k^7 log(k/delta) up to constants (Theorem 2);
    k=3, n=61, q=200: error 0 after about 1700 steps at eta=0.1, and 0.18 to 0.37 at the theorem's (computed here)""",
)
class Thm2(Trial):
    """The practical schedule at feasible n; the theorem's own at k = 7, n = 7^10, with every term of its bound."""

    printed = size(quick=[100, 1000], full=[100, 1000, 10_000], label="T of the printed rate")
    drawn = size(quick=[300, 10_000], full=[2000, 200_000], label="q, T drawn at k = 7, n = 7^10")
    networks = size(quick=[[61, 3, 200, 3000, 2]], standard=[[n, 3, 200, 5000, 6] for n in (61, 101, 201)],
                    full=[*([n, 3, 200, 5000, 6] for n in (61, 101, 201)), [101, 5, 500, 100_000, 8]],
                    label="n, k, q, T, seeds")
    others = size(quick=2, full=3, label="seeds of the controls and of the theorem's rate")
    terms = at_most("what {term} bounds / it, q = {q:.2g}", 1, exact=True, part=OWN)
    bound = at_most("largest error after the schedule / sum of the bound's terms without n, where that is below 1", 1,
                    exact=True, part=OWN)
    own = at_most("mean best error at the theorem's rate, T = {steps}, n = 61, k = 3, q = 200", 0.01, part=SMALL)
    three = at_least("share of runs with error <= 0.01, k = 3, all n", 0.8, part=THREE, claimed=1.0)
    five = at_least("share of runs with error <= 0.05, n = 101, k = 5", 0.6, part=FIVE, claimed=1.0, only=("full",))
    frozen = at_least("mean best error with frozen random units, n = {n}, k = {k}, q = {q}", 0.15, part="{part}")

    def work(self, lab: Lab) -> Any:
        if self.size == "standard":
            lab.leave_out("k = 5, which takes hours on two cores")
        networks = [train(lab, [practical(n, k, q)], steps, seeds) for n, k, q, steps, seeds in self.networks]
        controls = [train(lab, [practical(n, k, q, frozen=True)], steps, self.others)
                    for n, k, q, steps, _ in self.networks]
        printed = [train(lab, [practical(61, 3, 200, rate=leaky_theorem.schedule_rate(3, 200, steps))], steps,
                         self.others) for steps in self.printed]
        pairs, steps = self.drawn
        return Runs(networks, controls, printed, lab.compute(descended, q=pairs, steps=steps))

    @functools.cached_property
    def regime(self) -> leaky_theorem.Regime:
        return leaky_theorem.regime(Leaky(7**10, 7))

    @functools.cached_property
    def curve(self) -> list[dict[str, float]]:
        """The error after the theorem's schedule against q."""
        return leaky_theorem.error_curve(self.regime, np.arange(2, 16.6, 0.25))

    def rows(self, got: Any) -> list[Row]:
        """Errors along the practical runs and their controls."""
        return [{"schedule": schedule, **row} for schedule, made in (("practical", got.networks),
                                                                     ("frozen", got.controls))
                for trained in made for row in trained.rows[0]]

    def judge(self, got: Any) -> Findings:
        checks = self.in_regime()
        errors = {3: [], 5: []}
        for (n, k, q, *_), trained, control in zip(self.networks, got.networks, got.controls, strict=True):
            errors[k] += best(trained.rows[0]).tolist()
            checks.append(self.frozen(*mean(best(control.rows[0])), n=n, k=k, q=q, part=THREE if k == 3 else FIVE))
        checks.append(self.three(*share(np.array(errors[3]) <= 0.01)))
        if errors[5]:
            checks.append(self.five(*share(np.array(errors[5]) <= 0.05)))
        data = self.rows(got)
        for steps, trained in zip(self.printed, got.printed, strict=True):
            checks.append(self.own(*mean(best(trained.rows[0])), steps=steps))
            data += [{"schedule": f"theorem's rate, T = {steps}", **row} for row in trained.rows[0]]
        data += [{"schedule": "theorem, q -> infinity", **row} for row in self.curve]
        return Findings(checks, data, in_theory(self.regime, got.drawn, *self.drawn))

    def draw(self, got: Phases) -> plots.Figure:
        return draw_phases(self.rows(got), self.curve, self.drawn[0], float(got.drawn["error"].min()))

    def in_regime(self) -> list[Check]:
        """The theorem's bound at k = 7, n = 7^10, in the limit of many units."""
        q, k = self.regime.needed, 7
        bounds = leaky_theorem.bound_terms(7**10, k, q, k**4 * q)
        terms = self.regime.proof_terms(q, k**4 * q)
        checks = [self.terms(terms[name] / bounds[name], term=name, q=q) for name in leaky_theorem.TERMS]
        without_n = [name for name in leaky_theorem.TERMS if "n" not in name]
        allowed = [(row["error"], sum(row[f"bound: {name}"] for name in without_n)) for row in self.curve]
        return [*checks, self.bound(max(error / most for error, most in allowed if most < 1))]


@computation
def descended(seed: int, q: int, steps: int) -> dict[str, Any]:
    """2q drawn units at k = 7, n = 7^10, both layers trained at the theorem's rate."""
    sizes = Leaky(7**10, 7)
    units, u = leaky.draw_units(sizes, q, rng(seed, 22))
    rate = leaky_theorem.schedule_rate(7, q, steps)
    made = leaky_flow.descend(sizes, leaky_flow.reduced(sizes, units, u), steps, rate)
    return {"steps": made.steps, "error": made.error, "noise": made.noise}


def in_theory(found: leaky_theorem.Regime, run: Arrays, q: int, steps: int) -> dict[str, float | None]:
    """Numbers of the run in the theorem's regime, and every term of the bound beside the proof's own quantity."""
    needed = found.needed
    where = f"k = 7, n = 7^10, q = {needed:.2g}"
    bounds = leaky_theorem.bound_terms(found.sizes.n, 7, needed, 7**4 * needed)
    terms = found.proof_terms(needed, 7**4 * needed)
    numbers: dict[str, float | None] = {
        "q from which the theorem's schedule makes no error, k = 7": needed, "the same / k^16": needed / 7**16,
        "2q |u*|^2 / k^10, k = 7": found.separator / 7**10,
        f"best error with {q} drawn pairs, T = {steps}": float(run["error"].min()),
        f"noise of their weights off A in the output, {q} pairs": float(run["noise"]),
    }
    for name in leaky_theorem.TERMS:
        numbers |= {f"{name}, {where}": bounds[name], f"what it bounds, {name}, {where}": terms[name]}
    return numbers


@plots.styled
def draw_phases(rows: Sequence[Row], curve: Sequence[Mapping[str, float]], pairs: int, error: float) -> plots.Figure:
    """Above: errors along the practical runs. Below: the error after the theorem's schedule against q."""
    figure = plots.blank(4.6)
    above, below = figure.subplots(2, 1)
    for (n, k), colour in zip(sorted({(row["n"], row["k"]) for row in rows}, key=lambda nk: nk[::-1]), plots.COLOURS,
                              strict=False):
        for schedule, line in (("practical", "solid"), ("frozen", "dotted")):
            part = [row for row in rows if (row["n"], row["k"], row["schedule"]) == (n, k, schedule)]
            for seed in sorted({row["seed"] for row in part}):
                shown = [row for row in part if row["seed"] == seed]
                above.plot([row["step"] / shown[-1]["step"] for row in shown], [row["error"] for row in shown],
                           color=colour, linestyle=line, linewidth=0.8,
                           label=None if seed else f"n = {n}, k = {k}" + (", frozen" if schedule == "frozen" else ""))
    above.set(xlabel="share of the run", ylabel="error on $D_A$", ylim=(-0.02, 0.52))
    figure.legend(*above.get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=6)
    q = [row["q"] for row in curve]
    below.step(q, [row["error"] for row in curve], where="post", color=plots.COLOURS[0], label="error, start at 0")
    below.step(q, [row["error_from_own_start"] for row in curve], where="post", color=plots.COLOURS[1],
               linestyle="dashed", label="error, n = $7^{10}$'s start")
    below.plot([row["q"] for row in curve], [min(row["bound: k^8 / sqrt(q)"], 9) for row in curve], color=plots.GREY,
               linestyle="dotted", label="$k^8/\\sqrt{q}$")
    below.plot([pairs], [error], "o", color=plots.COLOURS[2], markersize=4, label="drawn units, best")
    below.set(xscale="log", xlabel="q (k = 7, theorem's schedule)", ylabel="error on $D_A$", ylim=(-0.02, 0.52))
    below.legend(loc="lower left", fontsize=6)
    return figure


# --- Lemmas 13 and 14 -----------------------------------------------------------------------------------------------


@claim(
    "daniely2020.lemma13-14",
    where="Lemmas 13 and 14",
    kind="theory",
    title="First layer moves little in phase 2",
    statement="""|u^(t)| <= 6 eta t + k/sqrt n, ||w^(t) - w^(1)|| <= 6 eta^2 t^2 + eta t k/sqrt n + 2 eta t lambda n/k,
    |b^(t) - b^(1)| <= 6 eta^2 t^2 + eta t k/sqrt n.""",
    published="the bounds (Lemmas 13 and 14)",
)
class Lemma1314(Trial):
    """Every unit's moves since the first step, every 10 steps, beside the bounds; Lemma 14 for a separator u*."""

    eta = size([0.001, 0.01])
    steps = size(quick=100, full=500, label="T")
    q = size(quick=50, full=200)
    n, k = 101, 3
    runs = size(quick=2, full=4)
    within = at_most("mean over runs of the largest |{part}| move / bound, eta = {eta:g}, lambda = {decay:.2g}", 1)
    losses = at_most("mean over runs of the largest left side of Lemma 14 / right side, eta = {eta:g}, "
                     "lambda = {decay:.2g}", 1)

    @property
    def points(self) -> list[tuple[float, float]]:
        """Rates and penalties."""
        return list(itertools.product(self.eta, (0.0, self.k / self.n)))

    def work(self, lab: Lab) -> list[Curves]:
        setups = [regularised(self.n, self.k, self.q, eta, decay, batch=2000) for eta, decay in self.points]
        return lab.curves_each(setups, self.steps, 10, self.runs, weights=True)

    def moves(self, got: list[Curves]) -> list[Moves]:
        return [Moves.of(curves, self.n, self.k, eta, decay)
                for (eta, decay), curves in zip(self.points, got, strict=True)]

    def rows(self, got: list[Curves]) -> list[Row]:
        return [{"eta": eta, "lambda": decay, "part": part, "step": int(step), "moved": float(moved),
                 "bound": float(bound)}
                for (eta, decay), moves in zip(self.points, self.moves(got), strict=True) for part in moves.largest
                for step, moved, bound in zip(moves.steps, moves.largest[part], moves.bounds[part], strict=True)]

    def judge(self, got: list[Curves]) -> Findings:
        checks: list[Check] = []
        for (eta, decay), curves in zip(self.points, got, strict=True):
            made = [Moves.of(curves, self.n, self.k, eta, decay, run) for run in range(self.runs)]
            where = {"eta": eta, "decay": decay}
            checks += [self.within(*mean([float((each.largest[part] / each.bounds[part]).max()) for each in made]),
                                   part=part, **where) for part in "uwb"]
            sides = [fixed_separator(Leaky(self.n, self.k), each.w, each.b, each.bounds["w"] + each.bounds["b"],
                                     self.rng(14, run)) for run, each in enumerate(made)]
            checks.append(self.losses(*mean(sides), **where))
        return Findings(checks, self.rows(got))

    def draw(self, got: list[Curves]) -> plots.Figure:
        return draw_moves(self.rows(got))


@dataclass(frozen=True)
class Moves:
    """Hidden weights and biases after ``steps``, and by part (u, w, b) the largest move of a unit and its bound."""

    steps: Any
    w: Floats
    b: Floats
    largest: dict[str, Floats]
    bounds: Mapping[str, Floats]

    @classmethod
    def of(cls, curves: Curves, n: int, k: int, rate: float, decay: float, run: int = 0) -> Moves:
        """Those of one run."""
        w, b = (np.asarray(curves.weights["hidden"][part][run], float) for part in "wb")
        u, t = np.asarray(curves.weights["output"][run], float), curves.steps + 1.0
        drift = rate * t * k / math.sqrt(n)
        bounds = {"u": 6 * rate * t + k / math.sqrt(n),
                  "w": 6 * (rate * t) ** 2 + drift + 2 * rate * t * decay * n / k, "b": 6 * (rate * t) ** 2 + drift}
        largest = {"u": np.abs(u).max(1), "w": np.linalg.norm(w - w[0], axis=1).max(1), "b": np.abs(b - b[0]).max(1)}
        return cls(curves.steps, w, b, largest, bounds)


@dataclass(frozen=True)
class Regularised(SGD):
    """Steps along the gradient of the loss and of lambda (|u|^2 + sum |w|^2); biases are not decayed."""

    penalty: float = 0.0

    def move(self, gradient: Any, state: Any, params: Any, lr: Any, step: Any, **seen: Any) -> tuple[Any, Any]:
        decayed = {"hidden": {"w": 1.0, "b": 0.0}, "output": 1.0}
        moved = jax.tree.map(lambda p, g, a, d: p - a * (g + 2 * self.penalty * d * p), params, gradient, lr, decayed)
        return moved, state


def regularised(n: int, k: int, q: int, rate: float, penalty: float, batch: int) -> Setup:
    """The second phase of the theorem, from the exact first step."""
    learner = Learner(LeakyNet(q, k), optimiser=Regularised(rate, penalty=penalty), batch=batch)
    return Setup(LeakyParity(n, k), learner, Protocol(eval_size=1024))


def fixed_separator(sizes: Leaky, w: Any, b: Any, bound: Any, rng: np.random.Generator) -> float:
    """|loss of u* on the moved units - on those after the first step|, largest over inputs, over Lemma 14's bound."""
    s, y, _ = leaky.draw_inputs(sizes, 2000, rng)
    layers = [leaky.Layer(moved.T, bias, np.zeros(len(bias))) for moved, bias in zip(w, b, strict=True)]
    first = layers[0].features(s)
    probe = feature_classifier(lambda x: x, first, y, ridge=1e-3)
    star = probe(np.eye(first.shape[1]))
    margins = [y * (layer.features(s) @ star) for layer in layers]
    losses = np.array([np.maximum(1 - margin, 0) for margin in margins])
    allowed = np.linalg.norm(star) * math.sqrt(len(star)) * bound
    return float((np.abs(losses - losses[0]).max(1) / allowed)[1:].max())


@plots.styled
def draw_moves(data: Sequence[Row]) -> plots.Figure:
    """The largest moves over all units against steps, beside their bounds."""
    parts = {"u": "$|u|$", "w": "$|w - w^{(1)}|$", "b": "$|b - b^{(1)}|$"}
    figure = plots.blank(4.2)
    panels: Any = figure.subplots(3, 1, sharex=True)
    for axes, (part, label) in zip(panels, parts.items(), strict=True):
        axes.set(yscale="log", ylabel=label)
        groups = sorted({(row["eta"], row["lambda"]) for row in data})
        for (rate, decay), colour, line in zip(groups, plots.COLOURS, plots.LINES, strict=False):
            rows = [row for row in data if (row["eta"], row["lambda"], row["part"]) == (rate, decay, part)
                    and row["step"] > 0]
            axes.plot([row["step"] for row in rows], [row["moved"] for row in rows], color=colour, linestyle=line,
                      label=f"$\\eta$ = {rate:g}, $\\lambda$ = {decay:.2g}")
            axes.plot([row["step"] for row in rows], [row["bound"] for row in rows], color=colour, linestyle=line,
                      linewidth=0.6, alpha=0.6)
    panels[-1].set_xlabel("steps (thin lines: Lemma 13)")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside upper center", ncols=2)
    return figure
