"""The claims of abbe2024, Learning High-Degree Parities."""

from paritylab.claims.abbe2024 import alignments as alignments
from paritylab.claims.abbe2024 import bounds as bounds
from paritylab.claims.abbe2024 import corollaries as corollaries
from paritylab.claims.abbe2024 import initialisations as initialisations
from paritylab.claims.abbe2024 import junk as junk
from paritylab.claims.abbe2024 import laws as laws
from paritylab.claims.abbe2024 import offline as offline
from paritylab.claims.abbe2024 import one_step as one_step
from paritylab.claims.abbe2024 import online as online
from paritylab.claims.abbe2024 import other_losses as other_losses
from paritylab.claims.abbe2024 import output_layer as output_layer
from paritylab.claims.abbe2024 import predictions as predictions
from paritylab.claims.abbe2024 import updates as updates
