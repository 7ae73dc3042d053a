"""What is cheap to know of the claims: their data, and that their rules can fail."""

import math

import numpy as np
from me2025.guessing import Guessing, guesses
from me2025.width import Width, published

from paritylab import Parity, Result, Setup
from paritylab.claims import find, papers
from paritylab.storage.records import SOLVED, Records


def test_it_is_found():
    assert {claim.id for claim in find(["me2025.*"])} == {"me2025.width", "me2025.guessing"}
    assert set(papers()["me2025"].headlines) <= {"me2025.width", "me2025.guessing"}


def test_the_published_table_has_every_width_of_the_full_trial():
    assert all(published(width) > 0 for width in Width("full").widths)


def solved_at(times: np.ndarray) -> Result:
    """A Result as if its runs had been solved at these steps."""
    records = Records(run=np.arange(len(times)), status=np.full(len(times), SOLVED), t_c=times, steps=times,
                      accuracy=np.ones(len(times)), loss=np.zeros(len(times)))
    return Result(Setup(Parity(12, 3)), "made up", 0, records, 0.0)


def test_the_rule_on_widths_holds_fails_and_does_not_know():
    """By times that are made up: three times as long, as long, and by as much longer as is asked."""
    generator, trial = np.random.default_rng(0), Width("quick")
    times = generator.integers(200, 400, 200)
    for percent, expected in ((300, "holds"), (100, "contradicted"), (150, "undecided")):
        got = [solved_at(generator.permutation(times) * percent // 100), solved_at(times)]
        assert [check.result for check in trial.judge(got).checks] == [expected]


def test_a_simulated_search_is_as_long_as_enumeration_says():
    """20,000 searches over C(5, 2) = 10 supports: a uniform number of guesses from 1 to 10, six standard errors."""
    found = guesses(0, n=5, k=2, searches=20_000)["guesses"]
    assert abs(found.mean() - 5.5) < 6 * math.sqrt(99 / 12 / 20_000)
    checks = Guessing("quick").judge([{"guesses": np.full(100, 57.0)}, {"guesses": np.full(100, 60.5)}]).checks
    assert [check.result for check in checks] == ["contradicted", "holds"]
