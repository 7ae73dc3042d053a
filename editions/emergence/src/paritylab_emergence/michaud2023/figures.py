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

ROOM = 0.15


def exponents(law: str, ours: Mapping[float, Exponent], smaller: bool) -> Figure:
    """The exponents of one law against alpha, with 95 % intervals."""
    grid = np.linspace(0.1, 0.8, 50)
    predicted = [theory(law, alpha) for alpha in grid.tolist()]
    drawn = {"here, smaller problem" if smaller else "here": ours, "published": published(law)}
    figure = scaling_plot({label: _series(each) for label, each in drawn.items()}, "$\\alpha$", NAMES[law],
                          {THEORY[law]: (grid, predicted)}, log="")
    values = np.array([*predicted, *(each.value for found in drawn.values() for each in found.values())])
    figure.axes[0].set_ylim(np.nanmin(values) - ROOM, np.nanmax(values) + ROOM)  # longer intervals leave the axes
    return figure


def _series(found: Mapping[float, Exponent]) -> Series:
    intervals = [each.interval() for each in found.values()]
    finite = np.where(np.isfinite(intervals), intervals, np.nan)
    return Series(list(found), [each.value for each in found.values()], finite[:, 0], finite[:, 1])
