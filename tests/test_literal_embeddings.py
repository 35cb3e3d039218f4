"""GraphEmbedding and its presets against explicit Laplacians and against scikit-learn.

Projections are compared up to the sign of each component. `CLOSE` is relative to the largest entry
of a component. `KERNEL` is looser: the reference solves for alpha in R^n, whose problem has the
square of the condition of Kc, and graphs of moved rows are rounded differently.
"""

from __future__ import annotations

from functools import cache

import literal as lit
import literal_embeddings as le
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import eigh, subspace_angles
from scipy.stats import ortho_group
from sklearn.base import clone
from sklearn.covariance import ledoit_wolf_shrinkage
from sklearn.datasets import load_wine
from sklearn.decomposition import PCA, KernelPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel
from sklearn.preprocessing import scale

from marginfold import (
    KDA,
    LDA,
    LPP,
    NPE,
    ExactKernel,
    GraphEmbedding,
    NeighborGraph,
    PrecomputedGraph,
    ReconstructionGraph,
    WithinClassGraph,
)
from marginfold.errors import ExhaustedWarning

pytestmark = pytest.mark.attack("equations as printed")

CLOSE = 1e-10
KERNEL = 1e-9
RIDGE = 1e-2
GAMMA = 0.2
N_NEIGHBORS = 6
SCALINGS = pytest.mark.parametrize("scaling", ["penalty", "intrinsic", "unit"])
KERNELS = pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])


# --------------------------------------------------------------------------------------------
# Data
# --------------------------------------------------------------------------------------------


@cache
def problem(name="wine"):
    """Return training rows, labels and new rows."""
    rng = np.random.default_rng(2)
    if name == "wine":
        X, y = load_wine(return_X_y=True)
        X, y = scale(X)[::2, :6] + np.arange(6), y[::2]
    elif name == "four":
        y = np.arange(60) % 4
        X = rng.standard_normal((60, 5)) * [1, 2, 1, 0.5, 1.5] + 2 * rng.standard_normal((4, 5))[y]
    else:  # wide
        y = np.arange(24) // 2 % 3
        X = rng.standard_normal((24, 40)) + rng.standard_normal((3, 40))[y]
    new = np.arange(len(y)) % 3 == 2
    return X[~new], y[~new], X[new]


def gram(kernel, X, Y):
    if kernel == "rbf":
        return rbf_kernel(X, Y, gamma=GAMMA)
    if kernel == "poly":
        return polynomial_kernel(X, Y, degree=2, gamma=GAMMA, coef0=1.0)
    return X @ Y.T


def feature_map(kernel):
    return "linear" if kernel == "linear" else ExactKernel(kernel, gamma=GAMMA, degree=2)


def literal(kernel, X, C_int, C_pen, k, X_new, **options):
    if kernel == "linear":
        return le.embedding(X, C_int, C_pen, k, X_new, **options)
    K, K_new = gram(kernel, X, X), gram(kernel, X_new, X)
    return le.kernel_embedding(K, C_int, C_pen, k, K_new, **options)


def intrinsic(name, X, y):
    """The rule, and its Laplacian from its definition."""
    return {
        "knn": lambda: (NeighborGraph(N_NEIGHBORS), le.knn(X, N_NEIGHBORS)),
        "mutual": lambda: (
            NeighborGraph(N_NEIGHBORS, mode="mutual", width=3.0),
            le.knn(X, N_NEIGHBORS, mutual=True, width=3.0),
        ),
        "lle": lambda: (ReconstructionGraph(N_NEIGHBORS), le.lle(X, N_NEIGHBORS)),
        "within": lambda: ("within", lit.within_graph(y)),
    }[name]()


def penalty(name, graph, L, y):
    """The matrix C of a penalty. W of "lle" and "within" has row sums 1: D = I."""
    if name == "between":
        return lit.between_graph(y)
    unit_degrees = graph in ("lle", "within")
    return le.total(len(y)) if name == "total" or unit_degrees else le.degrees(L)


def penalty_size(name, graph, L):
    """The sum of the degrees if they weigh the rows, else None: the number of rows."""
    return np.trace(L) if name == "degrees" and graph in ("knn", "mutual") else None


def assert_same_embedding(model, expected, X, X_new, tol):
    assert_allclose(model.eigenvalues_, expected.ratios, rtol=tol)
    Z, Z_new = model.transform(X), model.transform(X_new)
    assert Z.shape == expected.projections.shape
    signs = np.sign((Z * expected.projections).sum(axis=0))
    size = np.abs(expected.projections).max(axis=0) / signs
    assert_allclose(Z / size, expected.projections / np.abs(size), rtol=0, atol=tol)
    assert_allclose(Z_new / size, expected.projections_new / np.abs(size), rtol=0, atol=tol)


# --------------------------------------------------------------------------------------------
# The reference itself
# --------------------------------------------------------------------------------------------


@KERNELS
@SCALINGS
def test_the_unsymmetric_problem_has_the_same_solutions(kernel, scaling):
    X, _, X_new = problem()
    L = le.knn(X, N_NEIGHBORS)
    options = {"ridge": RIDGE, "scaling": scaling}
    first = literal(kernel, X, L, le.degrees(L), 3, X_new, **options)
    second = literal(kernel, X, L, le.degrees(L), 3, X_new, **options, solver="eig")
    assert_allclose(first.ratios, second.ratios, rtol=KERNEL)
    assert_allclose(np.abs(first.projections), np.abs(second.projections), rtol=1e-4, atol=1e-5)


def test_the_linear_kernel_in_coefficients_alpha_is_the_linear_problem():
    X, _, X_new = problem()
    L = le.lle(X, N_NEIGHBORS)
    options = {"ridge": RIDGE, "scaling": "unit"}
    first = le.embedding(X, L, le.total(len(X)), 3, X_new, **options)
    second = le.kernel_embedding(X @ X.T, L, le.total(len(X)), 3, X_new @ X.T, **options)
    assert_allclose(first.ratios, second.ratios, rtol=CLOSE)
    assert_allclose(np.abs(first.projections_new), np.abs(second.projections_new), atol=1e-7)


def test_degrees_take_out_the_trivial_solution():
    """LPP over affine functions has the constant first; the others are D-orthogonal to it."""
    X, _, X_new = problem()
    L = le.knn(X, N_NEIGHBORS)
    values, F = le.lpp_with_constant(X, L, 3, ridge=RIDGE)
    d = np.diag(L)
    assert abs(values[0]) < 1e-12
    assert np.ptp(F[:, 0]) < 1e-8 * np.abs(F[:, 0]).max()
    assert_allclose(d @ F[:, 1:], 0, atol=CLOSE)
    expected = le.embedding(X, L, le.degrees(L), 3, X_new, ridge=RIDGE, scaling="unit")
    assert_allclose(1 / values[1:], expected.ratios, rtol=CLOSE)
    assert_allclose(cosines(F[:, 1:], expected.projections), 1, atol=CLOSE)


def cosines(A, B):
    """|cos| of the columns, each centred."""
    A, B = A - A.mean(axis=0), B - B.mean(axis=0)
    return np.abs((A * B).sum(axis=0)) / np.linalg.norm(A, axis=0) / np.linalg.norm(B, axis=0)


def test_graphs_of_repeated_rows_are_those_of_points():
    X, _, _ = problem()
    assert_allclose(le.knn(X, N_NEIGHBORS), lit.knn_graph(X, N_NEIGHBORS), atol=1e-14)
    assert_allclose(le.lle(X, N_NEIGHBORS), lit.lle_graph(X, N_NEIGHBORS), atol=1e-14)


# --------------------------------------------------------------------------------------------
# GraphEmbedding
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("pen", ["degrees", "total", "between"])
@pytest.mark.parametrize("graph", ["knn", "mutual", "lle", "within"])
@KERNELS
@SCALINGS
def test_graph_embedding_solves_the_literal_problem(pen, graph, kernel, scaling):
    X, y, X_new = problem()
    rule, L = intrinsic(graph, X, y)
    C = penalty(pen, graph, L, y)
    options = {"ridge": RIDGE, "scaling": scaling}
    size = penalty_size(pen, graph, L)
    expected = literal(kernel, X, L, C, 2, X_new, **options, size=size)
    model = GraphEmbedding(2, intrinsic=rule, penalty=pen, kernel=feature_map(kernel), **options)
    model.fit(X, y)
    assert_same_embedding(model, expected, X, X_new, CLOSE if kernel == "linear" else KERNEL)


@KERNELS
def test_graphs_may_be_given_as_rules_sums_and_matrices(kernel):
    X, y, X_new = problem()
    W = np.random.default_rng(0).random((len(X), len(X)))
    W = np.triu(W, 1) + np.triu(W, 1).T
    L_int = 0.3 * le.knn(X, N_NEIGHBORS) + lit.within_graph(y)
    options = {"ridge": RIDGE, "scaling": "unit"}
    expected = literal(kernel, X, L_int, lit.laplacian(W), 2, X_new, **options)
    rule = 0.3 * NeighborGraph(N_NEIGHBORS) + WithinClassGraph()
    pen = PrecomputedGraph(W)
    model = GraphEmbedding(2, intrinsic=rule, penalty=pen, kernel=feature_map(kernel), **options)
    assert_same_embedding(model.fit(X, y), expected, X, X_new, KERNEL)


@pytest.mark.parametrize("name", ["wine", "four", "wide"])
def test_without_an_intrinsic_graph_total_scatter_gives_pca(name):
    X, _, X_new = problem(name)
    pca = PCA(3, svd_solver="full").fit(X)
    model = GraphEmbedding(3, intrinsic=None, penalty="total", scaling="unit").fit(X)
    signs = np.sign((model.components_ * pca.components_).sum(axis=1))
    assert_allclose(model.components_ * signs[:, None], pca.components_, atol=CLOSE)
    assert_allclose(model.transform(X_new) * signs, pca.transform(X_new), atol=CLOSE * 10)
    assert_allclose(model.eigenvalues_, pca.explained_variance_ * (len(X) - 1), rtol=CLOSE)
    whitened = GraphEmbedding(3, intrinsic=None, penalty="total", scaling="penalty").fit(X)
    assert_allclose((whitened.transform(X) ** 2).sum(axis=0), len(X), rtol=CLOSE)


def test_without_an_intrinsic_graph_total_scatter_gives_kernel_pca():
    X, _, X_new = problem()
    kpca = KernelPCA(3, kernel="precomputed", eigen_solver="dense").fit(gram("rbf", X, X))
    model = GraphEmbedding(
        3, intrinsic=None, penalty="total", scaling="unit", kernel=feature_map("rbf")
    ).fit(X)
    expected = kpca.transform(gram("rbf", X_new, X))
    signs = np.sign((model.transform(X_new) * expected).sum(axis=0))
    assert_allclose(model.transform(X_new) * signs, expected, atol=CLOSE)


def test_a_row_without_a_label_moves_the_mean_only():
    """Class scatters are those of labelled rows, coordinates are centred at the mean of all."""
    X, y, X_new = problem()
    labelled = np.arange(len(y)) % 4 != 0
    marked = np.where(labelled, y, -1)
    C_int, C_pen = lit.within_graph(y, labelled), lit.between_graph(y, labelled)
    options = {"ridge": RIDGE, "scaling": "intrinsic"}
    expected = le.embedding(X, C_int, C_pen, 2, X_new, **options)
    model = GraphEmbedding(2, intrinsic="within", penalty="between", unlabeled=-1, **options)
    assert_same_embedding(model.fit(X, marked), expected, X, X_new, CLOSE)


# --------------------------------------------------------------------------------------------
# LDA and KDA
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["svd", "eigen"])
@pytest.mark.parametrize("name", ["wine", "four"])
def test_lda_is_scikit_learn_s(name, solver):
    """Up to the length: ours is w'S_W w = n; theirs is not the same in all versions."""
    X, y, X_new = problem(name)
    model = LDA(shrinkage=1e-14).fit(X, y)
    theirs = LinearDiscriminantAnalysis(solver=solver).fit(X, y)
    W = theirs.scalings_[:, : len(model.classes_) - 1]
    S_W = lit.within_scatter(X, y)
    W = W * np.sqrt(len(X) / np.einsum("ij,ik,kj->j", W, S_W, W))
    assert_same_columns(model.transform(X_new), (X_new - X.mean(axis=0)) @ W, CLOSE)
    ratio = model.eigenvalues_ / model.eigenvalues_.sum()
    assert_allclose(ratio, theirs.explained_variance_ratio_, rtol=CLOSE)


@pytest.mark.parametrize("name", ["wine", "four", "wide"])
@pytest.mark.parametrize("shrinkage", [0.1, 0.5, 0.9])
def test_shrunk_lda_spans_what_scikit_learn_s_coefficients_span(name, shrinkage):
    """(1 - s) S_W + s mu I, mu = tr(S_W) / d; the lsqr solver has coefficients S_W^-1 (m_c - m)."""
    X, y, _ = problem(name)
    theirs = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=shrinkage).fit(X, y)
    ours = LDA(shrinkage=shrinkage).fit(X, y)
    spanned = (theirs.coef_ - theirs.priors_ @ theirs.coef_)[:-1].T
    assert ours.components_.shape[0] == len(ours.classes_) - 1
    assert subspace_angles(ours.components_.T, spanned).max() < KERNEL


@pytest.mark.parametrize("shrinkage", [0.1, 0.5])
def test_scikit_learn_s_eigen_solver_shrinks_the_between_scatter_too(shrinkage):
    """It shrinks S_T as well and takes S_T - S_W for S_B: S_B gains s tr(S_B) / d I.

    So its directions are others than those of its own lsqr solver and of ours.
    """
    X, y, _ = problem("four")
    theirs = LinearDiscriminantAnalysis(solver="eigen", shrinkage=shrinkage).fit(X, y)
    C_int, C_pen = lit.within_graph(y), lit.between_graph(y)
    S_B, S_W = X.T @ C_pen @ X, X.T @ C_int @ X
    shrunk = [
        (1 - shrinkage) * S + shrinkage * np.trace(S) / len(S) * np.eye(len(S)) for S in (S_B, S_W)
    ]
    W = eigh(*shrunk)[1][:, ::-1][:, :3]
    expected = theirs.scalings_[:, :3]
    assert subspace_angles(W, expected).max() < KERNEL
    assert subspace_angles(LDA(shrinkage=shrinkage).fit(X, y).components_.T, expected).max() > 0.1


@pytest.mark.parametrize("name", ["wine", "four"])
def test_automatic_shrinkage_is_that_of_ledoit_and_wolf(name):
    X, y, _ = problem(name)
    R = X - np.array([X[y == c].mean(axis=0) for c in np.unique(y)])[y]
    expected = ledoit_wolf_shrinkage(R, assume_centered=True)
    assert_allclose(LDA(shrinkage="auto").fit(X, y).shrinkage_, expected, rtol=CLOSE)


@pytest.mark.parametrize("name", ["wine", "four", "wide"])
@pytest.mark.parametrize("shrinkage", [1e-3, 0.5])
def test_lda_solves_the_literal_problem(name, shrinkage):
    X, y, X_new = problem(name)
    per_feature = np.linalg.matrix_rank(X - X.mean(axis=0)) / X.shape[1]  # mu = tr(S_W) / d
    options = {"ridge": per_feature * shrinkage / (1 - shrinkage), "scaling": "intrinsic"}
    k = len(np.unique(y)) - 1
    expected = le.embedding(X, lit.within_graph(y), lit.between_graph(y), k, X_new, **options)
    model = LDA(shrinkage=shrinkage).fit(X, y)
    assert_same_embedding(model, expected, X, X_new, CLOSE)


@pytest.mark.parametrize("name", ["wine", "four"])
@pytest.mark.parametrize("kernel", ["rbf", "poly"])
def test_kda_solves_the_literal_problem(name, kernel):
    X, y, X_new = problem(name)
    options = {"ridge": 0.01 / 0.99, "scaling": "intrinsic"}
    C_int, C_pen = lit.within_graph(y), lit.between_graph(y)
    k = len(np.unique(y)) - 1
    expected = literal(kernel, X, C_int, C_pen, k, X_new, **options)
    model = KDA(shrinkage=0.01, kernel=feature_map(kernel)).fit(X, y)
    assert_same_embedding(model, expected, X, X_new, KERNEL)


# --------------------------------------------------------------------------------------------
# LPP and NPE
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["wine", "four", "wide"])
@KERNELS
def test_lpp_solves_the_literal_problem(name, kernel):
    X, _, X_new = problem(name)
    L = le.knn(X, N_NEIGHBORS)
    options = {"ridge": RIDGE, "scaling": "penalty"}
    expected = literal(kernel, X, L, le.degrees(L), 2, X_new, **options, size=np.trace(L))
    model = LPP(2, graph=NeighborGraph(N_NEIGHBORS), kernel=feature_map(kernel), ridge=RIDGE).fit(X)
    assert_same_embedding(model, expected, X, X_new, KERNEL)


@pytest.mark.parametrize("name", ["wine", "four", "wide"])
@KERNELS
def test_npe_solves_the_literal_problem(name, kernel):
    X, _, X_new = problem(name)
    options = {"ridge": RIDGE, "scaling": "penalty"}
    expected = literal(kernel, X, le.lle(X, N_NEIGHBORS), le.total(len(X)), 2, X_new, **options)
    rule = ReconstructionGraph(N_NEIGHBORS)
    model = NPE(2, graph=rule, kernel=feature_map(kernel), ridge=RIDGE).fit(X)
    assert_same_embedding(model, expected, X, X_new, KERNEL)


def test_lpp_is_the_second_solution_over_affine_functions():
    X, _, _ = problem()
    values, F = le.lpp_with_constant(X, le.knn(X, N_NEIGHBORS), 3, ridge=RIDGE)
    model = LPP(3, graph=NeighborGraph(N_NEIGHBORS), ridge=RIDGE).fit(X)
    assert_allclose(1 / model.eigenvalues_, values[1:], rtol=CLOSE)
    assert_allclose(cosines(model.transform(X), F[:, 1:]), 1, atol=CLOSE)


# --------------------------------------------------------------------------------------------
# All: conventions, weights and invariants
# --------------------------------------------------------------------------------------------

RBF = ExactKernel("rbf", gamma=GAMMA)
KNN, LLE = NeighborGraph(N_NEIGHBORS), ReconstructionGraph(N_NEIGHBORS)
MODELS = {
    "GraphEmbedding": GraphEmbedding(2),
    "GraphEmbedding unit": GraphEmbedding(2, intrinsic=LLE, penalty="between", scaling="unit"),
    "GraphEmbedding intrinsic": GraphEmbedding(2, intrinsic=KNN, scaling="intrinsic"),
    "GraphEmbedding pca": GraphEmbedding(2, intrinsic=None, penalty="total"),
    "GraphEmbedding rbf": GraphEmbedding(2, intrinsic=KNN, kernel=RBF, ridge=RIDGE),
    "LDA": LDA(),
    "LDA shrunk": LDA(shrinkage=0.3),
    "LDA auto": LDA(shrinkage="auto"),
    "KDA": KDA(kernel=RBF),
    "LPP": LPP(graph=KNN),
    "LPP rbf": LPP(graph=KNN, kernel=RBF),
    "NPE": NPE(graph=LLE),
    "NPE rbf": NPE(graph=LLE, kernel=RBF),
}
EVERY_MODEL = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
CLASSES = pytest.mark.parametrize("name", ["wine", "four"])


def fitted(model, *arguments, **options):
    return clone(model).fit(*arguments, **options)


def assert_same_columns(actual, expected, tol=KERNEL):
    assert actual.shape == expected.shape
    size = np.abs(expected).max(axis=0)
    signs = np.sign((actual * expected).sum(axis=0))
    assert_allclose(actual * signs / size, expected / size, rtol=0, atol=tol)


@EVERY_MODEL
@CLASSES
def test_a_weight_is_a_number_of_copies(model, name):
    X, y, X_new = problem(name)
    weights = np.random.default_rng(5).integers(0, 4, len(y))
    copies = np.repeat(np.arange(len(y)), weights)
    weighted = fitted(model, X, y, sample_weight=weights)
    repeated = fitted(model, X[copies], y[copies])
    assert_allclose(weighted.eigenvalues_, repeated.eigenvalues_, rtol=KERNEL)
    assert_same_columns(weighted.transform(X_new), repeated.transform(X_new))


@pytest.mark.parametrize("pen", ["degrees", "total", "between"])
@pytest.mark.parametrize("graph", ["knn", "mutual", "lle", "within"])
@SCALINGS
def test_weighted_rows_are_literally_repeated_rows(pen, graph, scaling):
    X, y, X_new = problem()
    weights = np.random.default_rng(6).integers(0, 4, len(y))
    copies = np.repeat(np.arange(len(y)), weights)
    R, y_R = X[copies], y[copies]
    rule, L = intrinsic(graph, R, y_R)
    C = penalty(pen, graph, L, y_R)
    options = {"ridge": RIDGE, "scaling": scaling}
    size = penalty_size(pen, graph, L)
    expected = le.embedding(R, L, C, 2, X_new, **options, size=size)
    model = GraphEmbedding(2, intrinsic=rule, penalty=pen, **options)
    assert_same_embedding(model.fit(X, y, sample_weight=weights), expected, R, X_new, CLOSE)


@EVERY_MODEL
@CLASSES
def test_projections_do_not_depend_on_axes_origin_order_or_names(model, name):
    X, y, X_new = problem(name)
    expected = fitted(model, X, y).transform(X_new)
    rng = np.random.default_rng(8)
    R, t = ortho_group.rvs(X.shape[1], random_state=8), 10 * rng.standard_normal(X.shape[1])
    order, names = rng.permutation(len(y)), np.array(["z", "m", "a", "k"])
    assert_same_columns(fitted(model, X @ R, y).transform(X_new @ R), expected)
    assert_same_columns(fitted(model, X + t, y).transform(X_new + t), expected)
    assert_same_columns(fitted(model, X[order], y[order]).transform(X_new), expected)
    assert_same_columns(fitted(model, X, names[y]).transform(X_new), expected)


@EVERY_MODEL
def test_the_largest_score_of_a_direction_is_positive(model):
    X, y, X_new = problem()
    model = fitted(model, X, y)
    Z, V = model.transform(X), model.directions_
    assert np.all(Z[np.abs(Z).argmax(axis=0), np.arange(Z.shape[1])] > 0)
    assert_same_columns(model.feature_map_.transform(X_new) @ V, model.transform(X_new), CLOSE)
    assert np.all(np.diff(model.eigenvalues_) <= 0)


LINEAR = [name for name, model in MODELS.items() if isinstance(model.kernel, str)]


@pytest.mark.parametrize("model", LINEAR)
def test_constant_columns_change_nothing(model):
    X, y, X_new = problem()
    expected = fitted(MODELS[model], X, y).transform(X_new)
    padded = fitted(MODELS[model], _padded(X), y).transform(_padded(X_new))
    assert_same_columns(padded, expected)


def _padded(rows):
    return np.column_stack([np.full(len(rows), 7.0), rows, np.zeros(len(rows))])


@pytest.mark.parametrize("model", ["GraphEmbedding", "LDA", "LPP", "NPE"])
def test_no_more_components_than_the_penalty_has_directions(model):
    """rank(S_B) = c - 1, and the rank of the rows otherwise; what is left out carries nothing."""
    X, y, X_new = problem("wide")
    expected = {"LDA": 2}.get(model, len(X) - 1)
    model = clone(MODELS[model]).set_params(n_components=30)
    with pytest.warns(ExhaustedWarning):
        model.fit(X, y)
    assert model.n_components_ == expected == model.transform(X_new).shape[1]
    assert model.eigenvalues_.min() > 1e-9 * model.eigenvalues_.max()
