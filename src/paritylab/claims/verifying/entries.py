"""What is written: digests of evidence and of the files beside it, and its words."""

from __future__ import annotations

import subprocess
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from paritylab.claims import evidence
from paritylab.claims.library import Claim
from paritylab.claims.verifying import words
from paritylab.claims.verifying.report import Report
from paritylab.errors import InvalidInput, in_a_line
from paritylab.progress import Bar
from paritylab.running.cost import RATE
from paritylab.storage.kept import KeptWarning, digest_of, load_document, seal_holds


@dataclass(frozen=True)
class Entry:
    """What came of one trial of a claim, by one of its rules."""

    claim: Claim
    source: str
    """``shipped`` or ``local``."""
    found: dict[str, Any]

    @property
    def where(self) -> str:
        return f"{self.claim.key}, {self.source}, {self.found['size']}"

    @property
    def seconds(self) -> float:
        """About what the trial takes on two cores: its own time says little if runs were there, or done on a GPU."""
        return max(self.found["seconds"], self.found["flops"] / RATE)

    def table(self, out: Path) -> Path | None:
        """The file that lists the records it stands on; None if it has none, or a damaged one."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KeptWarning)  # check_files tells
            return evidence.sources_of(out, self.claim.key, self.found | {"source": self.source})


def entries(claims: Sequence[Claim], out: Path) -> list[Entry]:
    """All evidence of these claims that can be read; of the rest :func:`check_files` tells."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeptWarning)
        warnings.simplefilter("ignore", evidence.EvidenceWarning)
        return [Entry(claim, source, each) for claim in claims for source, sizes in (
            ("shipped", evidence.shipped(claim.key)), ("local", evidence.local(out, claim.key)))
            for each in sizes.values()]


def check_words(entry: Entry, report: Report) -> None:
    """Derive results and verdict from values and intervals again."""
    report.checked["trials whose words were derived again from their numbers"] += 1
    try:
        for line in words.differences(entry.claim, entry.found):
            report.differ(entry.where, line)
    except (InvalidInput, KeyError, TypeError, ValueError) as error:
        report.differ(entry.where, f"cannot be read: {in_a_line(error)}")


def check_files(claims: Sequence[Claim], out: Path, report: Report, progress: bool | None = None) -> None:
    """Compare digests, of shipped evidence and of one's own."""
    commits: dict[Path, Commit | None] = {}
    with Bar("digests", len(claims), progress) as bar:
        for done, claim in enumerate(claims, 1):
            for where, path in _shipped(claim, report):
                commit = _once(commits, path.parent)
                _as_committed(where, path, commit, report)
            for size in evidence.SIZES:
                path = evidence.local_directory(out, claim.key, size) / "result.json"
                if path.is_file():
                    _local(f"{claim.key}, local, {size}", path, report)
            bar.show(done)


def _shipped(claim: Claim, report: Report) -> Iterator[tuple[str, Path]]:
    """Compare all digests that shipped evidence has; what has none is left to the caller."""
    folder, where = evidence.shipped_directory(claim.key), f"{claim.key}, shipped"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", evidence.EvidenceWarning)
        document = evidence.shipped_document(claim.key)
    for each in said:
        report.differ(where, str(each.message))
    old = [f"{claim.key}.{suffix}" for suffix in ("svg", *evidence.SHIPPABLE)] if "files" not in document else []
    for size, entry in document.get("sizes", {}).items():
        if "digest" in entry:
            one = f"{where}, {size}"
            _digest(one, seal_holds(entry), "its numbers or words are not those that were recorded", report)
            _file(one, folder / entry["records"]["file"], entry["records"]["digest"], report)
        else:
            old.append(f"{claim.key}.json")
    for name, digest in document.get("files", {}).items():
        _file(where, folder / name, digest, report)
    yield from ((where, folder / name) for name in dict.fromkeys(old) if (folder / name).is_file())


def _local(where: str, path: Path, report: Report) -> None:
    try:
        found = load_document(path)
    except ValueError as error:
        _digest(where, False, str(error), report)
        return
    _digest(where, True, "", report)
    for name, digest in found.get("files", {}).items():
        _file(where, path.parent / name, digest, report)


def _file(where: str, path: Path, digest: str, report: Report) -> None:
    there = path.is_file()
    sound = there and digest_of(path.read_bytes()) == digest
    _digest(where, sound, f"{path.name} is not what it was" if there else f"{path.name} is missing", report)


def _digest(where: str, sound: bool, what: str, report: Report) -> None:
    report.checked["digests"] += 1
    if not sound:
        report.differ(where, what)


@dataclass(frozen=True)
class Commit:
    """The files of a folder that are under version control, and those that are not as they were committed."""

    tracked: set[str]
    changed: set[str]

    @classmethod
    def of(cls, folder: Path) -> Commit | None:
        """None where nobody can tell."""
        lists: list[set[str]] = []
        for asked in (["ls-files", "-z"], ["diff", "--name-only", "--relative", "-z", "HEAD", "--", "."]):
            call = ["git", "--no-optional-locks", *asked]
            try:
                done = subprocess.run(call, cwd=folder, capture_output=True, check=True)
            except (OSError, subprocess.SubprocessError):
                return None
            lists.append(set(done.stdout.decode(errors="replace").split("\0")))
        return cls(*lists)


def _once(known: dict[Path, Commit | None], folder: Path) -> Commit | None:
    if folder not in known:
        known[folder] = Commit.of(folder)
    return known[folder]


def _as_committed(where: str, path: Path, commit: Commit | None, report: Report) -> None:
    """A file without a digest can be compared with its commit, where there is one."""
    if commit is None or path.name not in commit.tracked:
        report.left_out["files without a digest, and without a commit to compare them with"] += 1
        return
    report.checked["files without a digest, compared with their commit"] += 1
    if path.name in commit.changed:
        report.differ(where, f"{path.name} is not as it was committed, and has no digest")
