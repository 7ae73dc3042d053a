"""A claim as an archive for a reviewer: data, figure, claim and rules, code, environment, command and checksums.

``sha256sum -c SHA256SUMS`` checks the archive where there is no paritylab; the same evidence makes the same bytes.
"""

from __future__ import annotations

import csv
import gzip
import hashlib
import io
import json
import re
import tarfile
import zipfile
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from paritylab.claims import evidence
from paritylab.claims.library import Claim
from paritylab.claims.pages import command, history_lines, origin_lines
from paritylab.claims.standing import Standing, standing
from paritylab.claims.texts import rule_lines, size_lines
from paritylab.errors import require
from paritylab.storage.files import write_atomically

SUFFIXES = (".zip", ".tar.gz")
SUMS = "SHA256SUMS"
FORGOTTEN = (1980, 1, 1, 0, 0, 0)
"""The time of files in a zip archive: it has no earlier one."""

README = """# {id}: {title}

{where}: {statement}

Published: {published}

Result: {told}

This folder holds the evidence for that, to be checked without the program that made it.

1. `sha256sum -c {sums}` says whether the files are those that were exported.
2. `checks.csv` has every number that the result rests on, its 95 % interval, and what was asked of it (`claim.md` has
   the rules). A check holds if its whole interval lies within what is asked, is contradicted if it lies outside, and is
   undecided otherwise; a part of the claim holds if all its checks do, and is contradicted if one is.
3. {files}
4. To make it again: Python {python}, paritylab {version}, the libraries of `environment.txt`
   (`pip install --constraint environment.txt paritylab=={version}`), and

       {command}

   `source/` has the code of the trial. Records of the engine `lanes` are the same to the last bit on any processor with
   AVX2, AVX-512 or NEON, those of `jax` on the same machine and version; elsewhere they have the same distribution.

Where it comes from:

{origin}
"""


def files(claim: Claim, out: Path) -> dict[str, bytes]:
    """The files of an archive by name, of the evidence that counts, checksums last."""
    stands = standing(out, claim)
    require(stands.found is not None, f"there is no evidence of {claim.id}: paritylab reproduce {claim.id} makes some")
    found = stands.found or {}
    figure = evidence.figure_of(out, claim.id, found)
    table = evidence.sources_of(out, claim.id, found)
    made = {f"data{path.suffix}": path.read_bytes() for path in evidence.data_of(out, claim.id, found)}
    made |= {"figure.svg": figure.read_bytes()} if figure is not None else {}
    made |= {"records.csv": gzip.decompress(table.read_bytes())} if table is not None else {}
    made |= {"result.json": (json.dumps(found, indent=1, allow_nan=False) + "\n").encode(),
             "checks.csv": _checks(found), "claim.md": _claim(stands).encode(), "environment.txt": _environment(found),
             "command.txt": (command(claim, found) + "\n").encode(),
             f"source/{claim.path.name}": claim.path.read_bytes()}
    made["README.md"] = _readme(stands, made).encode()
    sums = "".join(f"{hashlib.sha256(data).hexdigest()}  {name}\n" for name, data in sorted(made.items()))
    return dict(sorted(made.items())) | {SUMS: sums.encode()}


def write(path: Path, folder: str, contents: Mapping[str, bytes]) -> None:
    """Write an archive with all files in one folder, as its suffix says."""
    require(path.name.endswith(SUFFIXES), f"an archive must end in {' or '.join(SUFFIXES)}, not {path.name!r}")
    named = {f"{folder}/{name}": data for name, data in contents.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, _zip(named) if path.name.endswith(".zip") else _tar(named))


def _zip(contents: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in contents.items():
            about = zipfile.ZipInfo(name, FORGOTTEN)
            about.external_attr, about.create_system, about.compress_type = 0o644 << 16, 3, zipfile.ZIP_DEFLATED
            archive.writestr(about, data)
    return buffer.getvalue()


def _tar(contents: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for name, data in contents.items():
            about = tarfile.TarInfo(name)
            about.size, about.mode = len(data), 0o644
            archive.addfile(about, io.BytesIO(data))
    return gzip.compress(buffer.getvalue(), mtime=0)


def _checks(found: Mapping[str, Any]) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(("part", "check", "value", "low", "high", "asked", "result"))
    for check in found["checks"]:
        writer.writerow((check.get("part", ""), check["name"], check["value"], *(check["interval"] or ("", "")),
                         check["rule"], check["result"]))
    return text.getvalue().encode()


def _claim(stands: Standing) -> str:
    claim = stands.claim
    sections = {"Statement": [claim.statement], "Published": [claim.published], "Result and basis": stands.lines,
                "History": history_lines(claim), "Sizes": size_lines(claim),
                "Pass rule": rule_lines(claim), "Remark": [claim.remark] if claim.remark else []}
    for source, values in claim.values().sources.items():
        sections[f"Values {source}"] = [f"{name}: {text}" for name, text in values.items()]
    lines = [f"# {claim.id}: {claim.title}", "", f"{claim.where} of {claim.paper.title} ({claim.paper.authors},"
             f" {claim.paper.venue}). Kind: {claim.kind}. Code: {claim.source}."]
    for title, texts in sections.items():
        lines += ["", f"## {title}", "", *(f"- {text}" for text in texts)] if texts else []
    return "\n".join(lines) + "\n"


def _readme(stands: Standing, made: Mapping[str, bytes]) -> str:
    claim, found = stands.claim, stands.found or {}
    about = {"figure.svg": "the figure", "data.csv": "its data, one row for each point", "data.parquet": "its data",
             "records.csv": "a line for each Setup that was trained, with the task and a digest of its records",
             "result.json": "all of the result"}
    listed = "; ".join(f"`{name}` is {what}" for name, what in about.items() if name in made)
    return README.format(
        id=claim.id, title=claim.title, where=claim.where, statement=claim.statement, published=claim.published,
        told="; ".join(stands.lines), sums=SUMS, files=f"{listed[:1].upper()}{listed[1:]}.",
        python=found["versions"]["python"], version=found["versions"]["paritylab"],
        command=command(claim, found),
        origin="\n".join(f"- {line}" for line in origin_lines(found, evidence.files_of(claim.id, found))))


def _environment(found: Mapping[str, Any]) -> bytes:
    """Versions as pip's constraints: those that evidence names, and of all else that paritylab needs those here."""
    told = dict(re.findall(r"([\w-]+) ([^,\s]+)", found.get("origin", {}).get("libraries", "")))
    told |= {name: text for name, text in found["versions"].items() if name not in ("paritylab", "python")}
    here = _needed("paritylab") | told
    lines = [f"# of the trial: Python {found['versions']['python']}, {', '.join(sorted(told))}; others as they were"
             " where this was exported", *(f"{name}=={text}" for name, text in sorted(here.items()))]
    return ("\n".join(lines) + "\n").encode()


def _needed(package: str) -> dict[str, str]:
    """The versions of what is installed of all that a package needs, directly or not, without extras."""
    found: dict[str, str] = {}
    waiting = [package]
    while waiting:
        for line in metadata.requires(waiting.pop()) or ():
            name = re.split(r"[^\w.-]", line, maxsplit=1)[0].lower()
            if "extra ==" not in line and name not in found and any(metadata.distributions(name=name)):
                found[name] = metadata.version(name)
                waiting.append(name)
    return found
