"""What every trial of every claim asks for, as digests: moving code must not change one of them.

    python tools/plans.py FILE              # writes them
    python tools/plans.py FILE --compare    # names the plans that differ from those in the file, and exits with 1

A plan has a claim's words, the values and rules of one size, and everything that its trial plans to run: Setups by
their ids, seeds, numbers of runs, options. Where the code is, and by which engine or version it runs, does not count.
"""

from __future__ import annotations

import argparse
import dataclasses
import hashlib
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from paritylab.claims.library import Claim
from paritylab.claims.registry import registry
from paritylab.claims.reproduction import plan
from paritylab.claims.rules import SIZES
from paritylab.progress import Bar
from paritylab.running.tasks import AnyTask, ComputeTask


def told(task: AnyTask) -> str:
    """A task in words that stay when code moves."""
    if isinstance(task, ComputeTask):
        return json.dumps(["compute", task.function.rpartition(":")[2], task.arguments, task.seed])
    about = {each.name: getattr(task, each.name) for each in dataclasses.fields(task)} | {"setup": task.setup.id}
    return json.dumps([type(task).__name__, about], sort_keys=True, default=str)


def planned(claim: Claim, size: Any) -> tuple[str, int]:
    """The digest of a plan, and how many tasks are in it."""
    values = {label: getattr(each, "values", each) for label, each in claim.trial.sizes().items()}
    rules = [repr(rule) for rule in claim.trial.rules()]
    words = [claim.id, claim.where, claim.kind, claim.title, claim.statement, claim.published]
    with tempfile.TemporaryDirectory(prefix="paritylab-plans-") as folder:
        tasks, every = plan(claim, size, Path(folder))
    parts = [*words, repr(sorted(values.items(), key=str)), *rules, str(every), *map(told, tasks)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16], len(tasks)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", type=Path)
    parser.add_argument("--compare", action="store_true", help="compare with the file instead of writing it")
    options = parser.parse_args()
    every, tasks = list(registry().values()), 0
    found: dict[str, str] = {}
    with Bar("plans", len(every)) as bar:
        for i, claim in enumerate(every):
            for size in SIZES:
                found[f"{claim.id} {size}"], count = planned(claim, size)
                tasks += count
            bar.show(i + 1)
    whole = hashlib.sha256(json.dumps(found, sort_keys=True).encode()).hexdigest()[:16]
    print(f"{len(every)} trials, {len(found)} plans, {tasks} tasks: {whole}")
    if not options.compare:
        options.file.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
        return 0
    before = json.loads(options.file.read_text(encoding="utf-8"))
    differing = sorted(name for name in before.keys() | found.keys() if before.get(name) != found.get(name))
    print(*differing[:50], sep="\n")
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
