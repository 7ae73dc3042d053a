"""The recorded runs that this paper brings to 'Watch it learn'."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from paritylab.site.watch import Recording, by_decades, evenly

if TYPE_CHECKING:
    from paritylab.setups.setup import Setup


def _setting(setting: str, n: int, k: int, lr: float, batch: int = 32) -> Callable[[], Mapping[str, Setup]]:
    def make() -> Mapping[str, Setup]:
        from barak2022 import settings
        from paritylab import Parity, Setup

        return {f"setting ({setting})": Setup(Parity(n, k), settings.barak2022(setting, k, lr, batch))}

    return make


def _grokking() -> Mapping[str, Setup]:
    from paritylab import MLP, SGD, Learner, Parity, Setup

    learner = Learner(MLP(30), optimiser=SGD(0.1, weight_decay=0.003))
    return {"500 examples": Setup(Parity(30, 3, sample=500, replacement=True), learner)}


RECORDINGS = (
    Recording("plateau", "Plateau and jump: setting (i)",
              "A ReLU network of width 10 on the (50, 3) parity, batch 1024. Accuracy stays at chance for two thousand"
              " steps while the weights of the three relevant coordinates already move farther than the others.",
              "paritylab curves --setting barak2022:i --n 50 --k 3 --lr 0.1 --batch 1024 --steps 4000 --every 20"
              " --weights",
              _setting("i", 50, 3, 0.1, 1024), evenly(4000, 20)),
    Recording("sinusoid", "A sinusoid neuron: setting (xiv)",
              "A single neuron sin(w·x) on the (50, 3) parity. It is solved once its three relevant weights are of one"
              " size and the rest are near zero.",
              "paritylab curves --setting barak2022:xiv --n 50 --k 3 --lr 0.01 --steps 1800 --every 6 --weights",
              _setting("xiv", 50, 3, 0.01), evenly(1800, 6)),
    Recording("polynet", "PolyNet: setting (xv)",
              "A product of three linear functions on the (30, 3) parity. Each factor picks out one coordinate of the"
              " support.",
              "paritylab curves --setting barak2022:xv --n 30 --k 3 --lr 0.01 --steps 3000 --every 10 --weights",
              _setting("xv", 30, 3, 0.01), evenly(3000, 10)),
    Recording("grokking", "Grokking on 500 examples",
              "A ReLU network of width 30 sees the same 500 examples of the (30, 3) parity again and again. It has them"
              " all right some fifteen times sooner than new inputs, while weight decay (0.003) moves it on. Not every"
              " run gets there: the next one had not after 200,000 steps.",
              "paritylab curves --n 30 --k 3 --width 30 --lr 0.1 --weight-decay 0.003 --sample 500 --replacement"
              " --steps 60000 --every 200 --train --weights",
              _grokking, by_decades(60_000, 240), train=True),
)
