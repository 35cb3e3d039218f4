"""Degenerate data for planes and embeddings: the limit that mathematics gives, never noise."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import null_space, subspace_angles
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.decomposition import PCA, KernelPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.kernel_approximation import Nystroem
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import PolynomialFeatures

from marginfold import (
    GEPSVC,
    KDA,
    LDA,
    LPP,
    LSVA,
    MMDA,
    MRGEPSVC,
    NPE,
    SVMPCA,
    WSVDA,
    BetweenClassGraph,
    ExactKernel,
    GraphEmbedding,
    Linear,
    NeighborGraph,
    PrecomputedGraph,
    ReconstructionGraph,
    TwinSVC,
)
from marginfold.errors import (
    ExhaustedWarning,
    GraphUnderflowWarning,
    InvalidInputError,
    NoDirectionError,
)

pytestmark = [
    pytest.mark.filterwarnings("error::RuntimeWarning"),
    pytest.mark.attack("degenerate rows"),
]

CLOSE = 1e-7
PLANES = {
    "GEPSVC": GEPSVC(),
    "GEPSVC dual": GEPSVC(tikhonov="dual"),
    "MRGEPSVC": MRGEPSVC(),
    "MRGEPSVC numerator": MRGEPSVC(manifold="numerator"),
    "TwinSVC": TwinSVC(),
    "TwinSVC squares": TwinSVC(loss="least_squares"),
}
EMBEDDINGS = {
    "SVMPCA": SVMPCA(2),
    "GraphEmbedding": GraphEmbedding(2, intrinsic="within", penalty="total"),
    "discriminants": GraphEmbedding(2, intrinsic="within", penalty="between"),
    "LPP": LPP(2),
    "NPE": NPE(2),
}
EVERY = PLANES | EMBEDDINGS
every = pytest.mark.parametrize("name", EVERY)


def clouds(n=30, d=5, c=3, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % c
    return rng.standard_normal((n, d)) + 2.0 * rng.standard_normal((c, d))[y], y


def output(model, rows):
    return model.transform(rows) if hasattr(model, "transform") else model.distances(rows)


def assert_same_output(model, rows, expected, expected_rows):
    wanted = output(expected, expected_rows)
    assert_allclose(output(model, rows), wanted, rtol=0, atol=CLOSE * np.abs(wanted).max())


# --------------------------------------------------------------------------------- rank of the rows


@every
def test_a_repeated_column_is_a_column_of_larger_size(name):
    """(x, x) is sqrt(2) x in another basis: distances and inner products are the same."""
    X, y = clouds()
    repeated = np.column_stack([X, X[:, 0]])
    longer = X * np.array([np.sqrt(2.0), 1, 1, 1, 1])
    model, expected = clone(EVERY[name]).fit(repeated, y), clone(EVERY[name]).fit(longer, y)
    assert_same_output(model, repeated, expected, longer)


@every
def test_collinear_columns_are_an_isometry_of_fewer(name):
    X, y = clouds(d=3)
    isometry = np.linalg.qr(np.random.default_rng(1).standard_normal((8, 3)))[0].T
    model, expected = clone(EVERY[name]).fit(X @ isometry, y), clone(EVERY[name]).fit(X, y)
    assert_same_output(model, X @ isometry, expected, X)


@every
def test_more_columns_than_rows(name):
    """5 rows span 4 dimensions of 200; the answer is that in any basis of the span."""
    rng = np.random.default_rng(2)
    X, y = rng.standard_normal((5, 200)), np.array([0, 1, 0, 1, 1])
    basis = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2][:4].T
    inside = (X - X.mean(axis=0)) @ basis
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExhaustedWarning)
        model, expected = clone(EVERY[name]).fit(X, y), clone(EVERY[name]).fit(inside, y)
    assert_same_output(model, X, expected, inside)
    directions = model.components_ if name in EMBEDDINGS else model.coef_
    outside = directions - directions @ basis @ basis.T
    assert_allclose(outside, 0.0, atol=1e-9 * np.abs(directions).max())


@pytest.mark.parametrize("name", PLANES)
def test_training_rows_of_wide_data_lie_on_their_planes(name):
    """With more columns than rows every class has a plane through all its rows."""
    X, y = clouds(n=12, d=50)
    model = clone(PLANES[name]).set_params(ridge=1e-8)
    if name.startswith("MRGEPSVC"):
        model.set_params(graph_weight=1e-6)
    distances = model.fit(X, y).distances(X)
    own = np.concatenate([distances[y == p.label, k] for k, p in enumerate(model.planes_)])
    assert own.max() < 1e-3 * distances.max()
    assert_array_equal(model.predict(X), y)


def test_wide_rows_of_a_class_coincide_under_a_small_shrinkage():
    """Null-space discriminant analysis: no variance within, all of it between."""
    X, y = clouds(n=12, d=50)
    Z = LDA(shrinkage=1e-9).fit(X, y).transform(X)
    means = np.array([Z[y == code].mean(axis=0) for code in range(3)])
    assert np.abs(Z - means[y]).max() < 1e-5 * np.abs(means[0] - means[1]).max()


def test_two_rows_are_a_line():
    X, y = np.array([[0.0, 0.0], [3.0, 4.0]]), [0, 1]
    for model in (SVMPCA(1), NPE(1), LPP(1)):
        Z = model.fit(X).transform(X)[:, 0]
        assert_allclose(Z[0], -Z[1], rtol=1e-12)
        assert_allclose(np.abs(model.components_[0, 1] / model.components_[0, 0]), 4 / 3)
    assert_allclose(np.abs(SVMPCA(1).fit_transform(X)[:, 0]), 2.5)
    for model in (GEPSVC(), MRGEPSVC()):
        assert_array_equal(model.fit(X, y).predict(X), y)
        assert_allclose(np.abs(model.coef_ @ [3.0, 4.0]), 5.0)  # normal to nothing but the line


# ------------------------------------------------------------------------------ graphs in pieces


def two_pieces(seed=0):
    rng = np.random.default_rng(seed)
    y = np.repeat([0, 1], 20)
    return rng.standard_normal((40, 3)) + 100.0 * y[:, None] * np.array([1.0, 0.0, 0.0]), y


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("cls", [LPP, NPE])
def test_the_first_component_of_a_graph_in_two_pieces_parts_them(cls, kernel):
    """A function that is constant on each piece costs only the ridge."""
    X, y = two_pieces()
    graph = NeighborGraph(5) if cls is LPP else ReconstructionGraph(5)
    assert graph.describe(X).n_components == 2
    Z = cls(1, graph=graph, kernel=kernel).fit(X).transform(X)[:, 0]
    low, high = sorted([Z[y == 0], Z[y == 1]], key=np.mean)
    assert high.min() - low.max() > 3 * max(np.ptp(low), np.ptp(high))


def test_every_row_alone_has_no_graph():
    X, _ = clouds(n=6)
    mutual = NeighborGraph(1, mode="mutual", within_class=True)
    refused = pytest.raises(InvalidInputError, match="edges of positive weight")
    with refused:
        LPP(graph=mutual).fit(X, np.arange(6))


def test_isolated_rows_are_embedded_as_new_ones():
    """A row without an edge has degree 0: it counts in the mean only, and has an image."""
    X, _ = clouds(n=20)
    far = np.vstack([X, 1e3 * np.ones((1, 5))])
    graph = NeighborGraph(3, mode="mutual", weights="binary")
    assert graph.describe(far).n_isolated >= 1
    model, without = LPP(2, graph=graph).fit(far), LPP(2, graph=graph).fit(X)
    assert np.isfinite(model.transform(far)).all()
    assert_allclose(subspace_angles(model.components_.T, without.components_.T), 0.0, atol=1e-6)


def test_a_graph_of_underflowed_weights_is_announced_at_the_caller():
    X, y = clouds()
    graph = NeighborGraph(width=0.02)
    for model in (LPP(graph=graph), MRGEPSVC(graph=graph)):
        with pytest.warns(GraphUnderflowWarning) as caught:
            model.fit(X, y)
        assert {warning.filename for warning in caught} == {__file__}
        assert np.isfinite(output(model, X)).all()


@pytest.mark.parametrize("cls", [LPP, NPE])
def test_copies_of_all_rows_change_directions_by_nothing(cls):
    """Merged into one node each; only the length of directions knows of the number."""
    X, _ = clouds()
    once, thrice = cls(2).fit(X), cls(2).fit(np.tile(X, (3, 1)))
    a, b = once.components_, thrice.components_
    assert_allclose(
        b / np.linalg.norm(b, axis=1)[:, None], a / np.linalg.norm(a, axis=1)[:, None], atol=1e-9
    )


# -------------------------------------------------------------------------------------- classes


@pytest.mark.parametrize("name", [*PLANES, "discriminants", "GraphEmbedding"])
def test_thirty_classes(name):
    rng = np.random.default_rng(3)
    centres, y = 10.0 * rng.standard_normal((30, 12)), np.repeat(np.arange(30), 6)
    X = centres[y] + 0.1 * rng.standard_normal((180, 12))
    model = clone(EVERY[name])
    if name in EMBEDDINGS:
        Z = model.set_params(n_components=5).fit(X, y).transform(X)
        nearest = ((Z[:, None] - Z[None]) ** 2).sum(axis=2) + 1e9 * np.eye(180)
        assert (y[nearest.argmin(axis=1)] == y).all()
        return
    rest = clone(model).set_params(multiclass="one_vs_rest").fit(X, y)
    heights = rest.distances(X) / getattr(rest, "margins_", 1.0)
    assert_array_equal(rest.decision_function(X), -heights)
    assert len(rest.planes_) == 30
    model.fit(X, y)
    assert model.decision_function(X).shape == (180, 30)
    assert len(model.planes_) == 30 * 29
    names = [f"class {code:02d}" for code in y]
    assert_array_equal(clone(model).fit(X, names).predict(X) == names, model.predict(X) == y)


def test_thirty_classes_have_as_many_discriminants_as_scikit_learn_finds():
    rng = np.random.default_rng(4)
    y = np.repeat(np.arange(30), 8)
    X = 3.0 * rng.standard_normal((30, 40))[y] + rng.standard_normal((240, 40))
    ours = LDA(shrinkage=1e-9).fit(X, y)
    theirs = LinearDiscriminantAnalysis().fit(X, y)
    assert ours.n_components_ == theirs.scalings_.shape[1] == 29
    angles = subspace_angles(ours.components_.T, theirs.scalings_)
    assert_allclose(angles, 0.0, atol=1e-5)


@pytest.mark.parametrize("name", PLANES)
def test_a_class_with_one_row_beside_large_ones(name):
    X, y = clouds(n=31)
    X[30], y[30] = 20.0, 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExhaustedWarning)
        model = clone(PLANES[name]).fit(X, y)
    assert list(model.classes_) == [0, 1, 2, 3]
    assert np.isfinite(model.distances(X)).all()
    # one row is three copies of a third of its weight
    thirds = np.append(np.arange(31), [30, 30])
    weights = np.append(np.ones(30), np.full(3, 1 / 3))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExhaustedWarning)
        other = clone(PLANES[name]).fit(X[thirds], y[thirds], sample_weight=weights)
    assert_same_output(other, X, model, X)


def test_classes_that_no_twin_plane_describes_are_named_once():
    """A class in the middle of the others: its plane would be infinitely far."""
    rng = np.random.default_rng(5)
    angle = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    ring = 5 * np.column_stack([np.cos(angle), np.sin(angle)])
    X = np.vstack([ring, 0.1 * rng.standard_normal((20, 2))])
    y = np.repeat(["ring", "core"], [40, 20])
    with pytest.warns(ExhaustedWarning, match="no plane describes 'core'") as caught:
        model = TwinSVC(loss="hinge").fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert np.isfinite(model.distances(X)).all()
    assert_array_equal(model.normals_[0], 0.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert TwinSVC(kernel="rbf").fit(X, y).score(X, y) == 1


# ---------------------------------------------------------------------------- kernels of all kinds

X_TRAIN, Y_TRAIN = clouds(n=40, d=4)
X_NEW, _ = clouds(n=9, d=4, seed=7)
KERNEL_MODELS = {
    "GEPSVC": GEPSVC(),
    "TwinSVC": TwinSVC(loss="least_squares"),
    "SVMPCA": SVMPCA(3),
    "KDA": KDA(),
    "GraphEmbedding": GraphEmbedding(2, intrinsic="within", penalty="total"),
    "MRGEPSVC within": MRGEPSVC(graph="within"),
}


@pytest.mark.parametrize("name", KERNEL_MODELS)
@pytest.mark.parametrize("gamma", [0.05, 0.5])
def test_a_kernel_by_name_as_a_matrix_as_a_function_and_as_a_map(name, gamma):
    """Without a neighbor graph nothing but the kernel is seen."""

    def function(A, B):
        return rbf_kernel(A, B, gamma)

    named = clone(KERNEL_MODELS[name]).set_params(kernel=ExactKernel("rbf", gamma=gamma))
    expected = output(named.fit(X_TRAIN, Y_TRAIN), X_NEW)
    atol = CLOSE * np.abs(expected).max()
    called = clone(named).set_params(kernel=function).fit(X_TRAIN, Y_TRAIN)
    assert_allclose(output(called, X_NEW), expected, rtol=0, atol=atol)
    given = clone(named).set_params(kernel="precomputed").fit(function(X_TRAIN, X_TRAIN), Y_TRAIN)
    assert_allclose(output(given, function(X_NEW, X_TRAIN)), expected, rtol=0, atol=atol)


@pytest.mark.parametrize("model", [LPP(2), NPE(2), MRGEPSVC()], ids=lambda m: type(m).__name__)
def test_a_precomputed_linear_kernel_has_the_graph_of_the_rows(model):
    """Distances in the space of the linear kernel are those of the rows."""
    expected = output(clone(model).fit(X_TRAIN, Y_TRAIN), X_NEW)
    given = clone(model).set_params(kernel="precomputed").fit(X_TRAIN @ X_TRAIN.T, Y_TRAIN)
    found = output(given, X_NEW @ X_TRAIN.T)
    assert_allclose(found, expected, rtol=0, atol=CLOSE * np.abs(expected).max())


@pytest.mark.parametrize("name", KERNEL_MODELS)
def test_polynomial_features_are_the_polynomial_kernel(name):
    """(x'y + 1)^2 has the features of degree 2, with sqrt(2) on all but squares and 1."""

    class Features(PolynomialFeatures):
        def transform(self, X):
            mixed = (np.count_nonzero(self.powers_, axis=1) == 2) | (self.powers_.sum(axis=1) == 1)
            return super().transform(X) * np.where(mixed, np.sqrt(2.0), 1.0)

    kernel = ExactKernel("poly", degree=2, gamma=1.0, coef0=1.0)
    by_kernel = clone(KERNEL_MODELS[name]).set_params(kernel=kernel).fit(X_TRAIN, Y_TRAIN)
    by_features = clone(by_kernel).set_params(kernel=Features(2)).fit(X_TRAIN, Y_TRAIN)
    assert_same_output(by_features, X_NEW, by_kernel, X_NEW)


@pytest.mark.parametrize("name", KERNEL_MODELS)
def test_nystroem_with_all_rows_is_the_kernel(name):
    kernel = ExactKernel("rbf", gamma=0.2)
    exact = clone(KERNEL_MODELS[name]).set_params(kernel=kernel).fit(X_TRAIN, Y_TRAIN)
    nystroem = Nystroem(gamma=0.2, n_components=len(X_TRAIN), random_state=0)
    sampled = clone(exact).set_params(kernel=nystroem).fit(X_TRAIN, Y_TRAIN)
    assert_same_output(sampled, X_NEW, exact, X_NEW)


@pytest.mark.parametrize("name", KERNEL_MODELS)
def test_all_leading_coordinates_are_the_kernel(name):
    full = clone(KERNEL_MODELS[name]).set_params(kernel=ExactKernel("rbf", gamma=0.2))
    ranked = clone(full).set_params(kernel__rank=len(X_TRAIN))
    assert_same_output(ranked.fit(X_TRAIN, Y_TRAIN), X_NEW, full.fit(X_TRAIN, Y_TRAIN), X_NEW)


@pytest.mark.parametrize("name", KERNEL_MODELS)
def test_embeddings_are_maps_for_other_methods(name):
    """SVMPCA with all components only turns the rows."""
    plain = clone(KERNEL_MODELS[name]).set_params(kernel="linear").fit(X_TRAIN, Y_TRAIN)
    turned = clone(plain).set_params(kernel=SVMPCA(None)).fit(X_TRAIN, Y_TRAIN)
    assert_same_output(turned, X_NEW, plain, X_NEW)


def test_uncentred_coordinates_move_what_the_planes_penalise_and_nothing_else():
    """With a tiny ridge it does not matter which offset is penalised."""
    centred, uncentred = (
        GEPSVC(kernel=Linear(center=center), ridge=1e-9).fit(X_TRAIN, Y_TRAIN)
        for center in (True, False)
    )
    assert_allclose(uncentred.distances(X_NEW), centred.distances(X_NEW), rtol=0, atol=1e-5)
    assert_allclose(uncentred.mean_ if hasattr(uncentred, "mean_") else 0.0, 0.0)


@pytest.mark.parametrize("rows", [(40, 3), (8, 30)])
def test_svmpca_of_degenerate_rows_is_scikit_learn_s(rows):
    rng = np.random.default_rng(0)
    X = rng.standard_normal(rows)
    X[:, 1] = X[:, 0]
    X[1] = X[0]
    ours, theirs = SVMPCA(2).fit(X), PCA(2).fit(X)
    assert_allclose(ours.explained_variance_ratio_, theirs.explained_variance_ratio_, rtol=1e-9)
    assert_allclose(np.abs(ours.transform(X)), np.abs(theirs.transform(X)), atol=1e-9)
    kernel = SVMPCA(2, kernel=ExactKernel("rbf", gamma=0.1)).fit(X)
    other = KernelPCA(2, kernel="rbf", gamma=0.1).fit(X)
    assert_allclose(np.abs(kernel.transform(X)), np.abs(other.transform(X)), atol=1e-9)


def test_moons_are_parted_by_kernel_planes_and_discriminants():
    X, y = make_moons(120, noise=0.05, random_state=0)
    kernel = ExactKernel("rbf", gamma=5.0)
    for model in (GEPSVC(kernel=kernel), MRGEPSVC(kernel=kernel), TwinSVC(kernel=kernel)):
        assert model.fit(X[::2], y[::2]).score(X[1::2], y[1::2]) > 0.95
    scores = KDA(kernel=kernel).fit(X[::2], y[::2]).transform(X)[:, 0]
    cut = (scores[y == 0].mean() + scores[y == 1].mean()) / 2
    side = (scores > cut) == (scores[y == 1].mean() > cut)
    assert (side == (y == 1))[1::2].mean() > 0.95


def test_directions_outside_of_the_rows_are_never_returned():
    """Two constant columns and a copy: as many components as the rows have dimensions."""
    X, y = clouds(d=3)
    X = np.column_stack([X, np.ones((len(X), 2)), X[:, 0]])
    for cls in (SVMPCA, GraphEmbedding, LPP, NPE):
        model = cls(None).fit(X, y)
        assert model.n_components_ == 3
        outside = null_space(X - X.mean(axis=0))
        assert_allclose(model.components_ @ outside, 0.0, atol=1e-7)
        assert model.transform(X).std(axis=0).min() > 1e-6


# ------------------------------------------------------------------- class means equal to rounding

BETWEEN = BetweenClassGraph()
EQUAL_MEANS = {
    "LDA": LDA(),
    "LDA auto": LDA(shrinkage="auto"),
    "KDA": KDA(),
    "KDA little shrinkage": KDA(shrinkage=1e-8),
    "KDA wide": KDA(kernel=ExactKernel("rbf", gamma=1e-3)),
    "KDA narrow": KDA(kernel=ExactKernel("rbf", gamma=5.0)),
    "KDA cubes": KDA(kernel=ExactKernel("poly", degree=3, gamma=0.1, coef0=1.0)),
    "KDA Nystroem": KDA(kernel=Nystroem(gamma=0.1, n_components=20, random_state=0)),
    "discriminants": GraphEmbedding(2, intrinsic="within", penalty="between"),
    "multiple": GraphEmbedding(2, intrinsic="within", penalty=1e-9 * BETWEEN),
    "sum": GraphEmbedding(2, intrinsic="knn", penalty=BETWEEN + 0.5 * BETWEEN),
    "MMDA": MMDA(2),
    "WSVDA": WSVDA(2),
    "LSVA": LSVA(2, kernel="rbf"),
}


def copies_in_other_orders(n_classes, seed, shift):
    """Every class has the same rows, in an order of its own: sums of them differ by rounding."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((24, 4)) * np.array([1.0, 3.0, 0.2, 1.0])
    rows = rows @ np.linalg.qr(rng.standard_normal((4, 4)))[0] + shift * rng.standard_normal(4)
    X = np.vstack([rows[rng.permutation(24)] for _ in range(n_classes)])
    order = rng.permutation(24 * n_classes)
    return X[order], np.repeat(np.arange(n_classes), 24)[order]


@pytest.mark.parametrize("shift", [0.0, 1.0, 1e3])
@pytest.mark.parametrize("name", EQUAL_MEANS)
def test_class_means_that_differ_by_rounding_leave_no_direction(name, shift):
    for seed in range(4):
        for n_classes in (2, 3):
            X, y = copies_in_other_orders(n_classes, seed, shift)
            with pytest.raises(NoDirectionError):
                clone(EQUAL_MEANS[name]).fit(X, y)


@pytest.mark.parametrize("shift", [0.0, 1e3])
@pytest.mark.parametrize("model", [LDA(), KDA(shrinkage=1e-6)], ids=str)
def test_two_equal_means_of_three_leave_one_direction(model, shift):
    for seed in range(4):
        X, y = copies_in_other_orders(3, seed, shift)
        X[y == 2] += 1.0
        assert clone(model).fit(X, y).n_components_ == 1


def test_a_small_difference_of_means_is_a_direction():
    """A thousandth of the spread is more than rounding, whatever the shift."""
    for seed in range(4):
        X, y = copies_in_other_orders(2, seed, 1e3)
        X[y == 1] += 1e-3
        assert LDA().fit(X, y).n_components_ == 1


def test_a_penalty_that_joins_copies_only_leaves_no_direction():
    """Differences of copies are 0; with unequal weights, only up to rounding."""
    for seed in range(4):
        X, _ = copies_in_other_orders(4, seed, 1.0)
        weights = np.random.default_rng(seed).uniform(0.1, 1.0, (len(X), len(X)))
        joined = (X[:, None] == X[None]).all(axis=2) & ~np.eye(len(X), dtype=bool)
        graph = PrecomputedGraph((weights + weights.T) * joined)
        with pytest.raises(NoDirectionError):
            GraphEmbedding(2, intrinsic="total", penalty=graph).fit(X)
