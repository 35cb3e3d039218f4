"""LDA and KDA: scikit-learn's, shrinkage, few rows, classes of one row or of copies."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose
from scipy.stats import ortho_group
from sklearn.covariance import ledoit_wolf_shrinkage, shrunk_covariance
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import scale

from marginfold import KDA, LDA, ExactKernel
from marginfold.errors import (
    ExhaustedWarning,
    InvalidInputError,
    InvalidParameterError,
    NoDirectionError,
)

WINE, WINE_Y = load_wine(return_X_y=True)
IRIS, IRIS_Y = load_iris(return_X_y=True)
DATA = {
    "iris": (IRIS, IRIS_Y),
    "raw wine": (WINE, WINE_Y),
    "wine": (scale(WINE), WINE_Y),
    "two classes": (scale(WINE)[WINE_Y < 2], WINE_Y[WINE_Y < 2]),
}
EVERY_DATA = pytest.mark.parametrize("name", DATA)


def class_centred(X, y):
    return np.concatenate([X[y == label] - X[y == label].mean(axis=0) for label in np.unique(y)])


def assert_same_up_to_sign(found, expected, atol):
    signs = np.sign((found * expected).sum(axis=0))
    assert_allclose(found * signs, expected, atol=atol)


def smallest_cosine(A, B):
    """Return the cosine of the largest angle between the spans of centred scores."""
    return np.cos(scipy.linalg.subspace_angles(A - A.mean(axis=0), B - B.mean(axis=0)).max())


# --------------------------------------------------------------------------------------------
# scikit-learn
# --------------------------------------------------------------------------------------------


@EVERY_DATA
def test_the_eigen_solver_of_scikit_learn_has_the_same_scores(name):
    """Both have within-class covariance 1, divided by n: not even the scale differs."""
    X, y = DATA[name]
    reference = LinearDiscriminantAnalysis(solver="eigen").fit(X, y).transform(X)
    found = LDA(shrinkage=1e-12).fit(X, y).transform(X)
    expected = reference[:, : found.shape[1]] - reference.mean(axis=0)[: found.shape[1]]
    assert_same_up_to_sign(found, expected, atol=1e-4)


@EVERY_DATA
def test_the_svd_solver_of_scikit_learn_has_the_same_scores_up_to_one_factor(name):
    """It divides by n or, in older versions, by n minus the number of classes."""
    X, y = DATA[name]
    reference = LinearDiscriminantAnalysis().fit(X, y).transform(X)
    found = LDA(shrinkage=1e-12).fit(X, y).transform(X)
    factor = np.linalg.norm(reference) / np.linalg.norm(found)
    n, c = len(y), len(np.unique(y))
    assert np.sqrt((n - c) / n) - 1e-5 < factor < 1 + 1e-5
    assert_same_up_to_sign(factor * found, reference, atol=1e-4)


def test_raw_wine_with_the_default_is_close_to_no_shrinkage():
    """Variances over seven decades: 1e-8 of their mean is felt, but hardly."""
    reference = LinearDiscriminantAnalysis().fit(WINE, WINE_Y).transform(WINE)
    found = LDA().fit(WINE, WINE_Y).transform(WINE)
    assert smallest_cosine(found, reference) > 0.999


@EVERY_DATA
@pytest.mark.parametrize("shrinkage", [1e-3, 0.1, 0.5, 0.9])
def test_shrinkage_is_that_of_the_covariance(name, shrinkage):
    """S_B v = mu ((1 - s) S_W + s tr(S_W) / d I)v, with S_W of scikit-learn."""
    X, y = DATA[name]
    rows = class_centred(X, y)
    S_W = shrunk_covariance(rows.T @ rows / len(rows), shrinkage)
    centred = X - X.mean(axis=0)
    S_B = (centred.T @ centred - rows.T @ rows) / len(rows)
    c = len(np.unique(y))
    values, V = scipy.linalg.eigh(S_B, S_W)
    values, V = values[::-1][: c - 1], V[:, ::-1][:, : c - 1]
    model = LDA(shrinkage=shrinkage).fit(X, y)
    assert_allclose(model.eigenvalues_, (1 - shrinkage) * values, rtol=1e-7)
    # v'(S_W + rho I)v = 1, while the shrunk S_W is (1 - s) times that
    assert_same_up_to_sign(model.transform(X) / np.sqrt(1 - shrinkage), centred @ V, atol=1e-6)


@EVERY_DATA
def test_automatic_shrinkage_is_the_estimate_for_rows_about_class_means(name):
    X, y = DATA[name]
    expected = ledoit_wolf_shrinkage(class_centred(X, y), assume_centered=True)
    model = LDA(shrinkage="auto").fit(X, y)
    assert model.shrinkage_ == pytest.approx(expected, rel=1e-8)
    fixed = LDA(shrinkage=float(expected)).fit(X, y)
    assert_allclose(model.transform(X), fixed.transform(X), atol=1e-7)


def test_automatic_shrinkage_with_more_features_than_rows():
    rng = np.random.default_rng(0)
    y = np.arange(24) % 3
    X = rng.standard_normal((24, 90)) * np.linspace(0.2, 3, 90)
    expected = ledoit_wolf_shrinkage(class_centred(X, y), assume_centered=True)
    assert LDA(shrinkage="auto").fit(X, y).shrinkage_ == pytest.approx(expected, rel=1e-8)


def test_shrinkage_is_what_is_asked_for():
    assert LDA(shrinkage=0.25).fit(IRIS, IRIS_Y).shrinkage_ == 0.25


# --------------------------------------------------------------------------------------------
# Discriminant directions
# --------------------------------------------------------------------------------------------


def test_two_gaussians_by_hand():
    """The direction is S_W^-1 (m_1 - m_0)."""
    rng = np.random.default_rng(1)
    y = np.arange(80) % 2
    X = rng.standard_normal((80, 3)) @ rng.standard_normal((3, 3)) + np.outer(y, [1.0, 2.0, -1.0])
    model = LDA(shrinkage=1e-12).fit(X, y)
    rows = class_centred(X, y)
    normal = np.linalg.solve(rows.T @ rows, X[y == 1].mean(axis=0) - X[y == 0].mean(axis=0))
    found = model.components_[0]
    cosine = found @ normal / np.linalg.norm(found) / np.linalg.norm(normal)
    assert abs(cosine) == pytest.approx(1.0, abs=1e-9)


@EVERY_DATA
@pytest.mark.parametrize("model", [LDA, KDA])
def test_there_are_at_most_classes_minus_one(name, model):
    X, y = DATA[name]
    c = len(np.unique(y))
    assert model().fit(X, y).n_components_ == c - 1
    with pytest.warns(ExhaustedWarning, match=f"found {c - 1} of 10"):
        assert model(10).fit(X, y).n_components_ == c - 1
    assert model(1).fit(X, y).n_components_ == 1


@pytest.mark.parametrize("shrinkage", [1e-10, 1e-8, 1e-3, "auto"])
@pytest.mark.parametrize("spoil", ["copied", "constant", "collinear", "badly scaled"])
def test_spoiled_columns_add_no_direction(spoil, shrinkage):
    X, rng = scale(WINE), np.random.default_rng(0)
    X = {
        "copied": np.column_stack([X, X[:, :6]]),
        "constant": np.column_stack([X, np.full((178, 2), 1e5)]),
        "collinear": np.column_stack([X, X @ rng.standard_normal((13, 6))]),
        "badly scaled": X * 10.0 ** np.linspace(-4, 4, 13),
    }[spoil]
    model = LDA(shrinkage=shrinkage).fit(X, WINE_Y)
    scores = model.transform(X)
    assert scores.shape == (178, 2)
    assert np.abs(scores).max() < 100


def test_affine_maps_of_the_features_change_nothing_without_shrinkage():
    X = scale(WINE)
    A = ortho_group.rvs(13, random_state=0) * np.linspace(0.5, 2, 13)
    first, second = (
        LDA(shrinkage=1e-12).fit(rows, WINE_Y).transform(rows) for rows in (X, X @ A + 5.0)
    )
    assert_same_up_to_sign(first, second, atol=1e-6)


def test_with_few_rows_the_classes_collapse():
    """A small shrinkage is null-space discriminant analysis: the rows of a class coincide."""
    rng = np.random.default_rng(2)
    y = np.arange(21) % 3
    X = rng.standard_normal((21, 80))
    scores = LDA(shrinkage=1e-8).fit(X, y).transform(X)
    spread = np.abs(class_centred(scores, y)).max()
    distance = np.linalg.norm(scores[:1] - scores[1:3], axis=1).min()
    assert spread < 1e-6 * distance


@pytest.mark.parametrize("model", [LDA(), KDA()], ids=str)
def test_a_class_of_one_row_has_a_direction_too(model):
    X = np.vstack([scale(WINE), np.full((1, 13), 4.0)])
    y = np.append(WINE_Y, 3)
    model.fit(X, y)
    assert model.n_components_ == 3
    scores = model.transform(X)
    others = np.linalg.norm(scores[-1] - scores[:-1], axis=1)
    assert others.min() > 1e-3


@pytest.mark.parametrize("model", [LDA(), KDA()], ids=str)
@pytest.mark.parametrize("copies", [1, 4])
def test_classes_of_single_points_have_no_within_scatter(model, copies):
    """Integers, whose copies have no rounding errors."""
    X = np.repeat([[0.0, 0.0, 1.0], [1.0, 0.0, 2.0], [5.0, 5.0, 5.0]], copies, axis=0)
    with pytest.raises(InvalidInputError, match="no scatter"):
        model.fit(X, np.repeat([0, 1, 2], copies))


def test_rounding_is_no_within_scatter():
    X = np.repeat(WINE[[0, 60, 150]], 5, axis=0)
    with pytest.raises(InvalidInputError, match="no scatter"):
        LDA().fit(X, np.repeat([0, 1, 2], 5))


@pytest.mark.parametrize("model", [LDA(), KDA()], ids=str)
def test_equal_class_means_leave_no_direction(model):
    """The rows of the second class come in another order, so that the means differ by rounding."""
    X = scale(WINE)
    X = np.vstack([X, X[np.random.default_rng(0).permutation(178)]])
    with pytest.raises(NoDirectionError, match="means of all classes"):
        model.fit(X, np.repeat([0, 1], 178))


@pytest.mark.parametrize("model", [LDA(shrinkage=0.1), KDA(shrinkage=0.1)], ids=str)
def test_copies_of_all_rows_change_nothing(model):
    X, copies = scale(WINE), 2
    plain = model.fit(X, WINE_Y).transform(X)
    repeated = model.fit(np.tile(X, (copies, 1)), np.tile(WINE_Y, copies)).transform(X)
    assert_allclose(repeated, plain, atol=1e-7)


# --------------------------------------------------------------------------------------------
# Labels
# --------------------------------------------------------------------------------------------


def test_unlabelled_rows_only_move_the_mean_of_the_linear_map():
    """The directions are those of the labelled rows; the ridge sees as many dimensions."""
    X = scale(WINE)
    y = np.where(np.arange(178) % 3, WINE_Y, -1)
    with_unknown = LDA(unlabeled=-1).fit(X, y)
    without = LDA().fit(X[y >= 0], y[y >= 0])
    cosines = np.einsum(
        "ij,ij->i",
        with_unknown.components_ / np.linalg.norm(with_unknown.components_, axis=1)[:, None],
        without.components_ / np.linalg.norm(without.components_, axis=1)[:, None],
    )
    assert_allclose(np.abs(cosines), 1.0, atol=1e-9)
    assert_allclose(with_unknown.mean_, X.mean(axis=0), atol=1e-12)
    assert list(with_unknown.classes_) == [0, 1, 2]


@pytest.mark.parametrize("weights", [1.0, 2.0])
def test_a_marked_class_is_a_class_without_the_marker(weights):
    y = np.where(WINE_Y == 2, -1, WINE_Y)
    model = LDA().fit(scale(WINE), y, sample_weight=np.full(178, weights))
    assert list(model.classes_) == [-1, 0, 1]
    assert model.n_components_ == 2


def test_automatic_shrinkage_leaves_unlabelled_rows_out():
    X = scale(WINE)
    y = np.where(np.arange(178) % 3, WINE_Y, -1)
    expected = ledoit_wolf_shrinkage(class_centred(X[y >= 0], y[y >= 0]), assume_centered=True)
    found = LDA(shrinkage="auto", unlabeled=-1).fit(X, y).shrinkage_
    assert found == pytest.approx(expected, rel=1e-8)


# --------------------------------------------------------------------------------------------
# Kernels and use
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shrinkage", [1e-6, 0.1])
def test_the_linear_kernel_is_the_linear_map(shrinkage):
    X = scale(WINE)
    kernel = LDA(shrinkage=shrinkage, kernel=ExactKernel("linear")).fit(X, WINE_Y)
    assert_allclose(
        kernel.transform(X), LDA(shrinkage=shrinkage).fit(X, WINE_Y).transform(X), atol=1e-6
    )


def test_rings_that_no_line_parts():
    rng = np.random.default_rng(0)
    y = np.arange(150) % 3
    angle, radius = rng.uniform(0, 2 * np.pi, 150), 1.0 + y + 0.1 * rng.standard_normal(150)
    X = np.column_stack([np.cos(angle), np.sin(angle)]) * radius[:, None]
    nearest = NearestCentroid()
    linear, kernel = (
        cross_val_score(make_pipeline(model, nearest), X, y, cv=5).mean()
        for model in (LDA(), KDA(kernel=ExactKernel("rbf", gamma=0.5)))
    )
    assert kernel > 0.95 > linear + 0.3


def test_digits():
    X, y = load_digits(return_X_y=True)
    model = make_pipeline(LDA(shrinkage="auto"), KNeighborsClassifier(5)).fit(X[::2], y[::2])
    assert model.score(X[1::2], y[1::2]) > 0.94


@pytest.mark.parametrize("shrinkage", [0.0, 1.0, -0.1, 1.5, "ledoit", None])
@pytest.mark.parametrize("model", [LDA, KDA])
def test_shrinkage_out_of_range(model, shrinkage):
    with pytest.raises(InvalidParameterError, match="shrinkage"):
        model(shrinkage=shrinkage).fit(IRIS, IRIS_Y)
