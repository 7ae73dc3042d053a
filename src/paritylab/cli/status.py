"""``paritylab store status``: what is going on, seen from another terminal."""

from __future__ import annotations

import argparse
import datetime
import warnings
from typing import Any

from paritylab.cli.parser import Parser, add_common, print_json
from paritylab.cli.results import print_table
from paritylab.progress import duration

COLUMNS = ("state", "n", "k", "network", "batch", "lr", "engine", "seed", "done", "wanted", "solved", "p10", "median")
MOST = 20


def add(commands: Any) -> None:
    parser: Parser = commands.add_parser(
        "status",
        help="the sweeps that are going on",
        description="Every sweep that trains into the store under --out, of any process: how far it is, how long it may"
        " still take, and what its stored records say so far. A sweep of a machine that vanished is shown for a day.",
    )
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from paritylab.site.results import going_on
    from paritylab.storage.status import STATES, StatusWarning

    found = going_on(options.out)
    sweeps = found["sweeps"]
    for note in found["notes"]:
        warnings.warn(note, StatusWarning, stacklevel=2)
    if options.json:
        print_json({"store": str(options.out / "store"), **found})
        return
    if not sweeps:
        print(f"nothing is being trained into {options.out / 'store'}")
    for sweep in sweeps:
        jobs = sweep["jobs"]
        done, wanted = (sum(job[name] for job in jobs) for name in ("done", "wanted"))
        left = "left: unknown" if sweep["left"] is None else f"left: about {duration(sweep['left'])}"
        if sweep["quiet_since"] is not None:
            left = f"not heard of since {datetime.datetime.fromtimestamp(sweep['quiet_since']):%Y-%m-%d %H:%M:%S}"
        print(f"process {sweep['pid']} on {sweep['host']}: {done} of {wanted} runs of {len(jobs)} setups"
              f" after {duration(sweep['elapsed'])}, {left}")
        active = sorted(jobs, key=lambda job: STATES.index(job["state"]))
        print_table([{name: job[name] for name in COLUMNS} for job in active[:MOST]], COLUMNS)
        if len(jobs) > MOST:
            print(f"and {len(jobs) - MOST} more")
