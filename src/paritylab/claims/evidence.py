"""Evidence: what came of trying a claim, as small JSON files that only the program writes.

One file per claim, one entry per size of the trial. A paper
ships ``evidence/<claim>.json`` (written by ``paritylab reproduce --record``), with figure and data of the largest trial
beside it, and of each trial a table of the records that it stands on (:mod:`paritylab.claims.sources`). Trials of one's
own are kept as ``<out>/claims/<claim>/<size>/result.json``. Both have digests of themselves and of the files beside
them, and say where they come from (:mod:`paritylab.provenance`); evidence recorded before 17 November 2026 has neither.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from paritylab.claims.library import paper
from paritylab.claims.rules import SIZES
from paritylab.errors import InvalidInput, require
from paritylab.storage.files import write_atomically
from paritylab.storage.kept import digest_of, is_sound, load_document, recall, sealed

FORMAT = 1
SHIPPABLE = {"csv": 100_000, "parquet": 500_000}
"""The most bytes of data that the package ships with a claim: as CSV, or else as Parquet."""
RECORDS = "records.csv.gz"


class EvidenceWarning(UserWarning):
    """An evidence file cannot be used."""


def shipped_directory(claim: str) -> Path:
    """The folder ``evidence`` of its paper."""
    return paper(claim.partition(".")[0]).folder / "evidence"


def shipped(claim: str) -> dict[str, dict[str, Any]]:
    """The recorded evidence of a claim, by size."""
    return shipped_document(claim).get("sizes", {})


def shipped_document(claim: str) -> dict[str, Any]:
    """All of it: ``sizes``, and under ``files`` the digests of figure and data; empty if there is none."""
    return _read(shipped_directory(claim) / f"{claim}.json")


def files_of(claim: str, found: dict[str, Any]) -> dict[str, str]:
    """Digests of the files beside the trial that :func:`strongest` found, by name; those shipped are of the largest."""
    if found["source"] == "local":
        return found.get("files", {})
    document = shipped_document(claim)
    largest = max(document.get("sizes", {"": {}}), key=[*SIZES, ""].index)
    return document.get("files", {}) if found["size"] == largest else {}


def sources_of(out: Path, claim: str, found: dict[str, Any]) -> Path | None:
    """The table of records that the trial stands on which :func:`strongest` found."""
    if found["source"] == "shipped":
        path = shipped_directory(claim) / found.get("records", {"file": "none"})["file"]
        return path if path.is_file() else None
    return next(_beside(out, claim, found, [RECORDS] if RECORDS in found.get("files", {}) else []), None)


def local_directory(out: Path, claim: str, size: str) -> Path:
    return out / "claims" / claim / size


def local(out: Path, claim: str) -> dict[str, dict[str, Any]]:
    """The results of a claim under ``out``, by size."""
    found = {size: recall(local_directory(out, claim, size) / "result.json", _own) for size in SIZES}
    return {size: result for size, result in found.items() if result}


def _own(path: Path) -> dict[str, Any]:
    result = load_document(path)
    require(result.get("format") == FORMAT, f"{path} is not evidence of format {FORMAT}")
    return result


def strongest(out: Path, claim: str) -> dict[str, Any] | None:
    """The evidence that counts: of the largest trial, and of one's own before the shipped one."""
    for size in reversed(SIZES):
        for source, entries in (("local", local(out, claim)), ("shipped", shipped(claim))):
            if size in entries:
                return {"source": source, **entries[size]}
    return None


def from_disk(entry: dict[str, Any]) -> bool:
    """Whether most of a trial came from disk, so that its seconds say nothing about what it costs."""
    return 2 * entry["reused_runs"] > entry["runs"] or bool(entry.get("recalled_arrays"))


def figure_of(out: Path, claim: str, found: dict[str, Any]) -> Path | None:
    """The SVG figure of the trial that :func:`strongest` found."""
    if found["source"] == "shipped":
        path = shipped_directory(claim) / f"{claim}.svg"
        return path if path.is_file() else None
    return next(_beside(out, claim, found, ["figure.svg"]), None)


def data_of(out: Path, claim: str, found: dict[str, Any]) -> list[Path]:
    """The data files of that trial, CSV first."""
    if found["source"] == "shipped":
        paths = [shipped_directory(claim) / f"{claim}.{suffix}" for suffix in SHIPPABLE]
        return [path for path in paths if path.is_file()]
    return list(_beside(out, claim, found, [f"data.{suffix}" for suffix in SHIPPABLE]))


def _beside(out: Path, claim: str, found: dict[str, Any], names: Sequence[str]) -> Iterator[Path]:
    """Files of a trial of one's own that are as they were written."""
    for name in names:
        path = local_directory(out, claim, found["size"]) / name
        if is_sound(path, found.get("files", {}).get(name)):
            yield path


def check_recordable(claim: str) -> None:
    """Refuse to record into installed packages: the next installation would overwrite it."""
    folder = shipped_directory(claim).parent
    require(not {"site-packages", "dist-packages"} & set(folder.parts),
            f"{claim} is installed in {folder}: record in its source, with --papers DIR or an editable install")


def record(claim: str, entry: dict[str, Any], figure: bytes | None, data: Sequence[Path], records: bytes) -> Path:
    """Add an entry to the shipped evidence, and keep figure and data (if small) of the largest trial beside it."""
    directory, before = shipped_directory(claim), shipped_document(claim)
    table = f"{claim}.{entry['size']}.{RECORDS}"
    entry = sealed(entry | {"records": {"file": table, "digest": digest_of(records)}})
    sizes = {**before.get("sizes", {}), entry["size"]: entry}
    known = {size: sizes[size] for size in SIZES if size in sizes}
    largest = entry["size"] == max(sizes, key=SIZES.index)
    files = _small(claim, figure, data) if largest else None
    digests = before.get("files") if files is None else {name: digest_of(text) for name, text in files.items()}
    document = {"format": FORMAT, "claim": entry["claim"], "sizes": known} | ({"files": digests} if digests else {})
    path = directory / f"{claim}.json"
    try:
        directory.mkdir(exist_ok=True)
        for suffix in ("svg", *SHIPPABLE) if files is not None else ():
            (directory / f"{claim}.{suffix}").unlink(missing_ok=True)
        for name, text in {**(files or {}), table: records}.items():
            write_atomically(directory / name, text)
        write_atomically(path, (json.dumps(document, indent=1, allow_nan=False) + "\n").encode())
    except OSError as error:
        raise InvalidInput(f"cannot record evidence in {directory}: {error.strerror or error}") from error
    return path


def _small(claim: str, figure: bytes | None, data: Sequence[Path]) -> dict[str, bytes]:
    """The figure and the first of these files that is small enough, by the names under which they are shipped."""
    fit = (path for path in sorted(data) if path.stat().st_size <= SHIPPABLE.get(path.suffix[1:], 0))
    shown = {} if figure is None else {f"{claim}.svg": figure}
    return shown | {f"{claim}{path.suffix}": path.read_bytes() for path in list(fit)[:1]}


def _read(path: Path) -> dict[str, Any]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        warnings.warn(f"not used: {path} cannot be read: {error}", EvidenceWarning, stacklevel=3)
        return {}
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        warnings.warn(f"not used: {path} is not evidence of format {FORMAT}", EvidenceWarning, stacklevel=3)
        return {}
    return document
