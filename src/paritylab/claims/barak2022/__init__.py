"""The claims of barak2022, Hidden Progress in Deep Learning: one module for each group of figures and theorems."""

from paritylab.claims.barak2022 import activations as activations
from paritylab.claims.barak2022 import deep as deep
from paritylab.claims.barak2022 import disjoint as disjoint
from paritylab.claims.barak2022 import disjoint_flow as disjoint_flow
from paritylab.claims.barak2022 import distributions as distributions
from paritylab.claims.barak2022 import exact as exact
from paritylab.claims.barak2022 import finite as finite
from paritylab.claims.barak2022 import fourier as fourier
from paritylab.claims.barak2022 import hidden_progress as hidden_progress
from paritylab.claims.barak2022 import methods as methods
from paritylab.claims.barak2022 import noise as noise
from paritylab.claims.barak2022 import phases as phases
from paritylab.claims.barak2022 import robustness as robustness
from paritylab.claims.barak2022 import scaling as scaling
from paritylab.claims.barak2022 import table as table
from paritylab.claims.barak2022 import two_stage as two_stage
from paritylab.claims.barak2022 import widths as widths
