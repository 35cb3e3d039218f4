"""Every public graph rule, feature map and solver survives being saved inside an estimator."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.datasets import load_iris
from sklearn.kernel_approximation import Nystroem
from sklearn.neighbors import KNeighborsTransformer, NearestNeighbors

from marginfold import LSVA, NeighborGraph, feature_maps, graphs, svm
from marginfold.data.models import load_model, save_model
from marginfold.errors import MarginfoldWarning

pytest.importorskip("skops.io", reason="model files need skops")

X, y = load_iris(return_X_y=True)
X, y = X[::3], y[::3]
GRAPHS = {
    graphs.AnchorGraph: graphs.AnchorGraph(9),
    graphs.BetweenClassGraph: graphs.BetweenClassGraph(),
    graphs.NeighborGraph: NeighborGraph(5),
    graphs.PermutedGraph: graphs.PermutedGraph(NeighborGraph(5), random_state=3),
    graphs.PrecomputedGraph: graphs.PrecomputedGraph(np.exp(-cdist(X, X))),
    graphs.ReconstructionGraph: graphs.ReconstructionGraph(),
    graphs.ScaledGraph: 0.5 * NeighborGraph(5),
    graphs.SumGraph: NeighborGraph(5) + graphs.PermutedGraph(NeighborGraph(5)),
    graphs.TotalGraph: graphs.TotalGraph(),
    graphs.WithinClassGraph: graphs.WithinClassGraph(),
}
MAPS = {
    feature_maps.ExactKernel: feature_maps.ExactKernel("rbf", gamma=0.5),
    feature_maps.Linear: feature_maps.Linear(),
    feature_maps.LowRankKernel: feature_maps.LowRankKernel("rbf", gamma=0.5, rank=20),
    feature_maps.Transformed: Nystroem(n_components=9, random_state=0),
}
SOLVERS = {
    svm.Automatic: svm.Automatic(),
    svm.InteriorPoint: svm.InteriorPoint(),
    svm.LibSVM: svm.LibSVM(),
}
SEARCHES = {
    "transformer": KNeighborsTransformer(mode="distance"),
    "brute": KNeighborsTransformer(mode="distance", algorithm="brute"),
    "no transformer": NearestNeighbors(),
}


def public_classes(module, method):
    """The public classes of a module that have a method."""
    values = [getattr(module, name) for name in module.__all__]
    return {kind for kind in values if inspect.isclass(kind) and hasattr(kind, method)}


def fitted(parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MarginfoldWarning)
        return LSVA(**parameters).fit(X, y)


def test_no_public_part_is_left_out_below():
    assert public_classes(graphs, "build") - {graphs.GraphLike, graphs.GraphRule} == GRAPHS.keys()
    assert public_classes(feature_maps, "transform") == MAPS.keys()
    assert public_classes(svm, "solve") - {svm.SVMSolver} == SOLVERS.keys()
    assert all(isinstance(part, kind) for kind, part in (GRAPHS | SOLVERS).items())


@pytest.mark.parametrize(
    "parameters",
    [
        *({"graph": graph} for graph in GRAPHS.values()),
        *({"kernel": feature_map} for feature_map in MAPS.values()),
        *({"solver": solver} for solver in SOLVERS.values()),
        *({"graph": NeighborGraph(search=search)} for search in SEARCHES.values()),
    ],
    ids=[*(kind.__name__ for kind in (*GRAPHS, *MAPS, *SOLVERS)), *SEARCHES],
)
def test_every_public_part_of_an_estimator_can_be_saved(parameters, tmp_path):
    model = fitted(parameters)
    save_model(model, tmp_path / "m.skops")
    loaded = load_model(tmp_path / "m.skops")
    np.testing.assert_array_equal(loaded.transform(X), model.transform(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MarginfoldWarning)
        again = loaded.fit(X, y)
    np.testing.assert_array_equal(again.transform(X), model.transform(X))
