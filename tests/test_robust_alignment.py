"""The alignment of weights that have moved: ``alignment(..., moved=)`` against other laws, enumeration and sampling."""

from __future__ import annotations

import math

import jax
import numpy as np
import pytest

import paritylab as pl
from paritylab.errors import InvalidInput
from paritylab.measures.coefficients import character, sums
from paritylab.setups import inits

FOUR = "discrete:-1.4,-1,1,1.4"
SPREAD = math.sqrt((1 + 1.4**2) / 2)


@pytest.mark.parametrize("d", [5, 6, 31, 200])
@pytest.mark.parametrize("unit", ["threshold", "relu"])
@pytest.mark.parametrize("moved", [0.05, 0.3])
def test_signs_that_moved_are_perturbed_signs(d: int, unit: str, moved: float) -> None:
    found = pl.alignment("rademacher", d, unit=unit, moved=moved)
    same = pl.alignment(f"perturbed-rademacher:{moved}", d, unit=unit)
    assert found.log == pytest.approx(same.log, abs=1e-9)


def test_the_bias_moves_with_the_weights() -> None:
    found = pl.alignment("rademacher", 8, unit="relu", bias="same", moved=0.2)
    law = "perturbed-rademacher:0.2"
    assert found.value == pytest.approx(pl.alignment(law, 8, unit="relu", bias=law).value, rel=1e-9)
    fixed = pl.alignment(law, 8, unit="relu", bias="rademacher")
    assert abs(found.value / fixed.value - 1) > 1e-3


def test_a_bias_that_is_not_there_does_not_move() -> None:
    still, zero = (pl.alignment("rademacher", 6, moved=0.2, bias=bias).value for bias in (None, 0))
    assert still == pytest.approx(0, abs=1e-12)
    assert zero > 1e-4


def test_the_movement_is_relative_to_the_law() -> None:
    one, other = (pl.alignment(law, 7, moved=0.1).value for law in (FOUR, "discrete:-2.8,-2,2,2.8"))
    assert one == pytest.approx(other, rel=1e-9)


def test_movements_add_up_as_variances() -> None:
    twice = pl.alignment("perturbed-rademacher:0.3", 9, moved=0.4 / math.sqrt(1.09)).value
    assert twice == pytest.approx(pl.alignment("perturbed-rademacher:0.5", 9).value, rel=1e-9)


@pytest.mark.parametrize("unit", ["threshold", "relu"])
def test_brute_force_at_small_d(unit: str) -> None:
    """Weights drawn and moved, every input visited."""
    d, moved, draws = 5, 0.1, 40_000
    generator = np.random.default_rng(0)
    w = generator.choice([-1.4, -1, 1, 1.4], (draws, d)) + moved * SPREAD * generator.standard_normal((draws, d))
    b = generator.choice([-1.4, -1, 1, 1.4], draws) + moved * SPREAD * generator.standard_normal(draws)
    z = np.stack([sums(row) for row in w]) + b[:, None]
    seen = (z >= 0) if unit == "threshold" else np.maximum(z, 0)
    squares = np.square(seen @ character(np.ones(d, bool)) / 2**d)
    found = pl.alignment(FOUR, d, unit=unit, bias="same", moved=moved)
    assert found.value == pytest.approx(squares.mean(), abs=4 * squares.std() / math.sqrt(draws))


@pytest.mark.slow
@pytest.mark.long
def test_sampling_at_large_d() -> None:
    """The library's own sampler, at a size where nothing can be enumerated."""
    found = pl.alignment("rademacher", 41, 3, moved=0.5)
    drawn = pl.alignment("rademacher", 41, 3, moved=0.5, method="monte-carlo", draws=4000, inputs=4096)
    assert found.value == pytest.approx(drawn.value, abs=2 * drawn.error)


def test_pairs_agree() -> None:
    exact = pl.alignment("rademacher", 9, moved=0.2, method="pairs")
    assert pl.alignment("rademacher", 9, moved=0.2).value == pytest.approx(exact.value, rel=1e-9)


def test_a_far_resonance_is_lost_first() -> None:
    """{+-1, +-1.4} has phi = -1 at 5 pi, signs at pi: 0.03 takes most of the one and none of the other."""
    kept = {law: pl.alignment(law, 99, moved=0.03).value / pl.alignment(law, 99).value for law in ("rademacher", FOUR)}
    assert kept["rademacher"] > 0.9
    assert kept[FOUR] < 0.2


def test_a_network_keeps_its_output_weights_and_scale() -> None:
    found = pl.alignment("rademacher", 6, unit="network", bias="same", width=10, scale="fan-in", moved=0.2)
    law, bias = "perturbed-rademacher:0.2", "perturbed-rademacher:0.2"
    step = pl.alignment(law, 6, unit="threshold", bias=bias).value
    ramp = pl.alignment(law, 6, unit="relu", bias=bias).value
    assert found.parts["biases"] == pytest.approx(step, rel=1e-9)
    assert found.parts["output weights"] == pytest.approx(10 * ramp / 6, rel=1e-9)


def test_a_law_of_ones_own_moves_too() -> None:
    own = inits.custom(lambda key, shape: 1.0 - 2.0 * jax.random.bernoulli(key, 0.5, shape), np.cos)
    found, same = (pl.alignment(law, 7, moved=0.3).value for law in (own, "rademacher"))
    assert found == pytest.approx(same, rel=1e-6)


def test_what_is_refused() -> None:
    with pytest.raises(InvalidInput, match="at least 0"):
        pl.alignment("rademacher", 5, moved=-1)
    with pytest.raises(InvalidInput, match="discrete"):
        pl.alignment("rademacher", 5, moved=0.1, method="enumerate")
    with pytest.raises(InvalidInput, match="sampled network"):
        pl.alignment("rademacher", 5, unit="network", moved=0.1, method="monte-carlo")
