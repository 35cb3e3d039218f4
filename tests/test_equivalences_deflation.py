"""Uncorrelated components against a literal reference; what is new in correlated ones."""

from __future__ import annotations

import pickle

import literal as lit
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import scale
from test_equivalences import (
    DECISIONS,
    N_COMPONENTS,
    N_NEIGHBORS,
    PROBLEMS,
    assert_close,
    class_weight,
    laplacian,
    problem,
)
from test_equivalences_subspaces import assert_same_subspace

from marginfold import LSVA, MMDA, WSVDA, ExactKernel, NeighborGraph, path
from marginfold.errors import ExhaustedWarning
from marginfold.model_selection.subspace_search import SubspaceSearchCV

pytestmark = pytest.mark.attack("relations between fits")

UNCORRELATED = 1e-8
C = 10.0
KNN = NeighborGraph(N_NEIGHBORS)


def correlations(scores, weights=None):
    """The largest correlation of two columns."""
    matrix = np.atleast_2d(np.cov(scores.T, aweights=weights))
    sizes = np.sqrt(np.diag(matrix))
    return np.abs(matrix / np.outer(sizes, sizes) - np.eye(len(matrix))).max()


def model_and_metric(method, name, X):
    """An estimator, and the A of its penalty 1/2 w'Aw."""
    eye = np.eye(X.shape[1])
    if method == "MMDA":
        return MMDA(3, C=C, deflation="uncorrelated"), eye
    if method == "LSVA":
        model = LSVA(3, C=C, graph=KNN, graph_weight=0.05, deflation="uncorrelated")
        return model.set_params(normalize_graph=False), eye + 0.05 * X.T @ laplacian(name, "E") @ X
    S_W = lit.within_scatter(X, problem(name).y)
    model = WSVDA(2, C=C, ridge=0.1, deflation="uncorrelated")
    return model, S_W + 0.1 * np.trace(S_W) / len(S_W) * eye


# --------------------------------------------------------------------------------------------
# The reference
# --------------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::marginfold.errors.ExhaustedWarning")
@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("method", ["MMDA", "LSVA", "WSVDA"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_uncorrelated_components_are_those_of_explicit_constraints(name, method, balanced):
    p = problem(name)
    model, A = model_and_metric(method, name, p.X)
    model.set_params(class_weight=class_weight(balanced), tasks="one_vs_rest").fit(p.X, p.y)
    k = model.n_components_
    assert k == model.n_components or not balanced  # the larger side may hide a class
    reference = lit.uncorrelated(p.X, p.y, A, C, k, balanced=balanced, X_new=p.X_new)
    assert_same_subspace(model, reference, p, C, balanced)
    assert correlations(reference.projections) < UNCORRELATED


@pytest.mark.parametrize("name", PROBLEMS)
def test_with_a_kernel_they_are_those_of_its_explicit_features(name):
    p = problem(name)
    H = np.eye(len(p.y)) - 1 / len(p.y)
    Phi, E = lit.explicit_features(H @ p.K @ H)
    Phi_new = (p.K_new - p.K.mean(axis=0)) @ H @ E
    model = MMDA(3, C=C, kernel=p.kernel, tasks="one_vs_rest").fit(p.X, p.y)
    reference = lit.uncorrelated(Phi, p.y, np.eye(Phi.shape[1]), C, 3, X_new=Phi_new)
    in_feature_space = lit.LiteralSubspace(
        **vars(reference) | {"directions": None, "coefficients": H @ E @ reference.directions}
    )
    assert_same_subspace(model, in_feature_space, p, C, True)


@pytest.mark.parametrize("method", ["MMDA", "LSVA"])
@pytest.mark.parametrize("name", ["cancer", "wine"])
def test_unlabelled_rows_take_part_in_what_is_uncorrelated(name, method):
    p = problem(name)
    labelled = np.arange(len(p.y)) % 5 < 3
    model, A = model_and_metric(method, name, p.X)
    model.set_params(unlabeled=-1, tasks="one_vs_rest").fit(p.X, np.where(labelled, p.y, -1))
    reference = lit.uncorrelated(p.X, p.y, A, C, 3, labelled=labelled, X_new=p.X_new)
    assert_same_subspace(model, reference, p, C, True, labelled)
    assert correlations(model.transform(p.X)) < UNCORRELATED
    assert correlations(model.transform(p.X[labelled])) > 1e-3


# --------------------------------------------------------------------------------------------
# What is promised
# --------------------------------------------------------------------------------------------


def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return scale(X), y


@pytest.mark.parametrize("scaling", ["unit", "margin"])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
@pytest.mark.parametrize("method", [MMDA, LSVA])
def test_scores_are_uncorrelated_and_certified(method, kernel, scaling):
    X, y = cancer()
    model = method(N_COMPONENTS, kernel=kernel, scaling=scaling).fit(X, y)
    assert model.n_components_ == N_COMPONENTS
    assert correlations(model.transform(X)) < UNCORRELATED
    assert (model.gap_ <= model.tol).all()
    assert_close(model.new_gain_, model.gain_, 0.0)
    assert (np.diff(model.gain_) < 0).all()  # one task: a gain never rises under deflation


def test_scores_of_weighted_rows_have_no_weighted_correlation():
    X, y = cancer()
    weights = np.random.default_rng(0).uniform(0.1, 3.0, len(y))
    weights[::7] = 0.0
    model = LSVA(4).fit(X, y, sample_weight=weights)
    assert correlations(model.transform(X), weights) < UNCORRELATED
    assert correlations(model.transform(X)) > 1e-3


def test_sparse_rows_and_their_array_have_the_same_components():
    X, y = cancer()
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    array, sparse = (LSVA(4).fit(rows, y) for rows in (X, sp.csr_array(X)))
    assert_close(sparse.transform(X), array.transform(X), 1e-7)
    assert correlations(sparse.transform(X)) < UNCORRELATED


@pytest.mark.parametrize("sizes", [6.0, 1e4])
def test_columns_of_very_different_size_stay_uncorrelated(sizes):
    """Scores that vary little are not lost beside those that vary much."""
    X, y = cancer()
    X = X * np.logspace(0, np.log10(sizes), X.shape[1]) + 1e3
    model = MMDA(6, C="auto").fit(X, y)
    assert correlations(model.transform(X)) < UNCORRELATED


def test_a_path_and_a_search_have_the_components_of_single_fits():
    X, y = cancer()
    weights = [0.1, 10.0]
    for fitted in path(LSVA(3), X, y, graph_weight=weights):
        alone = clone(fitted).fit(X, y)
        assert_close(fitted.transform(X), alone.transform(X), 1e-6)
        assert correlations(fitted.transform(X)) < UNCORRELATED
    search = SubspaceSearchCV(LSVA(), graph_weight=weights, n_components=[1, 3], cv=3).fit(X, y)
    assert search.best_estimator_[0].deflation == "uncorrelated"
    assert correlations(np.atleast_2d(search.transform(X))) < UNCORRELATED


def test_directions_that_fill_up_are_uncorrelated_with_all_others():
    X, y = cancer()
    model = WSVDA(5, deflation="uncorrelated", on_exhausted="pca")
    with pytest.warns(ExhaustedWarning):
        model.fit(X, y)
    assert model.tasks_[-1] is None
    scores = model.transform(X)
    assert correlations(scores) < UNCORRELATED
    fillers = [k for k, task in enumerate(model.tasks_) if task is None]
    assert (np.diff(scores[:, fillers].var(axis=0)) < 0).all()
    assert_close(model.new_gain_[fillers], 0.0, 0.0)


def test_a_pickled_model_keeps_its_deflation_and_its_scores():
    X, y = cancer()
    model = pickle.loads(pickle.dumps(MMDA(3).fit(X, y)))
    assert model.get_params()["deflation"] == "uncorrelated"
    assert correlations(model.transform(X)) < UNCORRELATED


# --------------------------------------------------------------------------------------------
# The gain that is new
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["MMDA", "LSVA", "WSVDA"])
@pytest.mark.parametrize("name", PROBLEMS)
def test_the_new_gain_is_that_of_the_uncorrelated_part(name, method):
    p = problem(name)
    model, A = model_and_metric(method, name, p.X)
    model.set_params(deflation="orthogonal", tasks="one_vs_rest").fit(p.X, p.y)
    assert_new_gains(model, p.X, p.y, lambda c: _square(c @ model.components_[: len(c)], A))


@pytest.mark.parametrize("name", PROBLEMS)
def test_the_new_gain_of_a_kernel_is_that_of_the_uncorrelated_part(name):
    p = problem(name)
    model = MMDA(3, C=C, kernel=p.kernel, deflation="orthogonal", tasks="one_vs_rest")
    model.fit(p.X, p.y)
    assert_new_gains(model, p.X, p.y, lambda c: c @ c)  # the components are orthonormal


def _square(w, A):
    return w @ A @ w


def assert_new_gains(model, X, y, square):
    signs = lit.tasks(y)
    scores = model.transform(X)
    expected = [model.gain_[0]]
    for k in range(1, model.n_components_):
        task = signs[k % len(signs)]
        costs = lit.task_costs(task, model.C_, True)
        expected.append(lit.new_gain(scores, k, task, square, costs))
    assert_close(model.new_gain_, expected, DECISIONS)
    assert (model.new_gain_ <= model.gain_ + DECISIONS).all()


def test_orthogonal_components_of_two_classes_repeat_the_first():
    X, y = cancer()
    model = WSVDA(3).fit(X, y)
    assert correlations(model.transform(X)) > 0.99
    assert (model.gain_ > 0.6).all()
    assert (model.new_gain_[1:] < 0.01).all()


def test_the_new_gain_with_unlabelled_and_weighted_rows_is_that_of_copies():
    X, y = cancer()
    times = np.arange(len(y)) % 3
    some = np.where(np.arange(len(y)) % 4 == 0, -1, y)
    model = LSVA(3, deflation="orthogonal", graph="within", unlabeled=-1)
    weighted = clone(model).fit(X, some, sample_weight=times)
    copied = clone(model).fit(np.repeat(X, times, axis=0), np.repeat(some, times))
    assert_close(weighted.new_gain_, copied.new_gain_, 1e-7)
    assert weighted.new_gain_[1] < 0.5 * weighted.gain_[1]


def test_a_precomputed_kernel_has_the_deflation_of_its_rows():
    X, y = cancer()
    kernel = ExactKernel("rbf", gamma=0.02)
    named = LSVA(3, kernel=kernel, graph="within").fit(X, y)
    K = lit_rbf(X, 0.02)
    given = LSVA(3, kernel="precomputed", graph="within").fit(K, y)
    assert_close(given.transform(K), named.transform(X), 1e-6)
    assert correlations(given.transform(K)) < UNCORRELATED


def lit_rbf(X, gamma):
    return np.exp(-gamma * lit.squared_distances(X))
