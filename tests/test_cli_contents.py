"""The table of contents of commands, their groups, and what is said of one that there is not."""

from __future__ import annotations

import json
import subprocess

import pytest
from commands import run

from paritylab.cli import GROUPS, TOP, build_parser


def test_every_command_is_in_the_table_of_contents(capsys):
    status, out, _ = run(capsys)
    assert status == 2
    with pytest.raises(SystemExit):
        run(capsys, "--help")
    out = capsys.readouterr().out
    listed = [line.strip() for line in out.splitlines() if line.startswith("  ")]
    parsers = build_parser().parsers
    assert len(listed) == len(parsers)
    for name in parsers:
        assert any(line.startswith(f"{name} ") for line in listed), name
    assert set(parsers) >= {name for names in TOP.values() for name in names}
    assert set(parsers) >= {f"{group} {name}" for group, (_, names) in GROUPS.items() for name in names}


@pytest.mark.parametrize(("said", "meant"), [
    (["mesure"], "measure"), (["merge"], "store merge"), (["verify"], "store verify"),
    (["theory", "fourrier"], "fourier"), (["me2025"], None), (["zzz"], None),
])
def test_an_unknown_command_is_one_line_with_what_was_meant(said, meant, capsys):
    status, out, error = run(capsys, *said)
    assert (status, out, error.count("\n")) == (2, "", 1)
    assert error.startswith(f"paritylab: error: unknown command {said[-1]!r}")
    assert (f"did you mean '{meant}'?" if meant else "lists them") in error


def test_a_group_without_a_command_says_which_there_are(capsys):
    assert run(capsys, "store")[::2] == (
        2, "paritylab: error: which command? allowed: store merge, store compact, store status, store verify\n")


def test_bash_completes_commands_and_options(capsys, tmp_path):
    status, script, _ = run(capsys, "completion", "bash")
    assert status == 0
    (tmp_path / "complete").write_text(script)
    asked = (f"source {tmp_path / 'complete'}; COMP_WORDS=(paritylab store m); COMP_CWORD=2; _shtab_paritylab;"
             ' echo "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", asked], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["merge"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_have_a_script(shell, capsys):
    status, out, _ = run(capsys, "completion", shell, "--json")
    assert status == 0
    assert "measure" in json.loads(out)["script"]


# --- papers of one's own ----------------------------------------------------------------------------------------------


def test_a_new_paper_is_found_checked_and_tried(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # as 'python -m paritylab' does: there, you2031 is a folder without code
    assert run(capsys, "paper", "new", "you2031")[0] == 0
    files = {path.relative_to(tmp_path).as_posix() for path in (tmp_path / "you2031").rglob("*") if path.is_file()}
    assert {"you2031/pyproject.toml", "you2031/src/you2031/paper.toml", "you2031/tests/test_you2031.py"} <= files
    assert not any("evidence" in name or "me2025" in name for name in files)
    status, out, error = run(capsys, "paper", "check", "you2031/src")
    assert (status, out, error) == (0, "you2031: 2 claims, no problems\n", "")
    assert run(capsys, "reproduce", "you2031.guessing", "--quick", "--papers", "you2031/src")[0] == 0


@pytest.mark.parametrize("name", ["You2031", "2031", "you-2031", "me2025", "../x", ""])
def test_a_name_that_is_none_is_refused(name, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    status, _, error = run(capsys, "paper", "new", name)
    assert (status, error.count("\n"), list(tmp_path.iterdir())) == (2, 1, [])


@pytest.mark.parametrize(("file", "old", "new", "said"), [
    ("paper.toml", '"you2032.width"', '"you2032.nothing"', "the headline you2032.nothing is no claim"),
    ("values.toml", "widths", "heights", "values.toml does not say where 'widths' comes from"),
    ("width.py", "class Width(", "class Widths(Broken, ", "width.py cannot be imported"),
])
def test_what_is_wrong_with_a_paper_is_said(file, old, new, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(capsys, "paper", "new", "you2032")[0] == 0
    path = tmp_path / "you2032" / "src" / "you2032" / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    status, out, _ = run(capsys, "paper", "check", "you2032/src")
    assert status == 1
    assert said in out
