"""Plateau, then drop: the training curves of Figures 1-left, 6 and 17."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from itertools import pairwise
from typing import Any

from scipy import stats

from barak2022 import settings
from barak2022.common import FIXED_8192, by_run, median, ratio_of_medians, times
from barak2022.plateaus import Phased, Traced, rows
from paritylab import MLP, SGD, Adam, Curves, Learner, Parity, PolyNet, Setup, Transformer
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, at_least, at_most, claim, holds, significant, size
from paritylab.claims.intervals import bootstrap
from paritylab.running.sweeps import Result
from paritylab.statistics import solved_fraction

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
    shown = size(quick=["(i) B=32", "(vii)", "(xv)"], standard=[name for name in FIGURE_1 if name != "(*iii)"],
                 full=list(FIGURE_1), label="panels")

    converged = at_least("share of runs solved, {panel}", 0.7)
    plateau = at_least("median t_55 / t_c, {panel}", 0.4)
    cubic_plateau = at_least("median t_55 / t_c, (iv)", 0.25, only=("standard", "full"))

    learners = FIGURE_1

    def panels(self) -> dict[str, Setup]:
        protocol = replace(FIXED_8192, max_steps=self.max_steps)
        return {name: Setup(Parity(self.n, 3), self.learners[name], protocol) for name in self.shown}

    def judge(self, got: tuple[Any, ...]) -> Findings:
        panels = self.phases(got)
        checks = []
        for name, panel in panels.items():
            plateau = self.cubic_plateau if name == "(iv)" else self.plateau
            checks += [self.converged(*panel.solved, panel=name),
                       plateau(panel.fraction, panel.interval, panel=name)]
        note = NO_TRANSFORMER if self.size != "quick" and "(*iii)" not in panels else ""
        return Findings(checks, rows(panels), note=note)


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
    longer = holds("median t_c of {hard} / of {easy}", "> 1")
    apart = significant("Mann-Whitney p of {easy} and {hard}", 0.01)

    def panels(self) -> dict[str, Setup]:
        learner, protocol = Learner(MLP(self.width), optimiser=SGD(0.1)), replace(FIXED_8192, max_steps=self.max_steps)
        return {f"n={n}, k={k}": Setup(Parity(n, k), learner, protocol) for n, k in self.tasks}

    def judge(self, got: tuple[list[Result], list[Curves]]) -> Findings:
        found = {(n, k): result.records for (n, k), result in zip(self.tasks, got[0], strict=True)}
        checks = []
        for task, records in found.items():
            converged = self.hardest if task == (30, 6) else self.converged
            checks.append(converged(*solved_fraction(records.status), task=task))
        for easy, hard in neighbours(found):
            first, second = times(found[easy]), times(found[hard])
            ratio = ratio_of_medians(second, first)
            test: Any = stats.mannwhitneyu(first, second)
            checks += [self.longer(None if math.isnan(ratio) else ratio > 1, ratio, easy=easy, hard=hard),
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

    converged = at_least("share of runs solved, {panel}", 0.8)
    slower = at_least("median t_c at B={one} / at B={many}", 3)

    def panels(self) -> dict[str, Setup]:
        protocol = replace(FIXED_8192, max_steps=self.max_steps)
        return {f"B={batch}": Setup(Parity(self.n, 3), Learner(PolyNet(3), optimiser=SGD(lr), batch=int(batch)),
                                    protocol) for batch, lr in self.pairs}

    def judge(self, got: tuple[list[Result], list[Curves]]) -> Findings:
        found = {int(batch): result.records for (batch, _), result in zip(self.pairs, got[0], strict=True)}
        checks = [self.converged(*solved_fraction(each.status), panel=f"B={batch}") for batch, each in found.items()]
        one, many = 1, max(batch for batch in found if batch <= 64)
        samples = [times(found[batch]) for batch in (one, many)]
        interval = bootstrap(ratio_of_medians, *samples, rng=self.rng())
        checks.append(self.slower(ratio_of_medians(*samples), interval, one=one, many=many))
        return Findings(checks, [{"batch": batch, **row} for batch, each in found.items() for row in by_run(each)])


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
    runs = size(25)
    max_steps = size(quick=50_000, full=1_000_000)

    converged = at_least("share of runs solved, {panel}", 2 / 25)
    partial = at_least("settings of which 10 % to 95 % converge", 2)

    def panels(self, slower: float = 1) -> dict[str, Setup]:
        protocol = replace(FIXED_8192, eval_every=100, max_steps=self.max_steps)
        rates = {name: 0.001 if name == "*ii" else 0.1 for name in self.names}
        return {f"({name})": Setup(Parity(self.n, 3), settings.barak2022(name, 3, lr / slower, 1), protocol)
                for name, lr in rates.items()}

    def work(self, lab: Lab) -> tuple[list[Result], list[Result], list[Curves]]:
        results = self.trained(lab)
        slower = lab.sweep(list(self.panels(slower=10).values()), self.runs)
        return results, slower, self.curves(lab, results)

    def judge(self, got: tuple[list[Result], list[Result], list[Curves]]) -> Findings:
        found = self.records(got)
        shares = {name: solved_fraction(each.status) for name, each in found.items()}
        checks = [self.converged(*share, panel=name) for name, share in shares.items()]
        checks.append(self.partial(sum(0.1 <= share <= 0.95 for share, _ in shares.values())))
        numbers = {f"share solved at a tenth of the rate, {name}": other.summary.solved_fraction
                   for name, other in zip(found, got[1], strict=True)}
        data = [{"setting": name, **row} for name, each in found.items() for row in by_run(each)]
        return Findings(checks, data, numbers, "rate 0.001 for (*ii), whose printed rate of 0.01 diverges")


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
    runs = size(5)
    max_steps = size(quick=1500, full=100_000)
    shown = size(quick=["(iii) large B", "(vi) large B"],
                 standard=["(iii) B=1", "(iii) large B", "(vi) B=1", "(vi) large B"],
                 full=["(iii) B=1", "(iii) large B", "(vi) B=1", "(vi) large B", "(*iii) B=32", "(*iii) large B"],
                 label="panels")

    converged = at_least("share of runs solved, {panel}", 0.8)
    none = at_most("median t_55 / t_c, (vi) large B", 0.3)
    plateau = at_least("median t_55 / t_c, (iii) large B", 0.5)

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
        return {name: Setup(Parity(self.n, 3), learners[name], protocol) for name in self.shown}

    def judge(self, got: tuple[list[Result], list[Result], list[Curves]]) -> Findings:
        panels = self.phases(got)
        cubic, relu = panels["(vi) large B"], panels["(iii) large B"]
        checks = [*(self.converged(*panel.solved, panel=name) for name, panel in panels.items()),
                  self.none(cubic.fraction, cubic.interval), self.plateau(relu.fraction, relu.interval)]
        return Findings(checks, rows(panels), note="" if self.size == "full" else NO_TRANSFORMER)


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

    none = at_most("median t_55 / t_c, {large}", 0.3)
    lost = at_least("difference of these medians, {small} less {large}", 0.2)
    certainly = holds("the 95 % interval of that difference is above 0", "lower end > 0")
    plateau = at_least("median t_55 / t_c, {relu}", 0.5)

    def panels(self) -> dict[str, Setup]:
        learners = {}
        for width in self.widths:
            for batch in self.batches:
                lr = (0.05 if width == 10 else 0.01) / (10 if batch == 1 else 1)
                learners[f"z^3, r={width}, B={batch}"] = Learner(MLP(width, "power:3"), optimiser=SGD(lr), batch=batch)
        width, batch = self.widths[-1], self.batches[-1]
        learners[f"ReLU, r={width}, B={batch}"] = Learner(MLP(width), optimiser=SGD(0.1), batch=batch)
        protocol = replace(FIXED_8192, max_steps=self.max_steps)
        return {name: Setup(Parity(self.n, 3), learner, protocol) for name, learner in learners.items()}

    def judge(self, got: tuple[list[Result], list[Result], list[Curves]]) -> Findings:
        panels = self.phases(got)
        largest = f"r={self.widths[-1]}, B={self.batches[-1]}"
        relu, small, large = f"ReLU, {largest}", "z^3, r=10, B=32", f"z^3, {largest}"
        interval = bootstrap(difference_of_medians, panels[small].plateau, panels[large].plateau, rng=self.rng())
        checks = [
            self.none(panels[large].fraction, panels[large].interval, large=large),
            self.lost(panels[small].fraction - panels[large].fraction, interval, small=small, large=large),
            self.certainly(interval[0] > 0, interval[0]),
            self.plateau(panels[relu].fraction, panels[relu].interval, relu=relu),
        ]
        return Findings(checks, rows(panels), {f"plateau, {name}": panel.fraction for name, panel in panels.items()})


def difference_of_medians(first: Floats, second: Floats) -> float:
    return median(first) - median(second)
