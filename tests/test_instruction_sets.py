"""Instruction sets that fuse multiply-adds agree bit for bit; ``make arm`` adds NEON, which needs an emulator here."""

import pytest
from arm.cases import cases, to_bytes
from arm.compare import bits_of, here
from native_pools import ISAS

LINES = cases()


@pytest.mark.parametrize("line", LINES)
def test_the_cases_of_make_arm_give_the_same_records_on_all_that_fuse(line):
    made, fused = LINES[line], [isa for isa in ISAS if isa != "baseline"]
    assert len(to_bytes(made)) > 1000
    if len(fused) < 2:
        pytest.skip("this machine has fewer than two instruction sets that fuse multiply-adds")
    for case in made:
        first, *others = (here(isa, case) for isa in fused)
        for other in others:
            assert all(bits_of(first, run) == bits_of(other, run) for run in range(len(case[1])))
