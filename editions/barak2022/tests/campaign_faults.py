"""Faults of campaigns: kills, interruptions, damaged counts.

    PYTHONPATH=tests:editions/barak2022/tests python -m faults.soak --more campaign_faults    (make soak)
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from functools import cache
from pathlib import Path
from random import Random

from barak2022 import campaign
from faults.bench import INTERRUPTED, Bench, Child, Outcome, ended, wait_for
from faults.counted import compared
from faults.processes import STRIKE

from paritylab.storage.counts import Counted

IMPORTS = "barak2022.campaign", "barak2022.commands.campaign"
RUNS = 2_000
COMMAND = ["barak2022", "campaign", "--settings", "i", "--n", "10", "--k", "2", "--batch", "32", "4", "--runs",
           str(RUNS), "--json"]
# Many files to write, and no figure to draw.
SMALL = """
import barak2022.campaign, paritylab.plots
barak2022.campaign.BLOCK, paritylab.plots.save = 100, lambda *_: []
"""
LONG = [*COMMAND[:COMMAND.index("--batch")], "--batch", "32", "--runs", "1e6", "--json"]
ATTEMPTS = 4
HEARD_SECONDS = 8.0  # a fraction of a second, on a machine that has nothing else to do


def start(bench: Bench, out: Path, first: str = "") -> Child:
    return bench.start(out, command=COMMAND, first=SMALL + first)


def complete(bench: Bench, out: Path, outcome: Outcome) -> None:
    bench.complete(out, outcome=outcome, command=COMMAND, first=SMALL)


@cache
def undisturbed(bench: Bench) -> tuple[dict[str, Counted], float]:
    """The counts of a campaign in peace, and the seconds that it takes."""
    folder = bench.folder / "campaign in peace"
    complete(bench, folder / "first", outcome := Outcome())  # all is imported by then
    begun = time.monotonic()
    complete(bench, folder / "second", outcome)
    assert outcome.clean, outcome
    seconds = time.monotonic() - begun
    return {path.name: Counted.load(path) for path in (folder / "first" / "campaign").glob("counts-*")}, seconds


def struck(moments: Random, bench: Bench, out: Path, number: int, group: bool = False) -> Child:
    """A campaign that got a signal at one of its calls, or at any time, and ended."""
    if moments.random() < 0.5:
        call, before = moments.choice(["fsync", "replace"]), moments.random() < 0.5
        child = start(bench, out, STRIKE.format(call=call, count=int(2 ** moments.uniform(0, 6)), before=before,
                                                number=int(number), kill="killpg" if group else "kill"))
    else:
        child = start(bench, out)
        limit = time.monotonic() + moments.uniform(0, undisturbed(bench)[1])
        wait_for(lambda: child.status() is not None or time.monotonic() > limit, 60)
        child.send(number, group)
    child.wait()
    return child


def cut_short(moments: Random, bench: Bench, out: Path, number: int, outcome: Outcome) -> Child:
    """A campaign that would train for long; its main process alone gets a signal, and nothing is left of it."""
    child = bench.start(out, command=LONG)
    with ended(child):
        wait_for(lambda: child.status() is not None or (out / "campaign" / "plan.json").exists(), 60)
        time.sleep(moments.uniform(0, 4))
        child.send(number)
        with contextlib.suppress(TimeoutError):
            child.wait(HEARD_SECONDS)
        outcome.expect(child.status() is not None, f"{signal.Signals(number).name} was not heard")
        outcome.left += child.orphans(HEARD_SECONDS)
    outcome.faults += 1
    return child


def finished(bench: Bench, out: Path, outcome: Outcome) -> Outcome:
    """Let a campaign through, and look at what is there in the end."""
    complete(bench, out, outcome)
    outcome += compared(out / "campaign", undisturbed(bench)[0])
    campaign.save_plan(*campaign.load_plan(out / "campaign"), out / "campaign")
    outcome.left += len(list((out / "campaign").glob(".*.tmp")))
    return outcome


def kill_campaign(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """Kill a campaign again and again, then let it through."""
    outcome = Outcome()
    cut_short(moments, bench, folder / "long", signal.SIGKILL, outcome)
    for _ in range(ATTEMPTS):
        child = struck(moments, bench, folder, signal.SIGKILL)
        status = child.status()
        outcome.faults += status == -signal.SIGKILL
        outcome.expect(status in (0, -signal.SIGKILL) and not child.err, f"status {status}: {child.err}")
        outcome.left += child.orphans()
    return finished(bench, folder, outcome)


def interrupt_campaign(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """Ctrl-C: to the command alone, or, as a terminal does it, to all its processes."""
    outcome = Outcome()
    child = cut_short(moments, bench, folder / "long", signal.SIGINT, outcome)
    outcome.expect((child.status(), child.err) == (130, INTERRUPTED), f"status {child.status()}: {child.err}")
    for _ in range(ATTEMPTS):
        child = struck(moments, bench, folder, signal.SIGINT, group=moments.random() < 0.5)
        status = 0 if child.status() == -signal.SIGINT and child.out.endswith("}\n") else child.status()  # it was done
        outcome.faults += status == 130
        said = (child.err == INTERRUPTED and not child.out) if status == 130 else (status == 0 and not child.err)
        outcome.expect(said, f"status {status}: {child.err}")
        outcome.left += child.orphans()
    return finished(bench, folder, outcome)


def kill_campaign_with_workers(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """Kill a worker of a campaign that has two, later its main process; then let it through, alone."""
    outcome = Outcome()
    child = bench.start(folder, "--workers", "2", command=COMMAND, first=SMALL)
    with ended(child):
        wait_for(lambda: child.status() is not None or len(child.workers()) == 2, 60)
        time.sleep(moments.uniform(0, 2))
        for pid in child.workers()[:1]:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
                outcome.faults += 1
        limit = time.monotonic() + moments.uniform(0, 2 * undisturbed(bench)[1])
        wait_for(lambda: child.status() is not None or time.monotonic() > limit, 60)
        child.send(signal.SIGKILL)
        status = child.wait()
        outcome.faults += status == -signal.SIGKILL
        outcome.expect(status in (0, -signal.SIGKILL) and not child.err, f"status {status}: {child.err}")
        outcome.left += child.orphans()
    return finished(bench, folder, outcome)


def damaged_counts(moments: Random, folder: Path, bench: Bench) -> Outcome:
    """Counts that are cut short, flipped, empty or another's: each is noted and made again."""
    outcome = Outcome()
    complete(bench, folder, outcome)
    paths = sorted((folder / "campaign").glob("counts-*"))
    for path in (hit := moments.sample(paths, 3)):
        data = bytearray(path.read_bytes())
        kind = moments.choice(["cut", "flipped", "empty", "another's"])
        if kind == "flipped":
            data[moments.randrange(len(data))] ^= 1 << moments.randrange(8)
        else:
            data = {"cut": data[: moments.randrange(len(data))], "empty": bytearray(),
                    "another's": bytearray(next(other for other in paths if other not in hit).read_bytes())}[kind]
        path.write_bytes(data)
        outcome.faults += 1
    child = start(bench, folder)
    status = child.wait()
    notes = child.err.splitlines()
    said = len(notes) == 3 and all(any(f"note: not used: {path} is damaged" in note for note in notes) for path in hit)
    outcome.expect(status == 0 and said, f"status {status}: {child.err}")
    return finished(bench, folder, outcome)


SCENARIOS = {
    "a campaign is killed": kill_campaign,
    "Ctrl-C in a campaign": interrupt_campaign,
    "workers of a campaign are killed, then the campaign": kill_campaign_with_workers,
    "counts of a campaign are damaged": damaged_counts,
}
