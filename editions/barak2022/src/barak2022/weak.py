"""From a classifier that is right on 55 % of the inputs to S: D.2."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from barak2022.deep import (
    forward,
)
from paritylab import MLP, SGD, Learner, Parity, Protocol, Setup, plots
from paritylab.aliases import Floats
from paritylab.baselines.goldreich_levin import heavy
from paritylab.claims import Findings, Lab, Trial, at_least, claim, computation, rng, size
from paritylab.statistics import solved_fraction
from paritylab.storage.records import SOLVED, Records

WEAK = Protocol(eval_size=128, fresh=True, threshold=0.55, consecutive=10)
"""Ten fresh batches of 128 in a row, one every 10 steps, with at least 55 % correct."""
LARGE = 0.08
"""Coefficients that Goldreich-Levin looks for."""
Found = tuple[list[tuple[Records, Any]], list[dict[str, np.ndarray]]]
"""Records and params for each width, and what was read from each run that reached 55 %."""


@claim(
    "barak2022.d2-weak-to-strong",
    where="Appendix D.2",
    kind="exact",
    title="A 55% classifier suffices to recover S",
    statement="""Given query access to a classifier with accuracy above 1/2 + eps on the parity, large Fourier
    coefficients (Goldreich-Levin) return S.""",
    published="""'given a classifier which achieves 1/2 + epsilon accuracy [...] outputs S with high probability'
    (Appendix D.2).""",
)
class D2WeakToStrong(Trial):
    """Networks too narrow for the parity: the largest coefficient of size 3 of a 55 % classifier is at S.

    Found twice: among all triples, estimated from random inputs, and by Goldreich-Levin, which asks the classifier for
    labels of inputs of its choice and never lists all triples.
    """

    n = size(quick=15, full=20)
    widths = size(quick=[2], full=[1, 2])
    queries = size(quick=16 * 2**14, full=21 * 2**16)
    recovers = at_least("share of 55 % classifiers that give S by {way}, width {width}", 0.95)
    runs = size(quick=20, full=400)
    samples = size(quick=50_000, full=100_000)

    def work(self, lab: Lab) -> Found:
        learners = [Learner(MLP(width), optimiser=SGD(0.1), batch=128) for width in self.widths]
        trained = [lab.final_params(Setup(Parity(self.n, 3), learner, WEAK), self.runs) for learner in learners]
        asked = [{"layers": [{name: value[run].tolist() for name, value in layer.items()} for layer in params],
                  "width": width, "run": run, "samples": self.samples, "queries": self.queries}
                 for width, (records, params) in zip(self.widths, trained, strict=True) for run in weak(records)]
        return trained, lab.compute_each(read_support, asked)

    def rows(self, got: Found) -> list[dict[str, Any]]:
        reached = [(width, records, run) for width, (records, _) in zip(self.widths, got[0], strict=True)
                   for run in weak(records)]
        return [{"width": width, "run": int(records.run[run]), "t": int(records.t_c[run]),
                 "accuracy": float(read["accuracy"]), "at_S": float(read["at_S"]),
                 "elsewhere": float(read["elsewhere"]), "found": bool(read["found"]), "large": int(read["large"]),
                 "found_by_queries": bool(read["found_by_queries"])}
                for (width, records, run), read in zip(reached, got[1], strict=True)]

    def judge(self, got: Found) -> Findings:
        rows, checks, numbers = self.rows(got), [], {}
        for width in self.widths:
            shown = [row for row in rows if row["width"] == width]
            for way, column in (("all triples", "found"), ("Goldreich-Levin", "found_by_queries")):
                successes = [row[column] for row in shown]
                share, interval = solved_fraction(np.where(successes, SOLVED, 1)) if shown else (math.nan, (0.0, 1.0))
                checks.append(self.recovers(share, interval, way=way, width=width))
            numbers[f"runs that reached 55 %, width {width}"] = float(len(shown))
        return Findings(checks, rows, numbers)

    def draw(self, got: Found) -> plots.Figure:
        return coefficient_plot(self.rows(got))


def weak(records: Records) -> list[int]:
    """The runs that reached 55 %."""
    return np.flatnonzero(records.status == SOLVED).tolist()


@computation
def read_support(
    seed: int, layers: list[dict[str, Any]], width: int, run: int, samples: int, queries: int
) -> dict[str, Any]:
    """Whether S is read from a ReLU network, by all triples and by Goldreich-Levin, and its coefficients of size 3."""
    network = [{name: np.asarray(value) for name, value in layer.items()} for layer in layers]
    n = len(network[0]["w"])
    x = rng(seed, width, run).choice([-1.0, 1.0], (samples, n))
    f = forward(network, x, relu)
    coefficients = np.abs(triple_coefficients(np.sign(f), x))
    listed = heavy(lambda x: np.sign(forward(network, x, relu)), n, LARGE, queries, rng(seed, width, run, 1), degree=3)
    return {"accuracy": np.mean(f * x[:, :3].prod(axis=1) > 0), "at_S": coefficients[0],
            "elsewhere": coefficients[1:].max(), "found": coefficients.argmax() == 0, "large": len(listed),
            "found_by_queries": next((T for T in listed if len(T) == 3), None) == (0, 1, 2)}


def relu(z: Floats) -> Floats:
    return np.maximum(z, 0)


def triple_coefficients(values: Floats, x: Floats) -> Floats:
    """The mean of values chi_T over samples x, for all T of size 3 in the order of itertools.combinations.

    >>> from paritylab.measures.fourier import cube
    >>> triple_coefficients(cube(4)[:, 1:].prod(axis=1), cube(4))
    array([0., 0., 0., 1.])
    """
    n = x.shape[1]
    pairs = list(itertools.combinations(range(n), 2))
    place = {pair: i for i, pair in enumerate(pairs)}
    total = np.zeros((n, len(pairs)))
    for part in np.array_split(np.arange(len(x)), max(1, len(x) // 20_000)):
        products = np.stack([x[part, a] * x[part, b] for a, b in pairs], axis=1)
        total += (values[part, None] * x[part]).T @ products
    return np.array([total[a, place[b, c]] for a, b, c in itertools.combinations(range(n), 3)]) / len(x)


@plots.styled
def coefficient_plot(rows: Sequence[Mapping[str, Any]]) -> plots.Figure:
    """The coefficient at S against the largest elsewhere: above the diagonal S is found."""
    figure = plots.blank(2.6)
    axes = figure.add_subplot(xlabel="largest coefficient of size 3, not at S", ylabel="coefficient at S")
    for width, colour, marker in zip(sorted({row["width"] for row in rows}), plots.COLOURS, "osD", strict=False):
        shown = [row for row in rows if row["width"] == width]
        axes.plot([row["elsewhere"] for row in shown], [row["at_S"] for row in shown], marker, color=colour,
                  fillstyle="none", markersize=4, label=f"width {width}")
    top = max([row["at_S"] for row in rows], default=1.0) * 1.08
    axes.plot([0, top], [0, top], color=plots.GREY, linestyle="dotted", linewidth=0.8, label="equal")
    axes.set(xlim=(0, top), ylim=(0, top))
    figure.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)
    return figure
