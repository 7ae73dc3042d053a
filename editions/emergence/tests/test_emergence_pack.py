"""What holds for every paper of the pack."""

import pytest

from paritylab.claims.library import papers
from paritylab.claims.registry import registry

PAPERS = ["nam2024", "michaud2023", "michaud2025", "liu2025"]


@pytest.mark.parametrize("name", PAPERS)
def test_a_paper_is_found_where_the_pack_is_installed(name):
    found = papers()[name]
    assert found.place.package == f"paritylab_emergence.{name}"
    assert set(found.headlines) | set(found.remarks) <= set(found.claims) <= set(registry())
