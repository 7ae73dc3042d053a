"""The notebooks of examples/ as pages: text and code as they stand, and what cells showed when they were executed."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Collection, Mapping
from html import escape
from pathlib import Path
from typing import Any

from paritylab.site import documents
from paritylab.site.documents import Document

FOLDER = "notebooks"


def directory() -> Path:
    """``examples/notebooks`` of the checkout, or the copy that an installed package carries beside its docs."""
    docs = documents.directory()
    checkout = docs.parent / "examples" / FOLDER
    return checkout if checkout.is_dir() else docs / FOLDER


def names() -> list[str]:
    """Of their pages, in the order of their numbers."""
    return [f"docs/{FOLDER}/{path.stem}" for path in sorted(directory().glob("*.ipynb"))]


def pages(claims: Mapping[str, str], known: Collection[str]) -> list[Document]:
    """All of them, in the order of their numbers; ``known`` are the names of the site's pages."""
    return [_page(path, claims, known) for path in sorted(directory().glob("*.ipynb"))]


def _page(path: Path, claims: Mapping[str, str], known: Collection[str]) -> Document:
    text = path.read_text(encoding="utf-8")
    parts, outputs = [], []
    files = {f"docs/{FOLDER}/{path.name}": text.encode()}
    for cell in json.loads(text)["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            parts.append(f"```shown\n{len(outputs)}\n```")
            outputs.append(_shown(output, f"{path.stem}-{len(outputs) + 1}", files))
    link = (f'<p><a href="{escape(path.name)}" download>This notebook</a>, to execute; what it shows was made by'
            " <code>make notebooks</code>.</p>\n")
    return documents.made(f"examples/{FOLDER}/{path.name}", "\n\n".join(parts), claims, known, before=link, files=files,
                          shown=outputs)


def _shown(output: Mapping[str, Any], name: str, files: dict[str, bytes]) -> str:
    """An output as HTML; pictures become files."""
    if output["output_type"] == "stream":
        return f"<pre>{escape(''.join(output['text']))}</pre>\n"
    data = {kind: "".join(text) for kind, text in output["data"].items()}
    if "image/png" in data:
        files[f"docs/{FOLDER}/{name}.png"] = base64.b64decode(data["image/png"])
        return _image(f"{name}.png")
    if "text/html" in data:
        html, _, rest = data["text/html"].partition("<svg")
        if rest:
            files[f"docs/{FOLDER}/{name}.svg"] = f"<svg{rest}".encode()
        html = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
        table = f'<div class="scroll" tabindex="0" role="region" aria-label="table">{html}</div>'
        return table + (_image(f"{name}.svg") if rest else "")
    return f"<pre>{escape(data['text/plain'])}</pre>\n"


def _image(file: str) -> str:
    said = "What the cell above draws; the text says what one sees."
    return f'<p><img src="{escape(file)}" alt="{said}" loading="lazy"></p>\n'
