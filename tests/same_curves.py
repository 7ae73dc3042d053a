"""Curves of two engines, series by series."""

from __future__ import annotations

from collections.abc import Callable

import jax
import numpy as np

from paritylab import Curves
from paritylab.engines.curves import SERIES


def assert_same(got: Curves, want: Curves, rtol: float = 1e-4, atol: Callable[[str], float] = lambda _: 1e-5) -> None:
    """Both have the same series, and weights, if any, which differ by no more than this."""
    for series in SERIES:
        a, b = getattr(got, series), getattr(want, series)
        assert (a is None) == (b is None), series
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=rtol, atol=atol(series), err_msg=series)
    for a, b in zip(jax.tree.leaves(got.weights), jax.tree.leaves(want.weights), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=atol("weights"))
