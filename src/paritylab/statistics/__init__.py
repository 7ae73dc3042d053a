"""What many Runs say together: percentiles, survival, scaling and comparison of convergence times.

A run that was not solved is never given a made-up convergence time. Two readings of it are used:

- *Percentiles* are over all runs, an unsolved run counting as ``inf``. A percentile that touches an unsolved
  run is ``inf``: not reached. Where runs were given up before the others, a percentile beyond the first such
  step is an upper bound (the given-up run might have been solved before it); :class:`Summary` then says so.
- *Survival* (and the comparison of two samples) treats a censored run as unsolved up to the step at which it
  was given up, and unknown afterwards. A diverged run can never be solved: it counts as unsolved up to the
  largest horizon.
"""

from paritylab.statistics.fractions import Comparison as Comparison
from paritylab.statistics.fractions import Survival as Survival
from paritylab.statistics.fractions import compare as compare
from paritylab.statistics.fractions import solved_fraction as solved_fraction
from paritylab.statistics.fractions import survival as survival
from paritylab.statistics.percentiles import Floats as Floats
from paritylab.statistics.percentiles import Interval as Interval
from paritylab.statistics.percentiles import percentile as percentile
from paritylab.statistics.percentiles import percentile_interval as percentile_interval
from paritylab.statistics.scaling import Law as Law
from paritylab.statistics.scaling import ScalingFit as ScalingFit
from paritylab.statistics.scaling import power_law_fit as power_law_fit
from paritylab.statistics.scaling import power_law_fit_runs as power_law_fit_runs
from paritylab.statistics.summaries import Summary as Summary
from paritylab.statistics.summaries import summary as summary
