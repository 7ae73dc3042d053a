"""The recorded runs of 'Watch it learn': what each network's weights, accuracy, loss and hidden progress do.

Papers ship them as ``recordings/<name>.json``, written by ``paritylab report --record``. Weights are those of the first
layer, eight bits each.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paritylab.claims.library import papers
from paritylab.storage.files import write_atomically

if TYPE_CHECKING:
    import numpy as np

    from paritylab.setups.setup import Setup

FORMAT = 1
NEURONS = 24
"""How many neurons of a wide network are shown."""


@dataclass(frozen=True)
class Recording:
    """One or several networks, trained side by side."""

    name: str
    title: str
    text: str
    command: str
    """What trains the same network (the first of them) and writes its curves and weights."""
    setups: Callable[[], Mapping[str, Setup]]
    steps: Sequence[int]
    train: bool = False
    progress: Callable[[Any], dict[str, np.ndarray]] | None = None
    """What progress is, of the recorded params; the distance from the start unless said."""


def evenly(last: int, every: int) -> tuple[int, ...]:
    return tuple(range(0, last + 1, every))


def by_decades(last: int, points: int) -> tuple[int, ...]:
    return (0, *sorted({round(last ** (i / (points - 1))) for i in range(points)}))


def recordings() -> Iterator[tuple[Path, Recording]]:
    """Those that papers bring, and the file that keeps each."""
    for paper in papers().values():
        if module := paper.part("recordings"):
            for recording in module.RECORDINGS:
                yield paper.folder / "recordings" / f"{recording.name}.json", recording


def record(recording: Recording, path: Path) -> Path:
    """Train the networks of a recording and make it the one that the paper ships."""
    from paritylab import curves

    panels = []
    for label, setup in recording.setups().items():
        found = curves(setup, list(recording.steps), weights=True, train=recording.train)
        panels.append(_panel(recording, label, setup, found))
    document = {"format": FORMAT, "name": recording.name, "steps": list(recording.steps), "panels": panels}
    write_atomically(path, (json.dumps(document, allow_nan=False, separators=(",", ":")) + "\n").encode())
    return path


def shipped() -> dict[str, dict[str, Any]]:
    """The recordings with their data, by name."""
    found = {}
    for path, recording in recordings():
        document = json.loads(path.read_text(encoding="utf-8"))
        found[recording.name] = document | {"title": recording.title, "text": recording.text,
                                            "command": recording.command}
    return found


def _panel(recording: Recording, label: str, setup: Setup, curves: Any) -> dict[str, Any]:
    import numpy as np

    path = np.swapaxes(np.asarray(curves.weights[0]["w"][0], np.float64), 1, 2)  # (points, neurons, n)
    support = [int(i) for i in setup.problem.support or ()]
    shown = path[:, :NEURONS]
    scale = float(np.abs(shown).max())
    codes = np.round(shown / scale * 127).astype(np.int8)
    series = {"accuracy": curves.accuracy, "loss": curves.loss}
    series |= {"train_accuracy": curves.train_accuracy, "train_loss": curves.train_loss} if recording.train else {}
    progress = recording.progress(curves.weights) if recording.progress else _distances(path, support)
    return {
        "label": label, "n": path.shape[2], "neurons": shown.shape[1], "support": support, "scale": _short(scale),
        **{name: [_short(value) for value in values[0]] for name, values in series.items()},
        "progress": {name: [_short(value) for value in values] for name, values in progress.items()},
        "weights": base64.b64encode(codes.tobytes()).decode(),
    }


def _distances(path: np.ndarray, support: Sequence[int]) -> dict[str, np.ndarray]:
    """How far weights are from where they began: root mean squares, and the farthest of all."""
    import numpy as np

    from paritylab.measures.progress import displacement

    moved = np.square(path - path[0]).mean(axis=1)
    outside = np.setdiff1d(np.arange(path.shape[2]), support)
    parts = {"relevant coordinates": support, "other coordinates": outside}
    if not len(outside):
        parts = {"all coordinates": support}
    found = {name: np.sqrt(moved[:, chosen].mean(axis=1)) for name, chosen in parts.items()}
    return found | {"farthest weight": displacement(path.reshape(len(path), -1))}


def _short(value: Any) -> float:
    return float(f"{float(value):.4g}")
