"""Tests of the literal reference itself: it has to be right before it can judge the library."""

from __future__ import annotations

import literal as lit
import numpy as np
import pytest
from scipy.linalg import null_space
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_blobs
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.multiclass import OneVsRestClassifier
from sklearn.neighbors import kneighbors_graph
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

pytestmark = pytest.mark.attack("equations as printed")

EXACT = 1e-9  # identities in exact arithmetic, after up to five SVMs in sequence
KERNEL_C = (
    10.0  # at C = 1 all rows of cancer are at their bound: the second component is degenerate
)
SVM_TOL = 1e-5  # against scikit-learn's SVC, which is the less exact side
LAM = 0.5
GRAPHS = ["W", "B", "C", "L", "E"]


def _standardised(X):
    return StandardScaler().fit_transform(X)


def _iris():
    X, y = load_iris(return_X_y=True)
    return _standardised(X), y


def _wine():
    X, y = load_wine(return_X_y=True)
    return _standardised(X), y


def _cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return _standardised(X)[:120], y[:120]


def _blobs(centers):
    """Correlated blobs: round ones use up their mean difference in the first component."""
    X, y = make_blobs(90, 7, centers=centers, cluster_std=5.0, random_state=3)
    mixing = np.random.default_rng(0).standard_normal((7, 7))
    return X @ mixing / 10, y


DATA = {
    "iris": _iris(),
    "wine": _wine(),
    "cancer": _cancer(),
    "two blobs": _blobs(2),
    "three blobs": _blobs(3),
}
FIVE_FEATURES = [name for name in DATA if name != "iris"]


def _split(name):
    """Training rows, their labels, and every third row as new points."""
    X, y = DATA[name]
    new = np.arange(len(y)) % 3 == 2
    return X[~new], y[~new], X[new]


def _kernels(X, X_new):
    gamma = 1 / X.shape[1]
    return rbf_kernel(X, gamma=gamma), rbf_kernel(X_new, X, gamma=gamma)


def _assert_same(first, second, tol=EXACT):
    for field in ("norms", "projections", "projections_new", "decisions", "decisions_new"):
        a, b = getattr(first, field, None), getattr(second, field, None)
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=tol, atol=tol * np.abs(a).max(), err_msg=field)


# Graphs


@pytest.mark.parametrize("mutual", [False, True])
@pytest.mark.parametrize("width", ["auto", 2.0, None])
def test_knn_graph_follows_its_definition(mutual, width):
    X, _ = DATA["wine"]
    A = kneighbors_graph(X, 5, mode="distance").toarray()
    keep = ((A > 0) & (A.T > 0)) if mutual else ((A > 0) | (A.T > 0))
    t = (A[A > 0] ** 2).mean() if width == "auto" else width
    d2 = np.maximum(A, A.T) ** 2
    W = np.where(keep, 1.0 if t is None else np.exp(-d2 / (t or 1)), 0)
    L = lit.knn_graph(X, 5, mutual=mutual, width=width)
    np.testing.assert_allclose(L, np.diag(W.sum(1)) - W, atol=1e-12)


def test_class_graphs_give_the_scatter_matrices():
    X, y = DATA["wine"]
    centred = X - X.mean(axis=0)
    means = np.array([X[y == c].mean(axis=0) for c in np.unique(y)]) - X.mean(axis=0)
    S_B = (np.bincount(y) * means.T) @ means
    np.testing.assert_allclose(X.T @ lit.total_graph(len(y)) @ X, centred.T @ centred, atol=EXACT)
    np.testing.assert_allclose(X.T @ lit.within_graph(y) @ X, lit.within_scatter(X, y), atol=EXACT)
    np.testing.assert_allclose(X.T @ lit.between_graph(y) @ X, S_B, atol=EXACT)


def test_class_graphs_ignore_unlabelled_rows():
    _, y = DATA["wine"]
    labelled = np.arange(len(y)) % 2 == 0
    for graph in (lit.within_graph, lit.between_graph):
        L = graph(y, labelled)
        np.testing.assert_allclose(L[np.ix_(labelled, labelled)], graph(y[labelled]), atol=1e-12)
        assert not L[~labelled].any()


@pytest.mark.parametrize("name", GRAPHS)
def test_every_graph_is_positive_semidefinite_with_constant_null_vector(name):
    X, y = DATA["iris"]
    L = lit.gesvm_graph(name, X, y)
    np.testing.assert_allclose(L, L.T, atol=1e-12)
    np.testing.assert_allclose(L.sum(axis=1), 0, atol=EXACT)
    assert np.linalg.eigvalsh(L).min() > -EXACT


def test_lle_graph_is_a_laplacian_with_unit_degrees():
    X, _ = DATA["wine"]
    M = lit.lle_weights(X, 5)
    W = M + M.T - M.T @ M  # E25
    np.testing.assert_allclose(W.sum(axis=1), 1, atol=EXACT)
    np.testing.assert_allclose(lit.laplacian(W), lit.lle_graph(X, 5), atol=EXACT)


def test_lle_weights_of_coinciding_points_are_equal():
    M = lit.lle_weights(np.zeros((4, 2)), 3)
    np.testing.assert_allclose(M, (np.ones((4, 4)) - np.eye(4)) / 3)


def test_weighted_sum_of_differences_is_twice_the_quadratic_form():
    """E19 and E21."""
    X, _ = DATA["iris"]
    L, f = lit.knn_graph(X), X[:, 0]
    W = np.diag(np.diag(L)) - L
    np.testing.assert_allclose(((f[:, None] - f) ** 2 * W).sum(), 2 * f @ L @ f)


# The SVM


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("name", list(DATA))
def test_svm_closes_the_duality_gap(name, C):
    X, y = DATA[name]
    costs = C * np.random.default_rng(0).uniform(0.5, 2.0, len(y))
    for gram in (X @ X.T, rbf_kernel(X)):
        for signs in lit.tasks(y):
            fit = lit.svm(gram, signs, costs)
            dual = fit.signed_dual @ signs - fit.signed_dual @ gram @ fit.signed_dual / 2
            assert fit.residual < 1e-10
            np.testing.assert_allclose(fit.objective, dual, rtol=1e-11)


def test_svm_cost_of_two_is_a_row_given_twice():
    X, y = DATA["two blobs"]
    signs, costs = np.where(y == 1, 1.0, -1.0), 1.0 + (np.arange(len(y)) % 2)
    twice = np.repeat(np.arange(len(y)), costs.astype(int))
    once = lit.svm(X @ X.T, signs, costs)
    doubled = lit.svm((X @ X.T)[np.ix_(twice, twice)], signs[twice], 1.0)
    np.testing.assert_allclose(X.T @ once.signed_dual, X[twice].T @ doubled.signed_dual)
    np.testing.assert_allclose(once.intercept, doubled.intercept)


def test_svm_without_free_rows_takes_the_middle_of_the_interval():
    x = np.array([[0.0], [1.0]])
    fit = lit.svm(x @ x.T, [-1.0, 1.0], 0.1)
    np.testing.assert_allclose(fit.signed_dual, [-0.1, 0.1])
    np.testing.assert_allclose(fit.intercept, (-1.0 + 0.9) / 2)


def test_svm_scale_of_the_kernel_is_scale_of_the_cost():
    """E14: kernel cK at cost C is kernel K at cost cC."""
    X, y = DATA["cancer"]
    signs = lit.tasks(y)[0]
    small, large = lit.svm(X @ X.T, signs, 3.0), lit.svm(3.0 * X @ X.T, signs, 1.0)
    np.testing.assert_allclose(small.signed_dual, 3.0 * large.signed_dual, atol=EXACT)
    np.testing.assert_allclose(small.intercept, large.intercept, atol=EXACT)


def test_svm_refuses_an_inexact_solution(monkeypatch):
    X, y = DATA["cancer"]
    monkeypatch.setattr(lit, "LIBSVM_TOL", 1e-3)
    monkeypatch.setattr(lit, "_polish", lambda G, y, costs, gamma: gamma)
    with pytest.raises(AssertionError, match="KKT residual"):
        lit.svm(X @ X.T, lit.tasks(y)[0], 1.0)


# Subspaces


@pytest.mark.parametrize("name", FIVE_FEATURES)
def test_linear_directions_are_orthonormal(name):
    X, y = DATA[name]
    L = lit.knn_graph(X)
    for result in (
        lit.llsva(X, y, L, LAM, 1.0, 5),
        lit.mmda(X, y, 1.0, 5),
        lit.wsvda(X, y, 1e-2, 1.0, 5),
    ):
        assert result.gains.min() >= lit.GAIN_FLOOR
        assert result.residuals.max() < 1e-10
        W = result.directions
        np.testing.assert_allclose(W.T @ W, np.eye(5), atol=EXACT)


@pytest.mark.parametrize("name", list(DATA))
def test_kernel_directions_are_orthonormal(name):
    X, y = DATA[name]
    L, K = lit.knn_graph(X), rbf_kernel(X, gamma=1 / X.shape[1])
    for result in (lit.klsva(K, y, L, LAM, KERNEL_C, 5), lit.kmmda(K, y, KERNEL_C, 5)):
        assert result.gains.min() >= lit.GAIN_FLOOR
        assert result.residuals.max() < 1e-10
        B = result.coefficients
        np.testing.assert_allclose(B.T @ K @ B, np.eye(5), atol=EXACT)


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("name", ["wine", "cancer"])
def test_linear_kernel_klsva_is_llsva(name, balanced):
    X, y, X_new = _split(name)
    L = lit.knn_graph(X)
    linear = lit.llsva(X, y, L, LAM, 1.0, 5, balanced=balanced, X_new=X_new)
    kernel = lit.klsva(X @ X.T, y, L, LAM, 1.0, 5, balanced=balanced, K_new=X_new @ X.T)
    _assert_same(linear, kernel)
    np.testing.assert_allclose(X.T @ kernel.coefficients, linear.directions, atol=EXACT)


@pytest.mark.parametrize("name", ["iris", "wine", "cancer"])
def test_kmmda_is_klsva_without_graph(name):
    X, y, X_new = _split(name)
    K, K_new = _kernels(X, X_new)
    zero = np.zeros_like(K)
    _assert_same(
        lit.kmmda(K, y, KERNEL_C, 5, K_new=K_new),
        lit.klsva(K, y, zero, 1.0, KERNEL_C, 5, K_new=K_new),
    )


def test_linear_mmda_is_llsva_without_graph():
    X, y, X_new = _split("wine")
    L = lit.knn_graph(X)
    _assert_same(lit.mmda(X, y, 1.0, 5, X_new=X_new), lit.llsva(X, y, L, 0.0, 1.0, 5, X_new=X_new))


@pytest.mark.parametrize("name", ["wine", "cancer"])
def test_wsvda_is_llsva_with_the_within_graph_and_a_rescaled_cost(name):
    """eps/2 w'w + 1/2 w'S_W w + C xi is eps times the LSVA objective at lam = 1/eps, C/eps."""
    X, y, X_new = _split(name)
    eps = 0.5
    _assert_same(
        lit.wsvda(X, y, eps, 1.0, 5, X_new=X_new),
        lit.llsva(X, y, lit.within_graph(y), 1 / eps, 1.0 / eps, 5, X_new=X_new),
    )


def test_projector_form_of_the_wsvda_kernel_is_the_complement_form():
    """E15: P (P S_W P + eps I)^-1 P = V (V'S_W V + eps I)^-1 V'."""
    X, y = DATA["wine"]
    W, S_W, eps = lit.wsvda(X, y, 1e-2, 1.0, 3).directions, lit.within_scatter(X, y), 1e-2
    P, V = np.eye(len(S_W)) - W @ W.T, null_space(W.T)
    by_P = P @ np.linalg.solve(P @ S_W @ P + eps * np.eye(len(P)), P)
    by_V = V @ np.linalg.solve(V.T @ S_W @ V + eps * np.eye(V.shape[1]), V.T)
    np.testing.assert_allclose(by_P, by_V, atol=EXACT)


def test_centring_the_kernel_changes_nothing():
    X, y, X_new = _split("wine")
    K, K_new = _kernels(X, X_new)
    L = lit.knn_graph(X)
    n = len(y)
    H = np.eye(n) - 1 / n
    centred, centred_new = H @ K @ H, (K_new - K.mean(axis=0)) @ H
    raw = lit.klsva(K, y, L, LAM, 1.0, 5, K_new=K_new)
    _assert_same(raw, lit.klsva(centred, y, L, LAM, 1.0, 5, K_new=centred_new))
    rebuilt = raw.norms * raw.projections_new + raw.intercepts_centred
    np.testing.assert_allclose(rebuilt, raw.decisions_new, atol=EXACT)


def test_deflated_kernel_rows_project_new_points():
    """E2 and E5: k_x^(1) alpha~_2 is the projection on w~_2, the printed k_x alpha~_2 is not."""
    X, y, X_new = _split("cancer")
    K, K_new = _kernels(X, X_new)
    L, signs = lit.knn_graph(X), lit.tasks(y)[0]
    result = lit.klsva(K, y, L, LAM, KERNEL_C, 2, K_new=K_new)
    g, g_new = K @ result.coefficients[:, 0], K_new @ result.coefficients[:, 0]
    K_1, K_new_1 = K - np.outer(g, g), K_new - np.outer(g_new, g)
    inner = np.eye(len(y)) + LAM * L @ K_1
    fit = lit.svm(K_1 @ np.linalg.inv(inner), signs, lit.task_costs(signs, KERNEL_C, True))
    alpha = np.linalg.solve(inner, fit.signed_dual) / result.norms[1]
    shift = (K_1 @ alpha).mean()
    np.testing.assert_allclose(K_1 @ alpha - shift, result.projections[:, 1], atol=EXACT)
    np.testing.assert_allclose(K_new_1 @ alpha - shift, result.projections_new[:, 1], atol=EXACT)
    printed = K_new @ alpha - (K @ alpha).mean()
    assert np.corrcoef(printed, result.projections_new[:, 1])[0, 1] < 0.99


def test_components_follow_the_classes_in_turn():
    X, y = DATA["wine"]
    result = lit.mmda(X, y, 1.0, 4)
    for k in range(4):
        positive = y == k % 3
        assert result.decisions[positive, k].mean() > result.decisions[~positive, k].mean()


def test_positive_class_of_two_is_the_second():
    X, y = DATA["cancer"]
    f = lit.mmda(X, y, 1.0, 1).decisions[:, 0]
    assert f[y == 1].mean() > f[y == 0].mean()


def test_per_row_costs_are_multiplied_by_the_balance():
    X, y = DATA["cancer"]
    L = lit.knn_graph(X)
    n_side = np.bincount(y)[y]
    by_hand = 0.7 * len(y) / (2 * n_side)
    _assert_same(
        lit.llsva(X, y, L, LAM, 0.7, 3, balanced=True),
        lit.llsva(X, y, L, LAM, by_hand, 3, balanced=False),
    )


def test_unbalanced_iris_is_degenerate_and_says_so():
    X, y = DATA["iris"]
    with pytest.raises(AssertionError, match="degenerate"):
        lit.mmda(X, y, 1.0, 4, balanced=False)


# Classifiers


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("name", ["iris", "cancer"])
def test_gesvm_without_graph_is_svc(name, balanced):
    X, y, X_new = _split(name)
    K, K_new = _kernels(X, X_new)
    zero = np.zeros_like(K)
    svc = SVC(C=2.0, class_weight="balanced" if balanced else None, tol=1e-8)
    for kernel, result in (
        ("linear", lit.gesvm_q0(X, y, zero, 0.0, 2.0, balanced=balanced, X_new=X_new)),
        ("rbf", lit.gesvm_q1(K, y, zero, 0.0, 2.0, balanced=balanced, K_new=K_new)),
    ):
        svc.set_params(kernel=kernel, gamma="auto")
        model = OneVsRestClassifier(svc).fit(X, y)
        expected = model.decision_function(X_new).reshape(len(X_new), -1)
        np.testing.assert_allclose(result.decisions_new, expected, atol=SVM_TOL)


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("name", ["wine", "cancer"])
def test_linear_kernel_q1_is_q0(name, graph):
    X, y, X_new = _split(name)
    L = lit.gesvm_graph(graph, X, y)
    _assert_same(
        lit.gesvm_q0(X, y, L, LAM, 1.0, X_new=X_new),
        lit.gesvm_q1(X @ X.T, y, L, LAM, 1.0, K_new=X_new @ X.T),
    )


@pytest.mark.parametrize("graph", GRAPHS)
def test_q1_is_symmetric_and_the_first_component_of_klsva(graph):
    X, y, X_new = _split("cancer")
    K, K_new = _kernels(X, X_new)
    L = lit.gesvm_graph(graph, X, y)
    Q1 = K @ np.linalg.inv(np.eye(len(y)) + LAM * L @ K)
    np.testing.assert_allclose(Q1, Q1.T, atol=EXACT)
    classifier = lit.gesvm_q1(K, y, L, LAM, 1.0, balanced=True, K_new=K_new)
    component = lit.klsva(K, y, L, LAM, 1.0, 1, balanced=True, K_new=K_new)
    _assert_same(classifier, component)


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("name", ["cancer", "iris"])
def test_belkins_lapsvm_is_the_unified_form(name, balanced):
    X, y, X_new = _split(name)
    K, K_new = _kernels(X, X_new)
    L, labelled = lit.knn_graph(X), np.arange(len(y)) % 3 == 0
    gamma_A, gamma_I = 0.01, 5.0
    C, lam = lit.lapsvm_parameters(gamma_A, gamma_I, labelled.sum(), len(y))
    _assert_same(
        lit.lapsvm_belkin(K, y, L, gamma_A, gamma_I, labelled, balanced=balanced, K_new=K_new),
        lit.lapsvm(K, y, L, lam, C, labelled, balanced=balanced, K_new=K_new),
        tol=1e-8,
    )


def test_lapsvm_minimises_belkins_objective():
    """No other function of the span has a smaller value, and unlabelled classes are not read."""
    X, y, _ = _split("cancer")
    K, L = rbf_kernel(X, gamma=1 / X.shape[1]), lit.knn_graph(X)
    n, labelled = len(y), np.arange(len(y)) % 3 == 0
    gamma_A, gamma_I = 0.01, 5.0
    hidden = np.where(labelled, y, -7)
    result = lit.lapsvm_belkin(K, hidden, L, gamma_A, gamma_I, labelled)
    signs = np.where(y == 1, 1.0, -1.0)

    def objective(alpha, b):
        f = K @ alpha + b
        hinge = np.maximum(0, 1 - signs * f)[labelled].mean()
        return hinge + gamma_A * alpha @ K @ alpha + gamma_I / n**2 * f @ L @ f

    b = result.intercepts[0]
    alpha = np.linalg.lstsq(K, result.decisions[:, 0] - b, rcond=None)[0]
    best, rng = objective(alpha, b), np.random.default_rng(0)
    for size in (1e-6, 1e-4, 1e-2):
        for _ in range(50):
            step = size * rng.standard_normal(n + 1)
            assert objective(alpha + step[1:], b + step[0]) >= best - 1e-12


def test_semi_supervised_klsva_starts_with_lapsvm():
    X, y, X_new = _split("cancer")
    K, K_new = _kernels(X, X_new)
    L, labelled = lit.knn_graph(X), np.arange(len(y)) % 3 == 0
    component = lit.klsva(K, y, L, LAM, 1.0, 1, balanced=False, labelled=labelled, K_new=K_new)
    _assert_same(lit.lapsvm(K, y, L, LAM, 1.0, labelled, K_new=K_new), component)


def test_small_cost_uses_up_the_mean_difference_at_once():
    """With balanced costs and all rows at their bound, w_1 is the mean difference, and then 0."""
    X, y = DATA["cancer"]
    w = lit.mmda(X, y, 1e-4, 1).directions[:, 0]
    difference = X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)
    np.testing.assert_allclose(w, difference / np.linalg.norm(difference), atol=EXACT)
    with pytest.raises(AssertionError, match="degenerate"):
        lit.mmda(X, y, 1e-4, 2)


# What the papers print


def test_printed_kernel_deflation_repeats_the_first_direction():
    """E1: eq. (9) yields w1, w1, w2, w1; with its index corrected still w1, w2, w1."""
    X, y = DATA["cancer"]
    K, L = rbf_kernel(X, gamma=1 / X.shape[1]), lit.knn_graph(X)
    right = lit.klsva(K, y, L, LAM, 1.0, 3)
    np.testing.assert_allclose(right.coefficients.T @ K @ right.coefficients, np.eye(3), atol=EXACT)
    w1, w2 = (K @ right.coefficients)[:, 0], (K @ right.coefficients)[:, 1]
    assert np.abs(w1 - w2).max() > 0.1
    printed = lit.klsva_printed(K, y, L, LAM, 1.0, 4)
    np.testing.assert_allclose(printed, np.column_stack([w1, w1, w2, w1]), atol=1e-8)
    fixed = lit.klsva_printed(K, y, L, LAM, 1.0, 3, index_fixed=True)
    np.testing.assert_allclose(fixed, np.column_stack([w1, w2, w1]), atol=1e-8)


@pytest.mark.parametrize("name", ["wine", "cancer"])
def test_printed_wsvda_objective_is_half_the_cost(name):
    """E14."""
    X, y, X_new = _split(name)
    printed = lit.wsvda(X, y, 1e-2, 1.0, 5, X_new=X_new, printed=True)
    half = lit.wsvda(X, y, 1e-2, 0.5, 5, X_new=X_new)
    _assert_same(printed, half)
    np.testing.assert_allclose(printed.directions, half.directions, atol=EXACT)


def test_printed_q1_is_half_the_cost():
    """E22."""
    X, y, X_new = _split("iris")
    K, K_new = _kernels(X, X_new)
    L = lit.knn_graph(X)
    _assert_same(
        lit.gesvm_q1(K, y, L, LAM, 2.0, K_new=K_new, printed=True),
        lit.gesvm_q1(K, y, L, LAM, 1.0, K_new=K_new),
    )


def test_wsvda_with_few_rows_approaches_null_space_lda():
    """E15: the limit is the mean difference projected on null(S_W); pinv would delete it."""
    X, y = make_blobs(24, 60, centers=2, cluster_std=8.0, random_state=0)
    S_W = lit.within_scatter(X, y)
    N = null_space(S_W, rcond=1e-10)
    expected = N @ (N.T @ (X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0)))
    expected /= np.linalg.norm(expected)
    results = [lit.wsvda(X, y, eps, 1e3, 1) for eps in (1e2, 1e0, 1e-3)]
    misfit = [1 - abs(result.directions[:, 0] @ expected) for result in results]
    assert misfit[0] > 10 * misfit[1] > 100 * abs(misfit[2])
    assert abs(misfit[2]) < 1e-9
    for c in (0, 1):
        assert np.ptp(results[-1].decisions[y == c, 0]) < 1e-4
