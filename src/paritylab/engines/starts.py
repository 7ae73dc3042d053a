"""Initial params, the same for every engine: drawn from random words where the law allows it, otherwise compiled."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from paritylab import rng
from paritylab.engines import backend
from paritylab.later import jax
from paritylab.provenance import kernel as kernel
from paritylab.setups.inits import FromWords, Init, Layers
from paritylab.setups.networks import MLP, Neuron, PolyNet
from paritylab.setups.setup import Setup

CHUNK = 256


def initial_params(program: Setup, keys: np.ndarray, chunk: int = CHUNK) -> Any:
    """Initial params of the runs with these keys, with a leading axis of runs.

    Compiling costs seconds, drawing from words nothing. What must be compiled is drawn ``chunk`` runs at a time, so
    that one shape is compiled however many runs are asked for; with ``len(keys) == chunk`` it stays on the device,
    otherwise it comes as NumPy arrays.
    """
    network, n, law = program.learner.network, program.problem.n, program.learner.init
    keys = start_keys(law, keys)
    count, stays = len(keys), len(keys) == chunk
    if can_draw(network, law, n) and (not stays or backend.is_cpu()):
        return network.init(keys, n, Drawn(law))
    start = starter(program.start)
    if stays:
        return start(keys)
    padded = np.resize(keys, (-(-count // chunk) * chunk, 2))
    parts = [start(padded[i : i + chunk]) for i in range(0, len(padded), chunk)]
    return jax.tree.map(lambda *leaves: np.concatenate([np.asarray(leaf) for leaf in leaves])[:count], *parts)


def start_keys(law: Init, keys: np.ndarray) -> np.ndarray:
    """The keys that runs with these keys draw their initial params from: their own, or that of a fixed start."""
    if law.fixed is None:
        return rng.fold_in(keys, rng.INIT)
    return np.tile(np.array([0, law.fixed], np.uint32), (len(keys), 1))


# --- drawn ------------------------------------------------------------------------------------------------------------


def draws_by_itself(law: Init) -> bool:
    """Whether random words alone make the start weights of this law."""
    return isinstance(law.sample, FromWords) and law.biased and not (law.mirrored or law.raised or law.output)


def can_draw(network: Any, law: Init, n: int) -> bool:
    """Whether nothing need be compiled: the law is made of words, and the network asks it for its layers only.

    The kernel numbers the words of a layer with 32 bits.
    """
    if kernel() is None or not draws_by_itself(law) or type(network) not in (MLP, Neuron, PolyNet):
        return False
    widths = network.widths if isinstance(network, MLP) else (getattr(network, "degree", 1),)
    sizes = (n, *widths, getattr(network, "outputs", 1))
    return all(fan_in * fan_out < 2**32 for fan_in, fan_out in pairwise(sizes))


@dataclass(frozen=True)
class Drawn:
    """A law that draws for many keys at once: what ``law.layers(key, sizes)`` gives for each, bit for bit."""

    law: Init
    raised = 0.0  # see can_draw

    def layers(self, keys: np.ndarray, sizes: Sequence[int]) -> Layers:
        module = kernel()
        assert module is not None
        assert isinstance(self.law.sample, FromWords)  # see can_draw
        formula, layers = self.law.sample.formula, []
        for number, (fan_in, fan_out) in enumerate(pairwise(sizes)):
            layer = rng.fold_in(keys, number)
            draws = (formula(module.random_bits(rng.fold_in(layer, part), count))
                     for part, count in enumerate((fan_in * fan_out, fan_out)))
            w, b = (self.law.scaled(each, fan_in, fan_out) for each in draws)
            layers.append({"w": w.reshape(-1, fan_in, fan_out), "b": b})
        return layers


# --- compiled ---------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=64)
def starter(start: Setup) -> Any:
    """The compiled function from start keys (count, 2) to initial params with a leading axis of runs."""
    return jax.jit(jax.vmap(lambda key: start.params(rng.wrap(key))))
