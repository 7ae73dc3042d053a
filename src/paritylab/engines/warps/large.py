"""What a deep network takes that is too large for shared memory: see ``kernels/large.cuh``."""

from __future__ import annotations

from itertools import pairwise

from paritylab.engines.configuration import Configuration

TILES = 1  # of sixteen rows for a warp, where nothing else is said
MOST_WARPS = 16  # of a team, for so many tiles in all: as many registers as a processor has, 128 or 255 for a thread
AT_ONCE = (64, 32)  # samples; more of them use a weight that was read more often
MOST_AHEAD = 4  # tiles of a warp on their way from device memory
SMALL, OF_A_SAMPLE, OF_A_WARP = 1024, 40, 256  # bytes of shared memory for small things: large.cuh, teams.cuh


def _padded(units: int, tiles: int) -> int:
    return -(-units // (16 * tiles)) * 16 * tiles


def room_floats(configuration: Configuration, copies: int, tiles: int, samples: int) -> int:
    """A team's room in device memory: so many copies of the params, and what ``samples`` samples have in each layer."""
    inputs, *hidden, _ = (_padded(units, tiles) for units in configuration.sizes)
    bias = int(configuration.bias)
    params = sum((below + bias) * units for below, units in pairwise([inputs, *hidden])) + hidden[-1]
    return copies * params + samples * sum(hidden) * (1 if configuration.activation == "clip" else 2)


def factor_bytes(configuration: Configuration, tiles: int, samples: int) -> int:
    """The shared memory of what all warps of a team multiply by: a layer's numbers in two halves."""
    return 4 * (samples + 8) * max(_padded(units, tiles) for units in configuration.sizes[1:-1])


def tiles_bytes(tiles: int, warps: int, ahead: int) -> int:
    """The shared memory of tiles of weights that are on their way, so many for each warp."""
    return 1024 * tiles * warps * ahead


def tiles_ahead(configuration: Configuration, tiles: int, samples: int, warps: int, shared: int) -> int:
    """How many tiles each warp may have on their way, if so much shared memory holds all that so many samples need."""
    small = SMALL + OF_A_SAMPLE * samples + OF_A_WARP * warps
    left = shared - small - factor_bytes(configuration, tiles, samples)
    return max(0, min(MOST_AHEAD, left // tiles_bytes(tiles, warps, 1)))


def samples_and_warps(configuration: Configuration, tiles: int, shared: int) -> tuple[int, int] | None:
    """How many samples pass at a time (no more than needed) through how many warps; None if none fit."""
    many, (more, few) = MOST_WARPS // tiles, AT_ONCE
    for samples, warps, least_ahead in ((more, many, 2), (few, many, 2), (few, many // 2, 1)):
        needed = samples == few or configuration.batch > few
        if needed and tiles_ahead(configuration, tiles, samples, warps, shared) >= least_ahead:
            return samples, warps
    return None
