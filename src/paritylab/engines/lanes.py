"""The native CPU engine: sixteen shallow networks in the lanes of one vector register, deep MLPs one at a time.

The kernel (``native/``) owns the slots and refills them by itself; this module says what it can train, hands it runs
with their initial params, and collects the outcomes.
"""

from __future__ import annotations

import math
import os
from itertools import pairwise
from typing import Any

import numpy as np

from paritylab.engines import backend, room, sources, starts
from paritylab.engines.configuration import FAMILIES, RULES, Configuration
from paritylab.engines.starts import kernel
from paritylab.engines.work import Outcomes, Queue, Rows
from paritylab.errors import require
from paritylab.memory import Part
from paritylab.setups.inits import Layers
from paritylab.setups.networks import MLP, Neuron
from paritylab.setups.problems import Outputs
from paritylab.setups.setup import Setup
from paritylab.storage.records import Records

CALL_SECONDS = 0.2
MOST_THREADS = 256
MOST_OUTPUTS, MOST_TABLED = 16, 1024  # outputs, and inputs where there is a parity for each
STOCK_BYTES = 2**26  # initial params waiting in the kernel's stock


def refusal(setup: Setup) -> str | None:
    """Why the kernel cannot train this Setup, or None if it can."""
    network, optimiser = setup.learner.network, setup.learner.optimiser
    if why := sources.refusal(setup.problem):
        return why
    if type(network) not in FAMILIES:
        return f"it has no {type(network).__name__}"
    if isinstance(network, (MLP, Neuron)) and network.activation.native is None:
        return f"it has no activation {network.activation.spec}"
    if isinstance(getattr(setup.problem, "target", None), Outputs):
        if why := _outputs_refusal(setup):
            return why
    elif isinstance(network, MLP) and network.outputs > 1:
        return "several outputs are for Outputs"
    if setup.learner.loss.native is None:
        return f"it has no loss {setup.learner.loss.spec}"
    if type(optimiser) not in RULES:
        return f"it has no {type(optimiser).__name__}"
    if setup.protocol.until_loss is not None:
        return "it has no until_loss"
    return _too_large(setup)


def fits(setup: Setup) -> bool:
    """Whether network, target and loss fit each other by what the kernel takes; no shapes need be tried then."""
    return refusal(setup) is None and not isinstance(getattr(setup.problem, "target", None), Outputs)


def _outputs_refusal(setup: Setup) -> str | None:
    """Why a parity for each output cannot be learned; that takes the layout which looks sums up in tables."""
    network = setup.learner.network
    if not isinstance(network, MLP) or len(network.widths) > 1 or network.activation.spec != "relu":
        return "Outputs take an MLP with one hidden layer of ReLU"
    if network.outputs > MOST_OUTPUTS:
        return f"it has at most {MOST_OUTPUTS} outputs"
    return None if setup.problem.n <= MOST_TABLED else f"Outputs take at most {MOST_TABLED} inputs"


def _too_large(setup: Setup) -> str | None:
    """The kernel's limits, as ``native/refusal.cpp`` has them and says why."""
    problem, network, words = setup.problem, setup.learner.network, setup.problem.numbered
    widths = network.widths if isinstance(network, MLP) else [getattr(network, "degree", 1)]
    sizes = {"batch": setup.learner.batch, "evaluation": setup.protocol.eval_size, "sample": problem.sample or 0}
    if max(widths) > 2**20 or sum(a * b for a, b in pairwise((problem.n, *widths))) > 2**26:
        return "the network is too large for it"
    for name, size in sizes.items():
        if size * words >= 2**32 or (name == "batch" and size > 2**20) or (name == "evaluation" and size >= 2**30):
            return f"the {name} is too large for it"
    return None


class LanesEngine:
    """The engine as others see it."""

    name = "lanes"
    arithmetic = 2
    """Version of its sums: one more where a change moves the last bits of records (engines/arithmetic.py)."""
    side_by_side = False
    records_curves = True

    def absence(self) -> str | None:
        missing = "the native engine 'lanes' is not installed (it takes GCC 12 or Clang, and no Windows)"
        return missing if kernel() is None else None

    def refusal(self, setup: Setup) -> str | None:
        return refusal(setup)

    def first_choice(self) -> bool:
        return backend.is_cpu()

    def label(self) -> str:
        return self.name

    def parts(self, program: Setup, runs: int, threads: int | None) -> dict[str, Part]:
        return room.lanes_parts(program, runs, threads)

    def pool(
        self, program: Setup, runs: int, threads: int | None = None, slots: int | None = None,
        keep_params: bool = False, **options: Any,
    ) -> LanesPool:
        return LanesPool(program, threads or os.cpu_count() or 1, keep_params, **options)

    def tracer(
        self, queue: Queue, points: np.ndarray, train: bool, keep_params: bool, threads: int | None,
        stop: float | None = None,
    ) -> LanesPool:
        trace = (points.tolist(), len(queue), train, -math.inf if stop is None else stop)
        return LanesPool(queue.jobs[0].setup.program, threads or os.cpu_count() or 1, keep_params, trace=trace)


def _row(layers: Layers, name: str, count: int) -> np.ndarray:
    """The arrays of this name of all layers, one after the other: (count, numbers)."""
    return np.concatenate([np.asarray(layer[name], np.float32).reshape(count, -1) for layer in layers], axis=1)


class LanesPool:
    """Slots of one program in the native kernel, on ``threads`` cores.

    With ``trace``, (steps, runs, train, stop), runs are not judged: their curves at these steps come from
    ``take_trace``.
    """

    def __init__(
        self,
        program: Setup,
        threads: int,
        keep_params: bool = False,
        isa: str = "auto",
        layout: str = "auto",
        trace: tuple[list[int], int, bool, float] | None = None,
    ) -> None:
        module = kernel()
        assert module is not None, "choose() offers this engine only where the kernel was built"
        require(1 <= threads <= MOST_THREADS, f"threads must be from 1 to {MOST_THREADS}, not {threads}")
        configuration = Configuration.of(program)
        told = configuration.to_dict()
        if configuration.problem is not None:
            told["problem"] = module.Problem(**configuration.problem)
        self._pool = module.Pool(
            **told, keep_params=keep_params, threads=threads, isa=isa, layout=layout, trace=trace
        )
        self._program = program
        self._keep = keep_params
        self._mlp, self._bias = configuration.family == "mlp", configuration.bias
        self._head_bias, self._outputs = configuration.head_bias, configuration.outputs
        self._hidden = (program.problem.n, *configuration.below, configuration.width)
        numbers = sum((fan_in + 1) * fan_out for fan_in, fan_out in pairwise((*self._hidden, configuration.outputs)))
        self._most = max(self._pool.slots, STOCK_BYTES // (4 * numbers))
        self._chunk = min(starts.CHUNK, 1 << (self._most.bit_length() - 1))
        self._wanted = starts.CHUNK

    @property
    def room(self) -> int:
        return max(0, min(self._wanted, self._most) - self._pool.stock)

    @property
    def busy(self) -> bool:
        return self._pool.stock + self._pool.active > 0

    @property
    def model_steps(self) -> int:
        return self._pool.model_steps

    def load(self, rows: Rows) -> None:
        count = len(rows)
        layers = starts.initial_params(self._program, rows.key, self._chunk)
        hidden, output = layers[: len(self._hidden) - 1], layers[-1]
        w = _row(hidden, "w", count)
        b = _row(hidden, "b", count) if self._bias else np.zeros((count, sum(self._hidden[1:])), np.float32)
        u = _row([output], "w", count) if self._mlp else np.zeros_like(b)
        biased = self._mlp and self._head_bias
        c = _row([output], "b", count) if biased else np.zeros((count, self._outputs), np.float32)
        self._pool.add(rows.tag, rows.key, w, b, u, c, rows.lr, rows.noise, rows.flip, rows.mask, rows.max_steps)

    def advance(self, more: bool) -> Outcomes:
        ended = self._pool.advance(CALL_SECONDS)
        records = Records(*(ended[name] for name in ("tag", "status", "t_c", "steps", "accuracy", "loss")))
        self._wanted = starts.CHUNK + 2 * len(records)  # enough in stock for the next call
        return Outcomes(records, self._params(ended) if self._keep else None)

    def take_trace(self) -> tuple[dict[str, np.ndarray], Any]:
        """The series of a trace, by name, and the params if kept, with leading axes (runs, points)."""
        traced = self._pool.take_trace()
        params = self._params(traced) if self._keep else None
        return {name: values for name, values in traced.items() if name.endswith(("accuracy", "loss", "skill"))}, params

    def _params(self, kept: dict[str, np.ndarray]) -> Any:
        """Params in the network's own structure, with any leading axes."""
        leading = kept["b"].shape[:-1]
        shapes = list(pairwise(self._hidden))
        ends = np.cumsum([fan_in * fan_out for fan_in, fan_out in shapes])
        weights = np.split(kept["W"].reshape(*leading, ends[-1]), ends[:-1], axis=-1)
        biases = np.split(kept["b"], np.cumsum(self._hidden[1:])[:-1], axis=-1)
        layers = [{"w": w.reshape(*leading, *shape), "b": b}
                  for w, b, shape in zip(weights, biases, shapes, strict=True)]
        layers = layers if self._bias else [{"w": layer["w"]} for layer in layers]
        if self._mlp:
            head = {"w": kept["u"].reshape(*leading, self._hidden[-1], self._outputs)}
            layers.append(head | ({"b": kept["c"].reshape(*leading, self._outputs)} if self._head_bias else {}))
        return layers
