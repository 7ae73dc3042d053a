"""The recorded runs of 'Watch it learn': what each network's weights, accuracy, loss and hidden progress do.

The package ships them as ``data/watch/<name>.json``, written by ``paritylab report --record``. Weights are those of the
first layer, eight bits each.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paritylab.storage.files import write_atomically

if TYPE_CHECKING:
    import numpy as np

    from paritylab.setups.setup import Setup

SHIPPED = Path(__file__).parent / "data" / "watch"
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
    phases: bool = False
    """Whether progress is that of glasgow2023's two phases, not the distance from the start."""


def _barak2022(setting: str, n: int, k: int, lr: float, batch: int = 32) -> Callable[[], Mapping[str, Setup]]:
    def make() -> Mapping[str, Setup]:
        from paritylab import Parity, Setup
        from paritylab.papers.barak2022 import settings

        return {f"setting ({setting})": Setup(Parity(n, k), settings.barak2022(setting, k, lr, batch))}

    return make


def _grokking() -> Mapping[str, Setup]:
    from paritylab import MLP, SGD, Learner, Parity, Setup

    learner = Learner(MLP(30), optimiser=SGD(0.1, weight_decay=0.003))
    return {"500 examples": Setup(Parity(30, 3, sample=500, replacement=True), learner)}


def _xor() -> Mapping[str, Setup]:
    from paritylab import Parity, Protocol, Setup
    from paritylab.theory import xor

    return {"XOR of 2 of 32 bits": Setup(Parity(32, 2), xor.learner(64, 0.1, 0.1, 256), Protocol(eval_size=2000))}


def _starts() -> Mapping[str, Setup]:
    from paritylab import MLP, SGD, Learner, Parity, Setup

    return {name: Setup(Parity(20, 20), Learner(MLP(512), name.lower(), optimiser=SGD(0.01), batch=64))
            for name in ("Rademacher", "Gaussian")}


def _evenly(last: int, every: int) -> tuple[int, ...]:
    return tuple(range(0, last + 1, every))


def _by_decades(last: int, points: int) -> tuple[int, ...]:
    return (0, *sorted({round(last ** (i / (points - 1))) for i in range(points)}))


RECORDINGS = (
    Recording("plateau", "Plateau and jump: setting (i)",
              "A ReLU network of width 10 on the (50, 3) parity, batch 1024. Accuracy stays at chance for two thousand"
              " steps while the weights of the three relevant coordinates already move farther than the others.",
              "paritylab curves --setting barak2022:i --n 50 --k 3 --lr 0.1 --batch 1024 --steps 4000 --every 20"
              " --weights",
              _barak2022("i", 50, 3, 0.1, 1024), _evenly(4000, 20)),
    Recording("sinusoid", "A sinusoid neuron: setting (xiv)",
              "A single neuron sin(w·x) on the (50, 3) parity. It is solved once its three relevant weights are of one"
              " size and the rest are near zero.",
              "paritylab curves --setting barak2022:xiv --n 50 --k 3 --lr 0.01 --steps 1800 --every 6 --weights",
              _barak2022("xiv", 50, 3, 0.01), _evenly(1800, 6)),
    Recording("polynet", "PolyNet: setting (xv)",
              "A product of three linear functions on the (30, 3) parity. Each factor picks out one coordinate of the"
              " support.",
              "paritylab curves --setting barak2022:xv --n 30 --k 3 --lr 0.01 --steps 3000 --every 10 --weights",
              _barak2022("xv", 30, 3, 0.01), _evenly(3000, 10)),
    Recording("grokking", "Grokking on 500 examples",
              "A ReLU network of width 30 sees the same 500 examples of the (30, 3) parity again and again. It has them"
              " all right some fifteen times sooner than new inputs, while weight decay (0.003) moves it on. Not every"
              " run gets there: the next one had not after 200,000 steps.",
              "paritylab curves --n 30 --k 3 --width 30 --lr 0.1 --weight-decay 0.003 --sample 500 --replacement"
              " --steps 60000 --every 200 --train --weights",
              _grokking, _by_decades(60_000, 240), train=True),
    Recording("xor", "XOR in two phases",
              "A ReLU network of 64 neurons on the XOR of 2 of 32 bits (glasgow2023). First the signal in each neuron"
              " grows at an exponential rate while the outputs stay small; then the margins of all four clusters grow"
              " together.",
              "paritylab xor --d 32 --width 64 --theta 0.1 --eta 0.1 --batch 256 --time 18",
              _xor, _evenly(180, 1), phases=True),
    Recording("starts", "Rademacher beside Gaussian",
              "The same network, batches and learning rate on the parity of all 20 bits: from weights ±1 it is learned,"
              " from Gaussian weights of the same variance it is not (abbe2024). 24 of 512 neurons are shown.",
              "paritylab curves --n 20 --k 20 --width 512 --init rademacher --lr 0.01 --batch 64 --steps 20000"
              " --every 100 --weights",
              _starts, _evenly(20_000, 100)),
)


def record(recording: Recording) -> Path:
    """Train the networks of a recording and make it the one that the package ships."""
    from paritylab import curves

    panels = []
    for label, setup in recording.setups().items():
        found = curves(setup, list(recording.steps), weights=True, train=recording.train)
        panels.append(_panel(recording, label, setup, found))
    document = {"format": FORMAT, "name": recording.name, "steps": list(recording.steps), "panels": panels}
    SHIPPED.mkdir(exist_ok=True)
    path = SHIPPED / f"{recording.name}.json"
    write_atomically(path, (json.dumps(document, allow_nan=False, separators=(",", ":")) + "\n").encode())
    return path


def shipped() -> dict[str, dict[str, Any]]:
    """The recordings with their data, by name."""
    found = {}
    for recording in RECORDINGS:
        document = json.loads((SHIPPED / f"{recording.name}.json").read_text(encoding="utf-8"))
        found[recording.name] = document | {"title": recording.title, "text": recording.text,
                                            "command": recording.command}
    return found


def _panel(recording: Recording, label: str, setup: Setup, curves: Any) -> dict[str, Any]:
    import numpy as np

    path = np.swapaxes(np.asarray(curves.weights[0]["w"][0], np.float64), 1, 2)  # (points, neurons, n)
    support = [int(i) for i in setup.problem.support]
    shown = path[:, :NEURONS]
    scale = float(np.abs(shown).max())
    codes = np.round(shown / scale * 127).astype(np.int8)
    series = {"accuracy": curves.accuracy, "loss": curves.loss}
    series |= {"train_accuracy": curves.train_accuracy, "train_loss": curves.train_loss} if recording.train else {}
    progress = _phases(curves.weights) if recording.phases else _distances(path, support)
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


def _phases(weights: Any) -> dict[str, np.ndarray]:
    """Median parts of the neurons along the signal, along the other clusters, and across."""
    import numpy as np

    from paritylab.theory.xor import Neurons

    neurons = Neurons.of([{"w": layer["w"][0]} for layer in weights])
    parts = {"signal |w_sig|": neurons.sig, "opposite |w_opp|": neurons.opp, "orthogonal |w_perp|": neurons.perp}
    return {name: np.median(np.abs(part), axis=-1) for name, part in parts.items()}


def _short(value: Any) -> float:
    return float(f"{float(value):.4g}")
