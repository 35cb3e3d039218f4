"""Maximum-margin learning on manifolds and subspaces."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from marginfold._version import __version__
from marginfold.validation import register_row_types

if TYPE_CHECKING:
    from marginfold.data.models import load_model, save_model
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
    from marginfold.estimators.paths import path
    from marginfold.estimators.svm_pca import SVMPCA
    from marginfold.estimators.twinsvm import TwinSVC
    from marginfold.estimators.wsvda import WSVDA
    from marginfold.feature_maps import ExactKernel, Linear, LowRankKernel
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
    from marginfold.model_selection.neighbors_classifier import NeighborsClassifier
    from marginfold.model_selection.path_search import PathSearchCV
    from marginfold.model_selection.subspace_search import SubspaceSearchCV
    from marginfold.onnx import to_onnx
    from marginfold.planner import plan
    from marginfold.plotting.displays import (
        EmbeddingDisplay,
        GainDisplay,
        GraphTestDisplay,
        LoadingsDisplay,
        MarginMapDisplay,
        PathDisplay,
        PlanesDisplay,
    )
    from marginfold.protocols.permutation import graph_permutation_test
    from marginfold.runtime.progress import watch
    from marginfold.svm import InteriorPoint, LibSVM

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
    "AnchorGraph",
    "BetweenClassGraph",
    "EmbeddingDisplay",
    "ExactKernel",
    "GainDisplay",
    "GraphEmbedding",
    "GraphTestDisplay",
    "InteriorPoint",
    "LapSVC",
    "LaplacianEigenmaps",
    "LibSVM",
    "Linear",
    "LoadingsDisplay",
    "LocallyLinearEmbedding",
    "LowRankKernel",
    "MarginMap",
    "MarginMapDisplay",
    "NeighborGraph",
    "NeighborsClassifier",
    "PathDisplay",
    "PathSearchCV",
    "PermutedGraph",
    "PlanesDisplay",
    "PrecomputedGraph",
    "ReconstructionGraph",
    "SubspaceSearchCV",
    "TotalGraph",
    "TwinSVC",
    "WithinClassGraph",
    "__version__",
    "graph_permutation_test",
    "load_model",
    "path",
    "plan",
    "save_model",
    "to_onnx",
    "watch",
]

_NAMES = {
    "data.models": ("load_model", "save_model"),
    "estimators.discriminant": ("KDA", "LDA"),
    "estimators.eigenmaps": ("LaplacianEigenmaps",),
    "estimators.gesvm": ("GESVC", "LapSVC"),
    "estimators.graph_embedding": ("GraphEmbedding",),
    "estimators.locally_linear": ("LocallyLinearEmbedding",),
    "estimators.lpp": ("LPP", "NPE"),
    "estimators.lsva": ("LSVA",),
    "estimators.margin_map": ("MarginMap",),
    "estimators.mmda": ("MMDA",),
    "estimators.mrgepsvm": ("GEPSVC", "MRGEPSVC"),
    "estimators.paths": ("path",),
    "estimators.svm_pca": ("SVMPCA",),
    "estimators.twinsvm": ("TwinSVC",),
    "estimators.wsvda": ("WSVDA",),
    "feature_maps": ("ExactKernel", "Linear", "LowRankKernel"),
    "graphs": (
        *("AnchorGraph", "BetweenClassGraph", "NeighborGraph", "PermutedGraph"),
        *("PrecomputedGraph", "ReconstructionGraph", "TotalGraph", "WithinClassGraph"),
    ),
    "model_selection.neighbors_classifier": ("NeighborsClassifier",),
    "model_selection.path_search": ("PathSearchCV",),
    "model_selection.subspace_search": ("SubspaceSearchCV",),
    "onnx": ("to_onnx",),
    "planner": ("plan",),
    "plotting.displays": (
        *("EmbeddingDisplay", "GainDisplay", "GraphTestDisplay", "LoadingsDisplay"),
        *("MarginMapDisplay", "PathDisplay", "PlanesDisplay"),
    ),
    "protocols.permutation": ("graph_permutation_test",),
    "runtime.progress": ("watch",),
    "svm": ("InteriorPoint", "LibSVM"),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}
"""The module of each public name: it is imported when the name is first used, so that the command
line answers without waiting for scikit-learn."""

register_row_types(["dask", "dask_expr"], "marginfold.on_dask")

_MODULES = (
    *("data", "errors", "estimators", "executors", "feature_maps", "graphs", "model_selection"),
    *("planner", "plotting", "protocols", "reports", "runtime", "svm"),
)
"""Modules that `import marginfold` gives as attributes."""


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return import_module(f"marginfold.{name}")
    if name not in _HOME:
        raise AttributeError(f"module 'marginfold' has no attribute {name!r}")
    value = getattr(import_module(f"marginfold.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
