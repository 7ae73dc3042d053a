"""The experiments that this paper brings to 'Play'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paritylab.site.play import Experiment

if TYPE_CHECKING:
    from paritylab.setups.setup import Setup


def _relu(n: int, lr: float, steps: int, width: int = 10, threshold: float = 1.0, **problem: Any) -> Setup:
    from paritylab import MLP, SGD, Learner, Parity, Protocol, Setup

    return Setup(Parity(n, 3, **problem), Learner(MLP(width), optimiser=SGD(lr)), Protocol(steps, 10, 128, threshold))


def _transition() -> Mapping[str, Setup]:
    return {"30 bits": _relu(30, 1.0, 5000), "50 bits": _relu(50, 0.5, 10_000)}


def _luck() -> Mapping[str, Setup]:
    return {"1,000 networks": _relu(30, 1.0, 5000)}


def _widths() -> Mapping[str, Setup]:
    return {f"width {width}": _relu(30, 0.1, 10_000, width) for width in (10, 30, 100, 300)}


def _batches() -> Mapping[str, Setup]:
    from paritylab import SGD, Learner, Parity, PolyNet, Protocol, Setup

    return {f"batch {batch}": Setup(Parity(30, 3), Learner(PolyNet(3), optimiser=SGD(0.01), batch=batch),
                                    Protocol(10_000, 10, 128)) for batch in (1, 8, 64)}


def _noise() -> Mapping[str, Setup]:
    return {f"{100 * noise:.0f} % flipped": _relu(30, 0.3, 10_000, threshold=0.98, noise=noise)
            for noise in (0.0, 0.1, 0.2, 0.3)}


def _grokking() -> Mapping[str, Setup]:
    from paritylab import MLP, SGD, Learner, Parity, Protocol, Setup

    learner = Learner(MLP(30), optimiser=SGD(0.1, weight_decay=0.003))
    return {f"{sample:,} examples": Setup(Parity(30, 3, sample=sample, replacement=True), learner,
                                          Protocol(20_000, 50, 128, 0.98)) for sample in (1000, 500)}


EXPERIMENTS = (
    Experiment("transition", "Phase transition",
               "Every network is given fresh examples of the product of three hidden bits. Watch one of them: for"
               " hundreds of steps it is no better than a coin, then it knows everything at once. The loss says"
               " nothing before; the hidden progress, how far the weights of the three bits have moved beyond the"
               " others, grows all the time. Then try 50 bits.",
               "barak2022.fig1-left", _transition),
    Experiment("luck", "No lucky networks",
               "A thousand networks with random starts and random data. If learning were a search at random, one in"
               " a thousand would be solved in the first steps. Look where the curve leaves 100 %: the fastest of"
               " all still takes a fair part of the median's time.",
               "barak2022.fig2-left", _luck, runs=1000),
    Experiment("width", "Width does not parallelise",
               "If neurons searched independently, thirty times as many would need a thirtieth of the steps. Run"
               " the four widths one after the other: the curves stay on the picture, and the steps that are needed"
               " hardly halve.",
               "barak2022.fig4-left", _widths, runs=64),
    Experiment("batch", "Batch size",
               "A product of three linear functions learns from one example a step nearly as soon, in steps, as"
               " from 64. So it needs 64 times fewer examples: what limits it is the number of steps.",
               "barak2022.fig6-row2", _batches),
    Experiment("noise", "Label noise",
               "A share of the labels is flipped at random. Methods that solve equations fail at once; gradient"
               " descent takes longer, by a factor that grows with the noise, and still finds the three bits. A"
               " network counts as solved at 98 % of clean labels.",
               "barak2022.fig16", _noise),
    Experiment("grokking", "Grokking",
               "The same examples again and again, with weight decay. With 1,000 of them networks learn the rule"
               " soon. With 500 they have all of them by heart within some thousand steps, while new inputs are"
               " guesses, and only much later does the rule appear, in some networks: compare both accuracies of one"
               " network.",
               "barak2022.fig4-right", _grokking, runs=32, speed="fast"),
)
