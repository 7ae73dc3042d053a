"""Theorem 2 of daniely2020 in its own regime: its schedule, every term of its bound, and what the error really does.

Its rate for T steps, k^2/(T sqrt(q)), moves the output of 2q units by a total time s = 2 q rate T = 2 k^2 sqrt(q) of
the flow in :mod:`daniely2020.theory.leaky.flow`, whatever T: the error after the schedule is that of the flow then.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from daniely2020.theory.leaky import Leaky
from daniely2020.theory.leaky.flow import Flow, Limit, errors, hinge_flow, limit, separator_norm
from paritylab.aliases import Floats
from paritylab.errors import require

TERMS = ("k^10 / q", "k^8 / sqrt(q)", "q k / sqrt(n)", "k^2 sqrt(q) / T")


def schedule_time(k: int, q: float) -> float:
    """The flow's time at the end of the theorem's schedule."""
    return 2 * k**2 * math.sqrt(q)


def schedule_rate(k: int, q: float, steps: int) -> float:
    """The theorem's rate of the second phase."""
    return k**2 / (steps * math.sqrt(q))


def bound_terms(n: float, k: int, q: float, steps: float) -> dict[str, float]:
    """The four terms of the theorem's bound, with 1 for the constant of its O.

    >>> {name: f"{value:.0e}" for name, value in bound_terms(7.0**10, 7, 1e14, 1e12).items()}
    {'k^10 / q': '3e-06', 'k^8 / sqrt(q)': '6e-01', 'q k / sqrt(n)': '4e+10', 'k^2 sqrt(q) / T': '5e-04'}
    """
    values = (k**10 / q, k**8 / math.sqrt(q), q * k / math.sqrt(n), k**2 * math.sqrt(q) / steps)
    return dict(zip(TERMS, values, strict=True))


@dataclass(frozen=True)
class Regime:
    """What the limit of many units says at one size: the kernel's means, the flow from 0, the smallest separator."""

    sizes: Leaky
    means: Limit
    flow: Flow
    separator: float

    @property
    def zero_time(self) -> float:
        """The time from which on the flow makes no errors; inf if there is none."""
        wrong = ~(self.flow.outputs * self.sizes.labels > 0)
        last = np.flatnonzero(wrong.any(1))[-1]
        if last == len(self.flow.times) - 1:
            return math.inf
        start, stop = self.flow.times[last], self.flow.times[last + 1]
        before, after = self.flow.outputs[last : last + 2] * self.sizes.labels
        crossing = np.where(wrong[last], before / np.where(wrong[last], before - after, 1.0), 0.0).max()
        return float(start + crossing * (stop - start))

    @property
    def needed(self) -> float:
        """The q whose schedule ends when the flow from 0 makes no errors any more."""
        return (self.zero_time / (2 * self.sizes.k**2)) ** 2

    def error(self, q: float, own_start: bool = False) -> tuple[float, float]:
        """The error after the schedule with 2q units on D_A and on its uniform half.

        From an output of 0, as for n far above q^2 k^2; or from the mean output that the first step leaves at this n.
        """
        flow = hinge_flow(self.sizes, self.means.kernel, 2 * q * self.means.start) if own_start else self.flow
        both = errors(self.sizes, flow.at([schedule_time(self.sizes.k, q)]))
        return float(both[0][0]), float(both[1][0])

    def proof_terms(self, q: float, steps: float) -> dict[str, float]:
        """The proof's own quantities in place of their bounds, by the names of the bound's terms.

        Half of |u*|^2; |u*|^2 / (2 rate T); |u| after the first step times the gradient's mean norm along the flow;
        rate times its mean square. u* is the smallest separator, with 2q |u*|^2 = ``separator``.
        """
        end = schedule_time(self.sizes.k, q)
        spans = np.diff(np.append(np.minimum(self.flow.times, end), end))
        squares = np.einsum("ei,ij,ej->e", self.flow.pull, self.means.kernel, self.flow.pull)
        mean, square = float(spans @ np.sqrt(squares)) / end, float(spans @ squares) / end
        values = (self.separator / (4 * q), self.separator / (2 * end),
                  2 * q * math.sqrt(self.means.output) * mean, end / steps * square)
        return dict(zip(TERMS, values, strict=True))


def regime(sizes: Leaky) -> Regime:
    """The limit of many units at these sizes, in about a second whatever n is.

    >>> found = regime(Leaky(7**10, 7))
    >>> f"{found.needed:.1e}", f"{found.separator / 7**10:.2f}"
    ('2.0e+14', '1.12')
    """
    means = limit(sizes)
    return Regime(sizes, means, hinge_flow(sizes, means.kernel), separator_norm(sizes, means.kernel))


def error_curve(found: Regime, exponents: Floats) -> list[dict[str, float]]:
    """Rows for q = 10^exponent: the errors after the schedule, and the bound's terms and the proof's at T = k^4 q."""
    rows = []
    for q in 10.0 ** np.asarray(exponents, float):
        require(q >= 1, "q must be at least 1")
        steps = found.sizes.k**4 * q
        (error, uniform), (own, _) = found.error(q), found.error(q, own_start=True)
        row = {"q": float(q), "T": steps, "error": error, "uniform_error": uniform, "error_from_own_start": own}
        row |= {f"bound: {name}": value
                for name, value in bound_terms(found.sizes.n, found.sizes.k, q, steps).items()}
        rows.append(row | {f"measured: {name}": value for name, value in found.proof_terms(q, steps).items()})
    return rows
