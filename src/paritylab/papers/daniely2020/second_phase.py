"""The second phase: Theorem 2, in practice and in its own regime, and Lemmas 13 and 14."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax
import numpy as np

from paritylab import SGD, LeakyParity, Learner, Protocol, Setup, plots
from paritylab.claims.lab import Lab
from paritylab.claims.registry import reproduces
from paritylab.claims.verdicts import Check, Outcome, at_least, at_most
from paritylab.papers.daniely2020.common import best, practical, share, trained
from paritylab.theory import leaky, leaky_flow, leaky_theorem
from paritylab.theory.leaky import Leaky
from paritylab.theory.leaky_network import LeakyNet

# --- Theorem 2 ------------------------------------------------------------------------------------------------------

THREE = [[61, 3, 200, 5000, 5], [101, 3, 200, 5000, 5], [201, 3, 200, 5000, 5]]
FIVE = [[101, 5, 500, 100_000, 5]]


@reproduces("daniely2020.thm2")
def two_phases(lab: Lab) -> Outcome:
    """The practical schedule at feasible n; the theorem's own at k = 7, n = 7^10, with every term of its bound."""
    networks = lab.pick("n, k, q, T, seeds", quick=[[61, 3, 200, 3000, 1]], standard=THREE, full=[*THREE, *FIVE])
    printed = lab.pick("T of the printed rate", quick=[100, 1000], full=[100, 1000, 10_000])
    drawn = lab.pick("q, T drawn at k = 7, n = 7^10", quick=[300, 10_000], full=[2000, 200_000])
    if lab.size == "standard":
        lab.leave_out("k = 5, which takes hours on two cores")
    checks: list[Check] = []
    data: list[dict[str, Any]] = []
    numbers: dict[str, float | None] = {}
    for n, k, q, steps, seeds in networks:
        name = f"n = {n}, k = {k}, q = {q}"
        rows = trained(lab, practical(n, k, q), steps, seeds)
        level, needed = (0.01, 0.8) if k == 3 else (0.05, 0.6)
        checks.append(share(f"share of seeds with error <= {level:g}, {name}", best(rows) <= level, needed))
        control = trained(lab, practical(n, k, q, frozen=True), steps, seeds)
        checks.append(at_least(f"smallest error with frozen random units, {name}", float(best(control).min()), 0.15))
        data += [{"schedule": label, **row} for label, part in (("practical", rows), ("frozen", control))
                 for row in part]
    n, k, q = 61, 3, 200
    for steps in printed:
        rows = trained(lab, practical(n, k, q, rate=leaky_theorem.schedule_rate(k, q, steps)), steps, 1)
        numbers[f"smallest error at the printed rate, T = {steps}, n = 61, k = 3"] = float(best(rows).min())
        data += [{"schedule": f"printed, T = {steps}", **row} for row in rows]
    found = leaky_theorem.regime(Leaky(7**10, 7))
    curve = leaky_theorem.error_curve(found, np.arange(2, 16.6, 0.25))
    q, steps = drawn
    run = lab.kept_old("leaky-descent", {"k": 7, "q": q, "steps": steps}, partial(descended, q, steps, lab.rng(22)))
    numbers |= in_theory(found, run, q, steps)
    data += [{"schedule": "theorem, q -> infinity", **row} for row in curve]
    data += [{"schedule": f"theorem, q = {q}", "step": int(step), "error": float(error)}
             for step, error in zip(run["steps"], run["error"], strict=True)]
    note = ("First gradient exact. In the theorem's regime (k = 7, n = 7^10) the schedule leaves a half-space's error "
            "for all feasible q; without the start's own output it makes no error from q of about 6 k^16 on, where the "
            "bound needs n far above q^2 k^2 = 10^30.")
    return Outcome(checks, data, draw_phases(data, curve, run), numbers, note)


def descended(q: int, steps: int, rng: np.random.Generator) -> dict[str, Any]:
    """2q drawn units at k = 7, n = 7^10, both layers trained at the theorem's rate."""
    sizes = Leaky(7**10, 7)
    units, u = leaky.draw_units(sizes, q, rng)
    rate = leaky_theorem.schedule_rate(7, q, steps)
    made = leaky_flow.descend(sizes, leaky_flow.reduced(sizes, units, u), steps, rate)
    return {"steps": made.steps, "error": made.error, "loss": made.loss, "moved": np.array(made.moved),
            "noise": np.array(made.noise), "pairs": np.array(q)}


def in_theory(
    found: leaky_theorem.Regime, run: Mapping[str, np.ndarray], q: int, steps: int
) -> dict[str, float | None]:
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
def draw_phases(data: Sequence[Mapping[str, Any]], curve: Sequence[Mapping[str, Any]],
                run: Mapping[str, np.ndarray]) -> Any:
    """Above: errors along the practical runs. Below: the error after the theorem's schedule against q."""
    figure = plots.blank(4.6)
    above, below = figure.subplots(2, 1)
    rows = [row for row in data if row["schedule"] in ("practical", "frozen")]
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
    below.plot([float(run["pairs"])], [run["error"].min()], "o", color=plots.COLOURS[2], markersize=4,
               label="drawn units, best")
    below.set(xscale="log", xlabel="q (k = 7, theorem's schedule)", ylabel="error on $D_A$", ylim=(-0.02, 0.52))
    below.legend(loc="lower left", fontsize=6)
    return figure


# --- Lemmas 13 and 14 -----------------------------------------------------------------------------------------------


@reproduces("daniely2020.lemma13-14")
def little_movement(lab: Lab) -> Outcome:
    """Every unit's moves since the first step, every 10 steps, beside the bounds; Lemma 14 for a separator u*."""
    rates = lab.pick("eta", quick=[0.001, 0.01], full=[0.001, 0.01])
    steps = lab.pick("T", quick=100, full=500)
    q = lab.pick("q", quick=50, full=200)
    n, k, batch = 101, 3, 2000
    checks: list[Check] = []
    data: list[dict[str, Any]] = []
    numbers: dict[str, float] = {}
    for rate, decay in itertools.product(rates, (0.0, k / n)):
        name = f"eta = {rate:g}, lambda = {decay:.2g}"
        curves = lab.curves(regularised(n, k, q, rate, decay, batch), steps, 10, 1, weights=True)
        w, b = (np.asarray(curves.weights["hidden"][part][0], float) for part in "wb")
        u, t = np.asarray(curves.weights["output"][0], float), curves.steps + 1.0
        drift = rate * t * k / math.sqrt(n)
        bounds = {"u": 6 * rate * t + k / math.sqrt(n),
                  "w": 6 * (rate * t) ** 2 + drift + 2 * rate * t * decay * n / k, "b": 6 * (rate * t) ** 2 + drift}
        moves = {"u": np.abs(u).max(1), "w": np.linalg.norm(w - w[0], axis=1).max(1), "b": np.abs(b - b[0]).max(1)}
        for part, moved in moves.items():
            checks.append(at_most(f"largest |{part}| move / bound, {name}", float((moved / bounds[part]).max()), 1))
            data += [{"eta": rate, "lambda": decay, "part": part, "step": int(step), "moved": float(m),
                      "bound": float(bound)} for step, m, bound in zip(curves.steps, moved, bounds[part], strict=True)]
        numbers[f"largest left side of Lemma 14 / right side, {name}"] = fixed_separator(
            Leaky(n, k), w, b, bounds["w"] + bounds["b"], lab.rng(14))
    return Outcome(checks, data, draw_moves(data), numbers)


@dataclass(frozen=True)
class Regularised(SGD):
    """Steps along the gradient of the loss and of lambda (|u|^2 + sum |w|^2); biases are not decayed."""

    penalty: float = 0.0

    def move(self, gradient: Any, state: Any, params: Any, lr: Any, step: Any) -> tuple[Any, Any]:
        decayed = {"hidden": {"w": 1.0, "b": 0.0}, "output": 1.0}
        moved = jax.tree.map(lambda p, g, a, d: p - a * (g + 2 * self.penalty * d * p), params, gradient, lr, decayed)
        return moved, state


def regularised(n: int, k: int, q: int, rate: float, penalty: float, batch: int) -> Setup:
    """The second phase of the theorem, from the exact first step."""
    learner = Learner(LeakyNet(q, k), optimiser=Regularised(rate, penalty=penalty), batch=batch)
    return Setup(LeakyParity(n, k), learner, Protocol(eval_size=1024))


def fixed_separator(sizes: Leaky, w: Any, b: Any, bound: Any, rng: np.random.Generator) -> float:
    """|loss of u* on the moved units - on those after the first step|, largest over inputs, over Lemma 14's bound."""
    from paritylab.baselines.kernels import feature_classifier

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
def draw_moves(data: Sequence[Mapping[str, Any]]) -> Any:
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
