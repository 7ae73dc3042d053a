"""Claims: every published statement as a command with an honest verdict.

The registry (``data/claims.toml``) states each claim with its setup and pass rule; one package per paper says how it is
tried; evidence says what came of it.

    from paritylab.claims import Lab, reproduce

    print(reproduce("barak2022.fig3", Lab("quick")))
"""

from paritylab.claims.lab import Lab as Lab
from paritylab.claims.registry import Claim as Claim
from paritylab.claims.registry import find as find
from paritylab.claims.registry import registry as registry
from paritylab.claims.reproduction import Reproduction as Reproduction
from paritylab.claims.reproduction import reproduce as reproduce
from paritylab.claims.verdicts import Check as Check
from paritylab.claims.verdicts import Outcome as Outcome
