"""Maximum-margin learning on manifolds and subspaces."""

from marginfold._version import __version__
from marginfold.estimators.gesvm import GESVC
from marginfold.estimators.lapsvm import LapSVC
from marginfold.estimators.lsva import LSVA
from marginfold.estimators.mmda import MMDA
from marginfold.estimators.wsvda import WSVDA
from marginfold.feature_maps import ExactKernel, Linear
from marginfold.graphs import (
    BetweenClassGraph,
    NeighborGraph,
    PrecomputedGraph,
    ReconstructionGraph,
    TotalGraph,
    WithinClassGraph,
)
from marginfold.solvers import InteriorPoint, LibSVM

__all__ = [
    "GESVC",
    "LSVA",
    "MMDA",
    "WSVDA",
    "BetweenClassGraph",
    "ExactKernel",
    "InteriorPoint",
    "LapSVC",
    "LibSVM",
    "Linear",
    "NeighborGraph",
    "PrecomputedGraph",
    "ReconstructionGraph",
    "TotalGraph",
    "WithinClassGraph",
    "__version__",
]
