"""Maximum-margin learning on manifolds and subspaces."""

from marginfold._version import __version__
from marginfold.estimators.discriminant import KDA, LDA
from marginfold.estimators.eigenmaps import LaplacianEigenmaps
from marginfold.estimators.gepsvm import GEPSVC
from marginfold.estimators.gesvm import GESVC
from marginfold.estimators.graph_embedding import GraphEmbedding
from marginfold.estimators.lapsvm import LapSVC
from marginfold.estimators.locally_linear import LocallyLinearEmbedding
from marginfold.estimators.lpp import LPP, NPE
from marginfold.estimators.lsva import LSVA
from marginfold.estimators.margin_map import MarginMap
from marginfold.estimators.mmda import MMDA
from marginfold.estimators.mrgepsvm import MRGEPSVC
from marginfold.estimators.svm_pca import SVMPCA
from marginfold.estimators.twinsvm import TwinSVC
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
    "GEPSVC",
    "GESVC",
    "KDA",
    "LDA",
    "LPP",
    "LSVA",
    "MMDA",
    "MRGEPSVC",
    "NPE",
    "SVMPCA",
    "WSVDA",
    "BetweenClassGraph",
    "ExactKernel",
    "GraphEmbedding",
    "InteriorPoint",
    "LapSVC",
    "LaplacianEigenmaps",
    "LibSVM",
    "Linear",
    "LocallyLinearEmbedding",
    "MarginMap",
    "NeighborGraph",
    "PrecomputedGraph",
    "ReconstructionGraph",
    "TotalGraph",
    "TwinSVC",
    "WithinClassGraph",
    "__version__",
]
