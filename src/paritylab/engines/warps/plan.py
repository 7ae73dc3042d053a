"""From a program to a kernel: which of them, its constants, and what it takes of the chip."""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from paritylab.engines import starts
from paritylab.engines.configuration import Configuration
from paritylab.engines.warps import deep, large, problems
from paritylab.setups import inits, schedules
from paritylab.setups.inits import Init
from paritylab.setups.setup import Setup

KERNELS = Path(__file__).with_name("kernels")
COMMON = ("base", "threefry", "activations", "losses", "problems", "runs", "samples", "rules")
SOURCES = {
    "start": ("base", "threefry", "start"),
    "threads": (*COMMON, "columns", "threads"),
    "tiles": (*COMMON, "fragments", "tiles", "tiles_back", "teams"),
    "deep": (*COMMON, "fragments", "layers", "pieces", "deep", "params", "teams"),
    "large": (*COMMON, "fragments", "layers", "halves", "large", "large_back", "params", "teams"),
}
MOST_INPUTS = 256
SMALL_BATCH = 16  # below, tensor cores would multiply mostly zeros
MOST_SUMS = 64  # pre-activations that a thread keeps in registers
MOST_WEIGHTS = 144  # weights that it keeps there
MOST_KEPT = 128  # weights and an optimiser's numbers
ROOMY_WARPS = 8  # of a team: with 255 registers a thread, as many as a processor holds
MOST_WARPS = 32  # with 64, where weights spill into memory
MOST_WIDTH = 1024
MOST_EXAMPLES = 2**20  # of a sample in passes
STRETCH = 512  # steps between two looks at whether the launch is over
NEVER = 2**30  # steps until a run is judged that is only recorded
LEAST_LOG = -200.0  # e to it is 0 in single precision, as a mean without memory has it


class Chip(NamedTuple):
    """What plans are made for: a GPU's compute capability, its processors, the bytes of shared memory that a block may
    have, and those of the whole memory."""

    capability: tuple[int, int]
    processors: int
    shared: int
    memory: int


LEAST_CAPABILITY = (8, 0)  # the first with products of bfloat16
H200 = Chip((9, 0), 132, 227 * 1024, 141 * 10**9)  # what is told of where there is no GPU


class Trace(NamedTuple):
    """The points at which runs are recorded, whether by their training sample too, and the loss on it at which they
    end."""

    points: np.ndarray
    train: bool
    stop: float | None = None


@dataclass(frozen=True)
class Plan:
    """A kernel and its constants: blocks of ``threads`` threads and ``shared`` bytes, in which ``teams`` teams train
    a network each, with ``room`` floats of device memory for each. The kernel that draws initial params is apart,
    because programs may differ in them alone."""

    kernel: str
    constants: dict[str, Any]
    start: dict[str, Any]
    threads: int
    teams: int
    shared: int
    room: int = 0

    @property
    def source(self) -> str:
        """The whole CUDA source, in one piece: compiled kernels are cached by their text."""
        return _source(self.kernel, self.constants)

    @property
    def start_source(self) -> str:
        return _source("start", self.start)


def _source(kernel: str, constants: Mapping[str, Any]) -> str:
    return prelude(constants) + "".join(_text(name) for name in SOURCES[kernel])


@functools.cache
def _text(name: str) -> str:
    return (KERNELS / f"{name}.cuh").read_text(encoding="utf-8")


def _real(value: float) -> str:
    return f"{float(np.float32(value)).hex()}f"


TYPES = {"float32": ("float", _real), "int32": ("int", str), "uint32": ("unsigned int", "{}u".format)}


def prelude(constants: Mapping[str, Any]) -> str:
    """The constants as C++: numbers, names of kinds, arrays, and tuples as a function of the index."""
    lines = [
        "enum Family { MLP, NEURON, POLYNET };",
        "enum ActivationKind { RELU, CLIP, POWER, ZIGZAG, TRIANGLE, POLYNOMIAL, SINUSOID, GELU };",
        "enum LossKind { HINGE, SQUARE, LOGISTIC, CLIPPED_LOGISTIC, CORRELATION, L1 };",
        "enum TargetKind { PRODUCT, SUM, TABLE, TASKS };",
        "enum Rule { SGD, MOMENTUM, ADAM, RMSPROP, SIGN_OF };",
        "enum StartLaw { DRAWS_NOTHING, DRAWS_UNIFORM, DRAWS_SIGNS };",
    ]
    for name, value in constants.items():
        if isinstance(value, tuple):
            chosen = "".join(f"i == {i} ? {_real(x)} : " for i, x in enumerate(value))
            lines.append(f"constexpr int {name.upper()} = {len(value)};")
            lines.append(f"static __device__ __forceinline__ constexpr float {name}(int i) {{ return {chosen}0.0f; }}")
        elif isinstance(value, np.ndarray):
            listed = ", ".join(map(TYPES[kind := value.dtype.name][1], value.ravel().tolist())) or "0"
            lines.append(f"static __device__ const {TYPES[kind][0]} {name}[] = {{{listed}}};")
        elif isinstance(value, float):
            lines.append(f"constexpr float {name} = {_real(value)};")
        else:
            lines.append(f"constexpr int {name} = {value if isinstance(value, str) else int(value)};")
    return "\n".join(lines) + "\n"


def plan(
    program: Setup,
    configuration: Configuration,
    chip: Chip = H200,
    kernel: str | None = None,
    trace: Trace | None = None,
    **tuning: int,
) -> Plan:
    """The plan for a program on a chip; with a ``trace`` runs are not judged.

    MLPs and neurons may be put on the other ``kernel``. ``tuning`` may set ``warps`` (of a block), ``blocks`` (at
    least so many on a processor), ``samples`` (at once, of ``threads`` and ``large``), ``tiles`` (of sixteen units for
    a warp of the others), ``team`` (warps for a network of ``deep``) and ``ahead`` (tiles on their way in ``large``).
    """
    kernel = kernel or kernel_of(configuration, chip)
    assert kernel is not None, "refusal() says so"
    constants, start = _constants(program, configuration, trace), _start(program.learner.init, configuration)
    constants["BY_PRODUCTS"] = kernel == "threads"
    if kernel == "threads":
        samples = tuning.get("samples", samples_at_once(configuration))
        column = column_bytes(configuration, samples)
        warps = tuning.get("warps", 1 if column > 2**13 else 4)
        constants |= {"SAMPLES": samples, "WARPS": warps, "MIN_BLOCKS": tuning.get("blocks", 1)}
        return Plan(kernel, constants, start, 32 * warps, 32 * warps, column * warps)
    if kernel == "deep":
        tiles = tuning.get("tiles", deep.tiles_of_a_warp(configuration))
        team = tuning.get("team", deep.warps_of_a_team(configuration, tiles))
        warps, size = tuning.get("warps", team), deep.team_bytes(configuration, memories(configuration), tiles)
        blocks = tuning.get("blocks", deep.blocks_of_a_processor(warps // team * size, warps, tiles, chip.shared))
        constants |= {"TEAM": team, "WARPS": warps, "MIN_BLOCKS": blocks, "TEAM_BYTES": size, "DEEP_TILES": tiles}
        return Plan(kernel, constants, start, 32 * warps, warps // team, warps // team * size)
    if kernel == "large":
        tiles = tuning.get("tiles", large.TILES)
        found = large.samples_and_warps(configuration, tiles, chip.shared)
        assert found is not None, "refusal() says so"
        samples, team = tuning.get("samples", found[0]), tuning.get("warps", found[1])
        first_whole = constants["CLIPS"] or (constants["NOISY"] and not configuration.plain)
        copies = 1 + (configuration.batch > samples or first_whole) + memories(configuration)
        room = large.room_floats(configuration, copies, tiles, samples)
        factor = large.factor_bytes(configuration, tiles, samples)
        ahead = tuning.get("ahead", large.tiles_ahead(configuration, tiles, samples, team, chip.shared))
        constants |= {"TEAM": team, "WARPS": team, "MIN_BLOCKS": 1, "AT_ONCE": samples, "LARGE_TILES": tiles,
                      "TEAM_FLOATS": room, "FACTOR_BYTES": factor, "AHEAD": ahead}
        shared = factor + large.tiles_bytes(tiles, team, ahead)
        return Plan(kernel, constants, start, 32 * team, 1, shared, room)
    tiles = tuning.get("tiles", tiles_of_a_warp(configuration))
    team = -(-configuration.width // (16 * tiles))
    warps = tuning.get("warps", 4) if team == 1 else team
    light = configuration.batch < SMALL_BATCH and memories(configuration) == 0
    blocks = tuning.get("blocks", (5 if light else 4) if team == tiles == input_words(configuration) == 1 else 1)
    constants |= {"TILES": tiles, "TEAM": team, "WARPS": warps, "MIN_BLOCKS": blocks}
    return Plan(kernel, constants, start, 32 * warps, warps // team, 0)


def _constants(program: Setup, configuration: Configuration, trace: Trace | None) -> dict[str, Any]:
    activation, numbers = configuration.activation, tuple(configuration.activation_params)
    if activation == "clip" and numbers[0] == math.inf:
        activation, numbers = "relu", ()
    noises = [program.problem.noise, *(stage.noise or 0 for stage in program.problem.stages)]
    return _shape(configuration) | {
        "BATCH": configuration.batch,
        "AT_ONCE": 32,
        "EXAMPLES": configuration.sample,
        "REPLACED": configuration.sample > 0 and configuration.replacement,
        "SHORT_LAST": configuration.short_last,
        "ACTIVATION": activation.upper(),
        "numbers": numbers,
        "READS_BITS": configuration.bits,
        "LOSS": configuration.loss.upper().replace("-", "_"),
        "LOSS_NUMBER": float((*configuration.loss_params, 0.0)[0]),
        "LOSS_MOST": float((*configuration.loss_params, 0.0, 0.0)[1]),
        "FLIPS": any(noise > 0 for noise in noises),
        "NOISY": program.learner.optimiser.noise > 0,
        "SCHEDULED": configuration.schedule is not None,
        "SCHEDULE_BLOCK": schedules.BLOCK,
        "RATE_HIDDEN": configuration.rates[0],
        "RATE_OUTPUT": configuration.rates[-1],
        "layer_rates": tuple(configuration.rates),
        "DECAYS": configuration.decay_coupled != 0 or configuration.decay_plain != 0,
        "DECAY_COUPLED": configuration.decay_coupled,
        "DECAY_PLAIN": configuration.decay_plain,
        **_rule(configuration),
        **problems.constants(configuration),
        **problems.controls(program.problem),
        "EVAL_EVERY": NEVER if trace else configuration.eval_every,
        "EVAL_SIZE": configuration.eval_size,
        "EVAL_FRESH": configuration.eval_fresh,
        "CONSECUTIVE": NEVER if trace else configuration.consecutive,
        "TRACED": trace is not None,
        "TRAINED": trace is not None and trace.train,
        "STRETCH": max(1, min(STRETCH, 32 * STRETCH // configuration.batch)),
    }


def _rule(configuration: Configuration) -> dict[str, Any]:
    """The optimiser, as ``rules.cuh`` wants it."""
    numbers = tuple(float(np.float32(number)) for number in configuration.rule_params)
    means = numbers[:2] if configuration.rule == "adam" else (0.0, 0.0)
    logs = [max(math.log(mean), LEAST_LOG) if mean > 0 else LEAST_LOG for mean in means]
    return {
        "RULE": "SIGN_OF" if configuration.rule == "sign" else configuration.rule.upper(),
        "coefficients": numbers,
        "LOG_FIRST": logs[0],
        "LOG_SECOND": logs[1],
        "CLIPS": configuration.clip > 0,
        "MOST_NORM": configuration.clip,
        "DECAY_GRADIENT": configuration.decay_gradient,
    }


def in_passes(configuration: Configuration) -> bool:
    """Whether a finite sample is gone through in passes, each in an order of its own."""
    return configuration.sample > 0 and not configuration.replacement


def scratch_bytes(configuration: Configuration) -> int:
    """What a team needs for the orders of two passes, as pairs of words, and for the counts by which it sorts."""
    return 16 * configuration.sample + 4 * buckets(configuration) if in_passes(configuration) else 0


def buckets(configuration: Configuration) -> int:
    """Into which words fall by their leading bits: BUCKETS of ``samples.cuh``."""
    return max(2, 2 ** (configuration.sample - 1).bit_length()) if in_passes(configuration) else 0


def memories(configuration: Configuration) -> int:
    """How many numbers the optimiser keeps for each param."""
    numbers = configuration.rule_params
    kept = {"sgd": 0, "momentum": 1, "adam": 2}
    if configuration.rule == "rmsprop":
        return 2 if numbers[2] else 1
    if configuration.rule == "sign":
        return 1 if numbers[0] else 0
    return kept[configuration.rule]


def _shape(configuration: Configuration) -> dict[str, Any]:
    names = {name.upper(): getattr(configuration, name) for name in ("n", "width", "bias")}
    family = {"FAMILY": configuration.family.upper(), "MEMORIES": memories(configuration)}
    return family | names | {"sizes": tuple(map(float, configuration.sizes))}


def start_law(law: Init) -> str | None:
    """The kernel's name for a law of initial weights that it can draw by itself."""
    laws = {inits.uniform().sample: "DRAWS_UNIFORM", inits.rademacher().sample: "DRAWS_SIGNS"}
    return laws.get(law.sample) if starts.draws_by_itself(law) else None


def _start(law: Init, configuration: Configuration) -> dict[str, Any]:
    scales = [law.level(fan_in, fan_out) for fan_in, fan_out in itertools.pairwise(configuration.sizes)]
    return _shape(configuration) | {
        "BY_PRODUCTS": False,
        "START_LAW": start_law(law) or "DRAWS_NOTHING",
        "START_FIXED": law.fixed is not None,
        "START_KEY": f"{law.fixed or 0}u",
        "scales": tuple(float(np.float32(scale)) for scale in scales),
    }


def kernel_of(configuration: Configuration, chip: Chip = H200) -> str | None:
    """Which kernel trains this: ``deep``, ``large``, ``tiles``, ``threads``; None where it does not fit on the chip.

    ``deep`` comes before ``large``, which is slower where both fit. ``large`` takes only what it passes in one part:
    with W4's batch in two parts ``jax`` was faster.
    """
    if configuration.below:
        if deep.fits(configuration, memories(configuration), chip.shared):
            return "deep"
        found = large.samples_and_warps(configuration, large.TILES, chip.shared)
        return "large" if found and configuration.batch <= found[0] else None
    column = column_bytes(configuration, samples_at_once(configuration))
    fits = configuration.width <= MOST_SUMS and column <= chip.shared
    small = configuration.batch < SMALL_BATCH and configuration.plain and not in_passes(configuration)
    if configuration.family == "polynet" or (small and fits):
        return "threads" if fits else None
    return "tiles" if configuration.width <= MOST_WIDTH else None


def param_count(configuration: Configuration) -> int:
    return sum((fan_in + configuration.bias) * fan_out for fan_in, fan_out in itertools.pairwise(configuration.sizes))


def samples_at_once(configuration: Configuration) -> int:
    """How many samples of a batch a thread takes at a time."""
    return min(configuration.batch, max(1, min(8, MOST_SUMS // configuration.width)))


def column_bytes(configuration: Configuration, samples: int) -> int:
    """What a warp of the kernel ``threads`` needs: of 32 networks the params, the gradients if they come in parts or go
    through an optimiser, and what that keeps."""
    kept = samples < configuration.batch or not configuration.plain
    return 128 * param_count(configuration) * (1 + kept + memories(configuration))


def input_words(configuration: Configuration) -> int:
    """Words that hold the inputs and the one of the bias, which is always 1."""
    return -(-(configuration.n + int(configuration.bias)) // 32)


def tiles_of_a_warp(configuration: Configuration) -> int:
    """How many tiles of sixteen units a warp of the kernel ``tiles`` takes: no more than needed, if they fit."""
    kept = memories(configuration)
    fit = max(1, min(4, (MOST_KEPT if kept else MOST_WEIGHTS) // (16 * (1 + kept) * input_words(configuration))))
    needed = -(-configuration.width // 16)
    return min(needed, fit) if needed <= ROOMY_WARPS * fit else -(-needed // MOST_WARPS)
