"""Problems: what is learned."""

from paritylab.problems.leaky import LeakyParity as LeakyParity
from paritylab.problems.parity import Parity as Parity
from paritylab.problems.polynomial import Polynomial as Polynomial
