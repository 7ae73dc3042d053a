"""The docs of editions: examples run as they are printed, commands are understood, and links lead somewhere."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from urllib.parse import urldefrag

import pytest

from paritylab.claims.library import papers
from paritylab.cli import build_parser, reference
from paritylab.site import build

EDITIONS = Path(__file__).parents[1]
PAGES = sorted(path for path in EDITIONS.rglob("*.md") if path.parent.name == "docs")
CODE = {path: found for path in PAGES
        if (found := re.findall(r"```python\n(.*?)```", path.read_text(encoding="utf-8"), flags=re.DOTALL))}
LONG = {"optimisers"}


def named(paths: list[Path]) -> list:
    return [pytest.param(path, id=path.relative_to(EDITIONS).as_posix(),
                         marks=[pytest.mark.long] if path.stem in LONG else []) for path in paths]


def test_every_paper_has_docs():
    assert [paper.id for paper in papers().values() if not list((paper.folder / "docs").glob("*.md"))] == []


@pytest.mark.parametrize("path", named(list(CODE)))
def test_examples_in_python_run(path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names: dict = {"__name__": path.stem.replace("-", "_")}
    for block in CODE[path]:
        exec(compile(block, path.name, "exec"), names)


def test_commands_are_understood():
    seen = 0
    for path in PAGES:
        text = path.read_text(encoding="utf-8")
        for line in re.findall(r"^(?:python -m )?paritylab (.*)$", text, flags=re.MULTILINE):
            for command in line.split("&&"):
                words = shlex.split(command, comments=True)
                build_parser().parse_args(words[1:] if words[0] == "paritylab" else words)
                seen += 1
    assert seen > 10


def test_every_link_and_every_test_that_is_named_is_there():
    wrong = []
    for page in sorted(EDITIONS.rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        edition = EDITIONS / page.relative_to(EDITIONS).parts[0]
        tests = [place / each for each in re.findall(r"`(tests/\w+\.py)", text) for place in (edition, EDITIONS.parent)]
        wrong += [f"{page}: {here}" for here, there in zip(tests[::2], tests[1::2], strict=True)
                  if not here.exists() and not there.exists()]
        text = re.sub(r"\$\$?.*?\$\$?|`[^`]*`", "", text, flags=re.DOTALL)
        wrong += [f"{page}: {link}" for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text)
                  if "://" not in link and not (page.parent / link).exists()]
    assert wrong == []


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    return build.build(tmp_path_factory.mktemp("nothing"), written=reference.pages())


def test_every_link_between_pages_of_the_site_is_a_link(site):
    """What the site has is no plain text there: only READMEs and the like are."""
    for path in PAGES:
        paper = next(each for each in papers().values() if path.is_relative_to(each.folder))
        name = f"papers/{paper.id}/{path.relative_to(paper.folder / 'docs').with_suffix('.html').as_posix()}"
        html = site[name].decode()
        links = re.findall(r"[^!]\[[^\]]*\]\((\S+?\.md)(?:#[^)]*)?\)", path.read_text(encoding="utf-8"))
        article = html[html.index('<article class="prose">'):]
        shown = {Path(urldefrag(link)[0]).stem for link in re.findall(r'href="([^":]+\.html[^"]*)"', article)}
        assert {Path(link).stem for link in links} <= shown, name


def test_the_api_reference_has_the_theory_of_papers(site):
    page = site["docs/reference/api.html"].decode()
    for paper in papers().values():
        for path in (paper.folder / "theory").glob("[a-z]*.py"):
            assert f'<h2 id="{paper.place.package}.theory.{path.stem}">' in page, path


def test_findings_link_to_proofs_and_figures(site):
    page = site["docs/explanation/findings.html"].decode()
    titles = [each["title"] for paper in papers().values() for each in paper.findings]
    assert titles
    assert page.count("<h2") == len(titles)
    assert page.count("<img") >= len(titles) - 1
    assert "](" not in page
    for link in re.findall(r'(?:href|src)="\.\./\.\./(papers/[^"#]+)', page):
        assert link in site, link
