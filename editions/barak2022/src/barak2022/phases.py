"""Plateau, then drop: the training curves of Figures 1-left, 6 and 17."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from scipy import stats

from barak2022 import settings
from barak2022.common import FIXED_8192, by_run, longer_tail, median, ratio_of_medians, tail, times
from barak2022.plateaus import LEAVES_CHANCE, Phased, Phases, Traced, draw_errors, leaves_chance, phases, rows, trace
from paritylab import MLP, SGD, Adam, Curves, Learner, Parity, PolyNet, Setup, Transformer, plots
from paritylab.aliases import Floats
from paritylab.claims import Check, Findings, Lab, at_least, at_most, claim, significant, size
from paritylab.claims.intervals import bootstrap
from paritylab.running.sweeps import Result
from paritylab.statistics import solved_fraction
from paritylab.storage.records import CENSORED, SOLVED, Records

NO_TRANSFORMER = "without the Transformer, which needs a GPU"
# --- Figure 1, left -------------------------------------------------------------------------------------------------

FIGURE_1 = {
    "(i) B=32": settings.barak2022("i", 3, 0.5),
    "(i) B=1024": settings.barak2022("i", 3, 0.05, 1024),
    "(ii) B=1": settings.barak2022("ii", 3, 0.05, 1),
    "(iv)": settings.barak2022("iv", 3, 0.05),
    "(vii)": settings.barak2022("vii", 3, 0.2),
    "(x)": Learner(MLP(1, "sinusoid:3,2"), optimiser=SGD(0.05)),
    "(*iii)": Learner(Transformer(), optimiser=Adam(5e-4)),
    "(xv)": settings.barak2022("xv", 3, 0.07),
}
"""The eight panels; the Transformer alone is trained by Adam."""
SOLVED_AT = 0.99
"""At a constant rate the last of 8192 inputs can take several times as long as all that a curve shows."""


def nearly(setup: Setup) -> Setup:
    """The same with runs that count as solved at 99 %; at B = 1, where they take long, checked every 100 steps."""
    every = 100 if setup.learner.batch == 1 else 10
    return replace(setup, protocol=replace(setup.protocol, threshold=SOLVED_AT, eval_every=every))


def timed(panels: Mapping[str, Phases]) -> list[dict[str, Any]]:
    """One row per run: when it left chance, and when it was right on 99 %."""
    return [{"t_99" if key == "t_c" else key: value for key, value in row.items()} for row in rows(panels)]


# --- Figure 1, left -------------------------------------------------------------------------------------------------

UNSCALED = "(x), not scaled"
PARTS = {"(iv)": "z^3 MLP", "(vii)": "zigzag neuron", "(x)": "sinusoidal neuron, scaled by 2",
         UNSCALED: "sinusoidal neuron, not scaled", "(*iii)": "Transformer", "(xv)": "PolyNet"}
"""Parts of the claim by panel; the other panels are those of ReLU MLPs."""
Times = dict[str, tuple[Records, Records]]
"""For each panel, when its runs had 99 % accuracy and when they left chance."""


def read_off(curves: Curves, threshold: float) -> Records:
    """When runs first had an accuracy, from their curves."""
    first = curves.first(threshold)
    ends = np.where(first >= 0, first, curves.steps[-1])
    status = np.where(first >= 0, SOLVED, CENSORED)
    return Records(np.arange(len(first)), status, first, ends, curves.accuracy[:, -1], curves.loss[:, -1])


def first_run(curves: Curves) -> Curves:
    """Run 0 until it has 99 % accuracy, and a fifth longer."""
    end = curves.first(SOLVED_AT)[0]
    kept = curves.steps <= (1.2 * end if end > 0 else curves.steps[-1])
    return Curves(curves.steps[kept], curves.accuracy[:1, kept], curves.loss[:1, kept])


@claim(
    "barak2022.fig1-left",
    where="Figure 1 (left); Appendix D.1.5",
    kind="empirical",
    title="Phase transitions in (50,3) training curves",
    statement="""Eight quite different networks, all trained online on the same (50,3) parity, sit at chance error for
    most of the run and then drop to zero error within a short window.""",
    published="""'long durations of seemingly no progress, followed by periods of rapid decrease in the validation
    error' (Section 3.1); the figure has no numbers in the text.""",
)
class Fig1Left(Phased):
    """Eight networks on one parity: chance error for most of the run, then a drop."""

    n = size(quick=30, full=50)
    max_steps = size(quick=20_000, full=100_000)
    runs = size(quick=10, full=100)
    transformer_runs = size(quick=1, full=20, label="runs of the Transformer")
    transformer_steps = size(quick=1000, full=10_000, label="steps of the Transformer")
    shown = size(quick=["(i) B=32", "(vii)", "(xv)"],
                 standard=["(i) B=32", "(i) B=1024", "(ii) B=1", "(iv)", "(vii)", "(x)", UNSCALED, "(xv)"],
                 full=["(i) B=32", "(i) B=1024", "(ii) B=1", "(iv)", "(vii)", "(x)", UNSCALED, "(*iii)", "(xv)"],
                 label="panels")
    converged = at_least("share of runs at 99 %, {panel}", 0.7, part="{part}")
    plateau = at_least("median t_55 / t_99, {panel}", 0.4, part="{part}")
    learners = FIGURE_1 | {UNSCALED: settings.barak2022("x", 3, 0.05)}

    def panels(self) -> dict[str, Setup]:
        protocol = replace(FIXED_8192, max_steps=self.max_steps)
        return {name: nearly(Setup(Parity(self.n, 3), self.learners[name], protocol)) for name in self.shown}

    def judge(self, got: tuple[Times, dict[str, Curves]]) -> Findings:
        panels = {name: phases(*pair, self.rng(place)) for place, (name, pair) in enumerate(got[0].items())}
        checks: list[Check] = []
        for name, panel in panels.items():
            part = PARTS.get(name, "ReLU MLPs")
            checks += [self.converged(*panel.solved, panel=name, part=part),
                       self.plateau(panel.fraction, panel.interval, panel=name, part=part)]
        note = NO_TRANSFORMER if self.size != "quick" and "(*iii)" not in panels else ""
        return Findings(checks, timed(panels), note=note)

    def work(self, lab: Lab) -> Any:
        panels = self.panels()
        large = panels.pop("(*iii)", None)
        traced = None if large is None else lab.curves(large, self.transformer_steps, 20, self.transformer_runs)
        ended = lab.sweep(list(panels.values()), self.runs)
        left = lab.sweep([leaves_chance(setup, result.records)
                          for setup, result in zip(panels.values(), ended, strict=True)], self.runs)
        found = {name: (one.records, other.records) for name, one, other in zip(panels, ended, left, strict=True)}
        shown = {name: trace(lab, setup, found[name][0]) for name, setup in panels.items()}
        if traced is not None:
            found["(*iii)"] = read_off(traced, SOLVED_AT), read_off(traced, LEAVES_CHANCE)
            shown["(*iii)"] = first_run(traced)
        return found, shown

    def draw(self, got: tuple[Times, dict[str, Curves]]) -> plots.Figure:
        return draw_errors(got[1])


# --- Figure 6 -------------------------------------------------------------------------------------------------------

Task = tuple[int, int]


@claim(
    "barak2022.fig6-row1",
    where="Figure 6 row 1; Appendix D.1.6",
    kind="empirical",
    title="One configuration adapts to several difficulties",
    statement="""The same width-100 ReLU network with the same B and lr solves tasks of very different hardness, taking
    longer for larger n and much longer for larger k.""",
    published="""'adapts to the computational difficulty parameters n, k' (Figure 6, caption); the order of times is
    not in the text.""",
)
class Fig6Row1(Traced):
    """The same network, batch and rate on tasks of growing n and growing k."""

    width = size(quick=30, full=100)
    tasks = size(quick=[[20, 2], [20, 3], [40, 3]],
                 full=[[30, 3], [60, 3], [90, 3], [30, 4], [30, 5], [30, 6]], label="(n, k)")
    max_steps = size(quick=20_000, full=2_000_000)
    converged = at_least("share of runs solved, (n, k) = {task}", 0.8)
    hardest = at_least("share of runs solved, (n, k) = (30, 6)", 0.5, only=("standard", "full"))
    runs = size(quick=20, full=100)
    longer = at_least("median t_c of {hard} / of {easy}", 1)
    apart = significant("Mann-Whitney p of {easy} and {hard}", 0.01)

    def panels(self) -> dict[str, Setup]:
        learner, protocol = Learner(MLP(self.width), optimiser=SGD(0.1)), replace(FIXED_8192, max_steps=self.max_steps)
        return {f"n={n}, k={k}": Setup(Parity(n, k), learner, protocol) for n, k in self.tasks}

    def judge(self, got: tuple[Any, ...]) -> Findings:
        found = {(n, k): result.records for (n, k), result in zip(self.tasks, got[0], strict=True)}
        checks = [(self.hardest if task == (30, 6) else self.converged)(*solved_fraction(records.status), task=task)
                  for task, records in found.items()]
        for place, (easy, hard) in enumerate(neighbours(found)):
            first, second = times(found[easy]), times(found[hard])
            test: Any = stats.mannwhitneyu(first, second)
            ratio = bootstrap(ratio_of_medians, second, first, rng=self.rng(place))
            checks += [self.longer(ratio_of_medians(second, first), ratio, easy=easy, hard=hard),
                       self.apart(float(test.pvalue), easy=easy, hard=hard)]
        return Findings(checks, [{"n": n, "k": k, **row} for (n, k), each in found.items() for row in by_run(each)])


def neighbours(tasks: Iterable[Task]) -> list[tuple[Task, Task]]:
    """Consecutive tasks, easier first: along n where k is the same, and along k where n is.

    >>> neighbours([(20, 2), (20, 3), (40, 3)])
    [((20, 3), (40, 3)), ((20, 2), (20, 3))]
    """
    tasks, pairs = list(tasks), []
    for same, grows in ((1, 0), (0, 1)):
        for value in sorted({task[same] for task in tasks}):
            line = sorted((task for task in tasks if task[same] == value), key=lambda task: task[grows])
            pairs += pairwise(line)
    return pairs


@claim(
    "barak2022.fig6-row2",
    where="Figure 6 row 2; Appendix D.1.6",
    kind="empirical",
    title="PolyNet works from batch size 1 to 1024",
    statement="""The degree-3 PolyNet learns (50,3) parity for batch sizes spanning three orders of magnitude, with
    more erratic runs at both extremes.""",
    published="""'hold over a wide range of batch sizes B, all the way down to B = 1. Training is unstable (more
    outliers) at very large and very small batch sizes' (Figure 6, caption).""",
)
class Fig6Row2(Traced):
    """The degree-3 PolyNet from one example a step to 1024."""

    n = size(quick=30, full=50)
    pairs = size(quick=[[1, 0.005], [16, 0.1], [256, 0.1]],
                 full=[[1, 0.005], [4, 0.01], [16, 0.1], [64, 0.1], [256, 0.1], [1024, 0.1]], label="(B, lr)")
    max_steps = size(quick=20_000, full=100_000)
    runs = size(quick=50, full=500)
    converged = at_least("share of runs solved, {panel}", 0.8, part="solved from B = 1 to 1024")
    slower = at_least("median t_c at B={one} / at B={many}", 3, part="solved from B = 1 to 1024")
    outliers = at_least("95 % quantile / median of t_c at B={extreme} less that at B={middle}", 0,
                        part="more outliers at {side} batches")

    def panels(self) -> dict[str, Setup]:
        protocol = replace(FIXED_8192, max_steps=self.max_steps)
        return {f"B={batch}": Setup(Parity(self.n, 3), Learner(PolyNet(3), optimiser=SGD(lr), batch=int(batch)),
                                    protocol) for batch, lr in self.pairs}

    def judge(self, got: tuple[list[Result], list[Curves]]) -> Findings:
        found = {int(batch): result.records for (batch, _), result in zip(self.pairs, got[0], strict=True)}
        checks = [self.converged(*solved_fraction(each.status), panel=f"B={batch}") for batch, each in found.items()]
        one, many = 1, max(batch for batch in found if batch <= 64)
        samples = {batch: times(each) for batch, each in found.items()}
        interval = bootstrap(ratio_of_medians, samples[one], samples[many], rng=self.rng())
        checks.append(self.slower(ratio_of_medians(samples[one], samples[many]), interval, one=one, many=many))
        for side, extreme in (("small", min(found)), ("large", max(found))):
            pair = samples[extreme], samples[many]
            interval = bootstrap(longer_tail, *pair, rng=self.rng(extreme))
            checks.append(self.outliers(longer_tail(*pair), interval, extreme=extreme, middle=many, side=side))
        rows = [{"batch": batch, **row} for batch, each in found.items() for row in by_run(each)]
        numbers = {f"95 % quantile / median, B={batch}": tail(each) for batch, each in samples.items()}
        return Findings(checks, rows, numbers)


@claim(
    "barak2022.fig6-row3",
    where="Figure 6 row 3; Appendix D.1.6",
    kind="empirical",
    title="Barely-wide networks still converge with fair probability at B=1",
    statement="""Architectures with just enough capacity for the parity, trained one example at a time, succeed in a
    reasonable share of runs and otherwise get stuck.""",
    published="""'converge with reasonable probability (sometimes failing to reach a global minimum)' (Figure 6,
    caption).""",
)
class Fig6Row3(Traced):
    """Networks just wide enough for the parity, one example at a time: some runs converge, some get stuck."""

    n = size(quick=20, full=50)
    names = size(quick=["*i", "vii", "xi"], full=["*i", "*ii", "vii", "viii", "xi", "xii"], label="settings")
    runs = size(quick=50, full=200)
    batches = size([1, 32])
    max_steps = size(quick=20_000, full=200_000)
    converged = at_least("share of runs solved, {panel}", 0.2, part="B = {batch}")
    partial = at_most("smallest share of runs solved, B = {batch}", 0.95, part="B = {batch}")

    def panels(self, slower: float = 1) -> dict[str, Setup]:
        found: dict[str, Setup] = {}
        for batch in self.batches:
            protocol = replace(FIXED_8192, eval_every=100 if batch == 1 else 10, max_steps=self.max_steps)
            for name in self.names:
                lr = (0.01 if name == "*ii" else 0.1) / slower
                found[f"({name}) B={batch}"] = Setup(Parity(self.n, 3), settings.barak2022(name, 3, lr, batch),
                                                     protocol)
        return found

    def work(self, lab: Lab) -> tuple[Any, ...]:
        results = self.trained(lab)
        return results, self.curves(lab, results)

    def judge(self, got: tuple[Any, ...]) -> Findings:
        found = self.records(got)
        shares = {name: solved_fraction(each.status) for name, each in found.items()}
        checks: list[Check] = []
        for batch in self.batches:
            here = {name: share for name, share in shares.items() if name.endswith(f" B={batch}")}
            checks += [self.converged(*share, panel=name, batch=batch) for name, share in here.items()]
            checks.append(self.partial(*min(here.values()), batch=batch))
        return Findings(checks, [{"panel": name, **row} for name, each in found.items() for row in by_run(each)])


@claim(
    "barak2022.fig6-row4",
    where="Figure 6 row 4; Appendix D.1.6",
    kind="empirical",
    title="Large models tolerate all batch sizes; setting (vi) has no plateau",
    statement="""Width-1000 MLPs and a d_emb=1024 Transformer train at small and very large batches; only the wide
    polynomial network descends without a flat phase.""",
    published="'robust to a wide range of batch sizes. Note the lack of plateaus in setting (vi)' (Figure 6, caption).",
)
class Fig6Row4(Phased):
    """Width-1000 MLPs and the Transformer at small and large batches; only the wide polynomial net has no plateau."""

    n = size(quick=30, full=50)
    width = size(quick=300, full=1000)
    large = size(quick=256, full=1024, label="large batch")
    max_steps = size(quick=1500, full=100_000)
    shown = size(quick=["(iii) large B", "(vi) large B"],
                 standard=["(iii) B=1", "(iii) large B", "(vi) B=1", "(vi) large B"],
                 full=["(iii) B=1", "(iii) large B", "(vi) B=1", "(vi) large B", "(*iii) B=32", "(*iii) large B"],
                 label="panels")
    runs = size(quick=10, full=20)
    converged = at_least("share of runs at 99 %, {panel}", 0.8, part="{part}")
    none = at_most("median t_55 / t_99, (vi) large B", 0.4, part="z^3 MLP (vi)")
    plateau = at_least("median t_55 / t_99, (iii) large B", 0.5, part="ReLU MLP (iii)")

    def panels(self) -> dict[str, Setup]:
        relu, cubic, transformer = MLP(self.width), MLP(self.width, "power:3"), Transformer()
        learners = {
            "(iii) B=1": Learner(relu, optimiser=SGD(0.1), batch=1),
            "(iii) large B": Learner(relu, optimiser=SGD(0.1), batch=self.large),
            "(vi) B=1": Learner(cubic, optimiser=SGD(0.001), batch=1),
            "(vi) large B": Learner(cubic, optimiser=SGD(0.01), batch=self.large),
            "(*iii) B=32": Learner(transformer, optimiser=Adam(3e-4), batch=32),
            "(*iii) large B": Learner(transformer, optimiser=Adam(3e-4), batch=self.large),
        }
        protocol = replace(FIXED_8192, max_steps=self.max_steps)
        return {name: nearly(Setup(Parity(self.n, 3), learners[name], protocol)) for name in self.shown}

    def judge(self, got: tuple[list[Result], list[Result], list[Curves]]) -> Findings:
        panels = self.phases(got)
        parts = {"(iii)": "ReLU MLP (iii)", "(vi)": "z^3 MLP (vi)", "(*iii)": "Transformer (*iii)"}
        cubic, relu = panels["(vi) large B"], panels["(iii) large B"]
        checks = [*(self.converged(*panel.solved, panel=name, part=parts[name.split()[0]])
                    for name, panel in panels.items()),
                  self.none(cubic.fraction, cubic.interval), self.plateau(relu.fraction, relu.interval)]
        numbers = {f"median t_55 / t_99, {name}": panel.fraction for name, panel in panels.items()}
        return Findings(checks, timed(panels), numbers, "" if self.size == "full" else NO_TRANSFORMER)


def descent(panel: Phases) -> np.ndarray:
    """Steps from 55 to 99 % accuracy of the runs that got there."""
    ended = times(panel.records)
    ended = ended[np.isfinite(ended)]
    return ((1 - panel.plateau) * ended)[~np.isnan(panel.plateau)]


# --- Figure 17 ------------------------------------------------------------------------------------------------------


@claim(
    "barak2022.fig17",
    where="Figure 17; Appendix C.8",
    kind="empirical",
    title="Wide polynomial MLPs with large batches have no plateau",
    statement="""For z^3 MLPs the error curve changes from plateau-shaped to steadily decreasing as width and batch
    grow; ReLU MLPs keep their plateaus at every batch size.""",
    published="""'the rate of descent of the validation error increases with both of these parameters; note that this
    does not occur with ReLU activations' (Appendix C.8).""",
)
class Fig17(Phased):
    """z^3 MLPs lose their plateau as width and batch grow; a ReLU MLP keeps it."""

    n = size(quick=30, full=50)
    widths = size(quick=[10, 300], full=[10, 100, 1000])
    batches = size(quick=[32, 256], full=[1, 32, 1024])
    max_steps = size(quick=1500, full=100_000)
    runs = size(quick=10, full=20)
    lost = at_least("median t_55 / t_99 of {small} less that of {large}", 0,
                    part="plateaus shrink with width and batch")
    sooner = at_least("median t_99 of {slow} / of {fast}", 1, part="descent is faster for larger {what}")
    plateau = at_least("median t_55 / t_99, {relu}", 0.5, part="ReLU keeps its plateau")

    def panels(self) -> dict[str, Setup]:
        protocol = replace(FIXED_8192, max_steps=self.max_steps)
        learners = {f"z^3, r={width}, B={batch}": Learner(MLP(width, "power:3"), batch=batch,
                                                          optimiser=SGD(0.001 if batch == 1 else 0.01))
                    for width in self.widths for batch in self.batches}
        learners |= {f"ReLU, r={self.widths[-1]}, B={batch}": Learner(MLP(self.widths[-1]), batch=batch,
                                                                      optimiser=SGD(0.1)) for batch in self.batches}
        return {name: nearly(Setup(Parity(self.n, 3), learner, protocol)) for name, learner in learners.items()}

    def judge(self, got: tuple[list[Result], list[Result], list[Curves]]) -> Findings:
        panels = self.phases(got)
        width, batch = self.widths[-1], self.batches[-1]
        small, large = "z^3, r=10, B=32", f"z^3, r={width}, B={batch}"
        pair = panels[small].plateau, panels[large].plateau
        lost = bootstrap(difference_of_medians, *pair, rng=self.rng(100))
        checks = [self.lost(difference_of_medians(*pair), lost, small=small, large=large)]
        for what, slow in (("width", f"z^3, r=10, B={batch}"), ("batch", f"z^3, r={width}, B=32")):
            steps = times(panels[slow].records), times(panels[large].records)
            interval = bootstrap(ratio_of_medians, *steps, rng=self.rng(101))
            checks.append(self.sooner(ratio_of_medians(*steps), interval, slow=slow, fast=large, what=what))
        checks += [self.plateau(panel.fraction, panel.interval, relu=name) for name, panel in panels.items()
                   if name.startswith("ReLU")]
        numbers = {f"median t_55 / t_99, {name}": panel.fraction for name, panel in panels.items()}
        numbers |= {f"median t_99 - t_55, {name}": median(descent(panel)) for name, panel in panels.items()}
        return Findings(checks, timed(panels), numbers)


def difference_of_medians(first: Floats, second: Floats) -> float:
    return median(first) - median(second)
