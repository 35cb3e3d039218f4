"""SVMPCA against 004's equations with explicit N x N Gram matrices and |alpha| = 1.

The paper's scale (E48) is |w|^2 = lambda and sum e^2 = lambda^2; the estimator has unit-norm w, as
scikit-learn, so its scores are the paper's divided by sqrt(lambda). Components are compared up to
their sign. `CLOSE` is relative to the largest entry of a component.
"""

from __future__ import annotations

from functools import cache

import literal_embeddings as le
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import ortho_group
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA, KernelPCA
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.preprocessing import scale

from marginfold import SVMPCA, ExactKernel

pytestmark = pytest.mark.attack("equations as printed")

CLOSE = 1e-10
EXACT = 1e-12
K = 3
GAMMA = 0.1
SOLVERS = pytest.mark.parametrize("solver", ["auto", "primal", "dual"])
BIAS = pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
KERNELS = pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
DATA = ["tall", "wide", "copies", "constant columns"]
EVERY_DATA = pytest.mark.parametrize("data", DATA)


@cache
def rows(data):
    """Training and new rows, with a mean far enough from 0 that centring matters."""
    rng = np.random.default_rng(3)
    X, _ = load_wine(return_X_y=True)
    X = scale(X)[::4, :7] * [3, 2, 1.5, 1, 0.8, 0.6, 0.4] + np.arange(7)
    if data == "wide":
        X = X[:12] @ rng.standard_normal((7, 30)) + 0.1 * rng.standard_normal((12, 30))
        X *= 0.2  # or K is next to the identity, and its eigenvectors are not determined
    elif data == "copies":
        X = X[rng.integers(0, 20, 40)]
    elif data == "constant columns":
        X = np.column_stack([np.full(len(X), 5.0), X, np.zeros(len(X))])
    new = X[rng.integers(0, len(X), 9)] + rng.standard_normal((9, X.shape[1])) * X.std(axis=0)
    return X, new


def gram(kernel, X, Y):
    if kernel == "rbf":
        return rbf_kernel(X, Y, gamma=GAMMA)
    if kernel == "poly":
        return polynomial_kernel(X, Y, degree=2, gamma=GAMMA, coef0=1.0)
    return X @ Y.T


def feature_map(kernel):
    return "linear" if kernel == "linear" else ExactKernel(kernel, gamma=GAMMA, degree=2)


def literal(kernel, X, new, bias=True, k=K):
    return le.svm_pca(gram(kernel, X, X), k, gram(kernel, new, X), bias=bias)


def assert_same_columns(actual, expected, tol=CLOSE):
    """Equal up to the sign of each column."""
    assert actual.shape == expected.shape
    size = np.abs(expected).max(axis=0)
    signs = np.sign((actual * expected).sum(axis=0))
    assert_allclose(actual * signs / size, expected / size, rtol=0, atol=tol)


# The reference itself


@KERNELS
def test_centring_entry_by_entry_is_the_product_with_projectors(kernel):
    """004 eq. (37) is M_c Omega M_c, and (38) is (21): sum(alpha) = 0 makes them one."""
    X, new = rows("tall")
    G, G_new = gram(kernel, X, X), gram(kernel, new, X)
    M = np.eye(len(X)) - 1 / len(X)
    assert_allclose(le.centred_gram(G), M @ G @ M, atol=EXACT * np.abs(G).max())
    paper = literal(kernel, X, new)
    assert_allclose(le.kernel_scores(G, G_new, paper.alphas), paper.scores_new, atol=1e-8)


@BIAS
def test_the_reference_is_a_stationary_point_of_the_paper_s_lagrangian(bias):
    """004 eq. (7) and (17) with gamma = 1 / lambda (E46, E49), and (11), (22)."""
    X, new = rows("tall")
    paper = literal("linear", X, new, bias)
    for i, value in enumerate(paper.eigenvalues):
        alpha, b = paper.alphas[:, i], paper.intercepts[i]
        w = X.T @ alpha
        e = X @ w + b
        assert_allclose(alpha, e / value, atol=EXACT)
        assert_allclose(e @ e, value**2, rtol=EXACT)
        assert_allclose(w @ w, value, rtol=EXACT)
        if bias:
            assert abs(alpha.sum()) < EXACT
            assert_allclose(b, -w @ X.mean(axis=0), rtol=EXACT)  # E50


# The estimator


@EVERY_DATA
@BIAS
@SOLVERS
def test_linear_svmpca_is_the_dual_problem(data, bias, solver):
    """004 eq. (9) and (18)-(21)."""
    X, new = rows(data)
    paper, model = literal("linear", X, new, bias), SVMPCA(K, bias=bias, solver=solver).fit(X)
    assert_same_model(model, paper, X, new)


@EVERY_DATA
@BIAS
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_kernel_svmpca_is_the_dual_problem(data, bias, kernel):
    """004 eq. (34)-(38); without bias the kernel as it is."""
    X, new = rows(data)
    paper = literal(kernel, X, new, bias)
    model = SVMPCA(K, kernel=feature_map(kernel), bias=bias).fit(X)
    assert_same_model(model, paper, X, new)


def assert_same_model(model, paper, X, new):
    root = np.sqrt(paper.eigenvalues)
    assert model.n_components_ == K
    assert_allclose(model.eigenvalues_, paper.eigenvalues, rtol=CLOSE)
    assert_same_columns(model.alphas_, paper.alphas)
    assert_same_columns(model.scores_ * root, paper.scores)
    assert_same_columns(model.transform(X) * root, paper.scores)
    signs = np.sign((model.scores_ * paper.scores).sum(axis=0))
    assert_allclose(
        model.transform(new) * root * signs,
        paper.scores_new,
        atol=CLOSE * np.abs(paper.scores).max(),
    )
    assert_allclose(
        model.intercepts_ * root * signs, paper.intercepts, atol=CLOSE * np.abs(paper.scores).max()
    )


@EVERY_DATA
@BIAS
@KERNELS
def test_the_estimator_fulfils_the_conditions_of_optimality(data, bias, kernel):
    """004 eq. (7), (17) and (32): w = sum alpha phi, alpha = e / lambda, sum(alpha) = 0."""
    X, new = rows(data)
    model = SVMPCA(K, kernel=feature_map(kernel), bias=bias).fit(X)
    G, G_new = gram(kernel, X, X), gram(kernel, new, X)
    root, alphas = np.sqrt(model.eigenvalues_), model.alphas_
    e = model.transform(X) * root  # the paper's error variables
    size = np.abs(e).max()
    assert_allclose(alphas.T @ alphas, np.eye(K), atol=CLOSE)
    assert_allclose(alphas * model.eigenvalues_, e, atol=CLOSE * size)
    assert_allclose((e**2).sum(axis=0), model.eigenvalues_**2, rtol=CLOSE)
    b = model.intercepts_ * root
    assert_allclose(G @ alphas + b, e, atol=CLOSE * size)
    assert_allclose(G_new @ alphas + b, model.transform(new) * root, atol=CLOSE * size)
    if bias:
        assert_allclose(alphas.sum(axis=0), 0, atol=CLOSE)
    else:
        assert_allclose(b, 0, atol=EXACT * size)


@EVERY_DATA
@SOLVERS
def test_svmpca_is_scikit_learn_s_pca(data, solver):
    X, new = rows(data)
    model, pca = SVMPCA(K, solver=solver).fit(X), PCA(K, svd_solver="full").fit(X)
    assert_same_columns(model.components_.T, pca.components_.T)
    assert_same_columns(model.transform(new), pca.transform(new))
    assert_allclose(model.mean_, pca.mean_, rtol=EXACT, atol=EXACT)
    assert_allclose(model.explained_variance_, pca.explained_variance_, rtol=CLOSE)
    assert_allclose(model.explained_variance_ratio_, pca.explained_variance_ratio_, rtol=CLOSE)
    assert_allclose(
        model.inverse_transform(model.transform(new)),
        pca.inverse_transform(pca.transform(new)),
        atol=CLOSE * np.abs(X).max(),
    )


@EVERY_DATA
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_svmpca_is_scikit_learn_s_kernel_pca(data, kernel):
    X, new = rows(data)
    model = SVMPCA(K, kernel=feature_map(kernel)).fit(X)
    kpca = KernelPCA(K, kernel="precomputed", eigen_solver="dense").fit(gram(kernel, X, X))
    assert_allclose(model.eigenvalues_, kpca.eigenvalues_, rtol=CLOSE)
    assert_same_columns(model.alphas_, kpca.eigenvectors_)
    expected = kpca.transform(gram(kernel, new, X))
    assert_same_columns(model.transform(new), expected)


@EVERY_DATA
@BIAS
def test_primal_and_dual_are_one(data, bias):
    X, new = rows(data)
    primal, dual = (SVMPCA(K, bias=bias, solver=s).fit(X) for s in ("primal", "dual"))
    assert_allclose(primal.eigenvalues_, dual.eigenvalues_, rtol=CLOSE)
    assert_allclose(primal.transform(new), dual.transform(new), atol=CLOSE * np.abs(X).max())
    assert_allclose(primal.alphas_, dual.alphas_, atol=CLOSE)
    assert_allclose(primal.intercepts_, dual.intercepts_, atol=CLOSE * np.abs(X).max())


# Reconstruction


@EVERY_DATA
@pytest.mark.parametrize("chosen", [[0, 1, 2], [0], [1], [2], [0, 2], [2, 1]])
def test_rows_are_reconstructed_by_the_least_squares_of_the_paper(data, chosen):
    """004 eq. (26) for all scores and (28) for some: for unit-norm w, V = W and delta = mu."""
    X, new = rows(data)
    paper, model = literal("linear", X, new), SVMPCA(K).fit(X)
    V, delta = le.reconstruction(X, paper.scores[:, chosen])
    atol = CLOSE * np.abs(X).max()
    for points, scores in ((X, paper.scores), (new, paper.scores_new)):
        expected = scores[:, chosen] @ V.T + delta
        assert_allclose(model.denoise(points, components=chosen), expected, atol=atol)
        Z = model.transform(points)
        rebuilt = model.inverse_transform(Z[:, chosen], components=chosen)
        assert_allclose(rebuilt, expected, atol=atol)
    error = ((X - paper.scores[:, chosen] @ V.T - delta) ** 2).sum(axis=1)
    if chosen == [0, 1, 2]:
        assert_allclose(model.denoise(X), X - (X - paper.scores @ V.T - delta), atol=atol)
        left = np.trace(le.total(len(X)) @ X @ X.T) - paper.eigenvalues.sum()
        assert_allclose(error.sum(), left, rtol=1e-6, atol=atol)


def test_without_bias_points_of_the_subspace_are_reconstructed():
    X, new = rows("tall")
    model = SVMPCA(K, bias=False).fit(X)
    W = np.linalg.svd(X, full_matrices=False)[2][:K].T
    assert_allclose(model.denoise(new), new @ W @ W.T, atol=CLOSE * np.abs(X).max())


@BIAS
def test_a_fitted_linear_reconstruction_is_that_of_the_paper(bias):
    X, new = rows("tall")
    paper = literal("linear", X, new, bias)
    V, delta = le.reconstruction(X, paper.scores)
    model = SVMPCA(K, bias=bias, reconstruct="linear").fit(X)
    assert_allclose(
        model.denoise(new), paper.scores_new @ V.T + delta, atol=CLOSE * np.abs(X).max()
    )


# Weights and invariants


@EVERY_DATA
@BIAS
@KERNELS
def test_a_weight_is_a_number_of_copies(data, bias, kernel):
    X, new = rows(data)
    weights = np.random.default_rng(4).integers(0, 4, len(X))
    R = X[np.repeat(np.arange(len(X)), weights)]
    paper = literal(kernel, R, new, bias)
    model = SVMPCA(K, kernel=feature_map(kernel), bias=bias).fit(X, sample_weight=weights)
    root = np.sqrt(paper.eigenvalues)
    assert_allclose(model.eigenvalues_, paper.eigenvalues, rtol=CLOSE)
    assert_same_columns(model.transform(R) * root, paper.scores)
    signs = np.sign((model.transform(R) * paper.scores).sum(axis=0))
    size = np.abs(paper.scores).max()
    assert_allclose(model.transform(new) * root * signs, paper.scores_new, atol=CLOSE * size)
    assert_allclose(model.intercepts_ * root * signs, paper.intercepts, atol=CLOSE * size)
    Z = model.transform(X)
    assert_allclose(weights @ Z**2, model.eigenvalues_, rtol=CLOSE)
    variances = SVMPCA(K, kernel=feature_map(kernel), bias=bias).fit(R)
    for name in ("explained_variance_", "explained_variance_ratio_"):
        assert_allclose(getattr(model, name), getattr(variances, name), rtol=CLOSE)


@KERNELS
def test_scores_do_not_depend_on_axes_origin_or_order(kernel):
    X, new = rows("tall")
    model = SVMPCA(K, kernel=feature_map(kernel))
    rng = np.random.default_rng(5)
    R, order = ortho_group.rvs(X.shape[1], random_state=5), rng.permutation(len(X))
    expected = model.fit(X).transform(new)
    assert_same_columns(model.fit(X @ R).transform(new @ R), expected)
    assert_same_columns(model.fit(X[order]).transform(new), expected)
    if kernel != "poly":  # whose features move with the origin
        assert_same_columns(model.fit(X + 10.0).transform(new + 10.0), expected)
