"""Problems: what is learned."""

from paritylab.setups.problems.interface import Problem as Problem
from paritylab.setups.problems.leaky import LeakyParity as LeakyParity
from paritylab.setups.problems.parity import Parity as Parity
from paritylab.setups.problems.polynomial import Polynomial as Polynomial
