"""The options of commands that can have their runs trained by a crew of workers."""

from __future__ import annotations

import argparse
import contextlib
import tomllib
from pathlib import Path
from typing import Any

from paritylab.cli.parser import count
from paritylab.errors import InvalidInput, require


def add_crew(group: Any) -> None:
    """``--workers``, ``--scheduler``, ``--slurm`` and ``--dry-run``."""
    group.add_argument("--workers", type=count, metavar="N", help="train in so many processes")
    group.add_argument("--scheduler", metavar="ADDRESS", help="train on a running Dask cluster: tls://host:8786,"
                       " with the credentials of Dask's configuration, or tcp://host:8786")
    group.add_argument("--slurm", metavar="OPTIONS", help="train in Slurm jobs: partition=cpu,cores=16,jobs=4 or a TOML"
                       " file of such options (partition, account, cores, memory, walltime, gpus, jobs, prologue)")
    group.add_argument("--dry-run", action="store_true", help="with --slurm: print the job script and do nothing")


def hired(options: argparse.Namespace) -> Any:
    """The crew that the options ask for, as a context; nothing where they ask for none."""
    asked = [name for name in ("workers", "scheduler", "slurm") if getattr(options, name) is not None]
    require(len(asked) <= 1, f"say one of --workers, --scheduler, --slurm, not {' and '.join('--' + a for a in asked)}")
    if not asked:
        return contextlib.nullcontext()
    from paritylab.running.crews import crew

    slurm = slurm_options(options.slurm) if options.slurm is not None else None
    return crew(options.workers, options.scheduler, slurm, options.out)


def shows_script(options: argparse.Namespace) -> bool:
    """With ``--dry-run``: print the Slurm job script. Whether that was asked for."""
    if not options.dry_run:
        return False
    require(options.slurm is not None, "--dry-run is about --slurm; say both")
    from paritylab.running.clusters import slurm_script

    print(slurm_script(slurm_options(options.slurm), options.out / "slurm"))
    return True


def slurm_options(text: str) -> dict[str, Any]:
    """Options from ``name=value,...`` or from a TOML file.

    >>> slurm_options("partition=gpu,gpus=1")
    {'partition': 'gpu', 'gpus': '1'}
    """
    if text.endswith(".toml"):
        try:
            return tomllib.loads(Path(text).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise InvalidInput(f"--slurm: {text} cannot be read as TOML: {error}") from error
    pairs = [part.partition("=") for part in text.split(",")]
    require(all(name and sign for name, sign, _ in pairs), f"--slurm: write partition=NAME,cores=4, not {text!r}")
    return {name.strip(): value.strip() for name, _, value in pairs}
