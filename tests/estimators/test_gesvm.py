"""GESVC: fitted attributes, the graph in the regulariser, weights and markers."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import sqrtm
from sklearn.base import clone
from sklearn.datasets import load_wine, make_classification
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from marginfold import (
    GESVC,
    LSVA,
    BetweenClassGraph,
    ExactKernel,
    InteriorPoint,
    LapSVC,
    NeighborGraph,
    PrecomputedGraph,
    WithinClassGraph,
)
from marginfold.errors import (
    ExhaustedWarning,
    GraphError,
    InvalidParameterError,
    UncertifiedWarning,
)
from marginfold.estimators.multiclass import one_vs_one_values
from marginfold.graphs import resolve_graph

X, Y = load_wine(return_X_y=True)
X = scale(X)
TWO = Y != 2

CONFIGURATIONS = {
    "default": {},
    "within": {"graph": "within"},
    "between": {"graph": "between", "graph_weight": 3.0},
    "lle": {"graph": "lle"},
    "raw": {"normalize_graph": False, "graph_weight": 0.01},
    "balanced": {"class_weight": "balanced"},
    "rbf": {"kernel": "rbf", "C": 10.0},
}


@pytest.mark.parametrize("parameters", CONFIGURATIONS.values(), ids=CONFIGURATIONS)
@pytest.mark.parametrize("rows", [slice(None), TWO], ids=["three", "two"])
@pytest.mark.parametrize("multiclass", ["one_vs_one", "one_vs_rest"])
def test_fitted_attributes_agree(parameters, rows, multiclass):
    fitted = GESVC(**parameters, multiclass=multiclass).fit(X[rows], Y[rows])
    tasks = 1 if len(fitted.classes_) == 2 else 3
    Z = fitted.feature_map_.transform(X[rows])
    assert fitted.directions_.shape == (Z.shape[1], tasks)
    for name in ("intercepts_", "gap_", "gain_"):
        assert getattr(fitted, name).shape == (tasks,)
    assert (fitted.gap_ <= fitted.tol).all()
    assert ((fitted.gain_ > 0) & (fitted.gain_ <= 1)).all()
    assert isinstance(fitted.n_iter_, int)
    assert fitted.n_iter_ > 0
    margins = Z @ fitted.directions_ + fitted.intercepts_
    if multiclass == "one_vs_one":
        assert_array_equal(fitted.pairs_, list(combinations(fitted.classes_, 2)))
        margins = one_vs_one_values(margins.clip(-1, 1), 3) if tasks == 3 else margins
    assert_allclose(
        margins, fitted.decision_function(X[rows]).reshape(margins.shape), rtol=0, atol=1e-9
    )
    assert hasattr(fitted, "coef_") == hasattr(fitted, "intercept_") == ("kernel" not in parameters)


@pytest.mark.parametrize("graph", [WithinClassGraph(), BetweenClassGraph()])
def test_it_is_a_machine_in_the_metric_of_the_graph(graph):
    """Whiten with A = I + lam X'LX; libsvm solves each one-vs-rest problem, to about 1e-5."""
    rest = {"multiclass": "one_vs_rest", "C": 2.0}
    fitted = GESVC(graph=graph, graph_weight=0.02, normalize_graph=False, **rest).fit(X, Y)
    A = np.eye(13) + 0.02 * graph.build(X, Y).scatter(X)
    root = np.linalg.cholesky(np.linalg.inv(A))
    for code in range(3):
        svc = SVC(kernel="linear", C=2.0, tol=1e-9).fit(X @ root, Y == code)
        assert_allclose(
            fitted.decision_function(X)[:, code], svc.decision_function(X @ root), atol=1e-4
        )


def test_two_classes_are_the_first_component_of_lsva():
    fitted = GESVC(graph_weight=1.0).fit(X[TWO], Y[TWO])
    lsva = LSVA(1, C=1.0, class_weight=None).fit(X[TWO], Y[TWO])
    assert_allclose(fitted.decision_function(X), lsva.decision_function(X)[:, 0], atol=1e-8)


def test_the_class_with_the_second_name_is_the_positive_one():
    fitted = GESVC().fit(X[TWO], Y[TWO])
    swapped = GESVC().fit(X[TWO], 1 - Y[TWO])
    assert_allclose(fitted.decision_function(X), -swapped.decision_function(X), atol=1e-8)


def test_weights_are_copies_and_zero_is_absent():
    weights = np.random.default_rng(0).integers(0, 4, len(X))
    for parameters in CONFIGURATIONS.values():
        model = GESVC(**parameters)
        if "kernel" in parameters:
            model.set_params(kernel=ExactKernel(gamma=0.1))
        weighted = model.fit(X, Y, sample_weight=weights).decision_function(X)
        copied = model.fit(np.repeat(X, weights, axis=0), np.repeat(Y, weights))
        assert_allclose(weighted, copied.decision_function(X), atol=1e-6)


def test_a_class_without_weight_is_absent():
    fitted = GESVC().fit(X, Y, sample_weight=TWO.astype(float))
    assert_array_equal(fitted.classes_, [0, 1])
    expected = GESVC().fit(X[TWO], Y[TWO])
    assert_allclose(fitted.decision_function(X), expected.decision_function(X), atol=1e-8)


def test_a_marked_row_has_no_loss():
    """By default no label is special; a marked row then acts through the graph only."""
    assert_array_equal(GESVC().fit(X, Y - 1).classes_, [-1, 0, 1])
    few = np.where(np.arange(len(Y)) % 3 == 0, Y, -1)
    plain = GESVC(graph_weight=0.0, unlabeled=-1).fit(X, few)
    known = few != -1
    expected = GESVC(graph_weight=0.0).fit(X[known], Y[known])
    assert_allclose(plain.decision_function(X), expected.decision_function(X), atol=1e-7)
    within = GESVC(graph="within", unlabeled=-1).fit(X, few)
    assert_array_equal(within.classes_, [0, 1, 2])


def test_an_early_stop_is_reported():
    with pytest.warns(UncertifiedWarning, match="relative duality gap") as caught:
        GESVC(solver=InteriorPoint(tol=1e-6, max_iter=2)).fit(X, Y)
    assert caught[0].filename == __file__
    assert "1e-08" not in str(caught[0].message)


def test_a_solver_without_iterations_is_refused_in_words():
    with pytest.raises(ValueError, match="max_iter"):
        GESVC(solver=InteriorPoint(max_iter=-3)).fit(X, Y)


@pytest.mark.filterwarnings("error")
def test_libsvm_gives_the_same_machine_without_a_warning():
    libsvm = GESVC(solver="libsvm").fit(X, Y)
    assert_allclose(libsvm.decision_function(X), GESVC().fit(X, Y).decision_function(X), atol=1e-3)


@pytest.mark.parametrize("names", [[0, 1, 2, 3], list("abcd"), np.array(list("abcd"), object)])
def test_classes_that_a_constant_separates_as_well_are_named(names):
    X, y = make_classification(2000, 30, n_informative=10, n_classes=4, random_state=0)
    y = np.asarray(names)[y]
    with pytest.warns(ExhaustedWarning, match="better than by a constant: .*balanced") as caught:
        model = GESVC(graph_weight=0, multiclass="one_vs_rest").fit(X, y)
    flat = [repr(names[code]) for code, gain in enumerate(model.gain_) if gain < 1e-9]
    assert 0 < len(flat) < 4
    assert f"constant: {', '.join(flat)}." in str(caught[0].message)


# ---------------------------------------------------------------- penalty graphs


PENALTY_ROWS, PENALTY_LABELS = X[TWO][::2], Y[TWO][::2]


def relative_form(Z, L, L_p):
    """B^(-1/2) Z'LZ B^(-1/2) by matrix functions, B = Z'L_p Z + 0.02 mean eigenvalue."""
    B = Z.T @ L_p @ Z
    B += 0.02 * np.trace(B) / len(B) * np.eye(len(B))
    root = np.linalg.inv(sqrtm(B).real)
    return root @ Z.T @ L @ Z @ root


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("against", ["between", "total", NeighborGraph(20)])
def test_a_penalty_graph_is_the_unit_of_the_graph(kernel, against):
    """An SVM with the kernel Z (I + lam M)^-1 Z' of the relative form M, as 002 eq. (17) has it."""
    rows, labels = PENALTY_ROWS, PENALTY_LABELS
    lam, C = 0.7, 2.0
    feature_map = "linear" if kernel == "linear" else ExactKernel("rbf", gamma=0.1)
    model = GESVC(
        C=C, kernel=feature_map, graph_weight=lam, normalize_graph=False, penalty_graph=against
    )
    model.set_params(graph=NeighborGraph(5)).fit(rows, labels)
    Z = model.feature_map_.coordinates(rows)
    L, L_p = (
        resolve_graph(rule).build(rows, labels).scatter(np.eye(len(rows)))
        for rule in (NeighborGraph(5), against)
    )
    A = np.eye(Z.shape[1]) + lam * relative_form(Z, L, L_p)
    K = Z @ np.linalg.solve(A, Z.T)
    svc = SVC(C=C, kernel="precomputed", tol=1e-9).fit(K, labels)
    expected = svc.decision_function(K)
    assert_allclose(model.decision_function(rows), expected, atol=1e-5 * np.abs(expected).max())
    plain = clone(model).set_params(penalty_graph=None).fit(rows, labels)
    assert np.abs(plain.decision_function(rows) - expected).max() > 1e-3


def test_a_penalty_graph_of_equal_weight_everywhere_changes_units_only():
    """Against the graph itself all quotients are nearly 1: the plain SVM of another cost."""
    rows, labels = PENALTY_ROWS, PENALTY_LABELS
    model = GESVC(graph="total", penalty_graph="total", graph_weight=1.0).fit(rows, labels)
    plain = GESVC(graph_weight=0.0, C=0.5).fit(rows, labels)
    same = np.corrcoef(model.decision_function(rows), plain.decision_function(rows))[0, 1]
    assert same > 0.999


def test_a_penalty_graph_without_a_graph_weight_does_nothing():
    rows, labels = PENALTY_ROWS, PENALTY_LABELS
    model = GESVC(graph_weight=0.0, penalty_graph="between", kernel="rbf").fit(rows, labels)
    plain = GESVC(graph_weight=0.0, kernel="rbf").fit(rows, labels)
    assert_array_equal(model.decision_function(rows), plain.decision_function(rows))


def test_unlabelled_rows_take_part_in_a_penalty_graph_without_classes():
    labels = np.where(np.arange(len(PENALTY_LABELS)) % 3, PENALTY_LABELS, np.nan)
    values = [
        LapSVC(penalty_graph=rule, unlabeled=np.nan)
        .fit(PENALTY_ROWS, labels)
        .decision_function(PENALTY_ROWS)
        for rule in (None, "total", "between")
    ]
    assert np.abs(values[0] - values[1]).max() > 1e-3
    assert np.abs(values[1] - values[2]).max() > 1e-3


@pytest.mark.parametrize("value", ["heat", NeighborGraph, 3])
def test_what_is_no_penalty_graph_is_refused(value):
    with pytest.raises(InvalidParameterError, match=r"got penalty_graph=.*it needs one of 'knn'"):
        GESVC(penalty_graph=value).fit(PENALTY_ROWS, PENALTY_LABELS)


def test_a_penalty_graph_that_joins_nothing_is_refused():
    nothing = PrecomputedGraph(np.zeros((len(PENALTY_ROWS),) * 2))
    with pytest.raises(GraphError, match=r"penalty graph .* no scatter.*penalty_graph=None"):
        GESVC(penalty_graph=nothing).fit(PENALTY_ROWS, PENALTY_LABELS)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_equal_means_have_no_scatter_between_them_whatever_rounding_says(kernel):
    rows = np.concatenate([PENALTY_ROWS, -PENALTY_ROWS])
    rows, labels = np.concatenate([rows, rows[::-1]]) + 3.7, np.repeat([0, 1], len(rows))
    with pytest.raises(GraphError, match="the means of all classes are equal"):
        GESVC(penalty_graph="between", kernel=kernel).fit(rows, labels)


@pytest.mark.parametrize("kernel", ["linear", ExactKernel("rbf", gamma=1e-4)])
def test_classes_that_nothing_separates_have_the_same_answer_for_every_row(kernel):
    """Directions that are rounding decided between constants that are equal."""
    rng = np.random.default_rng(45)
    rows, labels = rng.normal(size=(80, 4)), np.arange(80) % 4
    model = GESVC(kernel=kernel, C=1e-4, multiclass="one_vs_rest")
    with pytest.warns(ExhaustedWarning, match="the same for every row"):
        model.fit(rows, labels)
    values = model.decision_function(10 * rng.normal(size=(200, 4)))
    assert_array_equal(values, np.tile(model.intercepts_, (200, 1)))
    assert_allclose(model.intercepts_, -1.0, rtol=1e-9)


@pytest.mark.parametrize("offset", [10.0, 100.0, 1e3, 1e4])
@pytest.mark.parametrize("C", [1.0, 1e4])
def test_the_rounding_of_a_kernel_of_far_rows_is_not_fitted(offset, C):
    """Ten monomials do not separate random labels; kernel values of 1e24 have noise of 1e8."""
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(150, 3)), rng.integers(0, 2, 150)
    model = GESVC(kernel="poly", graph_weight=0, C=C).fit(rows + offset, labels)
    assert model.gap_[0] <= 1e-8
    assert model.gain_[0] < 0.5
    assert model.n_iter_ <= 2000 * len(rows)


def test_a_large_linear_kernel_is_the_linear_machine():
    rows, labels = load_wine(return_X_y=True)
    rows = rows[labels < 2] @ np.diag(np.logspace(0, 1, 13))
    labels = labels[labels < 2]
    models = [
        GESVC(kernel=kernel, graph_weight=0, C=10.0).fit(rows, labels)
        for kernel in ("linear", ExactKernel("linear"))
    ]
    assert models[1].gap_[0] <= 1e-8
    assert models[1].n_iter_ <= 2000 * len(rows)
    values = [model.decision_function(rows) for model in models]
    assert_allclose(values[1], values[0], atol=1e-2)
