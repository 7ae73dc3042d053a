"""What commands of editions would not fit into memory is refused in one line."""

import pytest
from short_of_memory import check_refused


@pytest.mark.usefixtures("little")
@pytest.mark.parametrize("line", [
    "barak2022 campaign --n 10 --k 2 --batch 2e9",
    "glasgow2023 xor --d 64 --batch 2e9", "barak2022 two-stage --n 101 --batch 1e9",
])
def test_a_command_that_would_not_fit_is_refused_with_what_would(line, tmp_path, capsys):
    check_refused(capsys, tmp_path, line, "examples of a batch")
