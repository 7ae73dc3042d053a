"""Papers of strangers: the example is installed into an empty environment, and bad ones take nobody down."""

from __future__ import annotations

import json
import os
import shutil
import site
import subprocess
import sys
import venv
from pathlib import Path

import pytest
from commands import run, run_apart

from paritylab import places
from paritylab.claims import find
from paritylab.claims.registry import registry
from paritylab.errors import InvalidInput

pytestmark = pytest.mark.filterwarnings("default::paritylab.places.PlaceWarning",
                                        "default::paritylab.claims.evidence.EvidenceWarning")
EXAMPLE = Path(__file__).parents[1] / "examples" / "me2025"
IDS = {"me2025.width", "me2025.guessing"}


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """The Python of an environment that has the example, built and installed there, and otherwise what is here."""
    folder = tmp_path_factory.mktemp("empty")
    source = shutil.copytree(EXAMPLE, folder / "source")
    quiet = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    alone = ["--no-index", "--no-deps"]
    subprocess.run([*quiet, "wheel", *alone, "--no-build-isolation", "-w", folder / "wheels", source], check=True)
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv" / "bin" / "python"
    wheel = next((folder / "wheels").glob("*.whl"))
    subprocess.run([*quiet, "--python", python, "install", *alone, wheel], check=True)
    packages = next((folder / "venv").glob("lib/python*/site-packages"))
    for number, path in enumerate(site.getsitepackages()):  # paritylab and what it stands on
        (packages / f"here{number}.pth").write_text(f"import site; site.addsitedir({path!r})\n")
    return python


def in_it(python: Path, *arguments: str, **options) -> subprocess.CompletedProcess:
    environment = {name: value for name, value in os.environ.items() if name != places.VARIABLE}
    return subprocess.run([python, "-m", "paritylab", *arguments], capture_output=True, text=True, timeout=240,
                          env=environment, **options)


@pytest.fixture(scope="session")
def another(tmp_path_factory) -> Path:
    """The claims of the template as those of another paper."""
    skip = shutil.ignore_patterns("__pycache__", "evidence")
    copy = shutil.copytree(EXAMPLE / "src" / "me2025", tmp_path_factory.mktemp("another") / "you2026", ignore=skip)
    for path in [*copy.glob("*.py"), *copy.glob("*.toml")]:
        path.write_text(path.read_text().replace("me2025", "you2026"))
    return copy


@pytest.fixture(autouse=True)
def only_another(another, monkeypatch):
    """The example is not here unless a test asks for it."""
    monkeypatch.setenv(places.VARIABLE, str(another))


def test_the_example_is_not_here():
    assert not IDS & set(registry())


@pytest.mark.long
def test_installing_it_is_all_it_takes(installed, tmp_path):
    listed = json.loads(in_it(installed, "claims", "--json").stdout)["claims"]
    assert {row["id"] for row in listed} == IDS
    shown = in_it(installed, "claims", "show", "me2025.width").stdout
    assert "me2025/width.py:13 (Width)" in shown
    assert "\n  quick, shipped (" in shown
    done = in_it(installed, "reproduce", "me2025.*", "--quick", "--json", "--out", "out", cwd=tmp_path)
    results = {row["claim"]: row["results"] for row in json.loads(done.stdout)["claims"]}
    assert results == {name: {"": "holds"} for name in IDS}


@pytest.mark.slow
@pytest.mark.long
def test_its_work_can_be_done_elsewhere(installed, tmp_path):
    planned = in_it(installed, "reproduce", "me2025.*", "--quick", "--json", "--export", "work.json", "--out", "new",
                    cwd=tmp_path)
    assert json.loads(planned.stdout)["tasks"] == 4
    worked = in_it(installed, "work", "work.json", "there", "--json", cwd=tmp_path)
    assert json.loads(worked.stdout)["left"] == 0, worked.stderr
    merged = in_it(installed, "merge", "there", "--out", "new", "--json", cwd=tmp_path)
    assert json.loads(merged.stdout) | {"store": ""} == {"added": 400, "known": 0, "curves": 2, "counts": 0,
                                                         "conflicts": [], "store": ""}
    again = in_it(installed, "reproduce", "me2025.*", "--quick", "--json", "--out", "new", cwd=tmp_path)
    for row in json.loads(again.stdout)["claims"]:
        assert row["reused_runs"] == row["runs"]
        assert row["recalled_arrays"] == (2 if row["claim"] == "me2025.guessing" else 0)


@pytest.mark.long
def test_it_is_on_the_site(installed, tmp_path):
    assert in_it(installed, "report", "--out", "out", cwd=tmp_path).returncode == 0
    page = (tmp_path / "out" / "site" / "me2025.html").read_text()
    assert 'id="me2025.width"' in page
    assert "median t_c at the smallest width / at the largest: &gt;= 1.5" in page
    assert "source/me2025/width.html" in page
    assert "me2025.html" in (tmp_path / "out" / "site" / "index.html").read_text()
    told = (tmp_path / "out" / "site" / "docs" / "reference" / "reproduction.html").read_text()
    assert '<a href="../../me2025.html#me2025.width">' in told


@pytest.mark.long
def test_its_own_tests_pass_where_it_is_installed(installed, tmp_path):
    tests = shutil.copytree(EXAMPLE / "tests", tmp_path / "tests")
    done = subprocess.run([installed, "-m", "pytest", "-q", "-p", "no:cacheprovider", tests], capture_output=True,
                          text=True, timeout=240, cwd=tmp_path, check=False)
    assert done.returncode == 0, done.stdout
    assert "4 passed" in done.stdout


def test_a_folder_need_not_be_installed(capsys, tmp_path, monkeypatch):
    status, out, _ = run(capsys, "claims", "--paper", "me2025", "--papers", str(EXAMPLE / "src"), "--json")
    assert status == 0
    assert {row["id"] for row in json.loads(out)["claims"]} == IDS
    monkeypatch.setenv(places.VARIABLE, str(EXAMPLE / "src" / "me2025"))
    assert {claim.id for claim in find(["me2025.*"])} == IDS
    monkeypatch.delenv(places.VARIABLE)
    assert not IDS & set(registry())


@pytest.mark.slow
@pytest.mark.long
def test_its_computations_go_to_workers(tmp_path):
    done = run_apart("reproduce", "me2025.*", "--quick", "--json", "--workers", "2", "--papers", str(EXAMPLE / "src"),
                     "--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert {row["verdict"] for row in json.loads(done.stdout)["claims"]} == {"reproduced"}


# --- bad ones ---------------------------------------------------------------------------------------------------------


def broken(folder: Path, name: str, old: str, new: str) -> Path:
    """A copy of the example in which one file says something else."""
    copy = shutil.copytree(EXAMPLE / "src" / "me2025", folder / "me2025")
    text = (copy / name).read_text()
    assert old in text
    (copy / name).write_text(text.replace(old, new, 1))
    return copy


BAD = {
    "a duplicate id": ("guessing.py", '"me2025.guessing"', '"me2025.width"', "declares me2025.width a second time"),
    "another paper's id": ("width.py", '"me2025.width"', '"you2026.width"', "you2026.width must begin me2025."),
    "a missing field": ("width.py", 'where="Figure 1",', "", "the claim me2025.width has no where"),
    "an unknown field": ("width.py", "where=", "place=", "unknown field of a claim in width.py, line 13"),
    "a field that is not text": ("width.py", '"Figure 1"', "FIGURE", "write the arguments of @claim as text in quotes"),
    "an unknown kind": ("width.py", '"empirical"', '"guess"', "unknown kind of claim in width.py, line 13 'guess'"),
    "no Python": ("width.py", "class Width", "klass Width", "width.py cannot be read: invalid syntax"),
    "a paper without a title": ("paper.toml", "title", "name", "paper.toml: title is missing, or not text"),
    "a paper.toml that is none": ("paper.toml", '= "Me"', "=", "paper.toml cannot be read"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_is_wrong_is_one_line_and_the_others_stay(what, tmp_path, capsys):
    name, old, new, words = BAD[what]
    folder = broken(tmp_path, name, old, new)
    status, out, error = run(capsys, "claims", "--json", "--papers", str(folder), "--out", str(tmp_path / "out"))
    assert status == 0
    found = {row["id"] for row in json.loads(out)["claims"]}
    assert found >= set(registry())
    assert found < set(registry()) | IDS
    notes = [line for line in error.splitlines() if line.startswith("paritylab: note: ")]
    assert len(notes) == 1, error
    assert words in notes[0]
    assert "me2025" in notes[0]


CHANGE = {"date": "2026-11-16", "reason": "power", "asked": "ten runs", "result": "undecided (full)",
          "change": "a hundred runs", "known": "nothing", "commit": "0" * 40}


def with_history(folder: Path, name: str, entry: dict[str, str]) -> Path:
    """A copy of the example with one entry of history."""
    copy = shutil.copytree(EXAMPLE / "src" / "me2025", folder / "me2025")
    lines = [f"[[{name}]]", *(f'{key} = "{value}"' for key, value in entry.items())]
    (copy / "history.toml").write_text("\n".join(lines))
    return copy


@pytest.mark.parametrize(("name", "change", "words"), [
    ("width", {"reason": "mood"}, "unknown reason of width in history.toml 'mood'"),
    ("width", {"why": "so"}, "unknown field of width in history.toml 'why'"),
    ("width", {"known": None}, "history.toml: width has no known"),
    ("height", {}, "history.toml speaks of height, which is no claim"),
])
def test_a_bad_history_is_one_line_and_the_claims_stay(name, change, words, tmp_path, capsys):
    folder = with_history(tmp_path, name, {key: text for key, text in (CHANGE | change).items() if text is not None})
    status, out, error = run(capsys, "claims", "show", "me2025.width", "--json", "--papers", str(folder))
    assert (status, json.loads(out)["claims"][0]["history"]) == (0, [])
    assert [words in line for line in error.splitlines() if "note" in line and "installed" not in line] == [True], error


def test_what_was_asked_before_is_printed(tmp_path, capsys):
    folder = with_history(tmp_path, "width", CHANGE)
    status, out, _ = run(capsys, "claims", "show", "me2025.width", "--papers", str(folder))
    assert status == 0
    assert "Asked until 2026-11-16: ten runs" in out
    assert "It gave: undecided (full) (commit 0000000000)" in out
    assert "Changed (power): a hundred runs" in out


def test_a_module_that_cannot_be_imported_leaves_its_claims_out(tmp_path, capsys):
    old = "from paritylab.claims import"
    folder = broken(tmp_path, "width.py", old, f"import nothing_of_this_name\n{old}")
    told = ["--papers", str(folder), "--out", str(tmp_path / "out"), "--quick", "--json"]
    status, out, error = run(capsys, "reproduce", "me2025.*", *told)
    assert status == 0
    assert [row["claim"] for row in json.loads(out)["claims"]] == ["me2025.guessing"]
    assert "me2025.width is left out: paper me2025: width.py cannot be imported: No module named" in error
    status, _, error = run(capsys, "reproduce", "me2025.width", *told)
    assert status == 2
    assert error.splitlines()[-1].startswith("paritylab: error: paper me2025: width.py cannot be imported")


def test_papers_of_one_name_in_two_folders_are_not_mixed_up(tmp_path, monkeypatch):
    changed = broken(tmp_path, "width.py", "\n\n@claim", "ANSWER = 42\n\n@claim")
    for folder, answers in ((EXAMPLE / "src", False), (changed, True), (EXAMPLE / "src", False)):
        monkeypatch.setenv(places.VARIABLE, str(folder))
        trial = find(["me2025.width"])[0].trial
        assert ("ANSWER" in trial.judge.__globals__) == answers


def test_a_package_that_is_on_the_path_anyway_is_taken_from_there(tmp_path, monkeypatch):
    copy = shutil.copytree(EXAMPLE / "src" / "me2025", tmp_path / "you2025")
    place = places.Place("you2025", copy.resolve(), installed=False)
    monkeypatch.syspath_prepend(tmp_path)
    assert place.load("width").__file__ == str(copy / "width.py")
    other = places.Place("you2025", (EXAMPLE / "src" / "me2025").resolve(), installed=False)
    with pytest.raises(InvalidInput, match="you2025 is the name of another package"):
        other.load("width")


def test_evidence_of_another_version_is_noted_and_not_used(tmp_path, capsys):
    folder = broken(tmp_path, "evidence/me2025.width.json", '"format": 1', '"format": 99')
    status, out, error = run(capsys, "claims", "--json", "--paper", "me2025", "--papers", str(folder))
    assert status == 0
    found = {row["id"]: row["result"] for row in json.loads(out)["claims"]}
    assert found == {"me2025.width": "open", "me2025.guessing": "holds"}
    assert "me2025.width.json is not evidence of format 1" in error


def test_a_folder_is_used_in_place_of_an_installed_paper_of_its_name(tmp_path, monkeypatch):
    monkeypatch.delenv(places.VARIABLE)
    folder = shutil.copytree(EXAMPLE / "src" / "me2025", tmp_path / "site" / "you2026")
    installed = places.Place("you2026", folder, installed=True)
    monkeypatch.setattr(places, "_installed", lambda: (installed,))
    assert [place.folder for place in places.places()] == [installed.folder]
    copy = shutil.copytree(EXAMPLE / "src" / "me2025", tmp_path / "you2026")
    for path in copy.glob("*.py"):
        path.write_text("")
    monkeypatch.setenv(places.VARIABLE, str(copy))
    with pytest.warns(places.PlaceWarning, match="paper you2026: the one in .* is used, not the installed you2026"):
        assert [place.folder for place in places.places()] == [copy.resolve()]


def test_a_folder_that_is_not_there_is_one_line(tmp_path, capsys):
    status, _, error = run(capsys, "claims", "--papers", str(tmp_path / "nowhere"), "--json")
    assert status == 0
    assert "paper nowhere, not used: there is no package nowhere" in error


def test_a_remark_on_no_claim_is_one_line(tmp_path, capsys):
    folder = tmp_path / "me2025"
    shutil.copytree(EXAMPLE / "src" / "me2025", folder)
    (folder / "remarks.toml").write_text('[remarks]\nwidth = "Seen."\n"me2025.guessing" = "Computed."\n')
    status, out, error = run(capsys, "claims", "show", "me2025.guessing", "--papers", str(folder))
    assert status == 0
    assert "Computed." in out
    assert "paper me2025, not used: unknown claim in remarks.toml 'width'" in error
