"""What the store holds, for the pages: finished sweeps, and those that are going on."""

from __future__ import annotations

import time
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from paritylab.errors import InvalidInput
from paritylab.setups.words import network_in_words
from paritylab.storage import status

if TYPE_CHECKING:
    import polars as pl

    from paritylab.storage.gathered import Key
    from paritylab.storage.store import Store

COLUMNS = ("setup_id", "n", "k", "network", "batch", "lr", "engine", "seed", "runs", "solved", "censored", "diverged",
           "solved_fraction", "p10", "p10_low", "p10_high", "median", "median_low", "median_high", "p90", "p90_low",
           "p90_high", "fastest")


NUMBERS = ("runs", "solved", "censored", "diverged")


def summaries(out: Path) -> list[dict[str, Any]]:
    """One row for each Setup, engine and seed with records; what cannot be read is left out."""
    root = out / "store"
    if not root.is_dir():
        return []
    from paritylab.statistics import results
    from paritylab.storage.store import Store

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        store = Store(root)
        table = results.answer(store)
        table = table.with_columns(results.networks_in_words(store, table).alias("network"))
    order = ("n", "k", "network", "batch", "lr", "engine", "seed", "setup_id")
    return plain(table.select(*COLUMNS).sort(*order))


def plain(table: pl.DataFrame) -> list[dict[str, Any]]:
    """Rows as JSON values: what is not reached, or not defined, is None."""
    import polars as pl
    import polars.selectors as cs

    return table.with_columns(pl.when(cs.float().is_finite()).then(cs.float())).to_dicts()


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


def _known(store: Store, jobs: list[dict[str, Any]], first: int, runs: int) -> dict[Key, dict[str, Any]]:
    """What the stored records of jobs with these runs say so far."""
    from paritylab.statistics.tables import summaries as summarised
    from paritylab.storage.gathered import Wanted

    mine = [job for job in jobs if (job["first"], job["runs"]) == (first, runs)]
    ids, engines = ({job[name] for job in mine} for name in ("setup_id", "engine"))
    wanted = Wanted(ids, engines, None, range(first, first + runs))
    return {(row["setup_id"], row["engine"], row["seed"]): row for row in plain(summarised(store.gather(wanted)))}


def _in_words(job: dict[str, Any]) -> dict[str, Any]:
    learner, problem = job["setup"]["learner"], job["setup"]["problem"]
    return {
        "setup_id": job["setup_id"], "n": problem.get("n"), "k": problem.get("k"),
        "network": network_in_words(learner["network"]), "batch": learner.get("batch"),
        "lr": learner.get("optimiser", {}).get("lr"), "engine": job["engine"], "seed": job["seed"],
    }


def _told(root: Path, sweep: dict[str, Any]) -> dict[str, Any]:
    from paritylab.storage.store import Store

    store, jobs = Store(root), []
    ranges = {(job["first"], job["runs"]) for job in sweep["jobs"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        known = {each: _known(store, sweep["jobs"], *each) for each in ranges}
    for job in sweep["jobs"]:
        key = job["setup_id"], job["engine"], job["seed"]
        said = known[job["first"], job["runs"]].get(key) or dict.fromkeys(COLUMNS) | dict.fromkeys(NUMBERS, 0)
        done = max(said["runs"], job["known"] + job["ended"])  # a race keeps some under another Setup
        jobs.append(said | _in_words(job) | {"state": job["state"], "done": done, "wanted": job["runs"]})
    ended = sum(job["ended"] for job in sweep["jobs"])
    left = max(0, sum(job["runs"] - job["known"] - job["ended"] for job in sweep["jobs"]))
    guess = ended and sweep["quiet_since"] is None
    elapsed = max(0.0, time.time() - sweep["started"])
    return {
        "pid": sweep["pid"], "host": sweep["host"], "started": sweep["started"], "elapsed": round(elapsed, 1),
        "left": round(elapsed * left / ended, 1) if guess else None, "quiet_since": sweep["quiet_since"], "jobs": jobs,
    }
