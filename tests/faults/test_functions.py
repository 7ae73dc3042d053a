"""A user's function that is wrong is named in one line, and the other cells of a sweep go on."""

from __future__ import annotations

from pathlib import Path

import pytest
from faults import functions

from paritylab.errors import InvalidInput

SEEN = sorted({(place, mistake) for place in functions.PLACES for mistake in functions.MISTAKES}
              - functions.ACCEPTED - {(place, functions.LATE) for place in functions.PLACES})


@pytest.mark.parametrize(("place", "mistake"), SEEN)
def test_a_mistake_is_seen_before_anything_is_computed(place: str, mistake: str):
    function = functions.named(place, mistake)
    with pytest.raises(InvalidInput, match=function.__name__) as caught:
        functions.PLACES[place][1](function).check()
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("place", functions.PLACES)
def test_a_function_that_works_is_let_through(place: str):
    right, build = functions.PLACES[place]
    build(right).check()


@pytest.mark.parametrize(("place", "mistake"), sorted(functions.ACCEPTED))
def test_whole_numbers_will_do_where_nothing_is_differentiated(place: str, mistake: str):
    functions.PLACES[place][1](functions.named(place, mistake)).check()


@pytest.mark.parametrize(
    ("place", "mistake"),
    [("make", "raises"), ("loss", "has a wrong shape"), ("init", functions.LATE), ("schedule", functions.LATE)],
)
def test_the_other_cells_of_a_sweep_go_on(place: str, mistake: str, tmp_path: Path):
    outcome = functions.failing(place, mistake, tmp_path)
    assert outcome.clean, outcome


@pytest.mark.parametrize("place", ["schedule", "loss"])
def test_a_function_that_returns_nan_solves_nothing_and_disturbs_nobody(place: str, tmp_path: Path):
    outcome = functions.not_a_number(place, tmp_path)
    assert outcome.clean, outcome
