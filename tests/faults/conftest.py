from __future__ import annotations

from collections.abc import Iterator

import pytest
from faults.bench import Bench
from faults.furnished import furnished  # noqa: F401


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with Bench(tmp_path_factory.mktemp("bench")) as made:
        yield made
