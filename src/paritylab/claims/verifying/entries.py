"""What is written: digests of evidence and of the files beside it, and its words."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
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
    """What came of one trial of a claim."""

    claim: Claim
    source: str
    """``shipped`` or ``local``."""
    found: dict[str, Any]

    @property
    def where(self) -> str:
        return f"{self.claim.id}, {self.source}, {self.found['size']}"

    @property
    def seconds(self) -> float:
        """About what the trial takes on two cores: its own time says little if runs were there, or done on a GPU."""
        return max(self.found["seconds"], self.found["flops"] / RATE)

    def table(self, out: Path) -> Path | None:
        """The file that lists the records it stands on; None if it has none, or a damaged one."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", KeptWarning)  # check_files tells
            return evidence.sources_of(out, self.claim.id, self.found | {"source": self.source})


def entries(claims: Sequence[Claim], out: Path) -> list[Entry]:
    """All evidence of these claims that can be read; of the rest :func:`check_files` tells."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", KeptWarning)
        warnings.simplefilter("ignore", evidence.EvidenceWarning)
        return [Entry(claim, source, each) for claim in claims for source, sizes in (
            ("shipped", evidence.shipped(claim.id)), ("local", evidence.local(out, claim.id)))
            for each in sizes.values()]


def check_words(entry: Entry, report: Report) -> None:
    """Derive results from values and intervals again."""
    report.checked["trials whose words were derived again from their numbers"] += 1
    try:
        for line in words.differences(entry.claim, entry.found):
            report.differ(entry.where, line)
    except (InvalidInput, KeyError, TypeError, ValueError) as error:
        report.differ(entry.where, f"cannot be read: {in_a_line(error)}")


def check_files(claims: Sequence[Claim], out: Path, report: Report, progress: bool | None = None) -> None:
    """Compare digests, of shipped evidence and of one's own."""
    with Bar("digests", len(claims), progress) as bar:
        for done, claim in enumerate(claims, 1):
            _shipped(claim, report)
            for size in evidence.SIZES:
                path = evidence.local_directory(out, claim.id, size) / "result.json"
                if path.is_file():
                    _local(f"{claim.id}, local, {size}", path, report)
            bar.show(done)


def _shipped(claim: Claim, report: Report) -> None:
    """Compare all digests of shipped evidence."""
    folder, where = evidence.shipped_directory(claim.id), f"{claim.id}, shipped"
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always", evidence.EvidenceWarning)
        document = evidence.shipped_document(claim.id)
    for each in said:
        report.differ(where, str(each.message))
    for size, entry in document.get("sizes", {}).items():
        one = f"{where}, {size}"
        _digest(one, seal_holds(entry), "its numbers or words are not those that were recorded", report)
        if listed := entry.get("records"):
            _file(one, folder / listed["file"], listed["digest"], report)
    for name, digest in document.get("files", {}).items():
        _file(where, folder / name, digest, report)


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
