"""Every fault again and again, at random moments, for as long as one likes: what was tried, and what was lost.

    make soak                       an hour, and at least 200 kills; the counts go into docs/data/reliability.json
    make soak SECONDS=600
    python -m faults.soak --more MODULE     also the SCENARIOS of a module, which names what its commands IMPORT
    python -m faults.soak --markdown    (with tests/ in PYTHONPATH) put them into docs/explanation/reliability.md
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
import platform
import random
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from faults import counted, disk, functions, processes, values
from faults.bench import ENGINE, Bench, Outcome

import paritylab

ROOT = Path(__file__).parents[2]
COUNTS, PAGE = ROOT / "docs" / "data" / "reliability.json", ROOT / "docs" / "explanation" / "reliability.md"
MARKERS = "<!-- counts: written by tests/faults/soak.py --markdown -->", "<!-- end of counts -->"
KILLS = "the command is killed", "the command is killed, with two workers"

SCENARIOS: dict[str, Callable[..., Outcome]] = {
    KILLS[0]: processes.kill_command,
    KILLS[1]: processes.kill_command_with_workers,
    "workers are killed": processes.kill_workers,
    "one of two workers behind TLS is killed": processes.kill_worker_behind_tls,
    "the Dask scheduler is killed": processes.kill_scheduler,
    "the Dask scheduler is restarted": processes.restart_scheduler,
    "the Dask scheduler or a worker stands still": processes.still_scheduler,
    "Ctrl-C": processes.interrupt_command,
    "Ctrl-C while libraries are imported": processes.interrupt_cold_command,
    "Ctrl-C with two workers": processes.interrupt_command_with_workers,
    "one process, then four, then a cluster, each cut short": processes.mixture,
    "work for another machine is cut short, or its workers": counted.offload_cut_short,
    "the disk is full": disk.full_disk,
    "the disk is full, with two workers": disk.full_disk_with_workers,
    "a file may not grow": disk.no_room_for_a_file,
    "the disk is read-only": disk.read_only_disk,
    "a call to the disk fails": disk.failing_disk,
    "a block is cut or has flipped bits": disk.damaged_block,
    "a block of a newer format": disk.newer_block,
    "the file of Setups is damaged or gone": disk.damaged_setup,
    "two commands write one store": disk.shared_store,
    "clocks jump by years": disk.jumping_clock,
    "weights are NaN or infinite": values.weights_of_nan,
    "the loss explodes": values.exploding_loss,
    "degenerate and impossible settings": values.degenerate_setting,
    "a user's function is wrong": functions.failing_function,
    "a user's function returns NaN": functions.function_of_nan,
}


def soak(
    seconds: float, kills: int, seed: int, folder: Path, before: dict[str, Any] | None = None,
    imports: Sequence[str] = (),
) -> dict[str, Any]:
    """Go through all scenarios in random orders until the time is up, then through those that did not have their turn,
    then go on killing until there were enough. With the counts of a soak from ``before`` it goes on from there.
    """
    earlier = before["scenarios"] if before else {}
    totals = {name: Outcome() for name in SCENARIOS}
    times = dict.fromkeys(SCENARIOS, 0)
    for name in SCENARIOS.keys() & earlier.keys():
        times[name], totals[name] = earlier[name].pop("times"), Outcome(**earlier[name])
    impossible: dict[str, str] = {}
    order: list[str] = []
    start = time.monotonic() - (before["seconds"] if before else 0)
    with Bench(folder, imports) as bench:
        while True:
            late, killed = time.monotonic() - start > seconds, sum(totals[name].faults for name in KILLS)
            untried = [name for name in SCENARIOS if not times[name] and name not in impossible]
            if late and killed >= kills and not untried:
                break
            order = order or random.Random(f"{seed} {sum(times.values())}").sample(list(SCENARIOS), len(SCENARIOS))
            name = order.pop() if not late else untried[0] if untried else KILLS[0]
            outcome = tried(name, f"{seed} {name} {times[name]}", folder, bench, impossible)
            totals[name] += outcome
            times[name] += name not in impossible
            bad = "" if outcome.clean else f"  {outcome}"
            print(f"{time.monotonic() - start:6.0f} s  {name}: {outcome.faults}{bad}", file=sys.stderr, flush=True)
    return {
        "version": paritylab.__version__, "engine": ENGINE, "seed": seed, "seconds": round(time.monotonic() - start),
        "python": platform.python_version(), "system": platform.system(), "impossible": impossible,
        "scenarios": {name: {"times": times[name], **dataclasses.asdict(totals[name])} for name in SCENARIOS},
    }


def tried(name: str, seed: str, folder: Path, bench: Bench, impossible: dict[str, str]) -> Outcome:
    """One scenario in a folder of its own."""
    with tempfile.TemporaryDirectory(dir=folder) as here:
        try:
            outcome = SCENARIOS[name](random.Random(seed), Path(here), bench)
        except disk.Unavailable as why:
            impossible[name] = str(why)
            return Outcome()
        except Exception as error:
            traceback.print_exc()
            outcome = Outcome(surprises=[f"{type(error).__name__}: {error}"])
    outcome.surprises = [f"seed {seed!r}: {surprise}" for surprise in outcome.surprises]
    return outcome


def table(counts: dict[str, Any]) -> str:
    """The counts as a Markdown table."""
    lines = [
        "| what happens | tried | faults | records compared | lost | doubled | different | left behind | surprises |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    rows = {**counts["scenarios"], "**all**": total(counts)}
    for name, row in rows.items():
        numbers = (row["times"], *(row[key] for key in ("faults", "records", "lost", "doubled", "different", "left")))
        lines.append(f"| {name} | {' | '.join(f'{number:,}' for number in numbers)} | {len(row['surprises'])} |")
    made = f"{counts['seconds'] / 60:.0f} minutes, seed {counts['seed']}, paritylab {counts['version']}"
    lines += ["", f"{made}, engine `{counts['engine']}`, Python {counts['python']} on {counts['system']}."]
    return "\n".join([*lines, *(f"Not possible there: {name} ({why})." for name, why in counts["impossible"].items())])


def total(counts: dict[str, Any]) -> dict[str, Any]:
    rows = list(counts["scenarios"].values())
    return {key: sum((row[key] for row in rows), start=type(rows[0][key])()) for key in rows[0]}


def with_table(page: str, counts: dict[str, Any]) -> str:
    """A page with the current table between its markers."""
    before, _, rest = page.partition(MARKERS[0])
    _, _, after = rest.partition(MARKERS[1])
    return f"{before}{MARKERS[0]}\n{table(counts)}\n{MARKERS[1]}{after}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=3600)
    parser.add_argument("--kills", type=int, default=200, help="kills of the command's main process at least")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the counts")
    parser.add_argument("--resume", action="store_true", help="go on from the counts in that file, with their seed")
    parser.add_argument("--markdown", action="store_true", help="put the counts of the last soak into the page")
    parser.add_argument("--more", action="append", default=[], metavar="MODULE", help="with SCENARIOS and IMPORTS")
    options = parser.parse_args()
    more = [importlib.import_module(name) for name in options.more]
    for module in more:
        SCENARIOS.update(module.SCENARIOS)
    imports = [name for module in more for name in module.IMPORTS]
    if options.markdown:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8"), json.loads(COUNTS.read_text())), encoding="utf-8")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        before = json.loads(options.json.read_text(encoding="utf-8")) if options.resume else None
        seed = before["seed"] if before else options.seed
        counts = soak(options.seconds, options.kills, seed, Path(folder), before, imports)
    print(table(counts))
    if options.json:
        options.json.parent.mkdir(parents=True, exist_ok=True)
        options.json.write_text(json.dumps(counts, indent=1) + "\n", encoding="utf-8")
    everything = total(counts)
    return int(any(everything[key] for key in ("lost", "doubled", "different", "left", "surprises")))


if __name__ == "__main__":
    sys.exit(main())
