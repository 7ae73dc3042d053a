"""What many Runs say together: percentiles, survival, scaling and comparison of convergence times.

A run that was not solved is never given a made-up convergence time. A diverged run can never be solved: it counts as
unsolved for good, ``inf``. A censored run is unsolved up to the step at which it was given up:

- Where all runs have one horizon (every censored run was given up there, and no run went beyond it), *percentiles* are
  over all runs, an unsolved run counting as ``inf``: exact order statistics, with exact intervals.
- Where horizons differ, a run that was given up early might have been solved since. *Percentiles* then come from the
  Kaplan-Meier curve, with intervals by the beta product procedure; :class:`Summary` says so. The censored run's share
  goes to the runs that were still training, never to diverged ones (Aalen and Johansen's curve).
- ``inf`` is always: not reached within the largest horizon.
- *Survival* (and the comparison of two samples) reads runs the same way.
"""

from paritylab.aliases import Interval as Interval
from paritylab.statistics.fractions import Comparison as Comparison
from paritylab.statistics.fractions import Survival as Survival
from paritylab.statistics.fractions import compare as compare
from paritylab.statistics.fractions import compare_accuracy as compare_accuracy
from paritylab.statistics.fractions import solved_fraction as solved_fraction
from paritylab.statistics.fractions import still_training as still_training
from paritylab.statistics.fractions import survival as survival
from paritylab.statistics.paired import Paired as Paired
from paritylab.statistics.paired import paired as paired
from paritylab.statistics.percentiles import Floats as Floats
from paritylab.statistics.percentiles import percentile as percentile
from paritylab.statistics.percentiles import percentile_interval as percentile_interval
from paritylab.statistics.scaling import Law as Law
from paritylab.statistics.scaling import ScalingFit as ScalingFit
from paritylab.statistics.scaling import power_law_band as power_law_band
from paritylab.statistics.scaling import power_law_fit as power_law_fit
from paritylab.statistics.scaling import power_law_fit_runs as power_law_fit_runs
from paritylab.statistics.summaries import Summary as Summary
from paritylab.statistics.summaries import summary as summary
from paritylab.statistics.sums import p_value_of_sum as p_value_of_sum
