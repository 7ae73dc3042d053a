"""Problems: what is learned."""

from paritylab.problems.parity import Parity as Parity
