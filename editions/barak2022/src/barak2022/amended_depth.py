"""What networks can and cannot learn, with enough runs: C.7, C.2, D.1.1 and D.2."""

from __future__ import annotations

from typing import Any

import numpy as np

from barak2022.deep import (
    PAIRS,
    SHALLOW,
    C2BiasNeeded,
    C7DeepQuadratic,
    C7Sanity,
    D1LowDegreeFails,
    by_case,
    draw_cases,
    forward,
    layers_of,
    quadratic,
)
from barak2022.weak import D2WeakToStrong
from paritylab import plots
from paritylab.claims import Findings, Lab, amends, at_least, at_most, between, size
from paritylab.claims.intervals import mean, share
from paritylab.measures.fourier import cube
from paritylab.running.sweeps import Result
from paritylab.storage.records import SOLVED, Records


@amends(
    "barak2022.c7-deep-quadratic",
    date="2026-11-16",
    kind="power",
    where="Appendix C.7, Results",
    quote="Over 10 random seeds, all models converged within 20000 iterations.",
    change="""100 runs of each network and task instead of 10, so that a share of 0.9 can be told from less; the bounds
    stay (0.9, and 0.6 for k = 7 and 8). The three networks and budgets of the paper are parts, and a fourth asks for
    what the section is about: some runs succeed on every task.""",
    known="""In the first trial, seed 0, 8 of 34 tasks had 8 of 10 runs solved or fewer, 3 of 10 at the least. Trials of
    100 runs of L = 3, n = 30, k = 3 solved 67, and 90 within 10^5 steps; other rates, starts and losses did not reach
    95.""",
)
class C7DeepQuadraticAmended(C7DeepQuadratic):
    """The same networks and tasks with ten times as many runs."""

    runs = size(quick=20, full=100)

    solved = at_least("share of runs solved, {case}", "0.9 (0.6 for k = 7 and 8)", part="{part}", claimed=1.0)
    some = at_least("share of runs solved at all, {case}", 0.1, part="some runs succeed on every task")

    def judge(self, got: list[Result]) -> Findings:
        checks = []
        for case, result in zip(self.cases, got, strict=True):
            hard = case.endswith(("k=7", "k=8"))
            part = "L = 4, k = 7 and 8" if hard else "L = 4, k <= 6" if case.startswith("L=4") else "L = 3"
            value = share(result.records.status == SOLVED)
            checks += [self.solved(*value, case=case, part=part, low=0.6 if hard else 0.9),
                       self.some(*value, case=case)]
        return Findings(checks, by_case(self.cases, got))


DEEP_ENOUGH = {"L=2, k=2": ((10,), 2), "L=3, k=4": ((10, 10), 4)}
"""The same networks with the largest degree that they can represent."""


@amends(
    "barak2022.c7-sanity",
    date="2026-11-16",
    kind="misreading",
    where="Appendix C.7, Results",
    quote="""As a sanity check, the models failed to converge in experimental setups where k > 2^(L-1): (L = 2, k >= 3)
    and (L = 3, k >= 5).""",
    change="""'Failed to converge' is no run at 100 %, where at most 53 % at any check were asked: an untrained
    quadratic may score more. A control has the same networks at k = 2^(L-1), the largest degree that they can
    represent: they must converge, or the failure would say nothing. 40 runs instead of 10.""",
    known="""In the first trial, seed 0, no run came near convergence; the highest accuracy at any check was 0.547. The
    control had not been run.""",
)
class C7SanityAmended(C7Sanity):
    """Quadratic networks too shallow for the degree never converge; just deep enough, they do."""

    runs = size(quick=20, full=40)
    control = size(quick=["L=2, k=2"], full=list(DEEP_ENOUGH), label="networks and tasks of the control")

    chance = None
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


@amends(
    "barak2022.c2-bias-needed",
    date="2026-11-16",
    kind="power",
    where="Appendix C.2, Biases",
    quote="Bias terms (trainable or fixed) are necessary to break this symmetry, in theory and practice.",
    change="100 runs instead of 20; the bounds stay.",
    known="In the first trial, seed 0, 20 of 20 runs were solved with biases and none without.",
)
class C2BiasNeededAmended(C2BiasNeeded):
    """The same with five times as many runs."""

    runs = size(quick=40, full=100)


@amends(
    "barak2022.d1-low-degree-fails",
    date="2026-11-16",
    kind="power",
    where="Appendix D.1.1",
    quote="""In fact, it is incapable of representing any function that has a nonzero correlation with parity; this
    follows from orthogonality (Equation (1)).""",
    change="""100 trained runs instead of 5, and intervals: of their mean accuracy, and of the share with an accuracy
    between 0.4 and 0.6, where every single one of five was asked.""",
    known="In the first trial, seed 0, five runs had accuracies of 0.479 to 0.516.",
)
class D1LowDegreeFailsAmended(D1LowDegreeFails):
    """The same with many more trained networks."""

    runs = size(quick=20, full=100, label="trained runs")

    chance = None
    level = between("mean accuracy of trained runs on all inputs", 0.48, 0.52)
    near = at_least("share of trained runs with an accuracy between 0.4 and 0.6", 0.9)

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


@amends(
    "barak2022.d2-weak-to-strong",
    date="2026-11-16",
    kind="power",
    where="Appendix D.2",
    quote="""there is an efficient algorithm [...] which, given a classifier which achieves 1/2 + epsilon accuracy on
    D_S for a constant epsilon > 0, outputs S with high probability""",
    change="""400 runs of each width instead of 20, which 95 % of them being right takes; half as many samples for the
    coefficients of all triples. The bound stays.""",
    known="""In the first trial, seed 0, S was found from all of 20 classifiers of either width, both ways. At first the
    amendment asked for 80 runs; with seed 1 they left width 2 undecided (79 of 80, [0.933, 0.998]), and on 2026-11-17
    their number became 400, before the runs of seed 2. These alone are judged; as this is a second look, a wrong
    'holds' has a chance of 5 % instead of 2.5.""",
)
class D2WeakToStrongAmended(D2WeakToStrong):
    """The same with twenty times as many classifiers."""

    runs = size(quick=20, full=400)
    samples = size(quick=50_000, full=100_000)

