"""The sweep over weight decay, width and sample size: how often networks grok, and where."""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from matplotlib.figure import Figure

from paritylab.claims import Check, Findings, at_least, at_most, between, claim, size
from paritylab.claims.intervals import LEVEL, Estimate, proportion, share_of_cases, smallest, together
from paritylab.engines.curves import Curves
from paritylab_grokking.pearce2023.common import DECAYS, EACH, SAMPLES, WIDTHS, Sweep
from paritylab_grokking.pearce2023.figures import draw_counts, draw_map
from paritylab_grokking.pearce2023.outcomes import DIRECT, GROK, MEMORISE, NO_FIT, OUTCOMES, Networks, published

LATER = ("standard", "full")
ROOM = 0.02
"""By which a share may differ beyond noise: for the constant input and the number of test inputs."""
NARROW = {(0.01, 16, 750): MEMORISE, (1.0, 16, 750): NO_FIT, (0.01, 16, 1750): DIRECT, (0.1, 16, 1750): DIRECT,
          (1.0, 16, 1750): NO_FIT}


@claim(
    "pearce2023.shares",
    where="Section 'When does grokking happen', sweep data",
    kind="empirical",
    title="How often small networks grok, generalise, memorise or fail",
    statement="""Over a grid of weight decay, width and sample size on the (30,3) parity, 39 % of networks grok, 13 %
    generalise while they fit, 35 % only memorise and 14 % do not fit.""",
    published="435 grok, 148 direct, 390 memorise and 152 no fit of 1,125 networks",
)
class Shares(Sweep):
    """What becomes of networks in each of 125 cells: nine, as published, or 36."""

    share = at_most("difference of the shares that {outcome}", "2.576 standard errors and 0.02", only=LATER, exact=True)
    expected = NARROW

    def judge(self, got: Sequence[Curves]) -> Findings:
        found = self.found(got)
        networks, theirs = found.networks, published()
        numbers: dict[str, float | None] = {}
        checks = self.quickly(networks) if self.size == "quick" else []
        for outcome in OUTCOMES:
            (ours, var_ours), (other, var_other) = networks.share(outcome), theirs.share(outcome)
            error = math.sqrt(var_ours + var_other)
            numbers |= {f"share that {outcome}": ours, f"its standard error over seeds, {outcome}": math.sqrt(var_ours)}
            if self.size != "quick":
                checks.append(self.share(abs(ours - other), high=2.576 * error + ROOM, outcome=outcome))
                numbers |= {f"published share that {outcome}": other}
        return Findings(checks, found.rows, numbers)

    def draw(self, got: Sequence[Curves]) -> Figure:
        return draw_map(self.found(got).networks, published())


class Counts(Sweep):
    """Counts of 225 networks along one axis of the sweep, ours rescaled to as many."""

    axis: ClassVar[str]

    def along(self, networks: Networks) -> dict[float, Networks]:
        """The networks at each value of the axis."""
        return {value: networks.at(self.axis, value) for value in self.parameters[self.axis]}

    def rows(self, networks: Networks) -> list[dict[str, Any]]:
        """Counts with the published ones of the same cells; the spread of few seeds in few cells tells no interval."""
        rows: list[dict[str, Any]] = []
        for (value, some), outcome in itertools.product(self.along(networks).items(), OUTCOMES):
            count, (low, high) = some.count(outcome, EACH)
            ends = {} if self.size == "quick" else {"low": low, "high": high}
            theirs = Networks({cell: published().cells[cell] for cell in some.cells})
            rows.append({self.axis: value, "outcome": outcome, "of 225": count, **ends,
                         "published": theirs.count(outcome, EACH)[0]})
        return rows

    def judge(self, got: Sequence[Curves]) -> Findings:
        networks = self.found(got).networks
        checks = self.quickly(networks) if self.size == "quick" else self.checks(self.along(networks))
        return Findings(checks, self.rows(networks))

    @abstractmethod
    def checks(self, at: Mapping[float, Networks]) -> list[Check]:
        """What the rules of all sizes but the quick one say."""

    def draw(self, got: Sequence[Curves]) -> Figure:
        networks = self.found(got).networks
        return draw_map(networks, published()) if self.size == "quick" else draw_counts(self.rows(networks), self.axis)


def steps(along: Sequence[Networks], outcome: str, sign: int = 1) -> Estimate:
    """The smallest rise (or fall, with the sign -1) of an outcome's count from each value of an axis to the next."""
    level = together(len(along) - 1)
    pairs = [pair[::-sign] for pair in itertools.pairwise(along)]
    return smallest([more.change(fewer, outcome, EACH, level) for more, fewer in pairs])


@claim(
    "pearce2023.weight-decay",
    where="Section 'When does grokking happen'",
    kind="empirical",
    title="Memorise, grok, generalise, fail: in order of weight decay",
    statement="""With too little weight decay networks stay at memorising; more makes them grok; still more lets
    training and test loss fall together more often; too much prevents fitting.""",
    published="""of 225 at weight decay 0.01, 0.03, 0.1, 0.3, 1: grok 5, 82, 179, 136, 33; direct 20, 31, 42, 54, 1;
    memorise 199, 110, 3, 22, 56; no fit 1, 2, 1, 13, 135""",
)
class WeightDecay(Counts):
    """Outcomes by weight decay."""

    axis, expected = "weight decay", NARROW

    little = at_least("networks of 225 that memorise at 0.01", 170, only=LATER)
    enough = at_most("networks of 225 that memorise at 0.1", 25, only=LATER)
    most = at_least("networks of 225 that grok at 0.1, less the most at another", 0, only=LATER)
    falls_too = at_least("smallest rise of direct from 0.01 to 0.3", 0, only=LATER)
    much = at_least("networks of 225 that do not fit at 1", 110, only=LATER)
    less = at_most("networks of 225 that do not fit at {decay:g}", 30, only=LATER)

    def checks(self, at: Mapping[float, Networks]) -> list[Check]:
        others = [at[0.1].change(some, GROK, EACH, together(4)) for decay, some in at.items() if decay != 0.1]
        return [self.little(*at[0.01].count(MEMORISE, EACH)), self.enough(*at[0.1].count(MEMORISE, EACH)),
                self.most(*smallest(others)), self.falls_too(*steps(list(at.values())[:4], DIRECT)),
                self.much(*at[1.0].count(NO_FIT, EACH)),
                *(self.less(*some.count(NO_FIT, EACH), decay=decay) for decay, some in at.items() if decay < 1)]


@claim(
    "pearce2023.width",
    where="Sweep figure, by hidden size",
    kind="empirical",
    title="Only narrow networks generalise at once",
    statement="Networks that generalise while they fit are almost all narrow; wide ones either grok or memorise.",
    published="""of 225 at width 16, 32, 64, 128, 258: direct 105, 36, 6, 1, 0; grok 24, 70, 96, 121, 124; no fit 62,
    45, 45, 0, 0""",
)
class Width(Counts):
    """Outcomes by width."""

    axis = "width"
    decays = size(quick=[0.1], full=DECAYS, label="weight decay")
    widths = size(quick=[16, 64], full=WIDTHS, label="width")
    samples = size(quick=[1500], full=SAMPLES, label="sample")
    seeds = size(quick=3, standard=9, full=36)
    expected: ClassVar = {(0.1, 16, 1500): DIRECT, (0.1, 64, 1500): GROK}

    falls = at_least("smallest fall of direct from width to width", -8, only=LATER)
    rises = at_least("smallest rise of grok from width to width", -8, only=LATER)
    narrow = between("networks of 225 that generalise directly at width 16", 75, 135, only=LATER)
    wide = at_most("networks that generalise directly at widths 128 and 258, of 225 each", 8, only=LATER)
    fit = at_most("networks that do not fit at widths 128 and 258, of 225 each", 10, only=LATER)

    def checks(self, at: Mapping[float, Networks]) -> list[Check]:
        along = list(at.values())
        wide = Networks({**along[-2].cells, **along[-1].cells})
        return [self.falls(*steps(along, DIRECT, -1)), self.rises(*steps(along, GROK)),
                self.narrow(*along[0].count(DIRECT, EACH)), self.wide(*wide.count(DIRECT, 2 * EACH)),
                self.fit(*wide.count(NO_FIT, 2 * EACH))]


@claim(
    "pearce2023.sample",
    where="Sweep figure, by training size",
    kind="empirical",
    title="More data, less memorising",
    statement="The larger the sample, the fewer networks stay at memorising and the more generalise at once.",
    published="""of 225 at 750, 1000, 1250, 1500, 1750 examples: memorise 126, 101, 82, 46, 35; direct 0, 14, 30, 44,
    60""",
)
class Sample(Counts):
    """Outcomes by sample size."""

    axis = "sample"
    decays = size(quick=[0.03], full=DECAYS, label="weight decay")
    seeds = size(quick=3, standard=9, full=36)
    expected: ClassVar = {(0.03, 16, 750): MEMORISE, (0.03, 16, 1750): DIRECT}

    falls = at_least("smallest fall of memorise from sample to sample", 0, only=LATER)
    rises = at_least("smallest rise of direct from sample to sample", 0, only=LATER)
    small = between("networks of 225 that memorise 750 examples", 126 - 12, 126 + 12, only=LATER, claimed=126)
    large = between("networks of 225 that memorise 1750 examples", 35 - 12, 35 + 12, only=LATER, claimed=35)
    direct = between("networks of 225 that generalise directly from 1750 examples", 60 - 13, 60 + 13, only=LATER,
                     claimed=60)

    def checks(self, at: Mapping[float, Networks]) -> list[Check]:
        along = list(at.values())
        return [self.falls(*steps(along, MEMORISE, -1)), self.rises(*steps(along, DIRECT)),
                self.small(*along[0].count(MEMORISE, EACH)), self.large(*along[-1].count(MEMORISE, EACH)),
                self.direct(*along[-1].count(DIRECT, EACH))]


@claim(
    "pearce2023.cells",
    where="Sweep figure, cell by cell",
    kind="empirical",
    title="The map of outcomes, cell by cell",
    statement="""The outcome is nearly fixed by the cell: most of the 125 cells have one outcome in all nine
    runs.""",
    published="two networks of one cell end alike with probability 0.891 (unbiased, from the published nine)",
)
class Cells(Sweep):
    """How often a network here and a published one of the same cell end alike."""

    alike = at_least("chance that a network here ends as a published one of its cell", 0.85, only=LATER, claimed=0.891)
    same = at_least("share of cells with nine equal published outcomes whose majority here is the same", 0.9,
                    only=LATER)
    expected = NARROW

    def judge(self, got: Sequence[Curves]) -> Findings:
        networks, theirs = self.found(got).networks, published()
        value, interval = networks.agreement(theirs)
        known = Networks({cell: theirs.cells[cell] for cell in networks.cells})
        checks = self.quickly(networks) if self.size == "quick" else [
            self.alike(value, interval), self.same(*unanimous(networks, theirs))]
        numbers = {"agreement with the published": value, "agreement of the published among themselves":
                   known.own_agreement(), "agreement of ours among themselves": networks.own_agreement()}
        rows = [{"weight decay": decay, "width": width, "sample": sample,
                 **dict(zip(OUTCOMES, networks.shares(cell).tolist(), strict=True)),
                 **dict(zip((f"published {name}" for name in OUTCOMES), theirs.shares(cell).tolist(), strict=True))}
                for cell in networks.cells for decay, width, sample in [cell]]
        return Findings(checks, rows, numbers)

    def draw(self, got: Sequence[Curves]) -> Figure:
        return draw_map(self.found(got).networks, published())


def unanimous(networks: Networks, theirs: Networks) -> Estimate:
    """The share of cells of one published outcome that most networks have here too.

    A cell is surely one of them if the 95 % interval of that outcome's share lies above a half, surely none below.
    """
    cells = [cell for cell in networks.cells if len(set(theirs.cells[cell])) == 1]
    within = inside = outside = 0
    for cell in cells:
        count = int((networks.cells[cell] == theirs.cells[cell][0]).sum())
        value, (low, high) = proportion(count, len(networks.cells[cell]))
        within, inside, outside = within + (value > 0.5), inside + (low > 0.5), outside + (high < 0.5)
    wrong = (1 - LEVEL) / 2
    return share_of_cases(within, inside, outside, len(cells), (wrong, wrong))
