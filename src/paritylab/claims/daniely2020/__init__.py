"""The claims of daniely2020, Learning Parities with Neural Networks: one module for each part of the proof."""

from paritylab.claims.daniely2020 import contrast as contrast
from paritylab.claims.daniely2020 import exact as exact
from paritylab.claims.daniely2020 import features as features
from paritylab.claims.daniely2020 import first_step as first_step
from paritylab.claims.daniely2020 import linear_methods as linear_methods
from paritylab.claims.daniely2020 import second_phase as second_phase
