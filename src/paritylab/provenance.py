"""Provenance: which program, on which machine, made a number. Blocks of the store and evidence carry it.

Nothing heavy is imported for it: what is said of JAX or a GPU is asked of libraries that are loaded already.
"""

from __future__ import annotations

import datetime
import functools
import importlib
import os
import platform
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from paritylab import __version__

LIBRARIES = ("jax", "jaxlib", "numpy", "scipy", "polars")
CHANGED = ", with changes"
"""After the commit of a checkout whose code is not that of the commit."""
FOLDER = Path(__file__).parent


def origin(engine: str | None = None) -> dict[str, str]:
    """Where a number comes from that this process makes now; of an engine, by the label of its Records, its build too.

    What is not known is left out: the commit, where neither git nor the build tells it.

    >>> sorted(origin("jax").keys() - {"commit"})
    ['build', 'engine', 'hardware', 'libraries', 'paritylab', 'processor', 'python', 'system', 'time']
    """
    about = {"engine": engine, "build": build(engine)} if engine is not None else {}
    known = {"paritylab": __version__, "commit": commit(), **about, **_machine(), "time": now()}
    return {name: text for name, text in known.items() if text}


def now() -> str:
    """The time, UTC, to the second."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


@functools.cache
def commit() -> str:
    """The commit of the checkout that this package is a part of, else the one it was built from; empty if unknown.

    Evidence may have been written since: it is no change of the code.
    """
    tracked = _git("ls-files", "--error-unmatch", Path(__file__).name)
    if tracked is None:
        return getattr(kernel(), "commit", "").replace("-dirty", CHANGED)
    code = (":/src", ":/native", ":(exclude,glob)**/evidence/**")
    changes = _git("status", "--porcelain", "--untracked-files=no", "--", *code)
    return (_git("rev-parse", "HEAD") or "") + (CHANGED if changes else "")


def _git(*words: str) -> str | None:
    """What git says of the folder of this package; None if it says no, or is not there."""
    try:
        done = subprocess.run(["git", "--no-optional-locks", *words], cwd=FOLDER, capture_output=True, text=True,
                              check=False, timeout=10)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def build(engine: str) -> str:
    """How the code of an engine was made: compiler and instruction set, or the versions of what compiles it."""
    name = engine.partition("_")[0]
    if name == "lanes":
        module = kernel()
        return "" if module is None else f"{getattr(module, 'compiler', 'unknown')}, {module.supported_isas()[0]}"
    if name == "jax":
        return f"jaxlib {_version('jaxlib')}{_device()}"
    if name == "warps":
        return _cuda()
    return _of_others(name)


def kernel() -> Any | None:
    """The compiled module of ``native/``, or None where it was not built."""
    try:
        return importlib.import_module("paritylab._lanes")
    except ImportError:
        return None


def hardware() -> str:
    """The class of this machine: architecture, vector instructions, cores."""
    module = kernel()
    vectors = f" {module.supported_isas()[0]}" if module is not None else ""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{platform.machine()}{vectors}, {cores} cores"


@functools.cache
def processor() -> str:
    """The model of the CPU, as the system has it: some have one name for several, which numbers tell apart.

    >>> processor() != ""
    True
    """
    try:
        if sys.platform == "darwin":
            words = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
            return subprocess.run(words, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
        told = {name.strip(): value.strip() for name, _, value in (line.partition(":") for line in reversed(lines))}
        numbers = [f"{name} {told[name]}" for name in ("cpu family", "model", "stepping") if name in told]
        name = told.get("model name") or told.get("Model") or told.get("Hardware") or ""  # x86-64; ARM boards
        model = f"{name} ({', '.join(numbers)})" if numbers else name
    except (OSError, subprocess.SubprocessError):
        model = None
    return model or platform.processor() or platform.machine()


@functools.cache
def _machine() -> dict[str, str]:
    """What cannot change while a process runs."""
    return {"hardware": hardware(), "processor": processor(), "system": f"{platform.system()} {platform.release()}",
            "python": platform.python_version(),
            "libraries": ", ".join(f"{name} {version}" for name in LIBRARIES if (version := _version(name)))}


@functools.cache
def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _device() -> str:
    """What JAX computes on, if it was loaded to compute."""
    jax = sys.modules.get("jax")
    if jax is None:
        return ""
    device = jax.devices()[0]
    model = "" if device.platform == "cpu" else f", {device.device_kind}"
    return f" on {device.platform}{model}"


def _cuda() -> str:
    """Versions of CUDA, if a GPU was used."""
    cupy = sys.modules.get("cupy")
    if cupy is None:
        return ""
    runtime = cupy.cuda.runtime
    compiler = ".".join(map(str, importlib.import_module("cupy.cuda").nvrtc.getVersion()))
    model = runtime.getDeviceProperties(0)["name"].decode()
    return f"NVRTC {compiler}, driver of CUDA {_dotted(runtime.driverGetVersion())}, CuPy {cupy.__version__}, {model}"


def _dotted(number: int) -> str:
    """
    >>> _dotted(12040)
    '12.4'
    """
    return f"{number // 1000}.{number % 1000 // 10}"


def _of_others(name: str) -> str:
    """The package that brings an engine."""
    for entry in metadata.entry_points(group="paritylab.engines"):
        if entry.name == name and entry.dist is not None:
            return f"{entry.dist.name} {entry.dist.version}"
    return ""
