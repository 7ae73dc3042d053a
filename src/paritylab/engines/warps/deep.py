"""What a deep network takes of the chip: see ``kernels/deep.cuh``."""

from __future__ import annotations

from itertools import pairwise

from paritylab.engines.configuration import Configuration

ROW = 36  # floats for 32 samples
MOST_WARPS = 8  # of a team
BESIDE = 1024  # bytes of a block's shared memory beside the team's: what the system and a few variables take
BESIDE_A_WARP = 256


def _padded(units: int) -> int:
    return -(-units // 16) * 16


def team_bytes(configuration: Configuration, memories: int) -> int:
    """The shared memory of a team: params, gradients if they are kept, what an optimiser keeps, and 32 samples."""
    inputs, *hidden, _ = map(_padded, configuration.sizes)
    bias = int(configuration.bias)
    params = sum(below * (units + 4) + bias * units for below, units in pairwise([inputs, *hidden])) + hidden[-1]
    kept = configuration.batch > 32 or not configuration.plain
    values = ROW * sum(hidden) * (1 if configuration.activation == "clip" else 2)
    spare = ROW * max(hidden[:-1]) * min(2, len(hidden) - 1)
    words = -(-configuration.n // 32)
    return 4 * (params * (1 + kept + memories) + values + spare + 32 * words + 32)


def fits(configuration: Configuration, memories: int, shared: int) -> bool:
    """Whether a team of this network has room in so many bytes of shared memory."""
    return team_bytes(configuration, memories) + BESIDE + BESIDE_A_WARP * MOST_WARPS <= shared


def warps_of_a_team(configuration: Configuration) -> int:
    """A warp for every sixteen units of the widest layer."""
    return min(MOST_WARPS, _padded(max(configuration.sizes[1:-1])) // 16)
