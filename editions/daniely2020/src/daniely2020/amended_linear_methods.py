"""Linear methods by an amended rule: several draws of the samples, and budgets on either side of C(n, k)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from daniely2020.common import Row
from daniely2020.linear_methods import LinearFails
from paritylab.claims import Check, Findings, Lab, amends, at_least, at_most, between, size
from paritylab.claims.intervals import mean
from paritylab.plots import Figure

SAME = "the same 5,000 samples, n = 101"


@amends(
    "daniely2020.linear-fails",
    date="2026-11-16",
    kind="power",
    where="Section 5",
    quote="""learning neural networks is a strictly stronger learning model than any linear model, including linear
    classifiers, kernel methods and random features""",
    change="""Means over several draws of the samples, with an interval over draws; the first trial had one draw, and an
    interval over test inputs. At k = 3 a failure with 10^4 samples at n = 61, fewer than the C(n, 3) = 35,990 cubic
    monomials, is one of budget: n = 31 with more samples than its 4,495 monomials is a part beside it. On the same
    samples all k are judged, not 5 and 7 alone. The network that is trained by descent is judged in thm2.""",
    known="""One draw of seed 0: errors of 0.32 to 0.75 of all linear methods with 10^4 samples at n = 61 and 101, and a
    network without errors on the same samples. That the cubic kernel learns n = 31 is expected.""",
)
class LinearFailsAmended(LinearFails):
    """Errors on the uniform half with 10^4 samples, below and above the number of monomials; then the same samples."""

    problems = size(quick=[[61, 3]], full=[[61, 3], [31, 3], [101, 5]], label="n, k")
    samples = size(quick=[2000], full=[10_000], label="N")
    seeds = size(quick=2, standard=3, full=5)
    same_k = size(quick=[5], full=[3, 5, 7, 9], label="k on the same samples")
    networks = three = five = None

    fails = at_least("mean uniform-half error of {method}, n = {n}, k = {k}, N = {count}", 0.25, part="{part}")
    network = at_least("mean accuracy on D_A, network, the same samples, k = {k}", 0.99, part=SAME)
    network_half = at_least("mean accuracy on its uniform half, network, the same samples, k = {k}", 0.99, part=SAME)
    linear = at_most("mean accuracy on D_A, {method}, the same samples, k = {k}", 0.85, part=SAME)
    linear_half = at_most("mean accuracy on its uniform half, {method}, the same samples, k = {k}", 0.7, part=SAME)
    no_leak_half = between("mean accuracy on its uniform half, network without leak, the same samples, k = {k}", 0.47,
                           0.53, part=SAME)

    def work(self, lab: Lab) -> Any:
        return [self.asked(lab, samplings, network) for samplings, network in
                ((self.samplings(), False), (self.same_samplings(), True))]

    def judge(self, got: Any) -> Findings:
        alone = self.rows(self.samplings(), False, got[0])
        same = self.rows(self.same_samplings(), True, got[1])
        checks: list[Check] = []
        for (n, k, count, method), rows in grouped(alone).items():
            errors = [1 - row["uniform accuracy"] for row in rows]
            checks.append(self.fails(*mean(errors), method=method, n=n, k=k, count=count, part=budget(n, k, count)))
        for (_, k, _, method), rows in grouped(same).items():
            checks += self.told(method, k, rows)
        return Findings(checks, alone + same)

    def told(self, method: str, k: int, rows: Sequence[Row]) -> list[Check]:
        """The network learns both halves, no linear method either, and without the leak the network learns nothing."""
        all_, half = (mean([row[name] for row in rows]) for name in ("accuracy", "uniform accuracy"))
        if method == "network without leak":
            return [self.no_leak_half(*half, k=k)]
        if method == "network":
            return [self.network(*all_, k=k), self.network_half(*half, k=k)]
        return [self.linear(*all_, method=method, k=k), self.linear_half(*half, method=method, k=k)]

    def draw(self, got: Any) -> Figure:
        return super().draw((got[0], got[1], []))


def grouped(rows: Sequence[Row]) -> dict[tuple[int, int, int, str], list[Row]]:
    """Rows that differ by their seed alone."""
    found: dict[tuple[int, int, int, str], list[Row]] = {}
    for row in rows:
        found.setdefault((row["n"], row["k"], row["count"], row["method"]), []).append(row)
    return found


def budget(n: int, k: int, count: int) -> str:
    """
    >>> budget(61, 3, 10_000), budget(31, 3, 10_000)
    ('k = 3, fewer samples than C(n, k)', 'k = 3, more samples than C(n, k)')
    """
    return f"k = {k}, {'more' if count > math.comb(n, k) else 'fewer'} samples than C(n, k)"
