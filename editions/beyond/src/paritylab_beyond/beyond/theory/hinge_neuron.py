"""The junk flow of ``junk_flow`` for many starts at once: single precision, over half of the inputs.

An input and its negative share w.x but for the sign, so that 2^(d-1) inputs do; sums over them are matrix products.
For weights with a density: single precision does not tell on which side of a kink a sum of signs falls.
"""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from paritylab.measures.fourier import cube

Singles = NDArray[np.float32]
ROWS = 4096
"""Starts at a time."""


class HingeNeuron:
    """One neuron relu(w.x) of d inputs and the hinge loss, on the full parity and on random labels.

    >>> neuron = HingeNeuron(2)
    >>> neuron.random_gradient(np.array([[1.5, 1.0]], np.float32))
    array([[0.125, 0.125]], dtype=float32)
    """

    def __init__(self, d: int) -> None:
        self.d = d
        self.inputs: Singles = cube(d)[: 2 ** (d - 1)].astype(np.float32)
        self.parity: Singles = self.inputs.prod(axis=1)

    def random_gradient(self, weights: Singles) -> Singles:
        """Gamma_r(w) = E_x x 1[w.x >= 1] / 2, for rows of weights."""
        z = weights @ self.inputs.T
        active = np.subtract(z >= 1, z <= -1, dtype=np.float32)
        return active @ self.inputs / 2 ** (self.d + 1)

    def alignment(self, weights: Singles) -> Singles:
        """|Gamma_f(w) - Gamma_r(w)|^2 / d, for rows of weights."""
        z = weights @ self.inputs.T
        signed = (_unit(z) - (-1) ** self.d * _unit(-z)) * self.parity
        return np.square(signed @ self.inputs / 2**self.d).mean(axis=1)

    def flow(self, starts: Singles, times: list[int], rate: float, tau: float, seed: int | np.random.Generator = 0
             ) -> Singles:
        """Alignments at these times of psi <- psi - rate (Gamma_r(psi) + N(0, tau^2)), (times, starts)."""
        generator = np.random.default_rng(seed)
        found = np.empty((len(times), len(starts)), np.float32)
        for first in range(0, len(starts), ROWS):
            psi = starts[first : first + ROWS]
            for t in range(max(times) + 1):
                if t in times:
                    found[times.index(t), first : first + ROWS] = self.alignment(psi)
                noise = np.float32(tau) * generator.standard_normal(psi.shape, np.float32) if tau else np.float32(0)
                psi = cast("Singles", psi - np.float32(rate) * (self.random_gradient(psi) + noise))
        return found


def _unit(z: Singles) -> Singles:
    """What the parity's gradient has beyond that of random labels: 1 between the kinks at 0 and 1, 1/2 above."""
    return np.subtract(z > 0, np.float32(0.5) * (z >= 1), dtype=np.float32)
