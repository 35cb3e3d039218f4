"""A low-rank kernel wherever an exact one is used: methods, derivatives, pre-images, storage."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.datasets import make_moons
from sklearn.decomposition import KernelPCA
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from marginfold import GEPSVC, GESVC, KDA, LPP, LSVA, MMDA, SVMPCA, WSVDA, TwinSVC
from marginfold.errors import InvalidInputError, MarginfoldWarning
from marginfold.feature_maps import EXACT_ROWS, ExactKernel, LowRankKernel, resolve_feature_map

X, Y = make_moons(120, noise=0.2, random_state=0)
NEW = make_moons(30, noise=0.2, random_state=1)[0]
RNG = np.random.default_rng(8)
EXACT = ExactKernel("rbf", gamma=1.0)
LOSSLESS = LowRankKernel("rbf", gamma=1.0, rank=120)
LOW = LowRankKernel("rbf", gamma=1.0, rank=15)


@parametrize_with_checks([LowRankKernel(), LowRankKernel(rank=5), SVMPCA(kernel=LowRankKernel())])
def test_of_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "method",
    [
        MMDA(2, kernel=EXACT, C=5.0),
        LSVA(2, kernel=EXACT),
        KDA(1, kernel=EXACT),
        GESVC(kernel=EXACT, graph="within"),
    ],
    ids=lambda method: type(method).__name__,
)
def test_without_loss_methods_decide_as_with_the_exact_kernel(method):
    weights = RNG.integers(1, 4, 120)
    low = clone(method).set_params(kernel=LOSSLESS)
    exact, low = (model.fit(X, Y, sample_weight=weights) for model in (method, low))
    if hasattr(method, "decision_function"):
        expected = exact.decision_function(NEW)
        assert_allclose(low.decision_function(NEW), expected, atol=1e-6 * np.abs(expected).max())
    if hasattr(method, "transform"):
        expected = exact.transform(NEW)
        assert_allclose(low.transform(NEW), expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("bias", [True, False])
def test_principal_components_are_those_of_the_exact_kernel(bias):
    exact = SVMPCA(4, kernel=EXACT, bias=bias).fit(X)
    low = SVMPCA(4, kernel=LowRankKernel("rbf", gamma=1.0, rank=60), bias=bias).fit(X)
    assert_allclose(low.eigenvalues_, exact.eigenvalues_, rtol=1e-6)
    assert_allclose(low.explained_variance_ratio_, exact.explained_variance_ratio_, rtol=1e-5)
    assert_allclose(low.transform(NEW), exact.transform(NEW), atol=1e-4)
    if bias:
        pca = KernelPCA(4, kernel="rbf", gamma=1.0).fit(X)
        assert_allclose(low.eigenvalues_, pca.eigenvalues_, rtol=1e-6)


def test_few_pivots_separate_moons():
    rows, classes = make_moons(200, noise=0.2, random_state=1)
    model = make_pipeline(KDA(1, kernel=LOW), KNeighborsClassifier(5)).fit(X, Y)
    assert model.score(rows, classes) > 0.9


def test_eigenvalues_lie_below_the_exact_ones_by_no_more_than_the_residual():
    """A residual that is positive semi-definite only takes away (Weyl)."""
    exact = ExactKernel("rbf", gamma=1.0, center=False).fit(X)
    low = LowRankKernel("rbf", gamma=1.0, center=False, rank=15).fit(X)
    lost = exact.eigenvalues_[:15] - low.eigenvalues_
    assert (lost >= -1e-10).all()
    assert (lost <= low.relative_error_ * low.trace_).all()


def test_a_grid_search_reaches_the_rank():
    low = GESVC(kernel=LowRankKernel("rbf", gamma=1.0))
    search = GridSearchCV(low, {"kernel__rank": [1, 20]}, cv=3).fit(X, Y)
    assert search.best_params_ == {"kernel__rank": 20}
    assert isinstance(search.best_estimator_.feature_map_, LowRankKernel)
    assert isinstance(resolve_feature_map(LOW), LowRankKernel)


# ---------------------------------------------------------------- the functions of a row


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("name", ["linear", "rbf", "poly"])
def test_projections_offsets_and_derivatives(name, center):
    found = LowRankKernel(name, gamma=0.7, rank=12, center=center).fit(X)
    W = RNG.standard_normal((len(found.eigenvalues_), 2))
    assert_allclose(found.project(NEW, W), found.transform(NEW) @ W, atol=1e-8)
    images = found._kernel_matrix(NEW) @ (found.dual_basis_ @ W)
    assert_allclose(found.project(NEW, W), images + found.offsets(W), atol=1e-8)
    step = 1e-5
    for j, shift in enumerate(step * np.eye(2)):
        slope = (found.project(NEW + shift, W) - found.project(NEW - shift, W)) / (2 * step)
        assert_allclose(found.jacobian(NEW, W)[:, :, j], slope, atol=1e-5)


@pytest.mark.parametrize("center", [True, False])
def test_pivots_are_their_own_preimages(center):
    found = LowRankKernel("rbf", gamma=2.0, rank=15, center=center).fit(X + 100)
    pivots = X[found.pivots_] + 100
    assert_allclose(found.preimages(found.transform(pivots)), pivots, atol=1e-5)


def test_preimages_denoise_like_those_of_the_exact_kernel():
    exact = SVMPCA(3, kernel=EXACT, reconstruct="fixed_point").fit(X)
    low = SVMPCA(3, kernel=LowRankKernel("rbf", gamma=1.0, rank=60), reconstruct="fixed_point")
    assert_allclose(low.fit(X).denoise(NEW), exact.denoise(NEW), atol=1e-3)


def test_what_only_named_kernels_have_is_refused():
    found = LowRankKernel("laplacian", rank=10).fit(X)
    with pytest.raises(InvalidInputError, match="no derivative"):
        found.jacobian(NEW, np.eye(len(found.eigenvalues_)))
    with pytest.raises(InvalidInputError, match="rbf"):
        found.preimages(found.transform(NEW))


# ---------------------------------------------------------------- memory and storage


def test_nothing_of_the_size_of_a_kernel_matrix_is_formed():
    rows = RNG.standard_normal((5000, 4))
    tracemalloc.start()
    LowRankKernel("rbf", rank=20).fit(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 0.1 * 8 * 5000**2


def test_a_fitted_map_keeps_pivots_and_small_matrices_only():
    sizes = []
    for n in (2000, 4000):
        found = LowRankKernel("rbf", rank=20).fit(RNG.standard_normal((n, 4)))
        sizes.append(len(pickle.dumps(found)))
        arrays = [np.size(value) for value in vars(found).values()]
        assert max(arrays) == 20 * 20
    assert abs(sizes[1] - sizes[0]) < 1000


def test_copies_of_a_map():
    found = clone(LOW).fit(X)
    again = pickle.loads(pickle.dumps(found))
    assert_allclose(again.transform(NEW), found.transform(NEW), rtol=0)
    assert clone(found).get_params() == found.get_params()
    assert not hasattr(clone(found), "pivots_")


def test_names_and_frames():
    pd = pytest.importorskip("pandas")
    found = clone(LOW).set_output(transform="pandas")
    frame = found.fit_transform(pd.DataFrame(X, columns=["a", "b"]))
    assert list(frame.columns) == [f"lowrankkernel{i}" for i in range(frame.shape[1])]
    assert list(found.feature_names_in_) == ["a", "b"]
    assert isinstance(found.fit_coordinates(X), np.ndarray)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("low", [0, 1])
def test_the_scatter_of_the_fit_is_known(center, low):
    weights = np.random.default_rng(1).integers(low, 4, 120).astype(float)
    fitted = clone(LOW).set_params(center=center)
    Z = fitted.fit_coordinates(X, sample_weight=weights)
    known = fitted.fitted_scatter(weights)
    assert_allclose(known, Z.T @ (weights[:, None] * Z), atol=1e-10 * known.max())


@pytest.mark.parametrize(
    "method",
    [
        MMDA(1, kernel="rbf"),
        WSVDA(1, kernel="laplacian"),
        LSVA(2, kernel="rbf", graph="within"),
        KDA(1),
        LPP(2, kernel="rbf", graph="within"),
        TwinSVC(kernel="rbf", loss="least_squares"),
        GEPSVC(kernel="rbf"),
    ],
    ids=lambda method: type(method).__name__,
)
def test_the_name_of_a_kernel_has_a_low_rank_for_many_rows(method):
    rows, labels = make_moons(5001, noise=0.2, random_state=0)
    found = clone(method).fit(rows, labels)
    given = LowRankKernel(method.kernel, tol=0.05, max_rank=1000)
    wanted = clone(method).set_params(kernel=given).fit(rows, labels)
    assert 0 < found.kernel_error_ == found.feature_map_.relative_error_ <= 0.05
    maps = hasattr(method, "transform")
    answers = [m.transform(NEW) if maps else m.decision_function(NEW) for m in (found, wanted)]
    assert_allclose(*answers, atol=1e-12)
    assert clone(method).fit(X, Y).kernel_error_ == 0
    assert isinstance(clone(method).fit(X, Y).feature_map_, ExactKernel)


def test_only_the_name_of_a_kernel_depends_on_the_number_of_rows():
    many = EXACT_ROWS + 1
    assert isinstance(resolve_feature_map("rbf", many), LowRankKernel)
    for kernel in ("sigmoid", "precomputed", ExactKernel("rbf"), np.dot):
        assert isinstance(resolve_feature_map(kernel, many), ExactKernel)
    assert isinstance(resolve_feature_map("rbf", EXACT_ROWS), ExactKernel)


def test_more_rows_may_have_a_higher_rank():
    limits = [resolve_feature_map("rbf", n).max_rank for n in (6000, 15_000, 60_000)]
    assert limits == [1000, 1500, 2000]


def test_kernel_pca_by_name_is_exact_for_any_number_of_rows():
    rows = make_moons(5100, noise=0.2, random_state=0)[0]
    pca = SVMPCA(2, kernel="rbf").fit(rows)
    assert pca.kernel_error_ == 0
    assert isinstance(pca.feature_map_, ExactKernel)


def test_a_rank_that_nobody_asked_for_is_no_reason_to_warn():
    rows = np.random.default_rng(0).normal(size=(5001, 40))  # no rank up to 1000 is enough
    with warnings.catch_warnings():
        warnings.simplefilter("error", MarginfoldWarning)
        found = KDA(kernel="rbf").fit(rows, rows[:, 0] > 0)
    assert found.kernel_error_ > 0.05
