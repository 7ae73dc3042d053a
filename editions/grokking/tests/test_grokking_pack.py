"""What holds for every paper of the pack."""

import pytest

from paritylab.claims.library import papers
from paritylab.claims.registry import registry

PAPERS = ["pearce2023", "merrill2023", "sutro"]


@pytest.mark.parametrize("name", PAPERS)
def test_a_paper_is_found_where_the_pack_is_installed(name):
    found = papers()[name]
    assert found.place.package == f"paritylab_grokking.{name}"
    assert set(found.headlines) | set(found.remarks) <= set(found.claims) <= set(registry())
