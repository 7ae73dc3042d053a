"""What the store holds, for the pages: finished sweeps, and those that are going on."""

from __future__ import annotations

import contextlib
import time
import warnings
from pathlib import Path
from typing import Any

from paritylab.errors import InvalidInput
from paritylab.setups.words import network_in_words
from paritylab.storage import stages, status


def summaries(out: Path) -> list[dict[str, Any]]:
    """One row for each Setup, engine and seed with records; what cannot be read is left out."""
    root = out / "store"
    if not root.is_dir():
        return []
    from paritylab.storage.store import Store

    store, rows = Store(root), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for each in stages.series(store, [told for told in store.setups() if told[1].get("type") == "setup"]):
            with contextlib.suppress(KeyError, TypeError, AttributeError):  # not a Setup of this version
                rows.append(row(each))
    order = ("n", "k", "network", "batch", "lr", "engine", "seed", "setup_id")
    return sorted(rows, key=lambda each: [str(each[name]).rjust(24) for name in order])


def row(each: stages.Series) -> dict[str, Any]:
    """A Setup in a few words, and what its records say."""
    from paritylab import statistics

    learner, problem = each.setup["learner"], each.setup["problem"]
    return {
        "setup_id": each.setup_id, "n": problem.get("n"), "k": problem.get("k"),
        "network": network_in_words(learner["network"]), "batch": learner.get("batch"),
        "lr": learner.get("optimiser", {}).get("lr"), "engine": each.engine, "seed": each.seed,
        **statistics.summary(each.records).to_dict(),
    }


def going_on(out: Path) -> dict[str, list[Any]]:
    """Running and queued ``sweeps``: how far they are, how long they may still take, what their stored records say.

    ``notes`` say what could not be shown.
    """
    root = out / "store"
    seen, found = status.look(root), []
    for sweep in seen.sweeps:
        try:
            found.append(_told(root, sweep))
        except InvalidInput as error:
            seen.notes.append(f"not shown: a sweep of {len(sweep['jobs'])} setups: {error}")
    return {"sweeps": found, "notes": seen.notes}


def _told(root: Path, sweep: dict[str, Any]) -> dict[str, Any]:
    from paritylab.storage.store import Store

    store, jobs = Store(root), []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for job in sweep["jobs"]:
            asked = range(job["first"], job["first"] + job["runs"])
            key = job["setup_id"], job["engine"], job["seed"]
            known = row(stages.Series(key[0], job["setup"], *key[1:], store.records(*key, asked)))
            done = max(known["runs"], job["known"] + job["ended"])  # a race keeps some under another Setup
            jobs.append(known | {"state": job["state"], "done": done, "wanted": job["runs"]})
    ended = sum(job["ended"] for job in sweep["jobs"])
    left = max(0, sum(job["runs"] - job["known"] - job["ended"] for job in sweep["jobs"]))
    guess = ended and sweep["quiet_since"] is None
    elapsed = max(0.0, time.time() - sweep["started"])
    return {
        "pid": sweep["pid"], "host": sweep["host"], "started": sweep["started"], "elapsed": round(elapsed, 1),
        "left": round(elapsed * left / ended, 1) if guess else None, "quiet_since": sweep["quiet_since"], "jobs": jobs,
    }
