"""Planes and embeddings in odd units, with copies, far rows and later changes of their input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.preprocessing import scale

from marginfold import (
    GEPSVC,
    LDA,
    LPP,
    MRGEPSVC,
    SVMPCA,
    GraphEmbedding,
    LaplacianEigenmaps,
    NeighborGraph,
    PrecomputedGraph,
    TwinSVC,
)
from marginfold.errors import ExhaustedWarning, MarginfoldWarning

pytestmark = pytest.mark.attack("relations between fits")

WINE, CLASSES = load_wine(return_X_y=True)
WINE = scale(WINE)
IRIS = load_iris().data


@pytest.mark.parametrize("unit", [1e-120, 1e-90, 1e120])
def test_principal_components_do_not_depend_on_the_unit_of_many_features(unit):
    """Squares of products vanish or overflow long before the products do."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((900, 600)) * np.r_[30.0, 20.0, 10.0, np.ones(597)]
    plain, moved = (SVMPCA(2).fit(rows) for rows in (X, unit * X))
    assert_allclose(moved.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-8)
    assert_allclose(moved.components_, plain.components_, atol=1e-8)


@pytest.mark.parametrize("manifold", ["denominator", "numerator"])
def test_a_class_of_copies_has_no_geometry_to_blow_up(manifold):
    rng = np.random.default_rng(0)
    X = np.vstack([np.tile([0.1, 0.2, 0.3], (7, 1)), rng.standard_normal((20, 3))])
    y = np.repeat([0, 1], [7, 20])
    with_graph = MRGEPSVC(graph="total", manifold=manifold).fit(X, y)
    assert_allclose(with_graph.normals_[0], GEPSVC().fit(X, y).normals_[0], atol=1e-9)


def test_a_graph_without_effect_is_reported():
    with pytest.warns(MarginfoldWarning, match="has no effect"):
        MRGEPSVC(graph="between").fit(WINE, CLASSES)


def test_equal_weights_are_copies_for_the_reconstruction_too():
    model = SVMPCA(2, kernel="rbf", reconstruct="kernel_ridge")
    weighted = model.fit(IRIS, sample_weight=np.full(150, 2.0)).denoise(IRIS)
    twice = model.fit(np.vstack([IRIS, IRIS])).denoise(IRIS)
    assert_allclose(weighted, twice, atol=1e-8)


def test_lpp_does_not_depend_on_the_unit_of_its_graph():
    plain = LPP(2, graph=NeighborGraph()).fit_transform(WINE)
    assert_allclose(LPP(2, graph=10 * NeighborGraph()).fit_transform(WINE), plain, atol=1e-8)
    weighted = LPP(2).fit(WINE, sample_weight=np.full(178, 3.0)).transform(WINE)
    assert_allclose(weighted, plain, atol=1e-8)


def test_shrinkage_in_one_dimension_changes_nothing():
    model = LDA(shrinkage="auto").fit(IRIS[:, [2]], np.repeat([0, 1, 2], 50))
    plain = LDA().fit(IRIS[:, [2]], np.repeat([0, 1, 2], 50))
    assert_allclose(model.transform(IRIS[:, [2]]), plain.transform(IRIS[:, [2]]), rtol=1e-6)


def far_rows():
    rng = np.random.default_rng(0)
    return {
        "breast cancer": load_breast_cancer().data,
        "one far row": np.vstack([rng.standard_normal((300, 4)), np.full((1, 4), 15.0)]),
        "heavy tails": rng.standard_cauchy((400, 3)),
        "incomes": np.column_stack([rng.lognormal(10, 1.2, 600), rng.integers(18, 80, 600)]),
    }


@pytest.mark.parametrize("name", list(far_rows()))
@pytest.mark.parametrize("prepare", [np.asarray, scale])
def test_rows_far_from_all_others_do_not_stop_eigenmaps(name, prepare):
    """Their heat weights are nothing beside those of their neighbors: they are placed later."""
    X = prepare(far_rows()[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MarginfoldWarning)
        model = LaplacianEigenmaps().fit(X)
    assert model.residual_ < 1e-12
    assert np.isfinite(model.embedding_).all()
    assert_allclose(model.transform(X), model.embedding_, atol=1e-9)


def test_later_changes_of_the_rows_do_not_reach_an_embedding():
    X = WINE[:40].copy()
    graph = PrecomputedGraph(np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=2) / 20))
    model = LaplacianEigenmaps(graph=graph).fit(X)
    before, rows = model.transform(X), X.copy()
    X *= 2
    model.embedding_[:] = 0
    assert_array_equal(model.transform(rows), before)


def test_a_printed_plane_is_a_copy_and_stays_short():
    model = GEPSVC().fit(WINE, CLASSES)
    model.planes_[0].normal[:] = 0
    assert np.abs(model.coef_[0]).max() > 0
    wide = np.random.default_rng(0).standard_normal((30, 200))
    text = str(GEPSVC().fit(wide, np.arange(30) % 2).planes_[0])
    assert text.count(" x") <= 10
    assert " ... " in text


def test_a_class_between_others_is_named_with_what_helps():
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(m, 1, 50) for m in (0, 4, 8)])[:, None]
    labels = np.repeat(["a", "b", "c"], 50)
    with pytest.warns(ExhaustedWarning, match=r"'b'.*multiclass=\"one_vs_one\""):
        TwinSVC(loss="hinge", multiclass="one_vs_rest").fit(x, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert TwinSVC(loss="hinge").fit(x, labels).score(x, labels) > 0.9


def test_many_rows_need_no_matrix_of_rows_by_rows():
    """The Gram matrix of 60,000 rows would take 29 GB."""
    X = np.random.default_rng(0).standard_normal((60_000, 5)) * [5.0, 4.0, 3.0, 2.0, 1.0]
    dual, primal = (SVMPCA(2, solver=solver).fit(X) for solver in ("dual", "primal"))
    assert_allclose(dual.eigenvalues_, primal.eigenvalues_, rtol=1e-10)
    assert_allclose(dual.components_, primal.components_, atol=1e-8)


@pytest.mark.parametrize("parameters", [{"ridge": "x"}, {"intrinsic": "foo"}, {"penalty": "foo"}])
def test_a_wrong_parameter_does_not_break_the_display(parameters):
    assert "GraphEmbedding" in GraphEmbedding(**parameters)._repr_html_()


@pytest.mark.parametrize("model", [SVMPCA(1), LPP(1, graph=NeighborGraph(1))], ids=repr)
def test_largest_scores_that_tie_do_not_leave_the_sign_to_the_order_of_rows(model):
    X = np.array([[-2.0, 0.0], [-1.0, 0.3], [1.2, -0.3], [2.0, 0.0], [-0.2, 0.0]])
    X -= X.mean(axis=0)
    X[3, 0] = -X[0, 0]
    order = np.arange(5)[::-1]
    one, other = (clone(model).fit(rows).components_ for rows in (X, X[order]))
    assert_allclose(one, other, atol=1e-9)
