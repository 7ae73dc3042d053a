"""The benchmark's workloads: sparse parities, ReLU networks, hinge loss, a fresh batch each step.

Every ``EVAL_EVERY`` steps accuracy is checked on ``EVAL_SIZE`` inputs fixed for each run. Learning rates are so small
that no run ends while it is timed.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

K = 3
EVAL_EVERY = 10
EVAL_SIZE = 128
DEFAULT_SIZE = 8192  # inputs of the default Protocol
IDLE_RATE = 1e-6  # learning rate of timed runs: every update is computed, nothing is learned
ENDLESS = 10**9  # their step limit
LONG = 2**25  # that of runs through a finite sample, which there is a limit for
SAMPLE = 1000  # examples of a finite sample
TASKS = [(10 + t, 20, 21) for t in range(10)]  # behind ten control bits


@dataclass(frozen=True)
class Workload:
    """One network and batch size; ``models`` is how many of them batched PyTorch trains at once on a CPU core.

    ``rule`` is ``sgd``, ``momentum`` or ``adam``, ``data`` is ``fresh``, ``sample`` or ``tasks``. Without widths the
    network is the Transformer of barak2022.
    """

    name: str
    n: int
    widths: tuple[int, ...]
    batch: int
    models: int
    gpu_slots: tuple[int, ...]
    rule: str = "sgd"
    data: str = "fresh"

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

    @property
    def least(self) -> float | None:
        """Fewest operations on registers of sixteen numbers by which an update is known to be made, where gradients are
        counted: the budget of docs/explanation/performance.md. None for other networks."""
        if len(self.widths) != 1 or self.batch < 8:
            return None
        samples, pairs, fives, octets = self.batch / 16, self.widths[0] / 2, self.n / 5, (self.n + 1) / 8
        drawn = samples * (-(-self.n // 32) * 75 + 4 * fives)  # random words, and five inputs of each
        forward = pairs * fives * samples * (4 + 10 / 2)  # a permutation and an FMA a unit; tables for 32 samples
        head = pairs * samples * 6  # ReLU, output weight, which samples are active
        counted = pairs * octets * (samples / 2 * 2 + 4) + pairs * 4
        return drawn + forward + head + counted

    def setup(self, lr: float = IDLE_RATE, max_steps: int | None = None, eval_size: int = EVAL_SIZE) -> Any:
        """The workload as a paritylab Setup."""
        import paritylab as pl

        optimisers = {"sgd": pl.SGD(lr), "momentum": pl.SGD(lr, momentum=0.9), "adam": pl.Adam(lr)}
        problems = {"fresh": lambda: pl.Parity(self.n, K), "sample": lambda: pl.Parity(self.n, K, sample=SAMPLE),
                    "tasks": lambda: pl.Problem(self.n, pl.Tasks(TASKS))}
        network = pl.MLP(self.widths) if self.widths else pl.Transformer()
        learner = pl.Learner(network, optimiser=optimisers[self.rule], batch=self.batch)
        most = max_steps or (LONG if self.data == "sample" else ENDLESS)
        protocol = pl.Protocol(max_steps=most, eval_every=EVAL_EVERY, eval_size=eval_size)
        return pl.Setup(problems[self.data](), learner, protocol)


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
MORE = {
    w.name: w
    for w in (
        *(replace(WORKLOADS["W1"], name=f"W1 {rule}", rule=rule) for rule in ("momentum", "adam")),
        *(replace(WORKLOADS["W1"], name=f"W1 {data}", data=data) for data in ("sample", "tasks")),
        Workload("Transformer", 30, (), 32, models=1, gpu_slots=(16,), rule="adam"),
    )
}
"""What else is compared on a GPU."""
EVERY = WORKLOADS | DEEP | MORE
