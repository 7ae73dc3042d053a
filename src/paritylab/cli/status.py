"""``paritylab status``: what is going on, seen from another terminal."""

from __future__ import annotations

import argparse
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
        " still take, and what its stored records say so far.",
    )
    add_common(parser, run)


def run(options: argparse.Namespace) -> None:
    from paritylab.site.results import going_on

    sweeps = going_on(options.out)
    if options.json:
        print_json({"store": str(options.out / "store"), "sweeps": sweeps})
        return
    if not sweeps:
        print(f"nothing is being trained into {options.out / 'store'}")
    for sweep in sweeps:
        jobs = sweep["jobs"]
        done, wanted = (sum(job[name] for job in jobs) for name in ("done", "wanted"))
        left = "unknown" if sweep["left"] is None else f"about {duration(sweep['left'])}"
        print(f"process {sweep['pid']} on {sweep['host']}: {done} of {wanted} runs of {len(jobs)} setups"
              f" after {duration(sweep['elapsed'])}, left: {left}")
        active = sorted(jobs, key=lambda job: ("running", "queued", "done").index(job["state"]))
        print_table([{name: job[name] for name in COLUMNS} for job in active[:MOST]], COLUMNS)
        if len(jobs) > MOST:
            print(f"and {len(jobs) - MOST} more")
