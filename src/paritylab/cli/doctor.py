"""``paritylab doctor``: which engines work here, how fast, and what would help."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from paritylab.cli.parser import Parser, add_common, print_json
from paritylab.cli.results import print_table
from paritylab.progress import Bar

COLUMNS = ("engine", "works", "steps/s", "build")
DRIVER = Path("/proc/driver/nvidia/version")  # there where the kernel module of NVIDIA's GPUs is


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "doctor",
        help="which engines work here, and how fast",
        description="Trains with every engine that works here for some seconds (n = 30, k = 3, width 10, batch 32: W1"
        " of the documentation) and says how many updates all networks together make in a second; of the others it says"
        " why they do not work, and what to install. Lists the GPUs that CuPy sees; CUDA_VISIBLE_DEVICES chooses among"
        " them, and 'warps' trains on all that are of one kind.",
    )
    parser.add_argument("--seconds", type=positive, default=2.0, metavar="S", help="how long each engine is timed")
    add_common(parser, run, out=False)


def positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not 0 < value <= 3600:
        raise argparse.ArgumentTypeError(f"seconds must be above 0 and at most 3600, not {text!r}")
    return value


def run(options: argparse.Namespace) -> None:
    from paritylab import engines
    from paritylab.engines.rates import W1

    registered = engines.registered()
    with Bar("engines timed", len(registered)) as bar:
        found = []
        for done, (name, engine) in enumerate(registered.items()):
            bar.show(done, name)
            found.append(examined(name, engine, options.seconds))
    chosen, advice, gpus, programs = engines.choose(W1), hints(), seen(), kept()
    if options.json:
        print_json({"engines": found, "gpus": gpus, "auto": chosen, "advice": advice, "programs": programs})
        return
    rows = [{"engine": each["engine"], "works": "yes" if each["works"] else "no", "steps/s": rounded(each["rate"]),
             "build": each["build"]} for each in found]
    print_table(rows, COLUMNS)
    for each in found:
        if each["why"]:
            print(f"{each['engine']}: {each['why']}")
    for number, gpu in enumerate(gpus):
        print(f"GPU {number}: {gpu['name']}, compute capability {gpu['capability']}, {gpu['processors']} processors,"
              f" {gpu['memory'] / 1e9:.0f} GB{'' if gpu['trains'] else ', not used by warps'}")
    print(f"'auto' takes {chosen} for these networks")
    print(f"compiled programs are kept in {programs}" if programs else "compiled programs are not kept")
    for line in advice:
        print(line)


def examined(name: str, engine: Any, seconds: float) -> dict[str, Any]:
    """What is to be said of one engine."""
    from paritylab.engines import registry
    from paritylab.engines.rates import steady_rate
    from paritylab.errors import in_a_line
    from paritylab.provenance import build

    known: dict[str, Any] = {"engine": name, "works": False, "why": engine.absence(), "rate": None, "build": None}
    if known["why"]:
        return known
    try:
        rate = steady_rate(name, seconds=seconds)
    except Exception as error:  # whatever it is: that is what was asked
        return {**known, "why": f"it fails: {in_a_line(error)}"}
    return {**known, "works": True, "rate": rate, "build": build(registry.label(engine))}


def seen() -> list[dict[str, Any]]:
    """The GPUs that CuPy sees, and whether ``warps`` trains on them: the first, and those like it."""
    from paritylab.engines import warps
    from paritylab.engines.warps import device

    found, used = device.search(), device.alike() if warps.available() else ()
    return [
        {"name": gpu.name, "capability": ".".join(map(str, gpu.chip.capability)), "processors": gpu.chip.processors,
         "memory": gpu.chip.memory, "trains": gpu in used}
        for gpu in (() if isinstance(found, str) else found)
    ]


def kept() -> str | None:
    """Where JAX keeps compiled programs."""
    from paritylab.later import jax

    config: Any = jax.config
    return config.jax_compilation_cache_dir if config.jax_enable_compilation_cache else None


def hints() -> list[str]:
    """What to install where an engine works, but not as well as it could."""
    import jax

    if not DRIVER.exists() or jax.default_backend() != "cpu":
        return []
    return ["there is an NVIDIA GPU, which the engine 'jax' does not use: pip install 'jax[cuda13]'"]


def rounded(rate: float | None) -> str | None:
    return None if rate is None else f"{rate:.2g}"
