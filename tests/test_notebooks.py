"""The notebooks of examples/ as pages of the site; what is in them is tested with the editions that they speak of."""

from __future__ import annotations

import re

from paritylab.site import notebooks as pages

NAMES = sorted(path.stem for path in pages.directory().glob("*.ipynb"))


def test_the_site_shows_them_as_pages():
    made = pages.pages({"me2025.width": "me2025.html#me2025.width"}, pages.names())
    found = {page.name: page for page in made}
    assert list(found) == [f"docs/notebooks/{name}" for name in NAMES]
    assert [name[:2] for name in NAMES] == [f"{i:02}" for i in range(1, len(NAMES) + 1)]
    first = found["docs/notebooks/01-first-measurement"]
    assert first.title == "A first measurement"
    assert '<a href="02-phase-transition.html">' in first.body
    assert "docs/notebooks/01-first-measurement.ipynb" in first.files
    for page in found.values():
        pictures = re.findall(r'<img src="([^"]+)"', page.body)
        assert pictures
        assert {f"docs/notebooks/{picture}" for picture in pictures} <= set(page.files)
        assert "<script" not in page.body
