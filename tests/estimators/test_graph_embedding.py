"""GraphEmbedding and its presets: presets are pairs of graphs, labels are read only if needed."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ortho_group
from sklearn.base import clone
from sklearn.datasets import load_wine, make_swiss_roll
from sklearn.decomposition import PCA, KernelPCA
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import scale

from marginfold import (
    KDA,
    LDA,
    LPP,
    NPE,
    SVMPCA,
    BetweenClassGraph,
    ExactKernel,
    GraphEmbedding,
    NeighborGraph,
    PrecomputedGraph,
    ReconstructionGraph,
    TotalGraph,
    WithinClassGraph,
)
from marginfold.errors import (
    ExhaustedWarning,
    GraphError,
    InvalidInputError,
    InvalidParameterError,
    NoDirectionError,
)

WINE, LABELS = load_wine(return_X_y=True)
X, Y = scale(WINE)[::2], LABELS[::2]
RBF = ExactKernel("rbf", gamma=0.05)
PRESETS = {
    "LDA": (
        LDA(shrinkage=0.2),
        GraphEmbedding(2, intrinsic="within", penalty="between", ridge=0.25, scaling="intrinsic"),
    ),
    "KDA": (
        KDA(kernel=RBF, shrinkage=0.2),
        GraphEmbedding(
            2, intrinsic="within", kernel=RBF, penalty="between", ridge=0.25, scaling="intrinsic"
        ),
    ),
    "LPP": (LPP(3), GraphEmbedding(3)),
    "kernel LPP": (LPP(3, kernel=RBF, ridge=0.1), GraphEmbedding(3, kernel=RBF, ridge=0.1)),
    "NPE": (NPE(3), GraphEmbedding(3, intrinsic="lle", penalty="total")),
    "PCA": (SVMPCA(3), GraphEmbedding(3, intrinsic=None, penalty="total", scaling="unit")),
    "kernel PCA": (
        SVMPCA(3, kernel=RBF),
        GraphEmbedding(3, intrinsic=None, penalty="total", scaling="unit", kernel=RBF),
    ),
}
UNSUPERVISED = pytest.mark.parametrize(
    "model", [LPP(2), NPE(2), GraphEmbedding(2), LPP(2, kernel=RBF)], ids=str
)


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_pairs_of_graphs(name):
    preset, pair = PRESETS[name]
    assert_allclose(
        clone(preset).fit(X, Y).transform(X), clone(pair).fit(X, Y).transform(X), atol=1e-8
    )


@pytest.mark.parametrize(("kernel", "reference"), [("linear", PCA(3)), (RBF, None)])
def test_pca_of_scikit_learn(kernel, reference):
    model = GraphEmbedding(3, intrinsic=None, penalty="total", scaling="unit", kernel=kernel)
    if reference is None:
        reference = KernelPCA(3, kernel="rbf", gamma=0.05)
    expected = reference.fit_transform(X)
    assert_allclose(np.abs(model.fit_transform(X)), np.abs(expected), atol=1e-8)


@pytest.mark.parametrize("kernel", ["linear", RBF])
@pytest.mark.parametrize(
    ("intrinsic", "penalty"),
    [("knn", "total"), ("lle", "total"), ("within", "between"), ("knn", "between")],
)
def test_eigenvalues_are_ratios_of_sums_over_edges(kernel, intrinsic, penalty):
    """Measured on the scores: z'L'z over z'Lz plus the ridge times |v|^2."""
    model = GraphEmbedding(
        2, intrinsic=intrinsic, penalty=penalty, kernel=kernel, ridge=0.1, scaling="unit"
    ).fit(X, Y)
    rules = {
        "knn": NeighborGraph(),
        "lle": ReconstructionGraph(),
        "within": WithinClassGraph(),
        "between": BetweenClassGraph(),
        "total": TotalGraph(),
    }
    Z = model.feature_map_.transform(X)
    near, far = (rules[graph].build(X, Y) for graph in (intrinsic, penalty))
    rank = np.linalg.matrix_rank(Z.T @ Z, tol=1e-13 * np.trace(Z.T @ Z), hermitian=True)
    rho = 0.1 * np.trace(near.scatter(Z)) / rank
    scores = model.transform(X)
    expected = np.diag(far.scatter(scores)) / (np.diag(near.scatter(scores)) + rho)
    assert_allclose(model.eigenvalues_, expected, rtol=1e-7)


@pytest.mark.parametrize("kernel", ["linear", RBF])
def test_lengths_of_the_presets(kernel):
    """LPP: the degree-weighted variance is 1; NPE: variance 1; LDA: within plus ridge is n."""
    lpp = LPP(3, kernel=kernel).fit(X)
    degrees, scores = NeighborGraph().build(X).degrees, lpp.transform(X)
    centred = scores - degrees @ scores / degrees.sum()
    share = degrees[:, None] / degrees.sum()
    assert_allclose((share * centred).T @ centred, np.eye(3), atol=1e-8)
    npe = NPE(3, kernel=kernel).fit(X).transform(X)
    assert_allclose(npe.T @ npe, len(X) * np.eye(3), atol=1e-6)
    assert_allclose(npe.mean(axis=0), 0.0, atol=1e-9)
    lda = LDA(kernel=kernel, shrinkage=1e-7).fit(X, Y).transform(X)
    within = WithinClassGraph().build(X, Y).scatter(lda)
    assert within.trace() <= 2 * len(X) * (1 + 1e-9)
    if isinstance(kernel, str):  # where the ridge is all but nothing
        assert_allclose(within, len(X) * np.eye(2), rtol=1e-4, atol=1e-3)


def test_lpp_unrolls_what_pca_does_not():
    """Neighbors on a thin bent sheet: LPP's scores change less between them than PCA's."""
    rows, _ = make_swiss_roll(300, noise=0.05, random_state=0)
    graph = NeighborGraph(8).build(rows)
    kernel = ExactKernel("rbf", gamma=0.02)
    ratios = []
    for model in (LPP(1, kernel=kernel, graph=NeighborGraph(8)), SVMPCA(1, kernel=kernel)):
        scores = scale(model.fit_transform(rows))
        ratios.append(graph.scatter(scores).item())
    assert ratios[0] < ratios[1]


# --------------------------------------------------------------------------------------------
# Labels
# --------------------------------------------------------------------------------------------


@UNSUPERVISED
def test_labels_are_not_read_without_need(model):
    plain = clone(model).fit(X).transform(X)
    assert_array_equal(clone(model).fit(X, Y).transform(X), plain)
    assert_array_equal(clone(model).fit(X, ["junk"] * len(X)).transform(X), plain)
    assert not hasattr(clone(model).fit(X, Y), "classes_")
    assert not clone(model).__sklearn_tags__().target_tags.required


@pytest.mark.parametrize(
    "model",
    [
        LDA(),
        KDA(),
        LPP(graph=NeighborGraph(within_class=True)),
        GraphEmbedding(intrinsic=NeighborGraph() + WithinClassGraph(), penalty="total"),
        GraphEmbedding(penalty=0.5 * BetweenClassGraph()),
    ],
    ids=str,
)
def test_labels_are_read_where_a_graph_needs_them(model):
    assert model.__sklearn_tags__().target_tags.required
    with pytest.raises(ValueError, match="requires y"):
        clone(model).fit(X)
    assert_array_equal(clone(model).fit(X, Y).classes_, [0, 1, 2])
    names = np.array(["red", "green", "blue"])[Y]
    assert_allclose(
        clone(model).fit(X, names).transform(X), clone(model).fit(X, Y).transform(X), atol=1e-8
    )


@pytest.mark.parametrize("marker", [-1, np.nan, None, "?"])
def test_unlabelled_rows_count_in_graphs_without_classes_only(marker):
    """They move the mean; between and within graphs leave them isolated."""
    unknown = np.arange(len(X)) % 4 == 1
    labels = Y.astype(str).astype(object) if marker in (None, "?") else Y.astype(float)
    labels[unknown] = marker
    marker = np.nan if marker is None else marker
    model = GraphEmbedding(
        2, intrinsic="within", penalty="between", ridge=1e-2, unlabeled=marker
    ).fit(X, labels)
    Z = X - X.mean(axis=0)
    near, far = (
        rule.build(X[~unknown], Y[~unknown]).scatter(Z[~unknown])
        for rule in (WithinClassGraph(), BetweenClassGraph())
    )
    V = model.components_.T
    definite = near + 1e-2 * np.trace(near) / 13 * np.eye(13)
    assert_allclose(far @ V, definite @ V * model.eigenvalues_, atol=1e-7)
    assert len(model.classes_) == 3


# --------------------------------------------------------------------------------------------
# Invariants
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [LPP(2), NPE(2), LDA(), KDA(kernel=RBF)], ids=str)
def test_rotations_shifts_and_orders_change_nothing(model):
    rng = np.random.default_rng(2)
    Q, order = ortho_group.rvs(13, random_state=2), rng.permutation(len(X))
    plain = clone(model).fit(X, Y).transform(X)
    moved = clone(model).fit((X @ Q + 3.0)[order], Y[order]).transform((X @ Q + 3.0)[order])
    assert_allclose(moved, plain[order], atol=1e-6)


@pytest.mark.parametrize("unit", [1e-20, 1e-3, 1e5, 1e40])
@pytest.mark.parametrize("model", [LPP(2), NPE(2), LDA(), KDA(), LPP(2, kernel="rbf")], ids=str)
def test_units_of_the_rows_do_not_matter(model, unit):
    """Scores have the size that the scaling gives them, whatever the rows have."""
    plain = clone(model).fit(X, Y).transform(X)
    assert_allclose(clone(model).fit(unit * X, Y).transform(unit * X), plain, atol=1e-6)


@pytest.mark.parametrize("model", [NPE(2), LDA(), KDA(kernel=RBF)], ids=str)
def test_a_factor_of_the_weights_does_not_matter(model):
    weights = 1.0 + np.arange(len(X)) % 3
    plain = clone(model).fit(X, Y, sample_weight=weights)
    heavy = clone(model).fit(X, Y, sample_weight=1e4 * weights)
    first, second = (m.directions_ / np.linalg.norm(m.directions_, axis=0) for m in (plain, heavy))
    assert_allclose(second, first, atol=1e-7)


@pytest.mark.parametrize("storage", [sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("model", [LPP(2), LDA(), KDA(kernel=RBF)], ids=str)
def test_storage_does_not_matter(model, storage):
    plain = clone(model).fit(X, Y).transform(X)
    assert_allclose(clone(model).fit(storage(X), Y).transform(storage(X)), plain, atol=1e-7)


@pytest.mark.parametrize("kernel", ["linear", RBF])
def test_a_precomputed_graph_is_the_graph_it_was_taken_from(kernel):
    rule = NeighborGraph(5, merge_duplicates=False)
    copy = PrecomputedGraph(rule.build(X).adjacency)
    plain, given = (
        LPP(2, graph=graph, kernel=kernel).fit(X).transform(X) for graph in (rule, copy)
    )
    assert_allclose(given, plain, atol=1e-8)


def test_a_factor_of_the_graphs_does_not_matter():
    plain = GraphEmbedding(2, intrinsic=NeighborGraph(5), penalty="total").fit(X)
    scaled = GraphEmbedding(2, intrinsic=1e6 * NeighborGraph(5), penalty=1e-6 * TotalGraph()).fit(X)
    assert_allclose(scaled.eigenvalues_, 1e-12 * plain.eigenvalues_, rtol=1e-8)
    ratio = scaled.transform(X) / plain.transform(X)
    assert_allclose(ratio, 1e3, rtol=1e-6)


def test_a_pipeline_and_a_grid_search_reach_the_graph():
    pipeline = make_pipeline(LPP(3, graph=NeighborGraph(), kernel=RBF), KNeighborsClassifier(3))
    grid = {"lpp__graph__n_neighbors": [4, 8], "lpp__ridge": [1e-2], "lpp__kernel__gamma": [0.05]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, Y)
    assert search.best_score_ > 0.85
    assert search.best_params_["lpp__graph__n_neighbors"] in (4, 8)


# --------------------------------------------------------------------------------------------
# Degenerate rows and graphs
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [LPP(20), NPE(20), GraphEmbedding(20)], ids=str)
@pytest.mark.parametrize("spoil", ["collinear", "copied", "constant"])
def test_no_more_components_than_dimensions(model, spoil):
    extra = {
        "collinear": X @ np.random.default_rng(0).standard_normal((13, 5)),
        "copied": X[:, :5],
        "constant": np.full((len(X), 5), 0.3),
    }[spoil]
    with pytest.warns(ExhaustedWarning, match="found 13 of 20"):
        found = clone(model).fit(np.column_stack([X, extra]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        everything = clone(model).set_params(n_components=None).fit(np.column_stack([X, extra]))
    assert found.n_components_ == everything.n_components_ == 13


@pytest.mark.parametrize("model", [LPP(2), NPE(2), LDA(), KDA()], ids=str)
def test_more_features_than_rows(model):
    wide = (
        np.random.default_rng(1).standard_normal((30, 200)) + 2 * np.eye(3, 200)[np.arange(30) % 3]
    )
    model = clone(model).fit(wide, np.arange(30) % 3)
    scores = model.transform(wide)
    assert scores.shape == (30, 2)
    assert np.isfinite(scores).all()
    assert np.linalg.matrix_rank(scores - scores.mean(axis=0)) == 2


@pytest.mark.parametrize("model", [LPP(2), GraphEmbedding(2), LPP(2, kernel="rbf")], ids=str)
def test_equal_rows_have_no_graph(model):
    with pytest.raises(GraphError, match="edges of positive weight"):
        clone(model).fit(np.full((9, 3), 0.1))


def test_the_degrees_need_a_graph():
    with pytest.raises(GraphError, match="needs an intrinsic graph"):
        GraphEmbedding(intrinsic=None).fit(X)


def test_equal_rows_have_no_principal_axis():
    with pytest.raises(NoDirectionError, match="there is no direction to return"):
        GraphEmbedding(intrinsic=None, penalty="total").fit(np.full((9, 3), 0.1))


def test_two_points_have_one_direction():
    with pytest.warns(ExhaustedWarning, match="1 of 2"):
        model = LPP(2).fit(np.repeat([[0.0, 0.0], [3.0, 4.0]], 6, axis=0))
    direction = model.components_[0] / np.linalg.norm(model.components_)
    assert_allclose(np.abs(direction), [0.6, 0.8])
    assert direction[0] * direction[1] > 0


@pytest.mark.parametrize(
    "parameters",
    [
        {"intrinsic": "foo"},
        {"penalty": "foo"},
        {"penalty": None},
        {"intrinsic": 3},
        {"intrinsic": NeighborGraph},
        {"intrinsic": "degrees"},
    ],
    ids=str,
)
def test_what_is_no_graph(parameters):
    with pytest.raises(InvalidParameterError, match="needs one of 'knn'"):
        GraphEmbedding(**parameters).fit(X, Y)


@pytest.mark.parametrize("where", ["intrinsic", "penalty"])
def test_a_matrix_is_no_graph(where):
    """PrecomputedGraph(matrix) is one."""
    with pytest.raises(InvalidInputError, match=r"PrecomputedGraph|needs one of"):
        GraphEmbedding(**{where: np.eye(len(X))}).fit(X)


@pytest.mark.parametrize(
    "parameters",
    [{"n_components": 0}, {"n_components": 1.5}, {"ridge": 0.0}, {"ridge": -1}, {"scaling": "all"}],
    ids=str,
)
def test_parameters_out_of_range(parameters):
    with pytest.raises(InvalidParameterError, match=next(iter(parameters))):
        GraphEmbedding(**parameters).fit(X)
