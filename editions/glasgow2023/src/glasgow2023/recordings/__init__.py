"""The recorded runs that this paper brings to 'Watch it learn'."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from paritylab.site.watch import Recording, evenly

if TYPE_CHECKING:
    import numpy as np

    from paritylab.setups.setup import Setup


def _xor() -> Mapping[str, Setup]:
    from glasgow2023.theory import xor
    from paritylab import Parity, Protocol, Setup

    return {"XOR of 2 of 32 bits": Setup(Parity(32, 2), xor.learner(64, 0.1, 0.1, 256), Protocol(eval_size=2000))}


def _phases(weights: Any) -> dict[str, np.ndarray]:
    """Median parts of the neurons along the signal, along the other clusters, and across."""
    import numpy as np

    from glasgow2023.theory.xor import Neurons

    neurons = Neurons.of([{"w": layer["w"][0]} for layer in weights])
    parts = {"signal |w_sig|": neurons.sig, "opposite |w_opp|": neurons.opp, "orthogonal |w_perp|": neurons.perp}
    return {name: np.median(np.abs(part), axis=-1) for name, part in parts.items()}


RECORDINGS = (
    Recording("xor", "XOR in two phases",
              "A ReLU network of 64 neurons on the XOR of 2 of 32 bits (glasgow2023). First the signal in each neuron"
              " grows at an exponential rate while the outputs stay small; then the margins of all four clusters grow"
              " together.",
              "paritylab glasgow2023 xor --d 32 --width 64 --theta 0.1 --eta 0.1 --batch 256 --time 18",
              _xor, evenly(180, 1), progress=_phases),
)
