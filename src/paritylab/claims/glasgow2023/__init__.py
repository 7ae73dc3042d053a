"""glasgow2023: SGD finds then tunes features, the XOR problem."""

from paritylab.claims.glasgow2023 import gradients as gradients
from paritylab.claims.glasgow2023 import invariance as invariance
from paritylab.claims.glasgow2023 import open_questions as open_questions
from paritylab.claims.glasgow2023 import phase_one as phase_one
from paritylab.claims.glasgow2023 import phase_two as phase_two
from paritylab.claims.glasgow2023 import samples as samples
