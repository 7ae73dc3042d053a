"""Tests of the laboratory have one paper to look at: the template, found by a folder."""

import os
from pathlib import Path

if "PARITYLAB_ALONE" in os.environ:
    os.environ["PARITYLAB_PAPERS"] = str(Path(__file__).parent / "examples" / "me2025" / "src")
