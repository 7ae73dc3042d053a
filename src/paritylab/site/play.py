"""The page "Play": networks that learn in the reader's browser, and the guided experiments that papers bring to it."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from paritylab.claims.library import papers
from paritylab.site import engine
from paritylab.storage.files import write_atomically

if TYPE_CHECKING:
    from paritylab.setups.setup import Setup
    from paritylab.storage.records import Records

MEASURED_RUNS = 400
MEASURED_SEED = 2024  # not the page's own, so that the curve behind is of other networks
POINTS = 60
MOST_WEIGHTS = 2**20
"""Of one network that the page offers to train."""


@dataclass(frozen=True)
class Experiment:
    """Something that a student can find out in ten minutes."""

    name: str
    title: str
    text: str
    claim: str
    """The claim that it belongs to."""
    setups: Callable[[], Mapping[str, Setup]]
    runs: int = 256
    speed: str = "10"
    """Steps a frame, or ``fast``."""


def experiments() -> Iterator[tuple[Path, Experiment]]:
    """Those that papers bring, and the file that keeps what was measured."""
    found = []
    for paper in papers().values():
        if module := paper.part("experiments"):
            found += [(paper.folder / "experiments" / f"{each.name}.json", each) for each in module.EXPERIMENTS]
    yield from found


def measure(experiment: Experiment, path: Path) -> Path:
    """Train the networks of an experiment and make their survival curves the ones that the paper ships."""
    from paritylab import sweep

    setups = experiment.setups()
    results = sweep(list(setups.values()), MEASURED_RUNS, seed=MEASURED_SEED, engine="lanes")
    curves = {label: _survival(result.records) for label, result in zip(setups, results, strict=True)}
    document = {"experiment": experiment.name, "runs": MEASURED_RUNS, "seed": MEASURED_SEED, "curves": curves,
                "setups": {label: setup.id for label, setup in setups.items()}}
    write_atomically(path, (json.dumps(document, allow_nan=False, separators=(",", ":")) + "\n").encode())
    return path


def _survival(records: Records) -> dict[str, list[float]]:
    """The share of runs still unsolved, with its 95 % band, at so many steps."""
    import numpy as np

    from paritylab.statistics.fractions import survival

    curve = survival(records)
    chosen = np.unique(np.linspace(0, len(curve.steps) - 1, POINTS).astype(int))
    columns = {"steps": curve.steps, "unsolved": curve.unsolved, "low": curve.low, "high": curve.high}
    return {name: [float(f"{value:.4g}") for value in np.asarray(values)[chosen]] for name, values in columns.items()}


def refusal(setup: Setup) -> str | None:
    """Why the browser's engine cannot train this Setup, or None if it can; ``message.js`` says it there."""
    from paritylab.engines import lanes
    from paritylab.engines.configuration import Configuration

    if why := lanes.refusal(setup):
        return why
    if setup.functions:
        return "it has functions of yours"
    if getattr(setup.learner.network, "inputs", "signs") != "signs":
        return "its inputs are signs, not bits"
    if setup.learner.optimiser.skip_satisfied:
        return "it has no skip_satisfied"
    if setup.learner.loss.spec.startswith("clipped-logistic"):
        return f"it has no loss {setup.learner.loss.spec}"
    if getattr(setup.learner.network, "outputs", 1) > 1:
        return "its networks have one output"
    target = getattr(setup.problem, "target", None)
    if getattr(target, "controls", None) or getattr(target, "in_turn", False):
        return "its tasks have one control bit each and are drawn by weight"
    if not setup.learner.optimiser.schedule.constant or any(stage.lr != 1 for stage in setup.problem.stages):
        return "it has no schedules"
    if json.loads(setup.to_json())["problem"].get("support") == "random":
        return "it has no random supports"
    if any(isinstance(rate, tuple) for rate in setup.learner.optimiser.rates or ()):
        return "it takes rates by position"
    told = Configuration.of(setup.program)
    sizes = (told.n, *told.below, told.width)
    if sum(a * b for a, b in pairwise(sizes)) > MOST_WEIGHTS:
        return "the network is too large for a page"
    return None


def link(setup: Setup, runs: int = 256, seed: int = 0) -> str:
    """The address of the page that trains this Setup."""
    return f"play.html#runs={runs}&seed={seed}&setup={quote(setup.to_json(), safe='')}"


def told() -> list[dict[str, Any]]:
    """The experiments with their Setups and what was measured."""
    found = []
    for path, each in experiments():
        kept = json.loads(path.read_text(encoding="utf-8"))
        variants = [{"label": label, "setup": json.loads(setup.to_json()),
                     "measured": _thinned(kept["curves"][label]) | {"runs": kept["runs"]}}
                    for label, setup in each.setups().items()]
        href = f"{each.claim.partition('.')[0]}.html#{each.claim}"
        found.append({"name": each.name, "title": each.title, "text": each.text, "claim": each.claim, "href": href,
                      "runs": each.runs, "speed": each.speed, "variants": variants})
    return found


def _thinned(curve: dict[str, list[float]]) -> dict[str, Any]:
    """Every other point, and the last, with the digits that can be seen."""
    shown = {name: [*values[:-1:2], values[-1]] for name, values in curve.items()}
    return {name: [float(f"{value:.3g}") if name != "steps" else int(value) for value in values]
            for name, values in shown.items()}


def first() -> Setup:
    """What the page trains first where no paper brings an experiment."""
    from paritylab import SGD, Learner, Parity, Protocol, Setup

    return Setup(Parity(30, 3), Learner(optimiser=SGD(1.0)), Protocol(5000, 10, 128))


def scripts() -> dict[str, Any]:
    """What the workers are made of, by the name of the script that brings it, and how their records are labelled."""
    from paritylab.engines import label

    parts = [(engine.FOLDER / f"{name}.js").read_text(encoding="utf-8") for name in ("message", "engine", "worker")]
    modules = {f"engine-{isa}": base64.b64encode(engine.module(isa)).decode() for isa in engine.ISAS}
    return {"engine": {"worker": "\n".join(parts), "label": label("lanes")}, **modules}
