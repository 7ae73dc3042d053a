"""Execute the notebooks of examples/notebooks, each in a clean kernel, and keep what they show in them.

``python tools/notebooks.py [NAME ...]`` (``make notebooks``) does that to all of them, or to those named. What is kept
has no dates and no times. A notebook carries the digest of the cells that were executed, so that a test notices one
whose cells were changed since.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbformat import NotebookNode

FOLDER = Path(__file__).parent.parent / "examples" / "notebooks"
MOST_BYTES = 100_000
"""Of one output, as it is kept."""
MOST_LINES = 40
"""Of text in one output."""
SECONDS = 600
"""After which a cell has failed: on a busy machine everything takes longer."""


def paths(names: list[str] | None = None) -> list[Path]:
    found = sorted(FOLDER.glob("*.ipynb"))
    return [path for path in found if not names or path.stem in names or path.stem[:2] in names]


def read(path: Path) -> NotebookNode:
    return nbformat.read(path, as_version=4)


def executed(notebook: NotebookNode) -> NotebookNode:
    """A copy with the outputs of a new kernel, in an empty folder; an error in a cell is raised."""
    fresh = nbformat.v4.new_notebook(cells=[_bare(cell) for cell in notebook.cells])
    with tempfile.TemporaryDirectory() as folder:
        client = NotebookClient(fresh, timeout=SECONDS, record_timing=False, kernel_name="python3",
                                resources={"metadata": {"path": folder}})
        client.execute(env=_clean(folder))
    for cell in code(fresh):
        cell.outputs = [output for output in cell.outputs if not _empty(output)]
    fresh.metadata = nbformat.from_dict({
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
        "paritylab": {"executed": digest(fresh)},
    })
    return fresh


def _bare(cell: NotebookNode) -> NotebookNode:
    kept = {name: cell[name] for name in ("id", "cell_type", "source")}
    more = {"outputs": [], "execution_count": None} if cell.cell_type == "code" else {}
    return nbformat.from_dict({**kept, "metadata": {}, **more})


def _clean(folder: str) -> dict[str, str]:
    """An environment without the user's own profile of IPython."""
    return os.environ | {"IPYTHONDIR": f"{folder}/.ipython"}


def _empty(output: NotebookNode) -> bool:
    """Whether it is what a progress bar leaves."""
    return output.output_type == "display_data" and dict(output.data) == {"text/plain": ""}


def code(notebook: NotebookNode) -> Iterator[NotebookNode]:
    return (cell for cell in notebook.cells if cell.cell_type == "code")


def digest(notebook: NotebookNode) -> str:
    """Of the cells with code, as they stand."""
    return hashlib.sha256("\0".join(cell.source for cell in code(notebook)).encode()).hexdigest()[:16]


def complaints(notebook: NotebookNode) -> list[str]:
    """What nobody wants to see in a notebook that was executed."""
    wrong = [] if notebook.metadata.get("paritylab", {}).get("executed") == digest(notebook) else [
        "its cells are not those that were executed: make notebooks"]
    for number, cell in enumerate(code(notebook), 1):
        if cell.execution_count != number:
            wrong.append(f"cell {number} has count {cell.execution_count}")
        for output in cell.outputs:
            wrong += [f"cell {number}: {text}" for text in _wrong(output)]
    return wrong


def _wrong(output: NotebookNode) -> Iterator[str]:
    if output.output_type == "error":
        yield f"{output.ename}: {output.evalue}"
    elif output.output_type == "stream" and output.name == "stderr":
        yield f"standard error: {output.text[:200]}"
    texts = [output.text] if output.output_type == "stream" else list(output.get("data", {}).values())
    if max((len(text) for text in texts), default=0) > MOST_BYTES:
        yield f"an output of more than {MOST_BYTES} bytes"
    plain = output.text if output.output_type == "stream" else output.get("data", {}).get("text/plain", "")
    if plain.count("\n") > MOST_LINES:
        yield f"more than {MOST_LINES} lines of text"


def main(names: list[str]) -> int:
    failed = False
    for path in paths(names):
        begun = time.perf_counter()
        notebook = executed(read(path))
        wrong = complaints(notebook)
        nbformat.write(notebook, path)
        size = path.stat().st_size
        print(f"{path.name}: {time.perf_counter() - begun:.0f} s, {size / 1000:.0f} kB", *wrong, sep="\n  ", flush=True)
        failed |= bool(wrong)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
