"""The units of a perceptron's last hidden layer: what each adds to the output, and networks with some of them alone.

f(x) = c + sum_u v_u h_u(x). To ablate a unit is to put a constant in place of h_u: 0, or its mean over all inputs.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from paritylab.aliases import Floats
from paritylab.engines.jax_engine import accurate_products
from paritylab.errors import InvalidInput, require
from paritylab.measures.inside.outputs import UNITS, Judged, Places, blocks, outputs, split
from paritylab.measures.inside.subjects import Subjects
from paritylab.setups.networks import MLP
from paritylab.setups.networks.activations import activation
from paritylab.setups.setup import Setup

ZERO, MEAN = ABLATIONS = ("zero", "mean")


@dataclass(frozen=True, eq=False)
class Units:
    """One network by its units: y f(x) = y (shift + sum_u v_u h_u(x)), the sum over those that are left."""

    subjects: Subjects
    number: int
    judged: Judged
    means: Floats
    """The mean of v_u h_u, which takes its place, or 0."""
    carried: Floats
    """E y v_u h_u: the part of the unit in E y f."""

    @property
    def width(self) -> int:
        return len(self.carried)

    @property
    def labels(self) -> Floats:
        return self.judged.labels[self.number]

    @functools.cached_property
    def bias(self) -> float:
        output = self.subjects.one(self.number)[-1]
        return float(output["b"][0]) if "b" in output else 0.0

    def errors(self, left: np.ndarray) -> int:
        """How many of the inputs a network with these units alone has wrong."""
        *before, hidden, output = self.subjects.one(self.number)
        some = np.flatnonzero(left)
        count = max(1, -(-len(some) // UNITS)) * UNITS  # few widths are compiled
        some = np.pad(some, (0, max(0, min(count, self.width) - len(some))))  # what is added has weight 0
        weights = output["w"][some] * (np.arange(len(some)) < left.sum())[:, None]
        params = [*before, {name: leaf[..., some] for name, leaf in hidden.items()}, {**output, "w": weights}]
        alone = replace(self.subjects, masks=self.subjects.masks[:1],
                        params=jax.tree.map(lambda leaf: leaf[None], params))
        f = outputs(alone, 0, self.judged.places) + np.float32(self.means[~left].sum())
        return int((f * self.labels <= 0).sum())

    def added(self, which: np.ndarray) -> tuple[Floats, Floats]:
        """y (v_u h_u - mean) for each unit, (width, inputs), and what is there without units, at some of the inputs."""
        places = self.judged.places
        rows = at(places, which)
        params, y = self.subjects.one(self.number), self.labels[which]
        made = _made(self.subjects.setup.program)
        with accurate_products():
            h = np.concatenate([np.asarray(made.hidden(params, block)) for block in blocks(Places(places.n, rows))])
        parts = (h[: len(rows)] * params[-1]["w"][:, 0]).T - self.means[:, None].astype(np.float32)
        return parts * y, np.float32(self.bias + self.means.sum()) * y


def units(subjects: Subjects, number: int, judged: Judged, ablation: str) -> Units:
    """A network by its units."""
    params, y = subjects.one(number), judged.labels[number]
    made, places = _made(subjects.setup.program), judged.places
    with accurate_products():
        if places.exact and made.sums is not None:
            totals = np.asarray(made.sums(params, y), np.float64)
        else:
            totals, done = np.zeros((2, subjects.setup.learner.network.widths[-1])), 0
            for block in blocks(places):
                size = min(len(block), places.count - done)
                h = np.asarray(made.hidden(params, block), np.float64)[:size]
                totals += np.stack([h.sum(0), y[done : done + size] @ h])
                done += size
    means, carried = totals / places.count * params[-1]["w"][:, 0]
    return Units(subjects, number, judged, means if ablation == MEAN else np.zeros(len(means)), carried)


def require_units(subjects: Subjects) -> None:
    """Refuse networks that have no hidden units of this kind."""
    if subjects.mlp is None:
        raise InvalidInput(f"units are those of a perceptron's last hidden layer, of pl.MLP; this network is a"
                           f" {type(subjects.setup.learner.network).__name__}")
    require(subjects.mlp.outputs == 1, "measures are of networks with one output")


def at(places: Places, which: np.ndarray) -> Floats:
    """Some of the inputs as rows."""
    if places.rows is not None:
        return places.rows[which]
    return (1.0 - 2.0 * (which[:, None] >> np.arange(places.n) & 1)).astype(np.float32)


# --- compiled -----------------------------------------------------------------------------------------------------


class Made(NamedTuple):
    hidden: Any
    """From params and rows to the last hidden layer: (rows, units)."""
    sums: Any
    """From params and labels at all inputs to the sums of h_u and of y h_u; None where there are several layers."""


@functools.lru_cache(maxsize=32)
def _made(program: Setup) -> Made:
    network, n = program.learner.network, program.problem.n
    act = activation(network.activation)

    def hidden(params: Any, x: Any) -> Any:
        x = network.read(x)
        for layer in params[:-1]:
            z = x @ layer["w"]
            x = act(z + layer["b"] if network.bias else z)
        return x

    sums = jax.jit(_sums(network, n)) if len(network.widths) == 1 else None
    return Made(jax.jit(hidden), sums)


def _sums(network: MLP, n: int) -> Any:
    act = activation(network.activation)

    def sums(params: Any, y: Any) -> Any:
        inner, outer = split(network, params[0], n)

        def add(total: Any, part: Any) -> tuple[Any, None]:
            by, labels = part
            h = act(inner + by[:, None])
            return total + jnp.stack([h.sum(1), (h * labels).sum(1)]), None

        start = jnp.zeros((2, network.widths[0]), inner.dtype)
        return jax.lax.scan(add, start, (outer, y.reshape(len(outer), -1)))[0]

    return sums
