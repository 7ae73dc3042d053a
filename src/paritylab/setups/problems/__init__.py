"""Problems: what is learned."""

from paritylab.setups.problems.base import AnyProblem as AnyProblem
from paritylab.setups.problems.data import Data as Data
from paritylab.setups.problems.leaky import LeakyParity as LeakyParity
from paritylab.setups.problems.multitask import multitask as multitask
from paritylab.setups.problems.parity import Parity as Parity
from paritylab.setups.problems.polynomial import Polynomial as Polynomial
from paritylab.setups.problems.problem import Problem as Problem
from paritylab.setups.problems.stages import Stage as Stage
from paritylab.setups.problems.targets import Outputs as Outputs
from paritylab.setups.problems.targets import Product as Product
from paritylab.setups.problems.targets import Sum as Sum
from paritylab.setups.problems.targets import Table as Table
from paritylab.setups.problems.targets import Target as Target
from paritylab.setups.problems.targets import Tasks as Tasks
