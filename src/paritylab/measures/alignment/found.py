"""What a method finds: a number that may be too small for a float, its error, and its exact value where known."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction


@dataclass(frozen=True)
class Found:
    """value = mantissa e^log, error likewise; ``exact`` as a rational, ``digits`` as certified decimals."""

    mantissa: float
    error: float
    log: float = 0.0
    exact: Fraction | None = None
    digits: str | None = None

    @staticmethod
    def of(value: float, error: float = 0.0) -> Found:
        return Found(value, error)

    @staticmethod
    def scaled(mantissa: float, error: float, log: float) -> Found:
        """A value within its error of 0 is 0."""
        return Found(0.0 if abs(mantissa) <= error else mantissa, error, log)

    @staticmethod
    def rational(exact: Fraction) -> Found:
        log = math.log(exact.numerator) - math.log(exact.denominator) if exact else 0.0
        return Found(float(exact > 0), 2e-16 * (1 + abs(log) / 30) if exact else 0.0, log, exact)

    def __add__(self, other: Found) -> Found:
        log = max((f.log for f in (self, other) if f.mantissa or f.error), default=0.0)
        one, two = (math.exp(f.log - log) if f.mantissa or f.error else 0.0 for f in (self, other))
        exact = None if self.exact is None or other.exact is None else self.exact + other.exact
        return Found(one * self.mantissa + two * other.mantissa, one * self.error + two * other.error, log, exact)

    def times(self, factor: float | Fraction) -> Found:
        exact = self.exact * factor if self.exact is not None and isinstance(factor, (int, Fraction)) else None
        by = float(factor)
        return Found(by * self.mantissa, abs(by) * self.error, self.log, exact)

    @property
    def value(self) -> float:
        """0 where it is below the least float; the logarithm still tells."""
        return float(self.exact) if self.exact is not None else self.mantissa * _exp(self.log)

    @property
    def absolute_error(self) -> float:
        return 0.0 if self.exact is not None else self.error * _exp(self.log)

    @property
    def log_value(self) -> float:
        return math.log(self.mantissa) + self.log if self.mantissa > 0 else -math.inf


def _exp(log: float) -> float:
    return math.exp(log) if log > -745 else 0.0
