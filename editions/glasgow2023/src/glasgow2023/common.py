"""What several claims share: networks that are watched, and figures of points."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from glasgow2023.theory import xor
from glasgow2023.theory.xor.phases import Phases, track
from paritylab import Parity, Protocol, Setup, engines, plots
from paritylab.aliases import Floats
from paritylab.claims import Lab, computation
from paritylab.running.computations import Computation


def network(d: int, width: int, theta: float, eta: float, batch: int, protocol: Protocol | None = None,
            **options: Any) -> Setup:
    """The paper's network on XOR of 2 of d bits; ``options`` as in :func:`glasgow2023.theory.xor.learner`."""
    return Setup(Parity(d, 2), xor.learner(width, theta, eta, batch, **options), protocol or Protocol(eval_size=1000))


@dataclass(frozen=True)
class Watch:
    """Runs of a network to be watched: ``about`` it, as in :func:`network`, and how long and how often."""

    about: Mapping[str, Any]
    steps: int
    every: int
    runs: int
    eval_size: int = 1000
    gaussian: bool = False

    @property
    def setup(self) -> Setup:
        setup = network(**self.about, protocol=Protocol(eval_size=self.eval_size))
        gaussian = Parity(setup.problem.n, 2, inputs=xor.gaussian_inputs)
        return replace(setup, problem=gaussian) if self.gaussian else setup


def watched(lab: Lab, function: Computation, watches: Sequence[Watch]) -> list[Phases]:
    """What a computation makes of each Watch; its arguments are the engine, and what the Watch says."""
    asked: list[dict[str, Any]] = []
    for watch in watches:
        engine = engines.choose(watch.setup, lab.engine, curves=True)
        lab.count(watch.setup, engine, watch.runs, watch.runs * watch.steps)
        asked.append(asdict(watch) | {"engine": engine})
    return lab.compute_each(function, asked)


@computation
def tracked(seed: int, engine: str, **about: Any) -> Phases:
    """As :func:`glasgow2023.theory.xor.phases.track`."""
    watch = Watch(**about)
    return track(watch.setup, watch.steps, watch.every, range(watch.runs), seed, engine=engine, progress=False)


def ratio_of_means(one: Floats, other: Floats) -> float:
    return float(np.mean(one) / np.mean(other))


@plots.styled
def strip_plot(groups: Mapping[str, Any], ylabel: str, lines: Mapping[str, float], log: bool = True) -> Figure:
    """Every value of each group as a circle, beside bounds drawn as lines."""
    figure = plots.blank(2.4)
    axes = figure.add_subplot(ylabel=ylabel, yscale="log" if log else "linear")
    for place, values in enumerate(groups.values()):
        spread = np.linspace(-0.2, 0.2, len(values)) if len(values) > 1 else np.zeros(1)
        axes.plot(place + spread, values, "o", markersize=3, fillstyle="none", color=plots.COLOURS[0])
    for (label, value), line in zip(lines.items(), plots.LINES[1:], strict=False):
        axes.axhline(value, color=plots.COLOURS[1], linestyle=line, linewidth=0.9, label=label)
    axes.set_xticks(range(len(groups)), list(groups))
    axes.set_xlim(-0.6, len(groups) - 0.4)
    if lines:
        plots.legend_above(figure, axes)
    return figure
