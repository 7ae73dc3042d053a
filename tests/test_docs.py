"""The documentation: pages made from code are current, and the examples of how-to pages run as they are printed."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from lengths import long_but

ROOT = Path(__file__).parents[1]
HOW_TO = sorted(path.stem for path in (ROOT / "docs" / "how-to").glob("*.md"))


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)


def test_the_reference_is_what_the_code_says():
    """After a change: make docs."""
    done = subprocess.run([sys.executable, ROOT / "tools" / "reference.py", "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_how_to_pages_are_there():
    assert set(HOW_TO) == {"add-a-claim", "add-a-paper", "add-a-network", "add-a-learner", "add-an-engine",
                           "amend-a-claim", "optimisers", "run-on-slurm", "read-the-store", "multitask",
                           "check-a-result", "curriculum", "staircase", "grokking", "pose-your-own-question",
                           "keep-networks", "look-inside", "figures", "from-pytorch", "find-a-parity"}


LONG = {"pose-your-own-question", "from-pytorch", "look-inside", "find-a-parity", "optimisers", "add-a-network",
        "multitask"}
WITH_EXAMPLES = [name for name in HOW_TO if name != "run-on-slurm"]


@pytest.fixture
def example(monkeypatch):
    """The paper me2025 can be imported meanwhile, and leaves nothing behind."""
    monkeypatch.syspath_prepend(ROOT / "examples" / "me2025" / "src")
    forget("me2025")
    yield
    forget("me2025")


def forget(package: str) -> None:
    for module in [module for module in sys.modules if module.partition(".")[0] == package]:
        del sys.modules[module]


@pytest.mark.usefixtures("example")
@pytest.mark.parametrize("name", long_but(WITH_EXAMPLES, *(set(WITH_EXAMPLES) - LONG)))
def test_examples_in_python_run(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": name.replace("-", "_")}
    for block in blocks(ROOT / "docs" / "how-to" / f"{name}.md", "python"):
        for library in re.findall(r"^import (torch|onnx)", block, flags=re.MULTILINE):
            pytest.importorskip(library, reason=f"{library} is not installed: make everything")
        exec(compile(smaller(block) if "figure = " in block else block, name, "exec"), names)


def smaller(block: str) -> str:
    """The same lines for two short runs: tools/howto_figures.py runs them as they are printed."""
    for pattern, instead in ((r"runs=\d+", "runs=2"), (r"runs=range\(\d+\)", "runs=range(2)"), ("20_000", "200"),
                             (r"max_steps=[\d_]+", "max_steps=100"), (r"every=\d+", "every=50")):
        block = re.sub(pattern, instead, block)
    return block


@pytest.mark.parametrize("name", HOW_TO)
def test_commands_are_understood(name):
    from paritylab.cli import build_parser

    text = (ROOT / "docs" / "how-to" / f"{name}.md").read_text(encoding="utf-8")
    for command in re.findall(r"^paritylab (.*)$", text, flags=re.MULTILINE):
        build_parser().parse_args(shlex.split(command))


def test_every_link_of_the_repository_leads_somewhere():
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"),
             *(ROOT / "examples").rglob("*.md")]
    wrong = []
    for page in pages:
        text = re.sub(r"\$\$?.*?\$\$?|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if "://" not in link and not (page.parent / link).exists():
                wrong.append(f"{page.relative_to(ROOT)}: {link}")
    assert wrong == []
