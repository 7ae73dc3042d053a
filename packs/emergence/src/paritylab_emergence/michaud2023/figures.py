"""Exponents against alpha: here, published and as the theory has them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from paritylab.plots import Figure, Series, scaling_plot
from paritylab_emergence.fits import Exponent
from paritylab_emergence.michaud2023.common import published, theory

NAMES = {"N": "$\\alpha_N$, exponent of the loss in parameters", "S": "$\\alpha_S$, exponent of the loss in steps",
         "D": "$\\alpha_D$, exponent of the loss in examples", "n": "exponent of subtasks learned in examples"}
THEORY = {"N": "theory: $\\alpha$", "S": "theory: $\\alpha/(\\alpha+1)$", "D": "theory: $\\alpha/(\\alpha+1)$",
          "n": "theory: $1/(\\alpha+1)$"}


def exponents(law: str, ours: Mapping[float, Exponent], smaller: bool) -> Figure:
    """The exponents of one law against alpha, with 95 % intervals."""
    grid = np.linspace(0.1, 0.8, 50)
    drawn = {"here, smaller problem" if smaller else "here": ours, "published": published(law)}
    return scaling_plot({label: _series(each) for label, each in drawn.items()}, "$\\alpha$", NAMES[law],
                        {THEORY[law]: (grid, theory(law, grid))}, log="")


def _series(found: Mapping[float, Exponent]) -> Series:
    intervals = [each.interval() for each in found.values()]
    finite = np.where(np.isfinite(intervals), intervals, np.nan)
    return Series(list(found), [each.value for each in found.values()], finite[:, 0], finite[:, 1])
