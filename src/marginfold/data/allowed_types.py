"""The types that a model file may hold."""

from __future__ import annotations

from marginfold.data.table_model import TableModel
from marginfold.estimators.discriminant import KDA, LDA
from marginfold.estimators.eigenmaps import LaplacianEigenmaps
from marginfold.estimators.gesvm import GESVC, LapSVC
from marginfold.estimators.graph_embedding import GraphEmbedding
from marginfold.estimators.locally_linear import LocallyLinearEmbedding
from marginfold.estimators.lpp import LPP, NPE
from marginfold.estimators.lsva import LSVA
from marginfold.estimators.margin_map import MarginMap
from marginfold.estimators.mmda import MMDA
from marginfold.estimators.mrgepsvm import GEPSVC, MRGEPSVC
from marginfold.estimators.reconstruction import AffineSubspace, FixedPoint, Learned, LeastSquares
from marginfold.estimators.svm_pca import SVMPCA
from marginfold.estimators.twinsvm import TwinSVC
from marginfold.estimators.wsvda import WSVDA
from marginfold.feature_maps import ExactKernel, Linear, LowRankKernel
from marginfold.feature_maps.transformed import Transformed
from marginfold.graphs import (
    AnchorGraph,
    BetweenClassGraph,
    NeighborGraph,
    PermutedGraph,
    PrecomputedGraph,
    ReconstructionGraph,
    TotalGraph,
    WithinClassGraph,
)
from marginfold.graphs.neighbors import HeatLink
from marginfold.graphs.reconstruction import BarycentricLink
from marginfold.graphs.rule import ScaledGraph, SumGraph
from marginfold.svm import Automatic, InteriorPoint, LibSVM

ESTIMATORS = (
    GEPSVC,
    GESVC,
    KDA,
    LDA,
    LPP,
    LSVA,
    MMDA,
    MRGEPSVC,
    NPE,
    SVMPCA,
    WSVDA,
    GraphEmbedding,
    LapSVC,
    LaplacianEigenmaps,
    LocallyLinearEmbedding,
    MarginMap,
    TwinSVC,
)
"""The public estimators."""

PARTS = (
    AffineSubspace,
    AnchorGraph,
    Automatic,
    BarycentricLink,
    BetweenClassGraph,
    ExactKernel,
    FixedPoint,
    HeatLink,
    InteriorPoint,
    Learned,
    LeastSquares,
    LibSVM,
    Linear,
    LowRankKernel,
    NeighborGraph,
    PermutedGraph,
    PrecomputedGraph,
    ReconstructionGraph,
    ScaledGraph,
    SumGraph,
    TableModel,
    TotalGraph,
    Transformed,
    WithinClassGraph,
)
"""What a fitted estimator may be made of."""

FOREIGN = frozenset({"numpy.dtype", "sklearn.compose._column_transformer._RemainderColsList"})
"""Plain containers in fitted scikit-learn parts that skops does not trust by itself: the type of
an encoder's output, and the list of unused columns (before scikit-learn 1.9)."""

ALLOWED = FOREIGN | {f"{kind.__module__}.{kind.__qualname__}" for kind in ESTIMATORS + PARTS}
"""The types that a model file may hold beside those that skops itself trusts.  Nothing in a file
adds to this list."""
