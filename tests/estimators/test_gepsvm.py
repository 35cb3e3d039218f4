"""GEPSVC and MRGEPSVC: crossing planes, attained ratios, the graph term and its absence."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from marginfold import (
    GEPSVC,
    MRGEPSVC,
    ExactKernel,
    NeighborGraph,
    PrecomputedGraph,
    WithinClassGraph,
)
from marginfold.errors import GraphError, InvalidParameterError

WINE, WINE_Y = load_wine(return_X_y=True)
X, Y = scale(WINE)[::2], WINE_Y[::2]
RBF = ExactKernel("rbf", gamma=0.05)
FAMILY = {
    "GEPSVC": GEPSVC(),
    "denominator": MRGEPSVC(),
    "numerator": MRGEPSVC(manifold="numerator"),
}
EVERY_MEMBER = pytest.mark.parametrize("model", FAMILY.values(), ids=FAMILY)
SIGNS = pytest.mark.parametrize("manifold", ["denominator", "numerator"])
KERNELS = pytest.mark.parametrize("kernel", ["linear", RBF], ids=["linear", "rbf"])
TIKHONOV = pytest.mark.parametrize("tikhonov", ["rkhs", "dual"])


# --------------------------------------------------------------------------------------------
# Crossing planes, 003 Fig. 5
# --------------------------------------------------------------------------------------------


def crossing_lines(n, rng, noise=0.02):
    t, y = rng.uniform(-2, 2, n), np.arange(n) % 2
    lines = np.where(y[:, None], np.column_stack([t, 1 - t]), np.column_stack([t, t / 2]))
    return lines + noise * rng.standard_normal((n, 2)), y


@EVERY_MEMBER
@pytest.mark.parametrize("seed", range(3))
def test_crossing_lines_that_no_line_parts(model, seed):
    rng = np.random.default_rng(seed)
    train, y = crossing_lines(200, rng)
    test, y_test = crossing_lines(400, rng)
    assert SVC(kernel="linear").fit(train, y).score(test, y_test) < 0.8
    # at full graph weight the local scatter across the line is a fair part of the noise
    options = {} if isinstance(model, GEPSVC) else {"graph_weight": 0.1}
    assert clone(model).set_params(**options).fit(train, y).score(test, y_test) > 0.96


@EVERY_MEMBER
def test_crossing_planes_in_space(model):
    """Two noisy planes through the origin, and their equations."""
    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    normals = np.array([[1.0, 2.0, 2.0], [2.0, -2.0, 1.0]]) / 3
    rows = rng.standard_normal((300, 3))
    rows -= (rows * normals[y]).sum(axis=1)[:, None] * normals[y]
    rows += 0.02 * rng.standard_normal((300, 3))
    options = {} if isinstance(model, GEPSVC) else {"graph_weight": 0.1}
    model = clone(model).set_params(ridge=1e-4, **options).fit(rows, y)
    assert model.score(rows, y) > 0.95
    assert_allclose(np.abs((model.coef_ * normals).sum(axis=1)), 1.0, atol=1e-3)
    assert_allclose(model.intercept_, 0.0, atol=0.02)


def test_exact_planes_are_found_exactly():
    rng = np.random.default_rng(1)
    y = np.arange(100) % 2
    normals, offsets = np.array([[0.6, 0.8], [0.8, -0.6]]), np.array([0.5, -1.0])
    rows = rng.standard_normal((100, 2))
    rows -= ((rows * normals[y]).sum(axis=1) + offsets[y])[:, None] * normals[y]
    model = GEPSVC(ridge=1e-10).fit(rows, y)
    signs = np.sign((model.coef_ * normals).sum(axis=1))
    assert_allclose(model.coef_ * signs[:, None], normals, atol=1e-6)
    assert_allclose(model.intercept_ * signs, offsets, atol=1e-6)
    assert model.eigenvalues_.min() > 1e6


@EVERY_MEMBER
def test_exclusive_or_with_a_kernel(model):
    rng = np.random.default_rng(2)
    corners = rng.integers(0, 2, (200, 2))
    rows = 2.0 * corners + 0.3 * rng.standard_normal((200, 2))
    y = corners[:, 0] ^ corners[:, 1]
    lines = clone(model).fit(rows, y)  # each class lies along a diagonal
    assert lines.score(rows, y) > 0.9
    kernel = clone(model).set_params(kernel=ExactKernel("rbf", gamma=0.5))
    assert cross_val_score(kernel, rows, y, cv=4).mean() > 0.95


# --------------------------------------------------------------------------------------------
# The eigenvalue problem
# --------------------------------------------------------------------------------------------


def moments(model, k):
    """Return P and Q of 003 eq. (4) in the coordinates of the model (T is the identity)."""
    H = np.column_stack([model.feature_map_.transform(X), np.ones(len(X))])
    return H[Y == k].T @ H[Y == k], H[Y != k].T @ H[Y != k]


def scatter(model, k, graph):
    M = np.zeros((model.normals_.shape[1] + 1,) * 2)
    Z = model.feature_map_.transform(X[Y == k])
    M[:-1, :-1] = graph.build(X[Y == k], Y[Y == k]).scatter(Z)
    return M


@KERNELS
@pytest.mark.parametrize("graph_weight", [0.0, 0.3, 5.0])
@SIGNS
def test_eigenvalues_are_attained_and_not_exceeded(kernel, graph_weight, manifold):
    graph = NeighborGraph(5, mode="mutual")
    model = MRGEPSVC(
        graph_weight=graph_weight,
        ridge=0.3,
        graph=graph,
        manifold=manifold,
        normalize=False,
        kernel=kernel,
        multiclass="one_vs_rest",
    ).fit(X, Y)
    rng = np.random.default_rng(0)
    for k in range(3):
        P, Q = moments(model, k)
        M = graph_weight * scatter(model, k, graph)
        far, near = (Q + M, P) if manifold == "denominator" else (Q, P + M)
        near = near + 0.3 * np.eye(len(P))
        v = np.append(model.normals_[k], model.offsets_[k])
        assert_allclose(v @ far @ v / (v @ near @ v), model.eigenvalues_[k], rtol=1e-7)
        trial = v[:, None] + 0.1 * rng.standard_normal((len(v), 300)) / np.sqrt(len(v))
        ratios = np.einsum("ij,ij->j", trial, far @ trial) / np.einsum(
            "ij,ij->j", trial, near @ trial
        )
        assert ratios.max() <= model.eigenvalues_[k] * (1 + 1e-9)


def test_normalised_units_are_the_documented_ones():
    """Mean square 1, ridge tr(P) / (rank + 1), M with the trace of what it is added to."""
    graph = NeighborGraph(5, mode="mutual")
    for manifold in ("denominator", "numerator"):
        options = {"graph": graph, "manifold": manifold, "multiclass": "one_vs_rest"}
        model = MRGEPSVC(graph_weight=0.7, ridge=0.05, **options).fit(X, Y)
        for k in range(3):
            unit = np.append(
                np.full(13, np.sqrt(X.var(axis=0).sum())), 1.0
            )  # rows of mean square 1
            P, Q = (G / np.outer(unit, unit) for G in moments(model, k))
            M = scatter(model, k, graph)
            target = Q if manifold == "denominator" else P
            M *= 0.7 * np.trace(target[:-1, :-1]) / np.trace(M)
            far, near = (Q + M, P) if manifold == "denominator" else (Q, P + M)
            near = near + 0.05 * np.trace(P) / 14 * np.eye(14)
            value = scipy.linalg.eigh(far, near, eigvals_only=True)[-1]
            assert_allclose(model.eigenvalues_[k], value, rtol=1e-9)


@KERNELS
@TIKHONOV
@SIGNS
@pytest.mark.parametrize("normalize", [True, False])
def test_without_graph_weight_it_is_gepsvc_exactly(kernel, tikhonov, manifold, normalize):
    options = {"kernel": kernel, "tikhonov": tikhonov, "normalize": normalize}
    plain = GEPSVC(**options).fit(X, Y)
    member = MRGEPSVC(graph_weight=0.0, manifold=manifold, **options).fit(X, Y)
    assert_array_equal(member.normals_, plain.normals_)
    assert_array_equal(member.offsets_, plain.offsets_)
    assert_array_equal(member.eigenvalues_, plain.eigenvalues_)
    assert "graph" not in plain.get_params(deep=False)


@SIGNS
def test_a_vanishing_graph_weight_is_none(manifold):
    plain = GEPSVC().fit(X, Y).distances(X)
    nearly = MRGEPSVC(graph_weight=1e-12, manifold=manifold).fit(X, Y).distances(X)
    assert_allclose(nearly, plain, atol=1e-8)


@SIGNS
def test_the_graph_term_changes_the_ratio_in_its_direction(manifold):
    """The denominator form adds to what is maximised, the numerator form to what divides."""
    graph = NeighborGraph(5, mode="mutual")
    values = [
        MRGEPSVC(graph_weight=w, graph=graph, manifold=manifold, normalize=False)
        .fit(X, Y)
        .eigenvalues_
        for w in (0.0, 0.1, 1.0, 10.0)
    ]
    rising = np.diff(values, axis=0)
    assert (rising > 0).all() if manifold == "denominator" else (rising < 0).all()


@SIGNS
def test_classes_have_graphs_of_their_own(manifold):
    """Within-class edges or not: a graph on the rows of one class has no others."""
    within, without = (
        MRGEPSVC(graph=NeighborGraph(5, mode="mutual", within_class=flag), manifold=manifold)
        .fit(X, Y)
        .distances(X)
        for flag in (True, False)
    )
    assert_allclose(within, without, atol=1e-10)
    default = MRGEPSVC(manifold=manifold).fit(X, Y)
    named = MRGEPSVC(manifold=manifold, graph=NeighborGraph(mode="mutual", within_class=True)).fit(
        X, Y
    )
    assert_array_equal(default.distances(X), named.distances(X))


@SIGNS
@pytest.mark.parametrize("factor", [1e-3, 1e3])
def test_a_normalised_weight_does_not_see_the_size_of_the_graph(manifold, factor):
    plain = MRGEPSVC(graph=NeighborGraph(5), manifold=manifold).fit(X, Y).distances(X)
    scaled = MRGEPSVC(graph=factor * NeighborGraph(5), manifold=manifold).fit(X, Y).distances(X)
    assert_allclose(scaled, plain, atol=1e-8)


@SIGNS
def test_classes_without_edges_have_no_graph_term(manifold):
    """One row, or copies of one: M is zero and nothing is divided by its trace."""
    rows = np.vstack([X, np.full((4, 13), 2.0), np.full((1, 13), -2.0)])
    labels = np.append(Y, [3, 3, 3, 3, 4])
    graph = MRGEPSVC(manifold=manifold, multiclass="one_vs_rest").fit(rows, labels)
    plain = GEPSVC(multiclass="one_vs_rest").fit(rows, labels)
    assert_allclose(graph.distances(X)[:, 3:], plain.distances(X)[:, 3:], atol=1e-9)
    assert_allclose(graph.eigenvalues_[3:], plain.eigenvalues_[3:], rtol=1e-9)


@EVERY_MEMBER
@pytest.mark.parametrize("normalize", [True, False])
def test_both_tikhonov_terms_are_one_where_the_rows_are_white(model, normalize):
    """With Z'Z = I the coefficients u of w = Z'u are as long as w."""
    rows = np.linalg.qr(X - X.mean(axis=0))[0]
    rkhs, dual = (
        clone(model).set_params(tikhonov=t, normalize=normalize).fit(rows, Y).distances(rows)
        for t in ("rkhs", "dual")
    )
    assert_allclose(dual, rkhs, atol=1e-9)


@EVERY_MEMBER
def test_a_strong_ridge_is_the_plane_far_from_the_rest(model):
    """P drowns in the ridge: v is the leading eigenvector of the other matrix."""
    if isinstance(model, MRGEPSVC) and not isinstance(model, GEPSVC):
        model = clone(model).set_params(graph_weight=0.0)
    options = {"ridge": 1e12, "normalize": False, "multiclass": "one_vs_rest"}
    model = clone(model).set_params(**options).fit(X, Y)
    for k in range(3):
        Q = moments(model, k)[1]
        v = scipy.linalg.eigh(Q)[1][:, -1]
        found = np.append(model.normals_[k], model.offsets_[k])
        cosine = v @ found / np.linalg.norm(found)
        assert abs(cosine) == pytest.approx(1.0, abs=1e-6)


# --------------------------------------------------------------------------------------------
# Use
# --------------------------------------------------------------------------------------------


def test_a_grid_search_reaches_the_graph():
    model = MRGEPSVC(graph=NeighborGraph(mode="mutual"))
    grid = {"graph__n_neighbors": [3, 6], "graph_weight": [0.1, 1.0]}
    search = GridSearchCV(model, grid, cv=3).fit(X, Y)
    assert search.best_score_ > 0.7
    assert search.best_estimator_.graph.n_neighbors in (3, 6)


def test_a_precomputed_graph_belongs_to_all_rows():
    with pytest.raises(GraphError, match="adjacency of shape"):
        MRGEPSVC(graph=PrecomputedGraph(np.ones((len(X), len(X))))).fit(X, Y)


@pytest.mark.parametrize("graph", ["knn", "lle", "within", WithinClassGraph() + NeighborGraph(4)])
@SIGNS
def test_other_graphs_will_do(graph, manifold):
    model = MRGEPSVC(graph=graph, graph_weight=0.2, manifold=manifold).fit(X, Y)
    assert model.score(X, Y) > 0.75


@pytest.mark.parametrize(
    "parameters", [{"graph_weight": -1.0}, {"manifold": "both"}, {"graph": "foo"}, {"graph": 3}]
)
def test_parameters_out_of_range(parameters):
    with pytest.raises(InvalidParameterError, match=next(iter(parameters))):
        MRGEPSVC(**parameters).fit(X, Y)
