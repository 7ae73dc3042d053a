"""Commands as a user would give them, and what they answer."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

from paritylab.cli import main

TINY = ["--n", "6", "--k", "2", "--width", "8", "--batch", "8", "--max-steps", "100", "--eval-size", "64",
        "--runs", "5", "--engine", "jax"]


def run(capsys, *arguments: str) -> tuple[int, str, str]:
    """Exit status, standard output and standard error of one command in this process."""
    shown = warnings.showwarning
    try:
        status = main(list(arguments))
    finally:
        warnings.showwarning = shown
    captured = capsys.readouterr()
    return status, captured.out, captured.err


def run_apart(*arguments: str, **options) -> subprocess.CompletedProcess:
    command = [sys.executable, "-m", "paritylab", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, **options)


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))
