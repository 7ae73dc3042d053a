"""Figures that go into a paper as they are.

A small grammar draws Results, or what a store holds, by the names of parameters: :func:`survival`, :func:`scaling`,
:func:`heat`, :func:`compare`, :func:`curves` and :func:`lines`; ``paritylab figure`` is the same in a shell. What is
drawn of Records or arrays by label has a name in ``_plot``. Every function returns a matplotlib ``Figure`` and leaves
matplotlib's global state alone; :func:`save` writes it, with the numbers it shows beside it.
"""

from matplotlib.figure import Figure as Figure

from paritylab.palette import COLOURS as COLOURS
from paritylab.palette import GREY as GREY
from paritylab.plots.bands import bands_plot as bands_plot
from paritylab.plots.files import FORMATS as FORMATS
from paritylab.plots.files import data as data
from paritylab.plots.files import save as save
from paritylab.plots.grammar import compare as compare
from paritylab.plots.grammar import curves as curves
from paritylab.plots.grammar import heat as heat
from paritylab.plots.grammar import lines as lines
from paritylab.plots.grammar import scaling as scaling
from paritylab.plots.grammar import survival as survival
from paritylab.plots.maps import heat_plot as heat_plot
from paritylab.plots.pairs import pairs_plot as pairs_plot
from paritylab.plots.samples import histogram_plot as histogram_plot
from paritylab.plots.samples import survival_plot as survival_plot
from paritylab.plots.series import Band as Band
from paritylab.plots.series import Series as Series
from paritylab.plots.series import scaling_plot as scaling_plot
from paritylab.plots.series import training_curve_plot as training_curve_plot
from paritylab.plots.style import LINES as LINES
from paritylab.plots.style import WIDTHS as WIDTHS
from paritylab.plots.style import blank as blank
from paritylab.plots.style import legend_above as legend_above
from paritylab.plots.style import readable_log as readable_log
from paritylab.plots.style import say as say
from paritylab.plots.style import styled as styled
from paritylab.plots.style import typeface as typeface
