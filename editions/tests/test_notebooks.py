"""The notebooks of examples/: executed from a clean kernel, each says which claims it belongs to, and is light."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
from lengths import long_but

from paritylab.claims.registry import registry
from paritylab.site import notebooks as pages

ROOT = Path(__file__).parents[2]
NAMES = sorted(path.stem for path in (ROOT / "examples" / "notebooks").glob("*.ipynb"))


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    spec = importlib.util.spec_from_file_location("notebooks_tool", ROOT / "tools" / "notebooks.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_there_are_eight():
    assert [name[:2] for name in NAMES] == [f"{i:02}" for i in range(1, 9)]


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_is_as_it_was_executed(name, tool):
    """After a change: make notebooks."""
    notebook = tool.read(tool.FOLDER / f"{name}.ipynb")
    assert tool.complaints(notebook) == []
    assert (tool.FOLDER / f"{name}.ipynb").stat().st_size < 300_000
    assert any(cell.outputs for cell in tool.code(notebook))


@pytest.mark.parametrize("name", NAMES)
def test_a_notebook_reads_as_an_article(name, tool):
    cells = tool.read(tool.FOLDER / f"{name}.ipynb").cells
    text = "\n".join(cell.source for cell in cells if cell.cell_type == "markdown")
    assert cells[0].source.startswith("# ")
    assert "**" in cells[0].source, "the question is in bold"
    assert "## To go on" in cells[-1].source
    assert all(cell.source.count("\n") < 25 for cell in cells)
    claims = re.findall(r"`(?:paritylab claims show )?(\w+\.[\w-]+)`", text)
    named = [claim for claim in claims if claim.split(".")[0] not in ("pl", "xor", "phases", "torch")]
    assert named
    assert set(named) <= set(registry())
    for link in re.findall(r"\]\(([^)#\s]+)\)", text):
        assert (tool.FOLDER / link).exists(), link


SLOWEST = ("03-scaling", "04-initialisation-and-alignment", "06-your-own-network-and-optimiser", "07-grokking")


@pytest.mark.parametrize("name", long_but(NAMES, slow=SLOWEST))
def test_a_notebook_runs_from_a_clean_kernel(name, tool):
    notebook = tool.executed(tool.read(tool.FOLDER / f"{name}.ipynb"))
    assert tool.complaints(notebook) == []


def test_the_site_shows_them_as_pages():
    made = pages.pages({"barak2022.fig4-left": "barak2022.html#fig4-left"}, pages.names())
    found = {page.name: page for page in made}
    assert list(found) == [f"docs/notebooks/{name}" for name in NAMES]
    first = found["docs/notebooks/01-first-measurement"]
    assert first.title == "A first measurement"
    assert '<a href="../../barak2022.html#fig4-left">' in first.body
    assert '<a href="02-phase-transition.html">' in first.body
    assert "docs/notebooks/01-first-measurement.ipynb" in first.files
    for page in found.values():
        pictures = re.findall(r'<img src="([^"]+)"', page.body)
        assert pictures
        assert {f"docs/notebooks/{picture}" for picture in pictures} <= set(page.files)
        assert "<script" not in page.body
