"""What several tests share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import address, browser, launch, page, root  # noqa: F401
from sent_to_crews import hands  # noqa: F401
from short_of_memory import little  # noqa: F401


@pytest.fixture(scope="session")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the template paper that brings all that a paper may bring."""
    import template

    return template.with_everything(tmp_path_factory.mktemp("everything"))


@pytest.fixture
def whole_paper(everything: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The same, in the template's place."""
    from paritylab import places

    monkeypatch.setenv(places.VARIABLE, str(everything))
    return everything


@pytest.fixture(scope="module")
def whole_paper_all_along(everything: Path) -> Iterator[Path]:
    """For all tests of a module."""
    from paritylab import places

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(places.VARIABLE, str(everything))
        yield everything
