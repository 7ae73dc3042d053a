"""Searches against the definition, the law of random search against its simulation (fixed seeds)."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from paritylab.baselines.search import RandomSearch, exhaustive, samples_needed
from paritylab.errors import InvalidInput

FALSE_ALARM = 1e-6


@pytest.mark.parametrize(("n", "k"), [(5, 1), (6, 2), (7, 3), (8, 4), (7, 5), (5, 5)])
@pytest.mark.parametrize("absolute", [False, True])
def test_exhaustive_search_sees_every_support_once(n, k, absolute):
    generator = np.random.default_rng(n)
    x, y = generator.choice([-1, 1], (33, n)), generator.choice([-1, 1], 33)
    every = {s: (y * x[:, s].prod(1)).mean() for s in itertools.combinations(range(n), k)}
    if absolute:
        every = {s: abs(value) for s, value in every.items()}
    found = exhaustive(x, y, k, absolute)
    ordered = sorted(every.values())
    assert found.correlation == pytest.approx(ordered[-1])
    assert every[tuple(found.support)] == pytest.approx(ordered[-1])
    assert found.runner_up == (pytest.approx(ordered[-2]) if len(ordered) > 1 else -math.inf)


def test_blocks_and_chunks_do_not_change_the_answer(monkeypatch):
    generator = np.random.default_rng(1)
    x = generator.choice([-1, 1], (500, 12))
    y = x[:, [1, 5, 6, 10]].prod(1) * generator.choice([-1, 1], 500, p=[0.3, 0.7])
    whole = exhaustive(x, y, 4)
    monkeypatch.setattr("paritylab.baselines.search.CHUNK", 64)
    monkeypatch.setattr("paritylab.baselines.search.MOST_SUBSETS", 7)
    assert exhaustive(x, y, 4) == whole
    assert whole.support == [1, 5, 6, 10]


@pytest.mark.parametrize("noise", [0.0, 0.25, 0.4])
def test_noisy_parities_are_found_with_the_samples_needed(noise):
    n, k, generator = 30, 3, np.random.default_rng(2)
    samples = samples_needed(math.comb(n, k), noise, failure=FALSE_ALARM / 10)
    for _ in range(10):
        support = sorted(generator.permutation(n)[:k].tolist())
        x = generator.choice([-1, 1], (samples, n))
        y = x[:, support].prod(1) * np.where(generator.random(samples) < noise, -1, 1)
        assert exhaustive(x, y, k).support == support


def test_the_law_of_random_search():
    law = RandomSearch(10, 3, searchers=7)
    assert law.rate == pytest.approx(1 - (1 - 1 / 120) ** 7, rel=1e-12)
    steps = np.arange(0, 5)
    np.testing.assert_allclose(law.survival(steps), (1 - 1 / 120) ** (7 * steps), rtol=1e-12)
    for q in (0.01, 0.5, 0.9, 0.999):
        t = law.quantile(q)
        assert law.survival(t) <= 1 - q + 1e-12
        assert t == 1 or law.survival(t - 1) > 1 - q
    generator = np.random.default_rng(3)
    simulated = np.array([1 + next(t for t in itertools.count() if not generator.integers(0, 120, 7).all())
                          for _ in range(4000)])
    sampled = law.sample(4000)
    for draws in (simulated, sampled):
        margin = stats.norm.isf(FALSE_ALARM / 2) * draws.std() / math.sqrt(4000)
        assert abs(draws.mean() - law.mean) < margin


def test_extremes_of_random_search():
    assert RandomSearch(5, 5).mean == 1
    assert RandomSearch(5, 5).quantile(0.9) == 1
    assert RandomSearch(5, 5).survival([0, 1]).tolist() == [1, 0]
    assert RandomSearch(200, 20).mean == pytest.approx(math.comb(200, 20), rel=1e-12)
    with pytest.raises(InvalidInput, match="from 0 to 3"):
        RandomSearch(3, 4)
    with pytest.raises(InvalidInput, match="below 1/2"):
        samples_needed(10, 0.5)
