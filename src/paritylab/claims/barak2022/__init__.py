"""The claims of barak2022, Hidden Progress in Deep Learning: one module for each group of figures and theorems."""

from paritylab.claims.barak2022 import deep as deep
from paritylab.claims.barak2022 import distributions as distributions
from paritylab.claims.barak2022 import noise as noise
from paritylab.claims.barak2022 import phases as phases
from paritylab.claims.barak2022 import robustness as robustness
from paritylab.claims.barak2022 import scaling as scaling
from paritylab.claims.barak2022 import table as table
