"""Two routes to the same result, and the data and measures of all equivalence tests.

This file compares the library with scikit-learn and with itself. The comparisons with the papers'
equations are in ``test_equivalences_subspaces.py`` and ``test_equivalences_classifiers.py``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import literal as lit
import numpy as np
import pytest
from scipy.linalg import null_space
from scipy.stats import ortho_group
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine, make_blobs
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from marginfold import (
    GESVC,
    LSVA,
    MMDA,
    WSVDA,
    BetweenClassGraph,
    ExactKernel,
    NeighborGraph,
    PrecomputedGraph,
    ReconstructionGraph,
    TotalGraph,
    WithinClassGraph,
)

pytestmark = pytest.mark.attack("relations between fits")

DIRECTIONS = 1e-5  # promised for the first five directions and for projections on them
DECISIONS = 1e-6  # promised for decision values
EXACT = 1e-9  # identities of the library with itself
ORTHOGONAL = 1e-10  # promised for directions among each other
FLAT = 1e-13  # share of the total cost within which two hinge losses are equal
N_NEIGHBORS = 5
N_COMPONENTS = 5
GRAPHS = {
    "W": WithinClassGraph(),
    "B": BetweenClassGraph(),
    "C": TotalGraph(),
    "L": ReconstructionGraph(N_NEIGHBORS),
    "E": NeighborGraph(N_NEIGHBORS),
}
BINARY, MULTICLASS = ["cancer", "overlap"], ["wine", "four blobs"]
PROBLEMS = BINARY + MULTICLASS


# --------------------------------------------------------------------------------------------
# Data
# --------------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Problem:
    """Training rows, their labels, held-out rows, and a kernel with its dense matrices."""

    X: np.ndarray
    y: np.ndarray
    X_new: np.ndarray
    kernel: ExactKernel
    K: np.ndarray
    K_new: np.ndarray


@cache
def problem(name):
    """Every third row is held out. No two distances are equal, so neighbours are unique."""
    X, y = {
        "cancer": _cancer,
        "overlap": _overlap,
        "wine": _wine,
        "four blobs": _four_blobs,
        "wide": _wide,
    }[name]()
    new, gamma = np.arange(len(y)) % 3 == 2, 1 / X.shape[1]
    X, y, X_new = X[~new], y[~new], X[new]
    K, K_new = rbf_kernel(X, gamma=gamma), rbf_kernel(X_new, X, gamma=gamma)
    return Problem(X, y, X_new, ExactKernel("rbf", gamma=gamma), K, K_new)


@cache
def laplacian(name, graph):
    """The reference's dense Laplacian of one of the five graphs."""
    p = problem(name)
    return lit.gesvm_graph(graph, p.X, p.y, n_neighbors=N_NEIGHBORS)


def _cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X)[:120], y[:120]


def _wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def _overlap():
    """Two correlated classes that no hyperplane separates."""
    rng = np.random.default_rng(0)
    y = np.arange(90) % 2
    X = rng.standard_normal((90, 8)) + 0.8 * y[:, None] * rng.standard_normal(8)
    return X @ rng.standard_normal((8, 8)) / 3, y


def _four_blobs():
    """Correlated blobs: round ones use up their mean difference in the first component."""
    X, y = make_blobs(120, 8, centers=4, cluster_std=5.0, random_state=3)
    return X @ np.random.default_rng(0).standard_normal((8, 8)) / 10, y


def _wide():
    """More columns than rows, with classes that overlap in most of them."""
    return make_blobs(36, 60, centers=2, cluster_std=8.0, random_state=0)


# --------------------------------------------------------------------------------------------
# Measures
# --------------------------------------------------------------------------------------------


def assert_close(actual, expected, tol, what=""):
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tol, err_msg=what)


def assert_same_model(first, second, X, tol=EXACT):
    """Two fitted subspaces that are the same map, component by component."""
    assert first.tasks_ == second.tasks_
    assert_close(first.transform(X), second.transform(X), tol, "transform")
    assert_close(first.decision_function(X), second.decision_function(X), tol, "decisions")
    assert_close(first.gain_, second.gain_, tol, "gain")


def class_weight(balanced):
    return "balanced" if balanced else None


def graph_weight_in_data_units(K, L, weight):
    """lam = weight tr(ZZ') / tr(Z Z'LZ Z') for the centred coordinates Z with ZZ' = HKH."""
    H = np.eye(len(K)) - 1 / len(K)
    centred = H @ K @ H
    return weight * np.trace(centred) / np.trace(centred @ L @ centred)


def expected_decisions(reference, y, C, balanced, labelled=None):
    """The reference's decisions on old and new rows, with every bias in the middle.

    With balanced costs and all rows inside the margin, all biases of an interval are optimal. The
    library returns the middle. The reference returns an end if a multiplier misses its bound by
    rounding, so its bias is only checked to be optimal, and moved.
    """
    rows = np.ones(len(y), dtype=bool) if labelled is None else labelled
    tasks = lit.tasks(y, labelled)[:, rows]
    C = np.broadcast_to(np.asarray(C, dtype=float), y.shape)[rows]
    shifts = np.zeros(len(reference.intercepts))
    for k, bias in enumerate(reference.intercepts):
        signs = tasks[k % len(tasks)]
        scores = reference.decisions[rows, k] - bias
        low, high = _optimal_biases(scores, signs, lit.task_costs(signs, C, balanced))
        assert low - DECISIONS < bias < high + DECISIONS
        shifts[k] = (low + high) / 2 - bias
    return reference.decisions + shifts, reference.decisions_new + shifts


def _optimal_biases(scores, signs, costs):
    """Ends of the interval that minimises the hinge loss, by trying all of its break points."""
    points = signs - scores
    losses = np.array([costs @ np.maximum(0, 1 - signs * (scores + b)) for b in points])
    best = points[losses <= losses.min() + FLAT * costs.sum()]
    return best.min(), best.max()


# --------------------------------------------------------------------------------------------
# scikit-learn as the oracle
# --------------------------------------------------------------------------------------------


def _in_eighths(X):
    """Rounded rows. libsvm keeps its kernel in single precision: their inner products are exact."""
    return np.round(8 * X) / 8


def _svc(C, balanced, **kernel):
    return SVC(C=C, class_weight=class_weight(balanced), tol=1e-10, **kernel)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("name", PROBLEMS)
def test_linear_gesvc_without_graph_is_svc(name, balanced):
    p = problem(name)
    X, X_new = _in_eighths(p.X), _in_eighths(p.X_new)
    oracle = OneVsRestClassifier(_svc(10.0, balanced, kernel="linear")).fit(X, p.y)
    model = GESVC(C=10.0, graph_weight=0, class_weight=class_weight(balanced))
    model.set_params(multiclass="one_vs_rest").fit(X, p.y)
    for rows in (X, X_new):
        assert_close(model.decision_function(rows), oracle.decision_function(rows), DECISIONS)
    weights = np.vstack([part.coef_ for part in oracle.estimators_])
    assert_close(model.coef_, weights, DECISIONS)
    intercepts = np.concatenate([part.intercept_ for part in oracle.estimators_])
    assert_close(model.intercept_, intercepts, DECISIONS)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("name", PROBLEMS)
def test_kernel_gesvc_without_graph_is_svc(name, balanced):
    p = problem(name)
    oracle = OneVsRestClassifier(_svc(1.0, balanced, gamma=p.kernel.gamma)).fit(p.X, p.y)
    model = GESVC(C=1.0, kernel=p.kernel, graph_weight=0, class_weight=class_weight(balanced))
    model.set_params(multiclass="one_vs_rest").fit(p.X, p.y)
    for X in (p.X, p.X_new):
        assert_close(model.decision_function(X), oracle.decision_function(X), DECISIONS)


@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("C", [0.1, 1.0, 100.0])
@pytest.mark.parametrize("name", BINARY)
def test_first_direction_of_mmda_is_the_normal_of_svc(name, C, balanced):
    p = problem(name)
    X = _in_eighths(p.X)
    normal = _svc(C, balanced, kernel="linear").fit(X, p.y).coef_
    model = MMDA(1, C=C, class_weight=class_weight(balanced)).fit(X, p.y)
    assert_close(model.components_, normal / np.linalg.norm(normal), DECISIONS)
    np.testing.assert_allclose(model.norms_, np.linalg.norm(normal), rtol=DECISIONS)


# --------------------------------------------------------------------------------------------
# The same method in other coordinates
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROBLEMS)
def test_linear_kernel_is_the_linear_method(name):
    p = problem(name)
    linear = LSVA(N_COMPONENTS, C=10.0, graph=NeighborGraph(N_NEIGHBORS)).fit(p.X, p.y)
    kernel = clone(linear).set_params(kernel=ExactKernel("linear")).fit(p.X, p.y)
    for X in (p.X, p.X_new):
        assert_same_model(linear, kernel, X)


@pytest.mark.parametrize("graph", list(GRAPHS))
@pytest.mark.parametrize("name", ["cancer", "wine"])
def test_precomputed_kernel_with_precomputed_graph_is_the_kernel_method(name, graph):
    p = problem(name)
    L = laplacian(name, graph)
    adjacency = PrecomputedGraph(np.diag(np.diag(L)) - L)
    params = {"C": 10.0, "graph_weight": 0.5}
    named = LSVA(N_COMPONENTS, kernel=p.kernel, graph=GRAPHS[graph], **params).fit(p.X, p.y)
    given = LSVA(N_COMPONENTS, kernel="precomputed", graph=adjacency, **params).fit(p.K, p.y)
    for X, K in ((p.X, p.K), (p.X_new, p.K_new)):
        assert_close(given.transform(K), named.transform(X), EXACT)
        assert_close(given.decision_function(K), named.decision_function(X), EXACT)


@pytest.mark.parametrize("name", ["overlap", "wine"])
def test_neighbours_in_a_precomputed_linear_kernel_are_those_of_the_rows(name):
    p = problem(name)
    params = {"C": 10.0, "graph": NeighborGraph(N_NEIGHBORS)}
    linear = LSVA(N_COMPONENTS, **params).fit(p.X, p.y)
    given = LSVA(N_COMPONENTS, kernel="precomputed", **params).fit(p.X @ p.X.T, p.y)
    for X in (p.X, p.X_new):
        assert_close(given.transform(X @ p.X.T), linear.transform(X), EXACT)


@pytest.mark.parametrize("estimator", [MMDA, LSVA, WSVDA])
@pytest.mark.parametrize("name", ["overlap", "wine", "wide"])
def test_rotation_into_more_columns_than_rows_changes_nothing(name, estimator):
    p = problem(name)
    d, wider = p.X.shape[1], 10 + max(p.X.shape)
    into = ortho_group.rvs(wider, random_state=0)[:d]
    narrow, wide = estimator(3, C=10.0).fit(p.X, p.y), estimator(3, C=10.0).fit(p.X @ into, p.y)
    for X in (p.X, p.X_new):
        assert_close(wide.transform(X @ into), narrow.transform(X), EXACT)
        assert_close(wide.decision_function(X @ into), narrow.decision_function(X), EXACT)
    assert_close(wide.components_, narrow.components_ @ into, EXACT)


def test_wsvda_with_few_rows_tends_to_null_space_lda():
    """E15: the limit is the mean difference in null(S_W); a pseudo-inverse would delete it."""
    p = problem("wide")
    N = null_space(lit.within_scatter(p.X, p.y), rcond=1e-10)
    means = [p.X[p.y == c].mean(axis=0) for c in (0, 1)]
    limit = N @ (N.T @ (means[1] - means[0]))
    limit /= np.linalg.norm(limit)
    misfits, spreads = [], []
    for ridge in (1e-1, 1e-3, 1e-6):
        model = WSVDA(1, C=1e3, ridge=ridge).fit(p.X, p.y)
        misfits.append(np.linalg.norm(model.components_[0] - limit))
        values = model.decision_function(p.X)[:, 0]
        spreads.append(max(np.ptp(values[p.y == c]) for c in (0, 1)))
    assert misfits[0] > 10 * misfits[1] > 100 * misfits[2]
    assert misfits[2] < DIRECTIONS
    assert spreads[2] < DIRECTIONS  # every class is one value


# --------------------------------------------------------------------------------------------
# Paths and solvers
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_fit_path_is_separate_fits(name, kernel):
    p = problem(name)
    weights = [0.0, 0.3, 30.0]
    model = LSVA(N_COMPONENTS, C=10.0, kernel=kernel, graph=NeighborGraph(N_NEIGHBORS))
    for weight, member in zip(weights, model.fit_path(p.X, p.y, weights), strict=True):
        alone = clone(model).set_params(graph_weight=weight).fit(p.X, p.y)
        assert_same_model(member, alone, p.X_new)


@pytest.mark.filterwarnings("ignore::marginfold.errors.ExhaustedWarning")
@pytest.mark.parametrize("name", ["cancer", "wine"])
def test_fit_path_is_separate_fits_when_some_weights_end_earlier(name):
    p = problem(name)
    weights = [0.01, 1.0, 100.0]
    model = LSVA(p.X.shape[1], C=10.0, deflation="orthogonal", graph=NeighborGraph(N_NEIGHBORS))
    model.set_params(class_weight=None)
    path = model.fit_path(p.X, p.y, weights)
    assert len({member.n_components_ for member in path}) > 1
    for weight, member in zip(weights, path, strict=True):
        alone = clone(model).set_params(graph_weight=weight).fit(p.X, p.y)
        assert member.exhausted_.keys() == alone.exhausted_.keys()
        assert_same_model(member, alone, p.X_new)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_libsvm_finds_the_same_directions(name, kernel):
    """Both solvers end on the exact face of the problem; only the way there differs."""
    p = problem(name)
    model = LSVA(N_COMPONENTS, C=10.0, kernel=kernel, graph=NeighborGraph(N_NEIGHBORS))
    model.fit(p.X, p.y)
    other = clone(model).set_params(solver="libsvm").fit(p.X, p.y)
    assert max(model.gap_.max(), other.gap_.max()) <= model.tol
    assert_same_model(model, other, p.X_new, tol=DECISIONS)
