"""Pictures of fitted estimators and results, as scikit-learn's Displays: values that can be drawn.

Making one needs no matplotlib; drawing it does.  ``plot(ax)`` draws on axes of matplotlib, without
any in a new figure of pyplot, keeps both as ``ax_`` and ``figure_``, and returns the Display.
"""

from marginfold.plotting.displays.components import GainDisplay, LoadingsDisplay
from marginfold.plotting.displays.maps import EmbeddingDisplay, MarginMapDisplay
from marginfold.plotting.displays.planes import PlanesDisplay
from marginfold.plotting.displays.scores import GraphTestDisplay, PathDisplay

__all__ = [
    "EmbeddingDisplay",
    "GainDisplay",
    "GraphTestDisplay",
    "LoadingsDisplay",
    "MarginMapDisplay",
    "PathDisplay",
    "PlanesDisplay",
]
