"""What an installed paritylab does away from the checkout: every file there, the demo, a claim, the site, some tests.

    python tests/packaging/installed.py lanes      # the engine that a measurement must get

The interpreter that runs this is the one whose installation is tried; it needs pytest and hypothesis as well.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path

import paritylab

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(paritylab.__file__).parent
CLAIM = "me2025.width"
PAPERS = ROOT / "examples" / "me2025" / "src"
"""The wheel has no papers; the template is found in its folder."""
SLICE = ["public_names", "portability", "bits_and_problems", "statistics", "native_kernel"]
SLICE += ["store"] if os.name == "posix" else []


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("engine", choices=["lanes", "jax"], help="the engine that a measurement must get")
    parser.add_argument("--brief", action="store_true", help="only the files and one measurement")
    options = parser.parse_args()
    check_place()
    check_files()
    with tempfile.TemporaryDirectory(prefix="paritylab-elsewhere-", ignore_cleanup_errors=True) as name:
        elsewhere = Path(name)
        check_measurement(elsewhere, options.engine)
        if not options.brief:
            check_commands(elsewhere)
            check_slice(elsewhere)


def check_place() -> None:
    """It is the installed package that was imported, not the checkout."""
    places = {Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib")}
    expect(PACKAGE.resolve().parent in places, f"{PACKAGE} is not among the installed packages")
    print(f"paritylab {paritylab.__version__} in {PACKAGE}")


def check_files() -> None:
    """What the checkout has, the installation has, byte by byte."""
    sources = {ROOT / "src" / "paritylab": PACKAGE, ROOT / "docs": PACKAGE / "docs",
               ROOT / "examples" / "notebooks": PACKAGE / "docs" / "notebooks"}
    pairs = [(path, there / path.relative_to(here)) for here, there in sources.items() for path in here.rglob("*")
             if path.is_file() and "__pycache__" not in path.parts]
    for here, there in pairs:
        expect(there.is_file(), f"{here.relative_to(ROOT)} is not installed")
        expect(here.read_bytes() == there.read_bytes(), f"{here.relative_to(ROOT)} is installed with other contents")
    print(f"{len(pairs)} files are installed as they are in the checkout")


def check_measurement(elsewhere: Path, engine: str) -> None:
    shown = command(elsewhere, "measure", "--n", "12", "--k", "2", "--runs", "50", "--json")
    used = json.loads(shown)["engine"]
    expect(used == engine, f"a measurement used the engine {used}, expected {engine}")


def check_commands(elsewhere: Path) -> None:
    command(elsewhere, "demo")
    expect((elsewhere / "out" / "site" / "index.html").is_file(), "the demo wrote no site")
    command(elsewhere, "reproduce", CLAIM, "--quick", "--papers", str(PAPERS))
    command(elsewhere, "report", papers=str(PAPERS))
    page = elsewhere / "out" / "site" / f"{CLAIM.split('.')[0]}.html"
    expect(f'id="{CLAIM}"' in page.read_text(encoding="utf-8"), f"the site says nothing of {CLAIM}")


def check_slice(elsewhere: Path) -> None:
    """Some of the tests, copied: no file of the checkout can be imported by accident."""
    copied = elsewhere / "copied"
    (copied / "tests").mkdir(parents=True)
    for name in ("pyproject.toml", "conftest.py"):
        shutil.copy(ROOT / name, copied)
    helpers = [path.name for path in (ROOT / "tests").glob("*.py") if not path.name.startswith("test_")]
    tests = [f"test_{name}.py" for name in SLICE]
    for name in helpers + tests:
        shutil.copy(ROOT / "tests" / name, copied / "tests")
    run(copied, sys.executable, "-m", "pytest", *(f"tests/{name}" for name in tests))


def command(folder: Path, *arguments: str, papers: str = "") -> str:
    """One command as a user gives it, and what it prints."""
    program = shutil.which("paritylab", path=sysconfig.get_path("scripts"))
    expect(program is not None, "the command paritylab is not installed")
    return run(folder, str(program), *arguments, papers=papers)


def run(folder: Path, *words: str, papers: str = "") -> str:
    start = time.perf_counter()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    environment |= {"PARITYLAB_PAPERS": papers} if papers else {}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, encoding="utf-8",
                          errors="replace")
    line = " ".join([Path(words[0]).stem, *words[1:]])
    expect(done.returncode == 0, f"{line}: exit status {done.returncode}\n{done.stdout}\n{done.stderr}")
    print(f"{time.perf_counter() - start:6.1f} s  {line}", flush=True)
    return done.stdout


def expect(true: bool, otherwise: str) -> None:
    if not true:
        sys.exit(f"installed.py: {otherwise}")


if __name__ == "__main__":
    main()
