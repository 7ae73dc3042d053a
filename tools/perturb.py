"""Whether the rules of claims can fail: what trials found is spoiled in many ways, and each rule must see it.

    python tools/perturb.py [--out DIR] [ID ...]     # quick trials; writes docs/data/perturbed.json

For each claim and each of its rules the file says which results were seen: those of the trial itself, and those of the
same data after every kind of damage. A rule that holds whatever the data say is none. Trials that compute everything
from formulas when they are judged have no data to damage: their rules are ``computed``.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from paritylab.claims import Lab
from paritylab.claims.library import Claim
from paritylab.claims.registry import find
from paritylab.claims.reproduction import earned
from paritylab.claims.trial import Findings, Trial
from paritylab.storage.files import write_atomically
from paritylab.storage.records import CENSORED, SOLVED, Records

FILE = Path(__file__).parents[1] / "docs" / "data" / "perturbed.json"
Change = Callable[[np.ndarray], np.ndarray]
RNG = np.random.default_rng(0)


def damages() -> dict[str, tuple[Change, Callable[[Records], Records] | None]]:
    """Kinds of damage: what becomes of arrays, and of records."""
    return {
        "nothing": (lambda a: a, None),
        "zero": (np.zeros_like, unsolved),
        "one": (np.ones_like, at_once),
        "half": (lambda a: np.full_like(a, 0.5) if a.dtype.kind == "f" else a, some_unsolved),
        "negative": (lambda a: -a if a.dtype.kind in "fi" else ~a if a.dtype.kind == "b" else a, late),
        "large": (lambda a: a * 1e6 if a.dtype.kind == "f" else a, late),
        "small": (lambda a: a * 1e-6 if a.dtype.kind == "f" else a, at_once),
        "noise": (lambda a: a * np.exp(RNG.normal(0, 2, a.shape)) if a.dtype.kind == "f" else a, shuffled),
        "random": (lambda a: RNG.normal(0, 1, a.shape) if a.dtype.kind == "f" else a, shuffled),
        "reversed": (lambda a: a[::-1], shuffled),
        "backwards": (lambda a: a[..., ::-1], some_unsolved),
        "memoryless": (lambda a: RNG.exponential(1, a.shape) if a.dtype.kind == "f" else a, memoryless),
    }


def unsolved(records: Records) -> Records:
    status = np.full_like(records.status, CENSORED)
    return dataclasses.replace(records, t_c=np.full_like(records.t_c, -1), status=status)


def at_once(records: Records) -> Records:
    return dataclasses.replace(records, t_c=np.full_like(records.t_c, 10), status=np.full_like(records.status, SOLVED))


def late(records: Records) -> Records:
    """The rarer a run was, the sooner: order turned round."""
    t_c = np.where(records.t_c > 0, records.t_c.max(initial=1) + 10 - records.t_c, records.t_c)
    return dataclasses.replace(records, t_c=t_c)


def some_unsolved(records: Records) -> Records:
    gone = RNG.random(len(records)) < 0.5
    return dataclasses.replace(records, t_c=np.where(gone, -1, records.t_c),
                               status=np.where(gone, CENSORED, records.status).astype(records.status.dtype))


def shuffled(records: Records) -> Records:
    """Times over several decades, whatever they were."""
    t_c = (10 ** RNG.uniform(1, 5, len(records))).astype(records.t_c.dtype)
    return dataclasses.replace(records, t_c=t_c, status=np.full_like(records.status, SOLVED))


def memoryless(records: Records) -> Records:
    """Times that are as likely to come next as they ever were."""
    t_c = 10 * RNG.geometric(0.02, len(records)).astype(records.t_c.dtype)
    return dataclasses.replace(records, t_c=t_c, status=np.full_like(records.status, SOLVED))


def has_numbers(got: Any) -> bool:
    """Whether there is anything to be damaged."""
    changed: list[bool] = []
    damaged(got, lambda array: changed.append(True) or array, lambda records: changed.append(True) or records)
    return bool(changed)


def damaged(got: Any, change: Change, records: Callable[[Records], Records] | None) -> Any:
    """The same structure with its numbers changed."""
    def inner(each: Any) -> Any:
        if isinstance(each, Records):
            return records(each) if records else each
        if isinstance(each, np.ndarray):
            return change(each) if each.size else each
        if isinstance(each, list):
            return [inner(one) for one in each]
        if isinstance(each, tuple):
            parts = [inner(one) for one in each]
            return type(each)(*parts) if hasattr(each, "_fields") else tuple(parts)
        if isinstance(each, dict):
            return {name: inner(value) for name, value in each.items()}
        if isinstance(each, float):
            return float(change(np.array([each]))[0])
        if dataclasses.is_dataclass(each) and not isinstance(each, type):
            fields = {f.name: getattr(each, f.name) for f in dataclasses.fields(each) if f.init}
            kept = {"setup", "engine", "seed", "steps", "how"}
            changed = {name: inner(value) for name, value in fields.items() if name not in kept}
            return dataclasses.replace(each, **changed)
        return each
    return inner(got)


def outcomes(claim: Claim, out: Path) -> dict[str, list[str]]:
    """The results that each rule of a claim's quick trial gave, over all kinds of damage."""
    trial: Trial = claim.trial("quick", 0)
    got = trial.work(Lab("quick", out, progress=False))
    seen: dict[str, set[str]] = {rule.name: set() for rule in trial.rules() if "quick" in rule.only}
    for kind, (change, records) in damages().items():
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found: Findings = trial.judge(damaged(got, change, records))
        except Exception:
            if kind == "nothing":
                raise
            continue  # data that cannot be are often refused, which is no verdict
        for check in found.checks:
            assert check.by is not None
            seen[check.by.name].add(earned(check, trial).result)
    if not has_numbers(got):
        return {name: ["computed"] for name in seen}
    return {name: sorted(results) for name, results in seen.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("claims", nargs="*", default=["*"])
    parser.add_argument("--out", type=Path, default=Path("out"))
    options = parser.parse_args()
    known = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}
    for claim in find(options.claims):
        now = claim.current
        known[now.key] = outcomes(now, options.out)
        stuck = [name for name, results in known[now.key].items() if set(results) <= {"holds"}]
        print(now.key, *(f"\n    always the same: {name}" for name in stuck), flush=True)
        write_atomically(FILE, (json.dumps(dict(sorted(known.items())), indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
