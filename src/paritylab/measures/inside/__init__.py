"""What is inside trained networks: measures of one of them, or of thousands at once.

Each takes a TrainedNetwork, TrainedNetworks, or a pair (setup, params) where params may have leading axes, as the
weights of ``pl.curves(..., weights=True)`` have; what it returns begins with the same axes. To n = 20 most are exact;
samples come with intervals.
"""

from paritylab.measures.inside.fourier import Fourier as Fourier
from paritylab.measures.inside.fourier import coefficients as coefficients
from paritylab.measures.inside.fourier import fourier as fourier
from paritylab.measures.inside.gradients import GradientAlignment as GradientAlignment
from paritylab.measures.inside.gradients import alignment as alignment
from paritylab.measures.inside.influences import Influences as Influences
from paritylab.measures.inside.influences import influences as influences
from paritylab.measures.inside.margins import Margins as Margins
from paritylab.measures.inside.margins import margins as margins
from paritylab.measures.inside.movement import Movement as Movement
from paritylab.measures.inside.movement import movement as movement
from paritylab.measures.inside.sharpness import Sharpness as Sharpness
from paritylab.measures.inside.sharpness import sharpness as sharpness
from paritylab.measures.inside.subnetwork import Subnetwork as Subnetwork
from paritylab.measures.inside.subnetwork import subnetwork as subnetwork
