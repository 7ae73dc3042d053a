"""What a deep network takes of the chip: see ``kernels/deep.cuh``."""

from __future__ import annotations

from itertools import pairwise

from paritylab.engines.configuration import Configuration

ROW = 36  # floats for 32 samples
MOST_WARPS = 8  # of a team
MOST_AT_ONCE = {1: 16, 2: 8}  # warps of a processor, by tiles: more leave a thread too few registers, as measured
RESERVED = 1024  # bytes of shared memory that the system takes for a block
VARIABLES, OF_A_WARP = 16, 256  # bytes that teams.cuh takes of it


def _padded(units: int, tiles: int) -> int:
    return -(-units // (16 * tiles)) * 16 * tiles


def team_bytes(configuration: Configuration, memories: int, tiles: int) -> int:
    """The shared memory of a team: params, gradients if they are kept, what an optimiser keeps, and 32 samples."""
    inputs, *hidden, _ = (_padded(units, tiles) for units in configuration.sizes)
    bias = int(configuration.bias)
    params = sum(below * (units + 4) + bias * units for below, units in pairwise([inputs, *hidden])) + hidden[-1]
    kept = configuration.batch > 32 or not configuration.plain
    values = ROW * sum(hidden) * (1 if configuration.activation == "clip" else 2)
    words = -(-configuration.n // 32)
    return 4 * (params * (1 + kept + memories) + values + 32 * words + 32)


def fits(configuration: Configuration, memories: int, shared: int) -> bool:
    """Whether a team of this network has room in so many bytes of shared memory."""
    return team_bytes(configuration, memories, 1) + VARIABLES + OF_A_WARP * MOST_WARPS <= shared


def tiles_of_a_warp(configuration: Configuration) -> int:
    """Two tiles of sixteen units for a warp, where no unit more has to be padded."""
    return 2 if all(_padded(units, 2) == _padded(units, 1) for units in configuration.sizes[:-1]) else 1


def blocks_of_a_processor(size: int, warps: int, tiles: int, shared: int) -> int:
    """How many blocks of so many bytes and warps a processor holds, if a block may have ``shared`` bytes."""
    fit = (shared + RESERVED) // (size + VARIABLES + OF_A_WARP * warps + RESERVED)
    return max(1, min(fit, MOST_AT_ONCE[tiles] // warps))


def warps_of_a_team(configuration: Configuration, tiles: int) -> int:
    """A warp for every piece of the widest layer."""
    return min(MOST_WARPS, _padded(max(configuration.sizes[1:-1]), tiles) // (16 * tiles))
