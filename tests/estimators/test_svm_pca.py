"""SVMPCA: its two routes, scikit-learn's PCA, shares of the variance, rows that do not vary."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ortho_group
from sklearn.base import clone
from sklearn.datasets import load_wine, make_blobs
from sklearn.decomposition import PCA, KernelPCA, TruncatedSVD
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from marginfold import SVMPCA, ExactKernel, Linear
from marginfold.errors import (
    ExhaustedWarning,
    InvalidParameterError,
    MarginfoldWarning,
    NoDirectionError,
)

WINE, Y = load_wine(return_X_y=True)
X = scale(WINE)[::2]


def make_rows():
    """Return rows of every shape by name."""
    rng = np.random.default_rng(0)
    return {
        "tall": X,
        "raw": WINE[::2],
        "wide": rng.standard_normal((15, 60)),
        "square": rng.standard_normal((20, 20)),
        "collinear": np.column_stack([X, X @ rng.standard_normal((13, 4))]),
        "constant column": np.column_stack([X, np.full(len(X), 7.0)]),
        "repeated rows": np.repeat(X[:20], 3, axis=0),
        "off centre": X + 50.0,
        "two rows": X[:2],
        "one column": X[:, :1],
    }


ROWS = make_rows()
EVERY_SHAPE = pytest.mark.parametrize("name", ROWS)
BIAS = pytest.mark.parametrize("bias", [True, False], ids=["bias", "no bias"])
KERNELS = {
    "linear": "linear",
    "rbf": ExactKernel("rbf", gamma=0.1),
    "poly": ExactKernel("poly", degree=2),
    "laplacian": ExactKernel("laplacian"),
    "cosine": ExactKernel("cosine"),
    "transformer": Nystroem(n_components=25, random_state=0),
}


def svd(rows, bias):
    """Return eigenvalues and scores, the largest score of each component positive."""
    centred = rows - rows.mean(axis=0) if bias else rows
    U, sizes, _ = np.linalg.svd(centred, full_matrices=False)
    kept = sizes > 1e-7 * sizes[0]
    scores = (U * sizes)[:, kept]
    signs = np.sign(scores[np.abs(scores).argmax(axis=0), np.arange(scores.shape[1])])
    return sizes[kept] ** 2, scores * signs


# --------------------------------------------------------------------------------------------
# Three routes to the same components
# --------------------------------------------------------------------------------------------


@EVERY_SHAPE
@BIAS
@pytest.mark.parametrize("route", ["primal", "dual", "auto", "kernel"])
def test_every_route_is_the_singular_value_decomposition(name, bias, route):
    """With bias of the centred rows, without of the rows as they are (004 eq. (5))."""
    rows = ROWS[name]
    options = {"kernel": ExactKernel("linear")} if route == "kernel" else {"solver": route}
    model = SVMPCA(None, bias=bias, **options).fit(rows)
    values, scores = svd(rows, bias)
    k = min(model.n_components_, 4)
    assert_allclose(model.eigenvalues_[:k], values[:k], rtol=1e-8)
    assert_allclose(model.scores_[:, :k], scores[:, :k], atol=1e-6 * np.abs(scores).max())
    assert_allclose(model.transform(rows), model.scores_, atol=1e-9 * np.abs(scores).max())
    if name != "raw":  # where the linear kernel cuts what is below 1e-10 of the variance
        assert model.n_components_ == len(values)


@pytest.mark.parametrize("name", ["tall", "wide"])
@BIAS
def test_directions_of_primal_and_dual(name, bias):
    primal, dual = (
        SVMPCA(3, bias=bias, solver=solver).fit(ROWS[name]) for solver in ("primal", "dual")
    )
    assert_allclose(primal.components_, dual.components_, atol=1e-9)
    assert_allclose(primal.intercepts_, dual.intercepts_, atol=1e-9)
    assert_allclose(primal.alphas_, dual.alphas_, atol=1e-9)
    assert_allclose(primal.components_ @ primal.components_.T, np.eye(3), atol=1e-12)


@BIAS
def test_a_transformer_has_both_routes(bias):
    kernel = KERNELS["transformer"]
    primal, dual = (
        SVMPCA(3, kernel=kernel, bias=bias, solver=solver).fit(X) for solver in ("primal", "dual")
    )
    assert_allclose(primal.scores_, dual.scores_, atol=1e-10)


@EVERY_SHAPE
def test_scikit_learn_s_pca(name):
    rows = ROWS[name]
    reference = PCA(svd_solver="full").fit(rows)
    k = min(3, int((reference.explained_variance_ > 1e-9).sum()))
    model = SVMPCA(k).fit(rows)
    assert_allclose(model.explained_variance_, reference.explained_variance_[:k], rtol=1e-8)
    assert_allclose(
        model.explained_variance_ratio_, reference.explained_variance_ratio_[:k], rtol=1e-8
    )
    assert_allclose(model.mean_, reference.mean_, atol=1e-12 * np.abs(rows).max())
    cosines = np.einsum("ij,ij->i", model.components_, reference.components_[:k])
    assert_allclose(np.abs(cosines), 1.0, atol=1e-6)


def test_without_bias_it_is_truncated_svd():
    rows = ROWS["off centre"]
    reference = TruncatedSVD(3, algorithm="arpack").fit(rows)
    model = SVMPCA(3, bias=False).fit(rows)
    assert_allclose(np.sqrt(model.eigenvalues_), reference.singular_values_, rtol=1e-9)
    cosines = np.einsum("ij,ij->i", model.components_, reference.components_)
    assert_allclose(np.abs(cosines), 1.0, atol=1e-6)
    assert_array_equal(model.mean_, 0.0)
    assert_allclose(model.intercepts_, 0.0, atol=1e-12)


@pytest.mark.parametrize("n", [80, 700])
def test_kernel_components_of_few_and_of_many_rows(n):
    """Many rows with few components go through the Krylov space."""
    rows, _ = make_blobs(n, 4, centers=3, random_state=0)
    model = SVMPCA(3, kernel=ExactKernel("rbf", gamma=0.02)).fit(rows)
    reference = KernelPCA(3, kernel="rbf", gamma=0.02, eigen_solver="dense").fit(rows)
    assert_allclose(model.eigenvalues_, reference.eigenvalues_, rtol=1e-9)
    new = rows[::7] + 0.1
    assert_allclose(np.abs(model.transform(new)), np.abs(reference.transform(new)), atol=1e-7)


# --------------------------------------------------------------------------------------------
# Shares of the variance, conventions
# --------------------------------------------------------------------------------------------


@BIAS
@pytest.mark.parametrize("kernel", KERNELS)
def test_all_components_explain_all_variance(kernel, bias):
    model = SVMPCA(None, kernel=KERNELS[kernel], bias=bias).fit(X)
    assert model.explained_variance_ratio_.sum() == pytest.approx(1.0, abs=1e-7)
    assert (np.diff(model.eigenvalues_) <= 0).all()


@BIAS
@pytest.mark.parametrize("kernel", KERNELS)
def test_few_components_have_the_shares_they_have_among_all(kernel, bias):
    few, all_ = (SVMPCA(k, kernel=KERNELS[kernel], bias=bias).fit(X) for k in (3, None))
    assert_allclose(few.explained_variance_ratio_, all_.explained_variance_ratio_[:3], rtol=1e-8)
    assert_allclose(few.scores_, all_.scores_[:, :3], atol=1e-8)


def test_shares_of_an_indefinite_kernel_are_shares():
    """Its negative part is dropped, so it is no part of the whole either."""
    with pytest.warns(MarginfoldWarning, match="not positive semi-definite"):
        model = SVMPCA(None, kernel="sigmoid").fit(X)
    assert model.explained_variance_ratio_.sum() <= 1 + 1e-9


@BIAS
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("weights", [None, 0.5 + np.arange(len(X)) % 3], ids=["plain", "weighted"])
def test_conventions(kernel, bias, weights):
    """Scores z = sqrt(lambda) alpha with sum s z^2 = lambda; alphas orthonormal, centred by b."""
    model = SVMPCA(4, kernel=KERNELS[kernel], bias=bias).fit(X, sample_weight=weights)
    s = np.ones(len(X)) if weights is None else weights
    Z, A = model.scores_, model.alphas_
    assert_allclose((s[:, None] * Z).T @ Z, np.diag(model.eigenvalues_), atol=1e-8)
    assert_allclose((s[:, None] * A).T @ A, np.eye(4), atol=1e-9)
    assert_allclose(Z, np.sqrt(model.eigenvalues_) * A, atol=1e-10)
    if bias:
        assert_allclose(s @ A, 0.0, atol=1e-9)
    assert (Z[np.abs(Z).argmax(axis=0), np.arange(4)] > 0).all()
    W = model.directions_
    assert_allclose(W.T @ W, np.eye(4), atol=1e-9)
    assert_allclose(model.explained_variance_, model.eigenvalues_ / (s.sum() - 1), rtol=1e-12)


def test_the_intercept_is_that_of_the_paper():
    """004 eq. (18) for w of unit norm: scores are w'x + b with b = -w'mean."""
    rows = ROWS["off centre"]
    model = SVMPCA(3).fit(rows)
    assert_allclose(rows @ model.components_.T + model.intercepts_, model.scores_, atol=1e-9)
    assert_allclose(model.intercepts_, -model.components_ @ rows.mean(axis=0), rtol=1e-10)
    kernel = SVMPCA(3, kernel=KERNELS["rbf"]).fit(rows)
    duals = kernel.alphas_ / np.sqrt(kernel.eigenvalues_)
    values = rbf_kernel(rows, rows, gamma=0.1) @ duals + kernel.intercepts_
    assert_allclose(values, kernel.scores_, atol=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("n_components", [2, None])
def test_weights_are_copies(kernel, n_components):
    copies = np.arange(len(X)) % 4
    weighted = SVMPCA(n_components, kernel=KERNELS[kernel])
    repeated = clone(weighted).fit(np.repeat(X, copies, axis=0))
    weighted.fit(X, sample_weight=copies)
    assert weighted.n_components_ == repeated.n_components_
    for name in ("eigenvalues_", "explained_variance_", "explained_variance_ratio_"):
        assert_allclose(getattr(weighted, name), getattr(repeated, name), rtol=1e-7)
    assert_allclose(weighted.transform(X)[:, :2], repeated.transform(X)[:, :2], atol=1e-8)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_common_factor_of_the_weights_is_a_factor_of_the_eigenvalues(kernel):
    plain, heavy = (
        SVMPCA(3, kernel=KERNELS[kernel]).fit(X, sample_weight=np.full(len(X), w))
        for w in (1.0, 1e5)
    )
    assert_allclose(heavy.eigenvalues_, 1e5 * plain.eigenvalues_, rtol=1e-9)
    assert_allclose(heavy.transform(X), plain.transform(X), atol=1e-9)
    assert_allclose(heavy.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-9)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@BIAS
def test_rotations_and_orders_change_nothing(kernel, bias):
    rng = np.random.default_rng(3)
    Q, order = ortho_group.rvs(13, random_state=3), rng.permutation(len(X))
    plain = SVMPCA(3, kernel=KERNELS[kernel], bias=bias).fit(X)
    moved = SVMPCA(3, kernel=KERNELS[kernel], bias=bias).fit((X @ Q)[order])
    assert_allclose(moved.scores_, plain.scores_[order], atol=1e-8)


@pytest.mark.parametrize("unit", [1e-30, 1e-6, 1e6, 1e30])
@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_units_of_the_rows_are_units_of_the_scores(unit, solver):
    plain = SVMPCA(3, solver=solver).fit(X)
    moved = SVMPCA(3, solver=solver).fit(unit * X)
    assert_allclose(moved.scores_ / unit, plain.scores_, atol=1e-9)
    assert_allclose(moved.explained_variance_ratio_, plain.explained_variance_ratio_, rtol=1e-9)


def test_storage_and_labels_do_not_matter():
    plain = SVMPCA(3).fit(X).scores_
    assert_allclose(SVMPCA(3).fit(sp.csr_array(X)).scores_, plain, atol=1e-10)
    assert_array_equal(SVMPCA(3).fit(X, np.array(["a", "b"] * 44 + ["a"])).scores_, plain)
    assert_array_equal(SVMPCA(3).fit(X).fit(X).scores_, plain)
    pipeline = make_pipeline(StandardScaler(), SVMPCA(3))
    assert_allclose(pipeline.fit_transform(X), SVMPCA(3).fit_transform(scale(X)), atol=1e-10)


# --------------------------------------------------------------------------------------------
# Rows that do not vary
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "cosine"])
@pytest.mark.parametrize("n_components", [2, None])
@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e6])
def test_equal_rows_have_no_component(kernel, n_components, value):
    with pytest.raises(NoDirectionError, match="all rows are equal"):
        SVMPCA(n_components, kernel=KERNELS[kernel]).fit(np.full((7, 3), value))


@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_zero_rows_without_bias_have_no_component(solver):
    with pytest.raises(NoDirectionError, match="zero, without bias"):
        SVMPCA(bias=False, solver=solver).fit(np.zeros((5, 3)))


def test_one_row_that_counts_has_no_component():
    with pytest.raises(NoDirectionError):
        SVMPCA(1).fit(X, sample_weight=np.eye(len(X))[0])


@pytest.mark.parametrize("solver", ["primal", "dual"])
def test_equal_rows_without_bias_have_one(solver):
    with pytest.warns(ExhaustedWarning, match="1 of 2"):
        model = SVMPCA(2, bias=False, solver=solver).fit(np.full((7, 3), 0.1))
    assert_allclose(model.eigenvalues_, [7 * 3 * 0.01], rtol=1e-12)
    assert_allclose(model.components_, [np.full(3, 1 / np.sqrt(3))], rtol=1e-12)


@pytest.mark.parametrize("route", ["primal", "dual", "kernel"])
@pytest.mark.parametrize(("name", "rank"), [("wide", 14), ("collinear", 13), ("two rows", 1)])
def test_no_more_components_than_the_rows_have(name, rank, route):
    options = {"kernel": ExactKernel("linear")} if route == "kernel" else {"solver": route}
    with pytest.warns(ExhaustedWarning, match=f"{rank} of 30"):
        model = SVMPCA(30, **options).fit(ROWS[name])
    assert model.n_components_ == rank
    assert model.explained_variance_ratio_.sum() == pytest.approx(1.0)
    assert SVMPCA(None, **options).fit(ROWS[name]).n_components_ == rank


def test_repeated_rows_have_no_more_components_than_points():
    with pytest.warns(ExhaustedWarning, match="4 of 9"):
        model = SVMPCA(9, kernel=KERNELS["rbf"]).fit(np.repeat(X[:5], 4, axis=0))
    assert model.explained_variance_ratio_.sum() == pytest.approx(1.0)


# --------------------------------------------------------------------------------------------
# Parameters
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["rbf", "precomputed", ExactKernel("linear"), rbf_kernel])
def test_kernel_functions_have_no_primal(kernel):
    with pytest.raises(InvalidParameterError, match=r"solver='dual'.*Nystroem"):
        SVMPCA(kernel=kernel, solver="primal").fit(X @ X.T)


@pytest.mark.parametrize(
    "parameters", [{"n_components": 0}, {"n_components": 2.5}, {"bias": 1}, {"solver": "svd"}]
)
def test_parameters_out_of_range(parameters):
    with pytest.raises(InvalidParameterError, match=next(iter(parameters))):
        SVMPCA(**parameters).fit(X)


@BIAS
@pytest.mark.parametrize("kernel", [Linear(center=False), ExactKernel("rbf", center=False)])
def test_the_bias_decides_over_centring(kernel, bias):
    """Whatever the feature map would do on its own; it is not written to."""
    model = SVMPCA(2, kernel=kernel, bias=bias).fit(X + 1.0)
    centred = np.abs(model.scores_.sum(axis=0)).max() < 1e-9
    assert centred == bias
    assert kernel.center is False


def test_the_rank_of_a_given_kernel_is_kept():
    kernel = ExactKernel("rbf", rank=5)
    assert SVMPCA(None, kernel=kernel).fit(X).n_components_ == 5


def test_a_precomputed_kernel_is_the_kernel():
    K = rbf_kernel(X, gamma=0.1)
    named, given = SVMPCA(3, kernel=KERNELS["rbf"]).fit(X), SVMPCA(3, kernel="precomputed").fit(K)
    assert_allclose(given.scores_, named.scores_, atol=1e-9)
    assert_allclose(given.transform(K[:4]), named.transform(X[:4]), atol=1e-9)
    assert_allclose(given.explained_variance_ratio_, named.explained_variance_ratio_, rtol=1e-9)
