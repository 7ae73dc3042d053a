"""JAX's compiled programs on disk: what one process compiled, the next one reads.

They lie in the user's cache folder, in one folder for each version of paritylab and JAX and each processor: XLA makes
code for the processor that it runs on, and a home folder may be shared. ``PARITYLAB_CACHE`` names another folder, or
is ``off``. Where JAX was told of a cache already, that one is used. A folder that cannot be written is left alone.
"""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import sys
import warnings
from pathlib import Path
from typing import Any

from paritylab import __version__

VARIABLE, OFF = "PARITYLAB_CACHE", "off"
LEAST_SECONDS = 0.1
"""Programs that are compiled in less are not kept."""
MOST_BYTES = 2**31
"""Size of the programs of one version and processor; beyond it the older half is deleted."""
FEATURES = "flags", "Features"
"""How Linux names the instructions that a processor has, on x86-64 and on ARM."""


@functools.cache
def switch_on() -> None:
    """Have JAX keep programs on disk."""
    import jax

    config: Any = jax.config
    told = config.jax_compilation_cache_dir is not None or not config.jax_enable_compilation_cache
    if told or (base := folder()) is None:
        return
    own = base / f"{__version__}-jax-{jax.__version__}" / processor()
    try:
        own.mkdir(mode=0o700, parents=True, exist_ok=True)
        tidy(own)
    except OSError:
        return
    if not os.access(own, os.W_OK | os.X_OK):
        return
    config.update("jax_compilation_cache_dir", str(own))
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        config.update("jax_persistent_cache_min_compile_time_secs", LEAST_SECONDS)
    # A full disk or a damaged file costs time and nothing else.
    warnings.filterwarnings("ignore", "Error (reading|writing) persistent compilation cache", UserWarning)


def folder() -> Path | None:
    """Where programs of all versions and processors are kept; None if they are not."""
    told = os.environ.get(VARIABLE, "")
    if told:
        return None if told == OFF else Path(told).absolute()
    shared = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if shared.is_absolute():
        return shared / "paritylab"
    try:
        home = Path.home()
    except RuntimeError:  # there is none
        return None
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA", home / "AppData" / "Local")) / "paritylab" / "Cache"
    return home / ("Library/Caches" if sys.platform == "darwin" else ".cache") / "paritylab"


def processor() -> str:
    """A name for what programs are compiled for: architecture, model and instructions."""
    from paritylab import provenance

    known = platform.system(), platform.machine(), provenance.processor(), *_instructions()
    return f"{platform.machine()}-{hashlib.sha256('|'.join(known).encode()).hexdigest()[:12]}"


def _instructions() -> list[str]:
    """Those that the system says the processor has; a virtual machine may have fewer than the model."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:  # elsewhere the model tells
        return []
    pairs = (line.partition(":") for line in lines)
    return sorted({word for name, _, words in pairs if name.strip() in FEATURES for word in words.split()})


def tidy(own: Path) -> None:
    """Delete the older half of the programs where they are too many."""
    found = sorted((each.stat().st_mtime, each.stat().st_size, each) for each in own.iterdir() if each.is_file())
    if sum(size for _, size, _ in found) > MOST_BYTES:
        for *_, path in found[: -(-len(found) // 2)]:
            path.unlink(missing_ok=True)
