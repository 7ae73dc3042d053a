"""The documentation: examples run as they are printed, links lead somewhere, pages made from code have all of it."""

from __future__ import annotations

import re
import shlex
import sys
from html import unescape
from pathlib import Path

import pytest
from lengths import long_but

import paritylab
from paritylab.baselines.registry import METHODS
from paritylab.claims.library import papers
from paritylab.claims.registry import registry
from paritylab.cli import build_parser, main
from paritylab.site import documents

ROOT = Path(__file__).parents[1]
HOW_TO = sorted(path.stem for path in (ROOT / "docs" / "how-to").glob("*.md"))


def blocks(path: Path, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL)


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    """The folder of the site that ``paritylab report`` builds."""
    out = tmp_path_factory.mktemp("report")
    assert main(["report", "--out", str(out)]) == 0
    return out / "site"


def test_the_page_of_the_api_has_every_public_name(site):
    page = (site / "docs" / "reference" / "api.html").read_text(encoding="utf-8")
    for name in paritylab.__all__:
        if name in paritylab._HOME:
            assert f'id="paritylab.{name}"' in page, name
    for module in paritylab._MODULES.values():
        assert f'<h2 id="paritylab.{module}">' in page, module


def test_the_page_of_commands_has_every_command_and_option(site):
    page = unescape((site / "docs" / "reference" / "cli.html").read_text(encoding="utf-8"))
    for name, parser in build_parser().parsers.items():
        assert f"<code>paritylab {name}</code>" in page, name
        for option in {option for action in parser._actions for option in action.option_strings[-1:]}:
            assert option in ("--help", "--out", "--json", "--papers") or option in page, f"{name} {option}"


def test_the_page_of_learners_has_every_learner(site):
    page = (site / "docs" / "reference" / "learners.html").read_text(encoding="utf-8")
    for name in METHODS:
        assert page.count(f"<code>{name}</code>") >= 2, name


def test_the_page_of_results_has_every_claim_and_the_page_of_findings_every_finding(site):
    page = (site / "docs" / "reference" / "reproduction.html").read_text(encoding="utf-8")
    assert [name for name in registry() if f"<code>{name}</code>" not in page] == []
    page = unescape((site / "docs" / "explanation" / "findings.html").read_text(encoding="utf-8"))
    assert [each["title"] for paper in papers().values() for each in paper.findings if each["title"] not in page] == []


def test_the_docs_of_a_paper_are_on_the_site(site):
    index = (site / "docs" / "index.html").read_text(encoding="utf-8")
    for paper in papers().values():
        page = (site / f"{paper.id}.html").read_text(encoding="utf-8")
        for path in (paper.folder / "docs").rglob("*.md"):
            shown = f"papers/{paper.id}/{path.relative_to(paper.folder / 'docs').with_suffix('.html').as_posix()}"
            assert (site / shown).is_file()
            assert f'href="{shown}"' in page
            assert f'href="../{shown}"' in index


def test_links_lead_to_pages_of_papers_that_are_here_and_are_text_elsewhere():
    text = "# T\n\n[Its errata](../../editions/a/src/b/you2026/docs/errata.md#one), [this](x.md), [that](https://a.b)."
    without = documents.made("docs/how-to/y.md", text, {}, {"docs/how-to/x"})
    assert without.body == '<p>Its errata, <a href="x.html">this</a>, <a href="https://a.b">that</a>.</p>\n'
    there = documents.made("docs/how-to/y.md", text, {}, {"docs/how-to/x", "papers/you2026/errata"})
    assert '<a href="../../papers/you2026/errata.html#one">Its errata</a>' in there.body
    back = documents.made("editions/a/src/b/you2026/docs/errata.md", "[How](../../../../../../docs/how-to/x.md)", {},
                          {"docs/how-to/x"})
    assert back.body == '<p><a href="../../docs/how-to/x.html">How</a></p>\n'


def test_the_how_to_pages_are_there():
    assert set(HOW_TO) == {"add-a-claim", "add-a-paper", "add-a-network", "add-a-learner", "add-an-engine",
                           "change-a-claim", "optimisers", "run-on-slurm", "read-the-store", "multitask",
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
    text = (ROOT / "docs" / "how-to" / f"{name}.md").read_text(encoding="utf-8")
    for command in re.findall(r"^paritylab (.*)$", text, flags=re.MULTILINE):
        build_parser().parse_args(shlex.split(command))


def test_every_link_of_the_repository_leads_somewhere():
    wrong = []
    for page in (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("*.md")):
        text = re.sub(r"\$\$?.*?\$\$?|`[^`]*`", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if "://" not in link and not (page.parent / link).exists():
                wrong.append(f"{page.relative_to(ROOT)}: {link}")
    assert wrong == []
