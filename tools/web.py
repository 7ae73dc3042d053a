"""Compiles ``native/`` to WebAssembly for the site, with the clang of the package ``ziglang``: ``make web``.

Two modules: ``fused`` rounds a multiply-add once (relaxed SIMD), where the browser has that, and gives the records of
AVX2, AVX-512 and NEON; ``baseline`` rounds twice, as the baseline of ``native/`` does. They are shipped compressed,
beside a file that says of which sources and by which compiler.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import zopfli.gzip

from paritylab.site import engine

ROOT = Path(__file__).parents[1]
NATIVE = ROOT / "native"
TARGET = ["-target", "wasm32-wasi", "-g0", "-msimd128", "-fvisibility=hidden", "-Wall", "-Wextra", "-Werror"]
CXX = ["-std=c++20", "-fno-exceptions", "-fno-rtti", "-DPARITYLAB_ISA=baseline"]
KERNEL = ["-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math"]  # as CMakeLists.txt
HOT = ("kernel", "finite_sample")
"""What trains is made fast; all else is made small, for the page must be light."""
ISAS = {"fused": ["-mrelaxed-simd"], "baseline": []}
EXPORTED = ("room", "open", "pools", "slots", "add", "train", "move", "take", "survey", "look", "weights", "records",
            "fuses")
"""Of ``web.cpp``."""
LINK = ["-mexec-model=reactor", "-s", *(f"-Wl,--export=web_{name}" for name in EXPORTED)]
BUILD = ROOT / "build" / "web"


def zig(*arguments: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "ziglang", "c++", *map(str, arguments)], check=True)


def compiler() -> str:
    def said(*words: str) -> str:
        command = [sys.executable, "-m", "ziglang", *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]

    return f"ziglang {said('version')}, {said('c++', '--version')}"


def build(folder: Path) -> dict[str, bytes]:
    """Both modules; objects are made in the folder."""
    objects = {(source, isa): folder / f"{source}-{isa}.o" for source in engine.SOURCES for isa in ISAS}

    headers = max(path.stat().st_mtime for path in NATIVE.glob("*.h"))

    def compiled(key: tuple[str, str]) -> None:
        path, made = NATIVE / f"{key[0]}.cpp", objects[key]
        if not made.exists() or made.stat().st_mtime < max(headers, path.stat().st_mtime):
            zig("-O3" if key[0] in HOT else "-Os", *TARGET, *CXX, *KERNEL, *ISAS[key[1]], "-c", path, "-o", made)

    with ThreadPoolExecutor(2) as threads:
        list(threads.map(compiled, objects))
    found = {}
    for isa in ISAS:
        module = folder / f"{isa}.wasm"
        zig("-O3", *TARGET[:3], *LINK, *(path for (_, of), path in objects.items() if of == isa), "-o", module)
        found[isa] = module.read_bytes()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=engine.FOLDER, help="where the modules go")
    out = parser.parse_args().out
    BUILD.mkdir(parents=True, exist_ok=True)
    modules = build(BUILD)
    out.mkdir(parents=True, exist_ok=True)
    for isa, module in modules.items():
        (out / f"{isa}.wasm.gz").write_bytes(packed := zopfli.gzip.compress(module))
        print(f"{isa}: {len(module):,} bytes, {len(packed):,} compressed")
    about = {"sources": engine.digest(NATIVE), "compiler": compiler(), "options": [*TARGET, *CXX, *KERNEL, *LINK],
             "bytes": {isa: len(module) for isa, module in modules.items()}}
    (out / "engine.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
