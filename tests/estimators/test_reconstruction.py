"""From scores back to rows: every kind of reconstruction against its definition."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.ensemble import RandomForestRegressor
from sklearn.kernel_approximation import Nystroem
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import Ridge
from sklearn.neighbors import KNeighborsRegressor
from sklearn.neural_network import MLPRegressor
from sklearn.preprocessing import scale

from marginfold import KDA, LDA, LPP, LSVA, MMDA, NPE, SVMPCA, WSVDA, ExactKernel, GraphEmbedding
from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.estimators.projection import AffineSubspace, LeastSquares, least_norm

WINE, Y = load_wine(return_X_y=True)
X = scale(WINE)[::2]
Y = Y[::2]
WEIGHTS = 1.0 + np.arange(len(X)) % 3
RBF = ExactKernel("rbf", gamma=0.05)
METHODS = {
    "SVMPCA": SVMPCA(4),
    "MMDA": MMDA(3),
    "LSVA": LSVA(3, scaling="margin"),
    "WSVDA": WSVDA(2),
    "LDA": LDA(),
    "LPP": LPP(4),
    "NPE": NPE(4),
    "PCA": GraphEmbedding(3, intrinsic=None, penalty="total"),
}
EVERY_METHOD = pytest.mark.parametrize("model", METHODS.values(), ids=METHODS)


def fitted(model, rows=X, **parameters):
    return clone(model).set_params(**parameters).fit(rows, Y)


# --------------------------------------------------------------------------------------------
# reconstruct=None: the affine subspace
# --------------------------------------------------------------------------------------------


@EVERY_METHOD
def test_there_and_back_again_keeps_the_scores(model):
    model = fitted(model)
    scores = np.random.default_rng(0).standard_normal((7, model.n_components_))
    assert_allclose(model.transform(model.inverse_transform(scores)), scores, atol=1e-10)


@EVERY_METHOD
def test_the_point_is_the_nearest_to_the_mean(model):
    """It differs from the mean by a combination of the directions, so every other is longer."""
    model = fitted(model)
    scores = model.transform(X)
    rows = model.inverse_transform(scores) - model.mean_
    mixture = np.linalg.lstsq(model.components_.T, rows.T, rcond=None)[0]
    assert_allclose(model.components_.T @ mixture, rows.T, atol=1e-9)
    pinv = np.linalg.pinv(model.components_) @ np.diag(_factors(model)) @ scores.T
    assert_allclose(rows, pinv.T, atol=1e-9)


def _factors(model):
    """components_ are unit vectors where the scores have the length of the margin."""
    margin = getattr(model, "scaling", "") == "margin"
    return 1 / model.norms_ if margin else np.ones(model.n_components_)


@pytest.mark.parametrize(
    "model", [SVMPCA(4), MMDA(3, deflation="orthogonal")], ids=["SVMPCA", "MMDA"]
)
@pytest.mark.parametrize("shape", ["tall", "wide"])
def test_with_orthonormal_directions_it_is_the_orthogonal_projection(model, shape):
    rows = X if shape == "tall" else X @ np.random.default_rng(0).standard_normal((13, 200))
    model = fitted(model, rows)
    W = model.components_.T
    assert_allclose(W.T @ W, np.eye(model.n_components_), atol=1e-10)
    centred = rows - rows.mean(axis=0)
    expected = centred @ W @ W.T + rows.mean(axis=0)
    assert_allclose(model.denoise(rows), expected, atol=1e-9)
    assert_allclose(
        model.reconstruction_error(rows), ((rows - expected) ** 2).sum(axis=1).mean(), rtol=1e-9
    )


@EVERY_METHOD
@pytest.mark.parametrize("chosen", [[0], [1, 0], [1]])
def test_chosen_components_alone_decide(model, chosen):
    model = fitted(model)
    scores = model.transform(X)[:, chosen]
    rows = model.inverse_transform(scores, chosen)
    assert_allclose(model.transform(rows)[:, chosen], scores, atol=1e-9)
    W = model.components_[chosen].T
    mixture = np.linalg.lstsq(W, (rows - model.mean_).T, rcond=None)[0]
    assert_allclose((W @ mixture).T, rows - model.mean_, atol=1e-9)
    assert_allclose(model.denoise(X, chosen), rows)


@pytest.mark.parametrize("kind", [None, "linear", "kernel_ridge", Ridge(0.1)])
def test_the_order_of_components_does_not_matter(kind):
    model = fitted(SVMPCA(4), reconstruct=kind)
    scores, order = model.transform(X), [2, 0, 3, 1]
    assert_allclose(
        model.inverse_transform(scores[:, order], order),
        model.inverse_transform(scores),
        atol=1e-8,
    )


def test_without_bias_the_subspace_passes_through_the_origin():
    model = SVMPCA(2, bias=False).fit(X + 1.0)
    assert_allclose(model.inverse_transform([[0.0, 0.0]]), 0.0, atol=1e-12)


def test_least_norm_by_the_pseudo_inverse():
    rng = np.random.default_rng(1)
    D, scores = rng.standard_normal((6, 3)), rng.standard_normal((5, 3))
    assert_allclose(least_norm(D, scores), scores @ np.linalg.pinv(D), atol=1e-12)
    assert_array_equal(least_norm(D[:, :0], scores[:, :0]), np.zeros((5, 6)))
    subspace = AffineSubspace(D, np.arange(6.0))
    chosen = np.array([2, 0])
    expected = scores[:, :2] @ np.linalg.pinv(D[:, chosen]) + np.arange(6.0)
    assert_allclose(subspace.rebuild(scores[:, :2], chosen), expected, atol=1e-12)


# --------------------------------------------------------------------------------------------
# reconstruct="linear": least squares, 004 eqs. (23) to (28)
# --------------------------------------------------------------------------------------------


def by_least_squares(scores, rows, new, weights=None):
    """Fit x = V z + delta by the textbook and apply it."""
    roots = np.ones(len(rows)) if weights is None else np.sqrt(weights)
    design = np.column_stack([scores, np.ones(len(scores))]) * roots[:, None]
    solution = np.linalg.lstsq(design, rows * roots[:, None], rcond=None)[0]
    return np.column_stack([new, np.ones(len(new))]) @ solution


@pytest.mark.parametrize("kernel", ["linear", RBF, ExactKernel("poly", degree=2)])
@pytest.mark.parametrize("chosen", [None, [0], [2, 0], [1, 3, 2]])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_the_linear_map_has_least_squares(kernel, chosen, weights):
    model = SVMPCA(4, kernel=kernel, reconstruct="linear").fit(X, sample_weight=weights)
    scores = model.transform(X)[:, chosen or [0, 1, 2, 3]]
    expected = by_least_squares(scores, X, scores[:9], weights)
    assert_allclose(model.inverse_transform(scores[:9], chosen), expected, atol=1e-9)


@EVERY_METHOD
def test_no_other_linear_map_has_smaller_errors(model):
    model = fitted(model, reconstruct="linear")
    scores, best = model.transform(X), model.reconstruction_error(X)
    rng = np.random.default_rng(0)
    for _ in range(5):
        change = rng.standard_normal((model.n_components_ + 1, 13))
        moved = model.denoise(X) + 1e-3 * (scores @ change[:-1] + change[-1])
        assert ((X - moved) ** 2).sum(axis=1).mean() > best


@pytest.mark.parametrize("kind", [None, "linear"])
def test_for_principal_components_both_linear_kinds_are_one(kind):
    assert_allclose(
        fitted(SVMPCA(3), reconstruct=kind).denoise(X, [1, 2]),
        fitted(SVMPCA(3)).denoise(X, [1, 2]),
        atol=1e-10,
    )


@pytest.mark.parametrize("spoiled", ["constant", "zero", "repeated"])
def test_scores_without_information_of_their_own(spoiled):
    """Singular moments (E51): the fit is that of the other scores."""
    rng = np.random.default_rng(2)
    scores = rng.standard_normal((30, 2))
    rows = scores @ rng.standard_normal((2, 5)) + rng.standard_normal((30, 5)) + 3.0
    extra = {"constant": np.full(30, 2.0), "zero": np.zeros(30), "repeated": scores[:, 0]}[spoiled]
    learned = LeastSquares.learn(np.column_stack([scores, extra]), rows, np.ones(30))
    found = learned.rebuild(np.column_stack([scores, extra]), np.arange(3))
    assert_allclose(found, by_least_squares(scores, rows, scores), atol=1e-9)


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1e3, 1e6])
def test_units_of_the_rows_pass_through(unit):
    rows = X + 5.0
    plain = SVMPCA(3, reconstruct="linear").fit(rows).denoise(rows)
    moved = SVMPCA(3, reconstruct="linear").fit(unit * rows).denoise(unit * rows)
    assert_allclose(moved / unit, plain, atol=1e-6)


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_extreme_units_of_the_rows_pass_through(unit):
    rows = X + 5.0
    plain = SVMPCA(3, reconstruct="linear").fit(rows).denoise(rows)
    moved = SVMPCA(3, reconstruct="linear").fit(unit * rows).denoise(unit * rows)
    assert_allclose(moved / unit, plain, atol=1e-4)


# --------------------------------------------------------------------------------------------
# Learned maps, 004 eqs. (39) and (40)
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kernel", ["linear", RBF])
@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_kernel_ridge_is_scikit_learn_s(kernel, weights):
    """An rbf kernel as wide as the scores, ridge 0.1, on rows about their mean."""
    model = SVMPCA(3, kernel=kernel, reconstruct="kernel_ridge").fit(X, sample_weight=weights)
    scores = model.transform(X)
    mean = np.average(X, axis=0, weights=weights)
    variance = np.average((scores**2).sum(axis=1), weights=weights)
    ridge = KernelRidge(alpha=0.1, kernel="rbf", gamma=1 / variance)
    ridge.fit(scores, X - mean, sample_weight=weights)
    assert_allclose(model.denoise(X), ridge.predict(scores) + mean, atol=1e-9)


def test_kernel_ridge_by_the_normal_equations():
    model = SVMPCA(3, kernel=RBF, reconstruct="kernel_ridge").fit(X)
    Z, new = model.transform(X), model.transform(X[:5] + 0.1)
    gamma = 1 / (Z**2).sum(axis=1).mean()

    def values(A, B):
        return np.exp(-gamma * ((A[:, None] - B) ** 2).sum(axis=2))

    centred = X - X.mean(axis=0)
    expected = values(new, Z) @ np.linalg.solve(values(Z, Z) + 0.1 * np.eye(len(Z)), centred)
    assert_allclose(model.inverse_transform(new), expected + X.mean(axis=0), atol=1e-9)


@pytest.mark.parametrize("kind", ["linear", "kernel_ridge", KernelRidge(0.3, kernel="rbf")])
@pytest.mark.parametrize("method", ["SVMPCA", "KDA", "LPP"])
def test_a_weight_is_a_number_of_copies(kind, method):
    model = {
        "SVMPCA": SVMPCA(3, kernel=RBF),
        "KDA": KDA(kernel=RBF),
        "LPP": LPP(2, kernel=RBF),
    }[method].set_params(reconstruct=kind)
    copies = np.arange(len(X)) % 3
    weighted = clone(model).fit(X, Y, sample_weight=copies.astype(float))
    repeated = clone(model).fit(np.repeat(X, copies, axis=0), np.repeat(Y, copies))
    assert_allclose(weighted.denoise(X), repeated.denoise(X), atol=1e-7)


@pytest.mark.parametrize(
    "regressor",
    [
        Ridge(1.0),
        KernelRidge(0.3, kernel="rbf", gamma=0.2),
        KNeighborsRegressor(3),
        MLPRegressor(hidden_layer_sizes=(4,), max_iter=30, random_state=0),
    ],
    ids=lambda regressor: type(regressor).__name__,
)
@pytest.mark.filterwarnings("ignore:Stochastic Optimizer")
def test_any_regressor_learns_the_centred_rows(regressor):
    model = SVMPCA(3, kernel=RBF, reconstruct=regressor).fit(X)
    scores, mean = model.transform(X), X.mean(axis=0)
    expected = clone(regressor).fit(scores, X - mean)
    assert_allclose(model.denoise(X), expected.predict(scores) + mean, atol=1e-8)
    part = clone(regressor).fit(scores[:, [2, 0]], X - mean)
    assert_allclose(model.denoise(X, [2, 0]), part.predict(scores[:, [2, 0]]) + mean, atol=1e-8)
    assert not hasattr(regressor, "n_features_in_")


@pytest.mark.parametrize(
    "kind",
    ["linear", "kernel_ridge", Ridge(), KNeighborsRegressor(), RandomForestRegressor(3)],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:A column-vector y")
def test_rows_of_one_feature_stay_rows(kind):
    """Regressors of one target return vectors."""
    line = X[:, :1]
    model = SVMPCA(1, kernel=RBF, reconstruct=kind).fit(line)
    rebuilt = model.denoise(line)
    assert rebuilt.shape == line.shape
    assert model.reconstruction_error(line) < line.var()


@pytest.mark.parametrize("kind", ["linear", "kernel_ridge", Ridge()], ids=str)
@pytest.mark.parametrize("kernel", ["linear", RBF])
@pytest.mark.parametrize("storage", [sp.csr_array, sp.csc_matrix, pd.DataFrame])
def test_storage_does_not_matter(kind, kernel, storage):
    model = SVMPCA(3, kernel=kernel, reconstruct=kind)
    expected = clone(model).fit(X).denoise(X)
    stored = storage(X) if storage is not pd.DataFrame else storage(X).rename(columns=str)
    found = model.fit(stored)
    assert_allclose(found.denoise(stored), expected, atol=1e-9)
    assert found.reconstruction_error(stored) == pytest.approx(
        ((X - expected) ** 2).sum(axis=1).mean()
    )


def test_frames_as_output_leave_rows_arrays():
    frame = pd.DataFrame(X).rename(columns=str)
    model = LDA().set_output(transform="pandas").fit(frame, Y.astype(str))
    assert isinstance(model.transform(frame), pd.DataFrame)
    assert_allclose(model.denoise(frame), LDA().fit(X, Y).denoise(X), atol=1e-10)
    assert_allclose(
        model.inverse_transform(model.transform(frame)), LDA().fit(X, Y).denoise(X), atol=1e-10
    )


# --------------------------------------------------------------------------------------------
# Pre-images
# --------------------------------------------------------------------------------------------


def test_all_components_lead_back_to_the_rows():
    """The image of a training row is its own pre-image."""
    model = SVMPCA(None, kernel=ExactKernel("rbf", gamma=0.5), reconstruct="fixed_point").fit(X)
    assert_allclose(model.denoise(X), X, atol=1e-5)


def test_pre_images_are_those_of_the_projection():
    model = SVMPCA(4, kernel=RBF, reconstruct="fixed_point").fit(X)
    U = model.transform(X[:10]) @ model.directions_.T
    assert_allclose(model.denoise(X[:10]), model.feature_map_.preimages(U), atol=1e-9)


@pytest.mark.parametrize("model", [LDA(kernel=RBF), LPP(2, kernel=RBF), MMDA(2, kernel=RBF)])
def test_pre_images_of_directions_that_are_not_orthonormal_have_the_shortest_image(model):
    model = fitted(model, reconstruct="fixed_point")
    scores = model.transform(X[:6])
    U = scores @ np.linalg.pinv(model.directions_)
    assert_allclose(model.inverse_transform(scores), model.feature_map_.preimages(U), atol=1e-7)


@pytest.mark.parametrize(
    "kernel",
    ["linear", "poly", "laplacian", lambda A, B: A @ B.T, Nystroem(n_components=10)],
    ids=["linear", "poly", "laplacian", "function", "transformer"],
)
def test_fixed_points_are_for_rbf(kernel):
    with pytest.raises(InvalidParameterError, match=r"needs the rbf kernel.*kernel_ridge"):
        SVMPCA(2, kernel=kernel, reconstruct="fixed_point").fit(X)


# --------------------------------------------------------------------------------------------
# Denoising
# --------------------------------------------------------------------------------------------


def sine(n, noise, rng):
    """004 Fig. 4: a sine with noise, and the distance of points to it."""
    t = rng.uniform(-np.pi, np.pi, n)
    return np.column_stack([t, np.sin(t)]) + noise * rng.standard_normal((n, 2))


def distance_to_sine(rows):
    t = np.linspace(-1.5 * np.pi, 1.5 * np.pi, 3000)
    curve = np.column_stack([t, np.sin(t)])
    return np.sqrt(((rows[:, None] - curve) ** 2).sum(axis=2).min(axis=1))


@pytest.mark.parametrize("seed", range(3))
def test_one_score_variable_denoises_a_sine(seed):
    """004 Fig. 4: one score suffices, the one that runs along the curve.

    The paper's is the second, of a kernel whose width it does not state; for a wide one it is the
    first.
    """
    rng = np.random.default_rng(seed)
    train, test = sine(200, 0.1, rng), sine(100, 0.1, rng)
    kernel = ExactKernel("rbf", gamma=0.03)
    model = SVMPCA(2, kernel=kernel, reconstruct="kernel_ridge").fit(train)
    assert np.abs(np.corrcoef(model.scores_[:, 0], train[:, 0])[0, 1]) > 0.9
    for rows in (train, test):
        before = distance_to_sine(rows).mean()
        assert distance_to_sine(model.denoise(rows, [0])).mean() < 0.7 * before


@pytest.mark.parametrize("kind", ["kernel_ridge", "fixed_point"])
def test_a_noisy_circle_becomes_rounder(kind):
    rng = np.random.default_rng(1)
    angle = rng.uniform(0, 2 * np.pi, 150)
    circle = np.column_stack([np.cos(angle), np.sin(angle)])
    noisy = circle + 0.15 * rng.standard_normal(circle.shape)
    model = SVMPCA(4, kernel=ExactKernel("rbf", gamma=0.5), reconstruct=kind).fit(noisy)
    before, after = (np.linalg.norm(rows, axis=1) for rows in (noisy, model.denoise(noisy)))
    assert np.abs(after - after.mean()).mean() < 0.8 * np.abs(before - before.mean()).mean()


# --------------------------------------------------------------------------------------------
# Refusals
# --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["inverse_transform", "denoise", "reconstruction_error"])
@pytest.mark.parametrize("kernel", ["rbf", "precomputed", ExactKernel("linear")])
def test_kernels_without_a_way_back_say_what_to_do(name, kernel):
    model = SVMPCA(2, kernel=kernel).fit(X @ X.T)
    assert not hasattr(model, name)
    with pytest.raises(AttributeError, match=name) as refusal:
        getattr(model, name)
    assert "reconstruct='kernel_ridge'" in str(refusal.value.__cause__)
    assert hasattr(SVMPCA(2, kernel=kernel, reconstruct="linear"), name)


@pytest.mark.parametrize("kind", ["linear", "kernel_ridge", "fixed_point", Ridge()], ids=str)
@pytest.mark.parametrize("model", [SVMPCA(), MMDA(), LDA(), LPP()], ids=str)
def test_a_precomputed_kernel_has_no_rows(model, kind):
    with pytest.raises(InvalidParameterError, match="precomputed kernel has no rows"):
        fitted(model, X @ X.T, kernel="precomputed", reconstruct=kind)


@pytest.mark.parametrize("kind", ["ridge", 3, KernelRidge, np.eye(2), SVMPCA(), True])
@EVERY_METHOD
def test_what_is_no_reconstruction(model, kind):
    with pytest.raises(InvalidParameterError, match="reconstruct must be None"):
        clone(model).set_params(reconstruct=kind).fit(X, Y)


@pytest.mark.parametrize(
    "components", [[], [4], [-1], [0.0], "0", [[0, 1]], [True, False], {0}, [None], ["0"], 4]
)
def test_components_are_numbers_of_components(components):
    model = SVMPCA(4).fit(X)
    with pytest.raises(InvalidInputError, match=r"components must be numbers .* 0 to 3"):
        model.denoise(X, components)


def test_components_are_chosen_once():
    model = SVMPCA(4).fit(X)
    with pytest.raises(InvalidInputError, match="distinct"):
        model.inverse_transform(np.zeros((2, 2)), [1, 1])


@pytest.mark.parametrize("components", [1, np.int64(1), (1,), np.array([1]), range(1, 2)])
def test_components_may_be_written_in_many_ways(components):
    model = SVMPCA(4).fit(X)
    assert_array_equal(model.denoise(X, components), model.denoise(X, [1]))


@pytest.mark.parametrize(("columns", "components"), [(2, None), (5, None), (2, [0]), (4, [0, 1])])
def test_columns_and_components_agree(columns, components):
    model = SVMPCA(4).fit(X)
    with pytest.raises(InvalidInputError, match=f"X has {columns} columns"):
        model.inverse_transform(np.zeros((3, columns)), components)


def test_images_are_finite_tables():
    model = SVMPCA(2).fit(X)
    for wrong in (np.zeros(2), [[np.nan, 0.0]], [[np.inf, 0.0]]):
        with pytest.raises(ValueError, match=r"2D|NaN|infinity"):
            model.inverse_transform(wrong)
