"""Tests of an edition may import what stands beside them."""

import sys
from pathlib import Path

sys.path += [str(folder) for folder in sorted(Path(__file__).parent.glob("*/tests"))]
