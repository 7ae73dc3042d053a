"""The benchmark's workloads: sparse parities, ReLU networks, hinge loss, a fresh batch each step.

Every ``EVAL_EVERY`` steps accuracy is checked on ``EVAL_SIZE`` inputs fixed for each run. Learning rates are so small
that no run ends while it is timed.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

K = 3
EVAL_EVERY = 10
EVAL_SIZE = 128
IDLE_RATE = 1e-6  # learning rate of timed runs: every update is computed, nothing is learned
ENDLESS = 10**9  # their step limit


@dataclass(frozen=True)
class Workload:
    """One network and batch size; ``models`` is how many of them batched PyTorch trains at once on a CPU core."""

    name: str
    n: int
    widths: tuple[int, ...]
    batch: int
    models: int
    gpu_slots: tuple[int, ...]

    @property
    def layers(self) -> list[tuple[int, int]]:
        """(fan in, fan out) of every layer."""
        sizes = (self.n, *self.widths, 1)
        return list(itertools.pairwise(sizes))

    @property
    def flops(self) -> int:
        """Floating-point operations of one update, without output layer, activations, data and checks.

        Forward and weight gradients cost 2 a weight and example each, which makes 4 n r B for a two-layer network;
        later hidden layers also pass a gradient back.
        """
        first, *later = (a * b for a, b in self.layers[:-1])
        return self.batch * (4 * first + 6 * sum(later))

    def setup(self, lr: float = IDLE_RATE, max_steps: int = ENDLESS) -> Any:
        """The workload as a paritylab Setup."""
        import paritylab as pl

        learner = pl.Learner(pl.MLP(self.widths), optimiser=pl.SGD(lr), batch=self.batch)
        protocol = pl.Protocol(max_steps=max_steps, eval_every=EVAL_EVERY, eval_size=EVAL_SIZE)
        return pl.Setup(pl.Parity(self.n, K), learner, protocol)


WORKLOADS = {
    w.name: w
    for w in (
        Workload("W1", 30, (10,), 32, models=1024, gpu_slots=(2**14, 2**16, 2**18)),
        Workload("W2", 30, (100,), 32, models=64, gpu_slots=(2**12, 2**14, 2**16)),
        Workload("W3", 30, (10,), 1, models=4096, gpu_slots=(2**14, 2**16, 2**18)),
        Workload("W4", 50, (512, 512, 64), 64, models=8, gpu_slots=(2**6, 2**8, 2**10)),
    )
}
DEEP = {
    f"D{width}": Workload(f"D{width}", 30, (width, width), 32, models=256, gpu_slots=(2**12, 2**14))
    for width in (32, 64, 100)
}
"""Small deep networks, beside the four."""
