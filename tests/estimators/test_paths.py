"""Paths: a grid fitted side by side equals separate fits."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris, make_classification
from sklearn.decomposition import PCA
from sklearn.model_selection import ParameterGrid

from marginfold import GESVC, LSVA, MMDA, WSVDA, InteriorPoint, LapSVC, NeighborGraph
from marginfold.errors import (
    ExhaustedWarning,
    InvalidInputError,
    InvalidParameterError,
    UncertifiedWarning,
)
from marginfold.estimators.paths import path

X, Y = load_iris(return_X_y=True)
COSTS, WEIGHTS = [0.1, 1.0, 10.0], [0.0, 0.5, 20.0]

SUBSPACES = {
    "mmda": MMDA(3),
    "lsva": LSVA(3),
    "wsvda": WSVDA(3),
    "greedy": LSVA(3, tasks="greedy", scaling="margin", on_exhausted="pca"),
    "kernel": LSVA(2, kernel="rbf", graph="within", reconstruct="linear"),
}

MACHINES = {
    "gesvc": GESVC(),
    "balanced": GESVC(graph=NeighborGraph(4), class_weight="balanced", normalize_graph=False),
    "kernel": GESVC(kernel="rbf", graph="total"),
    "lapsvc": LapSVC(),
}


def grid_for(estimator):
    weighted = "graph_weight" in estimator.get_params()
    return {"C": COSTS} | ({"graph_weight": WEIGHTS} if weighted else {})


@pytest.mark.parametrize("name", SUBSPACES)
def test_members_are_separate_fits_in_the_order_of_the_grid(name):
    estimator = SUBSPACES[name]
    grid = grid_for(estimator)
    members = path(estimator, X, Y, **grid)
    for member, point in zip(members, ParameterGrid(grid), strict=True):
        assert {key: member.get_params()[key] for key in point} == point
        alone = type(estimator)(**member.get_params(deep=False)).fit(X, Y)
        assert_allclose(member.transform(X), alone.transform(X), atol=1e-9)
        assert member.tasks_ == alone.tasks_
        assert member.n_features_in_ == 4
    assert not hasattr(estimator, "directions_")


@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("name", MACHINES)
def test_classifiers_are_separate_fits_with_all_their_attributes(name, n_classes):
    estimator = MACHINES[name]
    rows = Y < n_classes
    y = np.where(np.arange(len(Y)) % 4 == 3, -1, Y) if name == "lapsvc" else Y
    grid = grid_for(estimator)
    members = path(estimator, X[rows], y[rows], **grid)
    for member, point in zip(members, ParameterGrid(grid), strict=True):
        assert {key: member.get_params()[key] for key in point} == point
        alone = type(estimator)(**member.get_params(deep=False)).fit(X[rows], y[rows])
        assert_allclose(member.decision_function(X), alone.decision_function(X), atol=1e-7)
        assert_allclose(member.gain_, alone.gain_, atol=1e-9)
        assert member.gap_.max() <= 1e-8
        assert {key for key in vars(member) if key.endswith("_")} == {
            key for key in vars(alone) if key.endswith("_")
        }


def test_weights_of_rows_and_a_single_value_are_taken():
    weights = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    (only,) = path(GESVC(), X, Y, C=2.0, sample_weight=weights)
    alone = GESVC(C=2.0).fit(X, Y, sample_weight=weights)
    assert_array_equal(only.decision_function(X), alone.decision_function(X))
    (same,) = path(GESVC(C=2.0), X, Y, sample_weight=weights)
    assert_array_equal(same.decision_function(X), alone.decision_function(X))


def test_a_path_without_points_is_empty_and_generators_are_taken():
    assert path(LSVA(), X, Y, C=[]) == []
    assert [m.graph_weight for m in path(LSVA(), X, Y, graph_weight=(w for w in (1, 2)))] == [1, 2]


def test_names_of_features_reach_every_member():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=list("abcd"))
    for estimator in (LSVA(), GESVC()):
        for member in path(estimator, frame, Y, C=[1, 2]):
            assert_array_equal(member.feature_names_in_, list("abcd"))


def test_warnings_come_once_for_the_whole_path():
    with pytest.warns(UncertifiedWarning, match="6 of 6 fits; first: GESVC: certified") as caught:
        path(GESVC(solver=InteriorPoint(max_iter=1)), X, Y, C=[1, 10], graph_weight=[0, 1, 2])
    assert len([w for w in caught if w.category is UncertifiedWarning]) == 1
    noise, y = make_classification(2000, 30, n_informative=10, n_classes=4, random_state=0)
    with pytest.warns(ExhaustedWarning, match="2 of 2 fits; first: GESVC: not separated"):
        path(GESVC(graph_weight=0, multiclass="one_vs_rest"), noise, y, C=[1, 2])


@pytest.mark.parametrize("estimator", [PCA(), LSVA, "lsva", None])
def test_other_estimators_are_refused(estimator):
    with pytest.raises(InvalidParameterError, match="needs an instance of MMDA"):
        path(estimator, X, Y, C=[1])


@pytest.mark.parametrize("estimator", [MMDA(), WSVDA()])
def test_a_weight_that_the_method_lacks_is_refused(estimator):
    with pytest.raises(InvalidParameterError, match="no parameter graph_weight"):
        path(estimator, X, Y, graph_weight=[1])


@pytest.mark.parametrize(
    "grid", [{"C": [1, -1]}, {"C": "12"}, {"C": [np.nan]}, {"graph_weight": [1, -1]}]
)
@pytest.mark.parametrize("estimator", [LSVA(), GESVC()])
def test_values_out_of_range_are_refused(estimator, grid):
    with pytest.raises(InvalidParameterError, match=f"{next(iter(grid))} must be"):
        path(estimator, X, Y, **grid)


def test_bad_rows_are_refused_as_in_a_fit():
    with pytest.raises(InvalidInputError, match="1 class"):
        path(GESVC(), X, np.zeros(len(X)), C=[1, 2])
