from __future__ import annotations

from collections.abc import Iterator

import pytest
from campaign_faults import IMPORTS
from faults.bench import Bench


@pytest.fixture(scope="session")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    with Bench(tmp_path_factory.mktemp("bench"), IMPORTS) as made:
        yield made
