"""Execute the notebooks of examples/notebooks, each in a clean kernel, and keep what they show in them.

``python tools/notebooks.py [NAME ...]`` (``make notebooks``) does that to all of them, or to those named. What is kept
has no dates and no times. A notebook carries the digest of the cells that were executed, so that a test notices one
whose cells were changed since.
"""

from __future__ import annotations

import base64
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
"""Of one figure or table."""
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
        manager = client.create_kernel_manager()
        manager.transport, manager.ip = "ipc", f"{folder}/kernel"  # sockets in the folder, no port
        client.execute(env=_clean(folder))
    for cell in code(fresh):
        cell.outputs = _tidied(cell.outputs)
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
    """An environment without the user's own profile of IPython and flags of XLA."""
    kept = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}
    return kept | {"IPYTHONDIR": f"{folder}/.ipython"}


def _tidied(outputs: list[NotebookNode]) -> list[NotebookNode]:
    """Without what progress bars leave; what was printed in one piece, however it came."""
    kept: list[NotebookNode] = []
    for output in outputs:
        if output.output_type == "display_data" and dict(output.data) == {"text/plain": ""}:
            continue
        if output.output_type == "stream" and kept and kept[-1].get("name") == output.name:
            kept[-1].text += output.text
        else:
            kept.append(output)
    return kept


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
    for kind, text in output.get("data", {}).items():
        if len(base64.b64decode(text) if kind == "image/png" else text) > MOST_BYTES:
            yield f"{kind} of more than {MOST_BYTES} bytes"
    shown = {"text/plain": output.text} if output.output_type == "stream" else output.get("data", {})
    if list(shown) == ["text/plain"] and shown["text/plain"].count("\n") > MOST_LINES:
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
