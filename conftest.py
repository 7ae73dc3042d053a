"""Tests of the laboratory have one paper to look at: the template, found by a folder."""

import os
from pathlib import Path

import pytest

if "PARITYLAB_ALONE" in os.environ:
    os.environ["PARITYLAB_PAPERS"] = str(Path(__file__).parent / "examples" / "me2025" / "src")

pytest.register_assert_rewrite("browsing", "every_claim", "pages_of_sites", "sent_to_crews", "short_of_memory")
