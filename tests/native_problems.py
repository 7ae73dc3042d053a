"""Problems of every kind, for the tests of the native engine."""

from __future__ import annotations

import numpy as np

import paritylab as pl
from paritylab import laws
from paritylab.setups.problems import Stage

VALUES = 1 - 2 * (np.random.default_rng(0).random(2**7) < 0.5).astype(int)
TWO = pl.Tasks([(5, 6), (4, 7, 8)], weights=(0.3, 0.7))
COMPOSED = pl.Tasks([(5, 6), (4, 7, 8), (4, 5, 6, 7, 8)], controls=[(0,), (2,), (0, 2)], weights=(0.3, 0.2, 0.5))
TURNS = pl.Tasks([(5, 6), (4, 7, 8), (5, 8)], controls=[(1, 3), (0, 3), (2,)], in_turn=True)
APART = pl.Tasks([(36, 38), (35,), (37,)], controls=[(0, 33), (31, 32), (34,)])
SEVEN = pl.Tasks([(3,), (4,), (3, 4), (5,), (3, 5), (4, 5), (3, 4, 5)], in_turn=True,
                 controls=[tuple(j for j in range(3) if i >> j & 1) for i in range(1, 8)])
MANY = pl.Tasks([tuple(sorted({40 + i % 7, 48 + i % 5, 54 + i % 3})) for i in range(37)])
STAGES = (Stage(8, "biased:0.9", slide=True, lr=0.5), Stage(13, batch=3, noise=0.2),
          Stage(30, "mixture:0.2,biased:0.9", lr=2.0, slide=True), Stage(33))

PROBLEMS = {
    "product": pl.Problem(9, (0, 2)),
    "product, scaled": pl.Problem(9, (0, 2), scale=0.3),
    "sum": pl.Problem(40, pl.Sum([(0.1, (0, 1)), (-0.7, (35,)), (0.3, ())]), noise=0.2),
    "sign of a sum": pl.Problem(9, pl.Sum([(1, (0,)), (1, (1,)), (-1, (2, 3)), (1, (4,))], sign=True), scale=2.0),
    "table": pl.Problem(50, pl.Table((3, 4, 5, 33, 31, 32, 0), VALUES)),
    "table of one bit": pl.Problem(5, pl.Table((3,), [-1, 1])),
    "majority": pl.Problem(12, "majority:5", noise=0.1),
    "staircase": pl.Problem(12, "staircase:3"),
    "biased": pl.Problem(70, (0, 1, 69), "biased:0.3"),
    "biased, one for each": pl.Problem(7, (0, 2), laws.Biased((0.1, 0.5, 0.25, 0.0, 1.0, 1 / 3, 2**-16))),
    "mixture": pl.Problem(33, (0, 32), "mixture:0.2,biased:0.9"),
    "mixture of three": pl.Problem(9, (0, 2), laws.Mixture(0.3, laws.Active((1, 3)), laws.Mixture(0.5, "biased:0.8"))),
    "mixture without one": pl.Problem(9, (0, 2), laws.Mixture(1.0, "biased:0.7")),
    "active": pl.Problem(40, (0, 2), "active:35"),
    "pairs": pl.Problem(40, (0, 2), laws.Pairs([(0, 3), (0, 35), (33, 1)], -0.3)),
    "permuted pairs": pl.Problem(5, (0, 2), laws.Permuted((3, 1, 4, 0, 2), laws.Pairs([(0, 1)], 0.7, "biased:0.4"))),
    "judged elsewhere": pl.Problem(9, (0, 2), "biased:0.8", evaluation="uniform", noise=0.3),
    "two tasks": pl.Problem(9, TWO),
    "many tasks": pl.Problem(60, MANY, "biased:0.4", noise=0.1),
    "staged": pl.Problem(9, (0, 2), "uniform", stages=STAGES, noise=0.1),
    "staged tasks": pl.Problem(9, TWO, "biased:0.6", stages=(Stage(7, "uniform", slide=True), Stage(20, batch=2))),
    "staged rates": pl.Problem(9, (0, 2), stages=(Stage(7, lr=0.3), Stage(9, lr=3.0))),
    "polynomial": pl.Polynomial(40, terms=[(0.5, (0, 1)), (-1.0, (35,))], noise=0.2),
    "leaky": pl.LeakyParity(40, support=(0, 1, 35), leak=0.4),
    "leaky, random supports": pl.LeakyParity(9, 3, support="random"),
    "sample of a law": pl.Problem(40, (0, 35), "mixture:0.3,biased:0.8", sample=37, noise=0.2),
    "sample of tasks": pl.Problem(9, TWO, sample=21, replacement=True),
    "leaky sample": pl.LeakyParity(9, 3, sample=20),
    "short last": pl.Parity(9, 2, sample=17, short_last=True),
    "short last of a table": pl.Problem(9, "majority:3", "biased:0.6", sample=20, short_last=True, noise=0.1),
    "sample below a batch, short": pl.Problem(9, (0, 1), sample=4, short_last=True),
    "composed tasks": pl.Problem(9, COMPOSED, scale=3.0),
    "tasks in turn": pl.Problem(9, pl.Tasks([(5, 6), (4, 7, 8), (3,)], in_turn=True), "biased:0.4", noise=0.1),
    "control bits in two words": pl.Problem(40, APART, stages=(Stage(7, "biased:0.7", slide=True), Stage(20, batch=2))),
    "more tasks than inputs": pl.Problem(6, SEVEN),
    "sample of tasks in turn": pl.Problem(40, TURNS, "biased:0.4", sample=31),
}
SMALL = {name: problem for name, problem in PROBLEMS.items() if name != "many tasks"}
