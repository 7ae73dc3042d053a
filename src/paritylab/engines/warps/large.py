"""What a deep network takes that is too large for shared memory: see ``kernels/large.cuh``."""

from __future__ import annotations

from itertools import pairwise

from paritylab.engines.configuration import Configuration

TILES = 2  # of sixteen rows for a warp, where nothing else is said
WARPS = {1: 16, 2: 8}  # of a team, by tiles: as many registers as a processor has, 128 or 255 for a thread
AT_ONCE = (64, 32)  # samples; more of them use a weight that was read more often
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


def samples_at_once(configuration: Configuration, tiles: int, shared: int) -> int | None:
    """How many samples pass at a time: no more than needed, if they fit into so much shared memory; None if none do."""
    for samples in AT_ONCE:
        needed = samples == min(AT_ONCE) or configuration.batch > samples // 2
        small = SMALL + OF_A_SAMPLE * samples + OF_A_WARP * WARPS[tiles]
        if needed and factor_bytes(configuration, tiles, samples) + small <= shared:
            return samples
    return None
