"""Whether the rules of claims can fail: what trials found is spoiled in many ways, and each rule must see it.

    python tools/perturb.py [--out DIR] [--size SIZE] [ID ...]     # quick trials; writes docs/data/perturbed.json

For each claim and each of its rules the file says which results were seen: those of the trial itself, and those of the
same data after every kind of damage. A rule that holds whatever the data say is none. What a rule computes from
formulas when it is judged has no data to damage: a rule whose numbers are the same after all of it is ``computed``.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
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
from paritylab.claims.rules import SIZES
from paritylab.claims.trial import Findings, Trial, size
from paritylab.claims.verdicts import HOLDS, UNDECIDED
from paritylab.setups.setup import Setup
from paritylab.storage.files import write_atomically
from paritylab.storage.records import CENSORED, SOLVED, Records

FILE = Path(__file__).parents[1] / "docs" / "data" / "perturbed.json"
Change = Callable[[np.ndarray], np.ndarray]
RNG = np.random.default_rng(0)
LESS: dict[str, dict[str, Any]] = {
    "beyond.xor-batch1": {"d": [160, 320, 640], "seeds": 5},
    "beyond.leap-time": {"n": [16, 24, 32], "seeds": 50},
    "beyond.bias-buys": {"p": [0.5, 0.6, 0.7], "seeds": 20},
    "beyond.grokking-map": {"m": [200, 800, 1200, 1600], "decay": [0.0, 0.1], "seeds": 50, "steps": 10_000},
}
"""What takes the place of full sizes that take hours, so that rules of that size are tried on something."""


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
        "drawn": (drawn, shuffled),
        "reversed": (lambda a: a[::-1] if a.ndim else a, shuffled),
        "backwards": (lambda a: a[..., ::-1] if a.ndim else a, some_unsolved),
        "many": (lambda a: a * 10**9 if a.dtype.kind in "iu" else a, late),
        "uneven": (lambda a: a * np.linspace(1, 9, a.shape[-1]) if a.dtype.kind == "f" and a.ndim else a, shuffled),
        "jagged": (jagged, shuffled),
        "memoryless": (lambda a: RNG.exponential(1, a.shape) if a.dtype.kind == "f" else a, memoryless),
    }


def drawn(array: np.ndarray) -> np.ndarray:
    """Counts up to the largest there is, and numbers between 0 and 1."""
    if array.dtype.kind in "iu":
        return RNG.integers(0, int(np.abs(array).max()) + 1, array.shape).astype(array.dtype)
    return RNG.uniform(0, 1, array.shape) if array.dtype.kind == "f" else array


def jagged(array: np.ndarray) -> np.ndarray:
    """Every third number is smaller, along every axis."""
    if array.dtype.kind != "f":
        return array
    for axis in range(array.ndim):
        shape = [1] * array.ndim
        shape[axis] = -1
        array = array * np.where(np.arange(array.shape[axis]) % 3 == 2, 0.8, 1.0).reshape(shape)
    return array


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


def mirrored(got: Any) -> Any:
    """What was found for the first case stands for the last, and so on."""
    if isinstance(got, dict):
        return dict(zip(got, reversed(got.values()), strict=True)) if len(got) > 1 else {
            name: mirrored(value) for name, value in got.items()}
    if isinstance(got, list):
        return got[::-1] if len(got) > 1 else [mirrored(one) for one in got]
    if isinstance(got, tuple) and not hasattr(got, "_fields"):
        return tuple(mirrored(one) for one in got)
    return got


def damaged(got: Any, change: Change, records: Callable[[Records], Records] | None) -> Any:
    """The same structure with its numbers changed."""
    def inner(each: Any) -> Any:
        if isinstance(each, Records):
            gone = records(each) if records else each
            return dataclasses.replace(gone, accuracy=change(gone.accuracy), loss=change(gone.loss))
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
        if isinstance(each, Setup):
            return each
        if dataclasses.is_dataclass(each) and not isinstance(each, type):
            fields = {f.name: getattr(each, f.name) for f in dataclasses.fields(each) if f.init}
            kept = {"engine", "seed", "steps", "how"}
            changed = {name: inner(value) for name, value in fields.items() if name not in kept}
            return dataclasses.replace(each, **changed)
        return each
    return inner(got)


def trial_of(claim: Claim, lab: Lab) -> Trial:
    """The claim's trial at the size of the Lab, or a smaller one with the same rules."""
    less = LESS.get(claim.key, {}) if lab.size == "full" else {}
    sizes = {name: size(value, label=getattr(claim.trial, name).label) for name, value in less.items()}
    kind: type[Trial] = type(claim.trial.__name__, (claim.trial,), sizes)
    return kind(lab.size, lab.seed)


def outcomes(claim: Claim, lab: Lab) -> dict[str, list[str]]:
    """The results that each rule of a claim's trial gave, over all kinds of damage."""
    trial = trial_of(claim, lab)
    got = trial.work(lab)
    results: dict[str, set[str]] = {rule.name: set() for rule in trial.rules() if lab.size in rule.only}
    values: dict[str, set[str]] = {name: set() for name in results}
    ways: list[Callable[[Any], Any]] = [functools.partial(damaged, change=change, records=records)
                                        for change, records in damages().values()]
    for way in [*ways, mirrored]:
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found: Findings = trial.judge(way(got))
        except Exception:
            if way is ways[0]:
                raise
            continue  # data that cannot be are often refused, which is no verdict
        for name in results:
            checks = [check for check in found.checks if check.by is not None and check.by.name == name]
            results[name] |= {earned(check, trial).result for check in checks}
            values[name].add(str([(check.name, check.value, check.interval) for check in checks]))
    computed = {name for name in results if len(values[name]) == 1 and results[name] != {UNDECIDED}}
    return {name: ["computed"] if name in computed else sorted(results[name]) for name in results}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("claims", nargs="*", default=["*"])
    parser.add_argument("--out", type=Path, default=Path("out"))
    parser.add_argument("--size", choices=SIZES, default="quick")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    known = json.loads(FILE.read_text(encoding="utf-8")) if FILE.is_file() else {}
    for claim in find(options.claims):
        now = claim.current
        lab = Lab(options.size, options.out, options.seed, progress=False)
        before = known.setdefault(now.key, {})
        for name, results in outcomes(now, lab).items():
            before[name] = sorted({*before.get(name, ()), *results})
        stuck = [name for name, results in known[now.key].items() if set(results) in ({HOLDS}, {UNDECIDED})]
        print(now.key, *(f"\n    always the same: {name}" for name in stuck), flush=True)
        write_atomically(FILE, (json.dumps(dict(sorted(known.items())), indent=1) + "\n").encode())
    return 0


if __name__ == "__main__":
    sys.exit(main())
