"""The GPU engine for GPUs that are not here: its kernels compile for each, with launches that each of them allows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from lengths import long_but
from warps import nvrtc
from warps.cases import CASES, POSED, plan_of

import paritylab as pl
from paritylab.engines import choose, warps
from paritylab.engines.configuration import Configuration
from paritylab.engines.warps import device as devices
from paritylab.engines.warps.plan import Chip, Trace, kernel_of, plan
from paritylab.errors import InvalidInput

KB, GB = 2**10, 2**30
CHIPS = {  # of each capability a small one, as the CUDA programming guide and data sheets have them
    "8.0": Chip((8, 0), 56, 163 * KB, 24 * GB),
    "8.6": Chip((8, 6), 16, 99 * KB, 4 * GB),
    "8.9": Chip((8, 9), 20, 99 * KB, 6 * GB),
    "9.0": Chip((9, 0), 114, 227 * KB, 80 * GB),
    "10.0": Chip((10, 0), 148, 227 * KB, 180 * GB),
    "12.0": Chip((12, 0), 20, 99 * KB, 8 * GB),
}
SHORT = ("lane: one input", "team: a frozen layer", "deep: 30-32-32", "large: adam")
FEW = [name for place, name in enumerate(CASES) if name not in POSED or place % 4 == 0]
compiler = pytest.mark.skipif(nvrtc.library() is None, reason="NVRTC is not installed (nvidia-cuda-nvrtc)")


def assert_compiles(name: str, chip: Chip, **more: Any) -> None:
    setup, tuning = CASES[name]
    plan = plan_of(setup, {**tuning, **more}, chip)
    assert plan.threads <= 1024
    assert plan.shared <= chip.shared
    architecture = "sm_{}{}".format(*chip.capability)
    for source, kernel in ((plan.source, b"train"), (plan.start_source, b"start")):
        assert kernel in nvrtc.machine_code(source, architecture)


@compiler
@pytest.mark.parametrize("capability", long_but(CHIPS, "8.0", slow=["8.6", "8.9", "10.0"]))
def test_each_kind_of_kernel_compiles_for_every_capability(capability):
    for name in SHORT:
        assert_compiles(name, CHIPS[capability])


@compiler
@pytest.mark.long
@pytest.mark.parametrize("name", ["lane: leaky sample", "warp: sample of tasks"])
def test_kernels_that_record_curves_compile(name):
    assert_compiles(name, CHIPS["8.0"], trace=Trace(np.array([0, 5]), train=True))


@compiler
@pytest.mark.slow
@pytest.mark.long
@pytest.mark.parametrize(("place", "name"), list(enumerate(FEW)), ids=FEW)
def test_each_case_compiles_for_one_capability_or_another(place, name):
    assert_compiles(name, list(CHIPS.values())[place % len(CHIPS)])


@compiler
@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("capability", CHIPS)
def test_each_case_compiles_for_every_capability(capability):
    for name in CASES:
        assert_compiles(name, CHIPS[capability])


@compiler
def test_what_does_not_compile_says_why():
    with pytest.raises(AssertionError, match='identifier "nothing" is undefined'):
        nvrtc.machine_code('extern "C" __global__ void train() { nothing(); }', "sm_80")


def test_what_fits_on_one_chip_need_not_fit_on_another():
    small, large = (pl.Setup(pl.Parity(100, 2), pl.Learner(network, batch=8)) for network in (pl.MLP(8), pl.PolyNet(8)))
    for chip in CHIPS.values():
        found = [kernel_of(Configuration.of(setup.program), chip) for setup in (small, large)]
        assert found == (["threads", "threads"] if chip.shared > 110 * KB else ["tiles", None])


def test_deep_networks_take_the_memory_that_is_there():
    sizes = {widths: Configuration.of(pl.Setup(pl.Parity(30, 2), pl.Learner(pl.MLP(widths))).program)
             for widths in ((32, 32), (100, 100), (160, 160), (512, 512, 64))}
    for chip in CHIPS.values():
        fit = [widths for widths, configuration in sizes.items() if kernel_of(configuration, chip) == "deep"]
        assert fit == list(sizes)[: 1 + (chip.shared > 120 * KB) + (chip.shared > 200 * KB)]


def test_large_networks_pass_fewer_samples_at_once_where_shared_memory_is_small():
    """W4 of the documentation: planned for every chip, chosen where its batch passes at once."""
    program = large_program()
    configuration = Configuration.of(program)
    for chip in CHIPS.values():
        roomy = chip.shared > 200 * KB
        made = plan(program, configuration, chip, "large")
        assert made.shared <= chip.shared
        assert made.constants["AT_ONCE"] == (64 if roomy else 32)
        assert made.threads == (512 if chip.shared > 110 * KB else 256)
        assert made.constants["AHEAD"] == (4 if chip.shared > 110 * KB else 1)
        assert kernel_of(configuration, chip) == ("large" if roomy else None)


@pytest.mark.parametrize(
    ("widths", "batch", "fits"),
    [((512, 512, 64), 32, True), ((512, 512, 64), 64, True), ((512, 512, 64), 65, False), ((656, 656), 64, True),
     ((672, 672), 64, False), ((1360, 1360), 32, True), ((1376, 1376), 32, False), ((2048, 8), 1, False)],
)
def test_large_networks_are_taken_where_a_batch_passes_at_once(widths, batch, fits):
    assert kernel_of(Configuration.of(large_program(widths, batch))) == ("large" if fits else None)


def large_program(widths: tuple[int, ...] = (512, 512, 64), batch: int = 64) -> pl.Setup:
    return pl.Setup(pl.Parity(50, 3), pl.Learner(pl.MLP(widths), batch=batch)).program


@pytest.mark.parametrize("capability", [(7, 5), (6, 1)])
def test_an_older_card_is_refused_in_one_line(capability, monkeypatch):
    old = SimpleNamespace(name="Tesla T4", chip=Chip(capability, 40, 64 * KB, 16 * GB))
    monkeypatch.setattr(devices, "current", lambda: old)
    setup = pl.Setup(pl.Parity(10, 3), pl.Learner())
    assert choose(setup) != "warps"
    assert not warps.available()
    with pytest.raises(InvalidInput) as refused:
        choose(setup, "warps")
    why = "engine 'warps' needs a GPU of compute capability 8.0 or more, not Tesla T4 with {}.{}"
    assert str(refused.value).startswith(why.format(*capability) + "; allowed here: ")
