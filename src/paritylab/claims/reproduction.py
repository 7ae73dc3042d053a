"""Trying a claim: run it, judge it, write the figure, the data and the result."""

from __future__ import annotations

import datetime
import io
import json
import platform
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import metadata
from pathlib import Path
from typing import Any, cast

from paritylab import __version__, engines, provenance
from paritylab.claims import evidence, sources
from paritylab.claims.lab import Lab
from paritylab.claims.library import Claim
from paritylab.claims.registry import find
from paritylab.claims.requests import Planned
from paritylab.claims.rules import Significance, Size
from paritylab.claims.trial import Trial
from paritylab.claims.verdicts import HOLDS, Check, Outcome, finite
from paritylab.errors import require
from paritylab.progress import duration
from paritylab.running.tasks import AnyTask, cost_of
from paritylab.storage.files import write_atomically
from paritylab.storage.kept import digest_of, save_document


@dataclass(frozen=True)
class Reproduction:
    """A claim that was tried: its verdict with everything that led to it."""

    claim: Claim
    outcome: Outcome
    result: dict[str, Any]
    """All of it as plain JSON values, as evidence keeps it."""
    files: list[Path]

    @property
    def told(self) -> str:
        """Result and basis; of a claim with parts, how many hold."""
        results = self.outcome.results
        if set(results) == {""}:
            return f"{results['']}, {self.claim.basis()}"
        return f"{list(results.values()).count(HOLDS)} of {len(results)} parts hold"

    def __str__(self) -> str:
        facts = f"{self.result['size']}, seed {self.result['seed']}, {self.result['seconds']:.1f} s"
        lines = [f"{self.claim.id}: {self.told} ({facts})"]
        lines += [f"  {part}: {result}, {self.claim.basis(part)}"
                  for part, result in self.outcome.results.items() if part]
        lines += [f"  {check}" for check in self.outcome.checks]
        lines += [f"  {name}: {'unknown' if value is None else value}"
                  for name, value in self.result["numbers"].items()]
        if self.outcome.note:
            lines.append(f"  note: {self.outcome.note}")
        return "\n".join(lines)


def reproduce(claim: str | Claim, lab: Lab | None = None, record: bool = False) -> Reproduction:
    """Try one claim. Figure, data and result are written under ``<out>/claims/``.

    ``record`` adds the result to the evidence that the paper ships. For a claim with a history, or a statement of one's
    own, that needs a rule that was committed before, and for one with a history seeds that nobody has seen.
    """
    lab = lab or Lab()
    claim = claim if isinstance(claim, Claim) else find([claim])[0]
    if record:
        evidence.check_recordable(claim.id)
    commit = committed(claim, lab.seed) if record and (claim.history or claim.paper.own) else None
    trial = claim.trial(lab.size, lab.seed)
    start = time.perf_counter()
    outcome = tried(trial, lab)
    result = _result(claim, trial, lab, outcome, time.perf_counter() - start)
    _carry_cost(result, evidence.local(lab.out, claim.id).get(result["size"]))
    directory = evidence.local_directory(lab.out, claim.id, result["size"])
    directory.mkdir(parents=True, exist_ok=True)
    data = _write_data(directory, outcome.data)
    records = sources.to_bytes(lab.sources)
    write_atomically(directory / evidence.RECORDS, records)
    files = [*data, directory / evidence.RECORDS, *_write_figure(directory, outcome.figure)]
    digests = {path.name: digest_of(path.read_bytes()) for path in files}
    save_document(directory / "result.json", result | {"files": digests})
    if record:
        figure = (directory / "figure.svg").read_bytes() if outcome.figure is not None else None
        entry = result | ({"commit": commit} if commit else {})
        files.append(evidence.record(claim.id, entry, figure, data, records))
    return Reproduction(claim, outcome, result, files)


def tried(trial: Trial, lab: Lab) -> Outcome:
    """What comes of a trial. Its checks are of rules that it declares, each for this size."""
    got = trial.work(lab)
    found = trial.judge(got)
    for check in found.checks:
        rule = check.by
        require(rule is not None and rule in trial.rules(), f"{trial.claim}: {check.name!r} is not a declared rule")
        require(rule is None or trial.size in rule.only, f"{trial.claim}: {check.name!r} is no rule for {trial.size}")
    return Outcome([earned(check, trial) for check in found.checks], found.data, trial.draw(got), found.numbers,
                   found.note)


def earned(check: Check, trial: Trial) -> Check:
    """A check that a point estimate alone would decide is undecided."""
    exact = isinstance(check.by, Significance) or check.by is None or check.by.exact or trial.kind == "exact"
    return check if exact or check.interval is not None else replace(check, point=True)


def committed(claim: Claim, seed: int) -> str:
    """The commit that last changed a claim's rule, which must come before the run; a changed one needs fresh seeds."""
    require(seed > 0 or not claim.history, f"{claim.id}: a changed rule is recorded with fresh seeds (--seed 1)")

    def git(*words: str) -> str:
        done = subprocess.run(["git", *words, "--", claim.path.name], cwd=claim.path.parent, capture_output=True,
                              text=True, check=False)
        require(done.returncode == 0, f"{claim.id}: a new rule is recorded from a git checkout, which dates it")
        return done.stdout.strip()

    require(not git("status", "--porcelain"), f"{claim.id}: commit {claim.path.name} before its run is recorded")
    return git("log", "-1", "--format=%H")


def plan(claim: Claim, size: Size, out: Path, seed: int = 0, engine: str = "auto") -> tuple[list[AnyTask], bool]:
    """The tasks that a trial is waiting for, and whether they are all: what comes after them may depend on them."""
    tasks: list[AnyTask] = []
    lab = Lab(size, out, seed, engine, progress=False, plan=tasks)
    try:
        claim.trial(size, seed).work(lab)
    except Planned:
        return tasks, False
    return tasks, lab.planned_all


@dataclass(frozen=True)
class Estimate:
    """What a trial will cost: seconds (None where nobody measured it), FLOPs, and where the numbers come from."""

    seconds: float | None
    flops: float | None
    source: str

    def __str__(self) -> str:
        time_ = "an unknown time" if self.seconds is None else duration(self.seconds)
        work = "" if not self.flops else f", {self.flops:.1e} FLOP of training"
        return f"about {time_}{work} ({self.source})"


def estimate(claim: Claim, size: str, out: Path) -> Estimate:
    """What a trial of this size will cost, from evidence of one like it, or from the registry."""
    for entries, source in ((evidence.local(out, claim.id), "your last trial"),
                            (evidence.shipped(claim.id), "measured when it was recorded")):
        found = entries.get(size) or (entries.get("full") if size == "standard" else None)
        if found and not evidence.from_disk(found):
            share = 1 - found["reused_runs"] / max(found["runs"], 1)
            return Estimate(found["seconds"] / share, found["flops"], f"{source}, {found['hardware']}")
    if size == "quick":
        return Estimate(60.0, None, "at most, on two cores")
    tasks, all_ = plan(claim, cast("Size", size), out)
    flops, seconds = (sum(each) for each in zip((0.0, 0.0), *map(cost_of, tasks), strict=True))
    return Estimate(seconds, flops, f"at most, {'' if all_ else 'for what is known to be asked, '}on two cores")


def _result(claim: Claim, trial: Trial, lab: Lab, outcome: Outcome, seconds: float) -> dict[str, Any]:
    left_out = {"left out": lab.left_out} if lab.left_out else {}
    return {
        "format": evidence.FORMAT,
        "claim": claim.id,
        "size": lab.size if trial.reduced or lab.left_out else "full",
        "results": outcome.results,
        "checks": [check.to_dict() for check in outcome.checks],
        "numbers": {name: finite(value) for name, value in outcome.numbers.items()},
        "note": outcome.note,
        "parameters": json.loads(json.dumps(trial.parameters | left_out)),
        "seed": lab.seed,
        "runs": lab.runs,
        "reused_runs": lab.reused,
        "recalled_arrays": lab.recalled,
        "model_steps": lab.model_steps,
        "flops": lab.flops,
        "engines": sorted(lab.engines),
        "seconds": round(seconds + lab.recalled_seconds, 2),
        "versions": {"paritylab": __version__, "python": platform.python_version()}
        | {name: metadata.version(name) for name in ("jax", "numpy", "scipy")},
        "hardware": provenance.hardware(),
        "origin": provenance.origin() | {"builds": _builds(lab)},
        "date": datetime.date.today().isoformat(),
    }


def _builds(lab: Lab) -> dict[str, str]:
    """How the engines of this machine were made that trained; records may have come from others."""
    here = {engines.label(name) for name in engines.registered()}
    return {name: provenance.build(name) for name in sorted(here & lab.engines)}


def _carry_cost(result: dict[str, Any], before: dict[str, Any] | None) -> None:
    """A trial whose runs and arrays all came from disk cost what the trial that computed them did."""
    same = ("parameters", "seed", "runs", "model_steps", "hardware")
    from_disk = result["reused_runs"] or result["recalled_arrays"]
    if before and from_disk and result["seconds"] < before["seconds"] and all(result[n] == before[n] for n in same):
        result |= {name: before.get(name, 0) for name in ("seconds", "reused_runs", "recalled_arrays", "date")}


def _write_data(directory: Path, rows: Sequence[Mapping[str, Any]]) -> list[Path]:
    import polars as pl

    frame = pl.DataFrame([dict(row) for row in rows], infer_schema_length=None)
    parquet = io.BytesIO()
    frame.write_parquet(parquet)
    files = {"data.parquet": parquet.getvalue(), "data.csv": frame.write_csv().encode()}
    for name, data in files.items():
        write_atomically(directory / name, data)
    return [directory / name for name in files]


def _write_figure(directory: Path, figure: Any) -> list[Path]:
    if figure is None:
        return []
    from paritylab import plots

    return plots.save(figure, directory / "figure")
