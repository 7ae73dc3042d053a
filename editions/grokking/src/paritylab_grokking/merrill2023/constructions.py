"""Networks of Appendix D, written out: parities from eight, six and four ReLU units, without an output bias."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from paritylab import plots
from paritylab.aliases import Floats
from paritylab.claims import Findings, Lab, Trial, at_most, claim, size
from paritylab.measures.fourier import cube


@dataclass(frozen=True)
class Units:
    """ReLU units: f(x) = sum_j c_j max(0, w_j . x + b_j)."""

    w: Floats
    b: Floats
    c: Floats

    def __call__(self, x: Floats) -> Floats:
        return np.maximum(x @ self.w.T + self.b, 0) @ self.c


def conjunctions(k: int) -> Units:
    """One unit for each of the 2^k patterns, on at that pattern alone (Proposition 1).

    >>> conjunctions(2)(cube(2)).tolist()
    [1.0, -1.0, -1.0, 1.0]
    """
    patterns = cube(k)
    return Units(patterns, np.full(2**k, 1.0 - k), patterns.prod(axis=1))


def six() -> Units:
    """Proposition 2, with a minus where its first formula prints a doubled sign.

    >>> six()(cube(3)).tolist()
    [10.0, -1.0, -1.0, 7.0, -1.0, 10.0, 7.0, -1.0]
    """
    rows = np.array([(-1, -1, 10, -9, -1), (-1, -1, 1, -2, 10), (1, 1, 1, -2, 10),
                     (1, -1, -10, -9, -1), (-1, 1, -1, -2, 10), (1, -1, -1, -2, 10)], float)
    return Units(rows[:, :3], rows[:, 3], rows[:, 4])


def four() -> Units:
    """Proposition 3: a constant and three units that read x_1 + x_2 + x_3 alone.

    >>> four()(cube(3)).tolist()
    [1.0, -1.0, -1.0, 1.0, -1.0, 1.0, 1.0, -1.0]
    """
    slopes = np.array([0.0, 1.0, 1.0, -1.0])
    return Units(np.outer(slopes, np.ones(3)), np.array([1.0, -1.0, 1.0, -1.0]), np.array([1.0, 2.0, -1.0, -1.0]))


Networks = dict[tuple[str, int], Units]


@claim(
    "merrill2023.constructions",
    where="Appendix D, Propositions 1 to 3",
    kind="exact",
    title="Parity of three bits with eight, six or four ReLU units",
    statement="""Without an output bias, 2^k ReLU units compute the parity of k bits; for three bits six and even four
    units do.""",
    published="""right on all inputs; six units give 10 or 7 where the parity is +1 and -1 where it is -1, four give
    exactly the parity (computed here)""",
)
class Constructions(Trial):
    """Each network at every input, against the parity."""

    degrees = size([2, 3, 4, 5, 6], label="k of the 2^k units")

    wrong = at_most("inputs with another sign than the parity's, {name}, k = {k}", 0, exact=True)

    def work(self, lab: Lab) -> Networks:
        return {("2^k units", k): conjunctions(k) for k in self.degrees} | {("six units", 3): six(),
                                                                          ("four units", 3): four()}

    def judge(self, got: Networks) -> Findings:
        checks, rows = [], []
        numbers: dict[str, float] = {}
        for (name, k), network in got.items():
            x = cube(k)
            f, y = network(x), x.prod(axis=1)
            checks.append(self.wrong(float((y * f <= 0).sum()), name=name, k=k))
            numbers |= {f"{which} y f(x), {name}, k = {k}": float(end(y * f))
                        for which, end in (("smallest", np.min), ("largest", np.max))}
            shown = ["".join("+-"[int(bit < 0)] for bit in each) for each in x]
            rows += [{"network": name, "k": k, "units": len(network.c), "x": signs, "parity": int(sign),
                      "output": float(value)} for signs, sign, value in zip(shown, y, f, strict=True)]
        return Findings(checks, rows, numbers)

    def draw(self, got: Networks) -> Figure:
        return draw({f"{len(network.c)} units": network for (_, k), network in got.items() if k == 3})


@plots.styled
def draw(networks: dict[str, Units]) -> Figure:
    """Outputs at the eight inputs of three bits."""
    figure = plots.blank(2.2)
    axes = figure.add_subplot(ylabel="output", xlabel="input $x_1 x_2 x_3$")
    x = cube(3)
    order = np.argsort(-x.prod(axis=1), kind="stable")
    for (label, network), marker, colour in zip(networks.items(), "osD", plots.COLOURS, strict=False):
        axes.plot(range(8), network(x)[order], marker, color=colour, fillstyle="none", markersize=5, label=label)
    axes.axhline(0, color=plots.GREY, linewidth=0.6)
    axes.axvline(3.5, color=plots.GREY, linewidth=0.6, linestyle="dotted")
    axes.set_xticks(range(8), ["".join("$-$" if bit < 0 else "$+$" for bit in x[row]) for row in order])
    for at, words in ((1.5, "parity $+1$"), (5.5, "parity $-1$")):
        axes.text(at, 11.4, words, ha="center")
    axes.set_ylim(-2.5, 13)
    axes.legend(loc="center right")
    return figure
