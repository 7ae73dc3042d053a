"""``paritylab paper export``: an archive that can be checked without paritylab."""

from __future__ import annotations

import csv
import hashlib
import io
import json
import subprocess
import tarfile
import zipfile

import pytest
from commands import run

from paritylab.claims import Lab, evidence, reproduce
from paritylab.claims.registry import registry
from paritylab.claims.standing import standing

OLD, FAST = "me2025.guessing", "me2025.width"


@pytest.mark.parametrize("suffix", ["zip", "tar.gz"])
def test_the_same_evidence_makes_the_same_bytes_and_its_checksums_are_right(tmp_path, capsys, suffix):
    paths = [tmp_path / f"{name}.{suffix}" for name in "ab"]
    for path in paths:
        status, out, _ = run(capsys, "paper", "export", OLD, "--to", str(path), "--out", str(tmp_path), "--json")
        assert (status, json.loads(out)["file"]) == (0, str(path))
    assert paths[0].read_bytes() == paths[1].read_bytes()
    if suffix == "zip":
        zipfile.ZipFile(paths[0]).extractall(tmp_path)
    else:
        with tarfile.open(paths[0]) as archive:
            archive.extractall(tmp_path, filter="data")
    folder = tmp_path / OLD
    sums = dict(reversed(line.split("  ")) for line in (folder / "SHA256SUMS").read_text().splitlines())
    there = {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}
    assert set(sums) == there - {"SHA256SUMS"}
    assert all(hashlib.sha256((folder / name).read_bytes()).hexdigest() == digest for name, digest in sums.items())


def test_an_archive_has_what_a_reviewer_needs(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(evidence, "shipped_directory", lambda claim: tmp_path / "shipped")
    reproduce(registry()[FAST], Lab("quick", tmp_path))
    assert run(capsys, "paper", "export", FAST, "--out", str(tmp_path))[0] == 0
    with zipfile.ZipFile(tmp_path / "export" / f"{FAST}.zip") as archive:
        files = {name.removeprefix(f"{FAST}/"): archive.read(name) for name in archive.namelist()}
    assert {"README.md", "SHA256SUMS", "checks.csv", "claim.md", "command.txt", "data.csv", "environment.txt",
            "figure.svg", "records.csv", "result.json"} <= set(files)
    stands = standing(tmp_path, registry()[FAST])
    rows = list(csv.DictReader(io.StringIO(files["checks.csv"].decode())))
    assert [row["check"] for row in rows] == [check["name"] for check in stands.found["checks"]]
    assert files["command.txt"] == f"paritylab reproduce {FAST} --quick\n".encode()
    environment = [line for line in files["environment.txt"].decode().splitlines() if not line.startswith("#")]
    assert {"jax", "jaxlib", "numpy", "scipy", "polars"} <= {line.split("==")[0] for line in environment}
    assert all(len(line.split("==")) == 2 for line in environment)
    assert "sha256sum -c SHA256SUMS" in files["README.md"].decode()
    assert next(csv.DictReader(io.StringIO(files["records.csv"].decode())))["runs"] == "200"
    assert str(tmp_path).encode() not in b"".join(files.values())


@pytest.mark.parametrize(("words", "what"), [
    ([OLD, "--to", "archive.rar"], "must end in .zip or .tar.gz"),
    (["me2025.*"], "one claim at a time"),
    (["me2025.no-such"], "me2025.no-such"),
])
def test_what_cannot_be_exported_is_one_line(words, what, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, _, error = run(capsys, "paper", "export", *words)
    assert (status, error.count("\n")) == (2, 1)
    assert what in error


def test_sha256sum_agrees(tmp_path, capsys):
    run(capsys, "paper", "export", OLD, "--to", str(tmp_path / "a.zip"))
    zipfile.ZipFile(tmp_path / "a.zip").extractall(tmp_path)
    try:
        done = subprocess.run(["sha256sum", "-c", "SHA256SUMS"], cwd=tmp_path / OLD, capture_output=True, text=True)
    except FileNotFoundError:
        pytest.skip("there is no sha256sum")
    assert (done.returncode, "FAILED" in done.stdout) == (0, False)
