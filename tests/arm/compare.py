"""The kernel on ARM against the kernel here: whole records, bit for bit. ``make arm`` runs it.

The C interface is built for aarch64 with the clang of the package ``ziglang`` and run by ``qemu-aarch64``; the same
cases go through the installed module on every instruction set of this machine. NEON must agree with those that fuse
multiply-adds; the baseline's column shows what rounding twice would change.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from arm.cases import Case, cases, from_bytes, to_bytes
from native_pools import _lanes, add

ROOT = Path(__file__).parents[2]
BUILD = ROOT / "build" / "arm"
TARGET = ["-target", "aarch64-linux-musl", "-O3", "-Wall", "-Wextra", "-Werror", "-I", str(ROOT / "native")]
CXX = ["-std=c++20", "-fno-exceptions"]  # the C interface needs none
KERNEL = ["-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-DPARITYLAB_ISA=neon"]  # as CMakeLists.txt
SOURCES = ("paritylab", "given", "kernels", "refusal", "problem", "problem_parts", "starts", "message", "stock",
           "finite_sample", "kernel")
COLUMNS = ("status", "t_c", "steps", "accuracy", "loss", *"Wbuc")


def build() -> Path:
    """The driver for aarch64."""
    BUILD.mkdir(parents=True, exist_ok=True)
    zig = [sys.executable, "-m", "ziglang"]
    objects = {name: BUILD / f"{name}.o" for name in SOURCES}

    def compiled(name: str) -> None:
        options = [*CXX, *(KERNEL if name == "kernel" else [])]
        source = ROOT / "native" / f"{name}.cpp"
        subprocess.run([*zig, "c++", *TARGET, *options, "-c", source, "-o", objects[name]], check=True)

    with ThreadPoolExecutor(os.cpu_count()) as threads:
        list(threads.map(compiled, SOURCES))
    driver = BUILD / "driver"
    source, main = Path(__file__).with_name("driver.cpp"), BUILD / "driver.o"
    subprocess.run([*zig, "c++", *TARGET, *CXX, "-c", source, "-o", main], check=True)
    subprocess.run([*zig, "c++", *TARGET[:2], main, *objects.values(), "-o", driver], check=True)
    return driver


def on_arm(qemu: str, driver: Path, made: list[Case]) -> list[dict[str, np.ndarray]]:
    done = subprocess.run([qemu, driver], input=to_bytes(made), capture_output=True)
    if done.returncode != 0 or done.stderr != b"neon\n":
        sys.exit(f"make arm: the driver failed: {done.stderr.decode(errors='replace').strip()}")
    return from_bytes(made, done.stdout)


def here(isa: str, case: Case) -> dict[str, np.ndarray]:
    cfg, runs, max_steps = case
    told = cfg.get("problem")
    pool = _lanes.Pool(**cfg | {"isa": isa, "problem": told and _lanes.Problem(**told)})
    add(pool, runs, range(len(runs)), max_steps)
    got = pool.advance(600.0)
    assert pool.active == 0
    return got


def bits_of(columns: dict[str, np.ndarray], run: int) -> list[bytes]:
    """A record as bytes, but that every NaN counts as the same."""
    values = [np.asarray(columns[name][run]) for name in COLUMNS]
    return [np.where(v != v, np.nan, v).astype(v.dtype.kind + "8").tobytes() for v in values]


def main() -> None:
    qemu = shutil.which("qemu-aarch64") or shutil.which("qemu-aarch64-static")
    if qemu is None:
        sys.exit("make arm: qemu-aarch64 is missing; Debian and Ubuntu have it in the package qemu-user")
    isas = _lanes.supported_isas()
    driver = build()
    print(f"{'records equal to those of NEON':32}" + "".join(f"{isa:>12}" for isa in isas))
    wrong = 0
    for line, made in cases().items():
        arm = on_arm(qemu, driver, made)
        total = sum(len(runs) for _, runs, _ in made)
        shares = []
        for isa in isas:
            equal = sum(bits_of(theirs, run) == bits_of(ours, run)
                        for case, theirs in zip(made, arm, strict=True)
                        for ours in [here(isa, case)] for run in range(len(case[1])))
            shares.append(f"{equal}/{total}")
            wrong += (total - equal) * (isa != "baseline")
        print(f"{line:32}" + "".join(f"{share:>12}" for share in shares), flush=True)
    if wrong:
        sys.exit(f"make arm: {wrong} records differ")


if __name__ == "__main__":
    main()
