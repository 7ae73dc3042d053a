"""Names for types that many modules use."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.floating[Any]]
Ints = NDArray[np.int64]
Arrays = dict[str, np.ndarray]
"""Arrays by name, as a file keeps them."""
Interval = tuple[float, float]
"""Both ends of a confidence interval."""
