"""TwinSVC: certified optima, both losses, costs, and rows that no plane describes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import cross_val_score
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from marginfold import ExactKernel, TwinSVC
from marginfold.errors import InvalidParameterError, UncertifiedWarning

WINE, WINE_Y = load_wine(return_X_y=True)
X, Y = scale(WINE)[::2], WINE_Y[::2]
TWO = Y < 2
RBF = ExactKernel("rbf", gamma=0.05)
LOSSES = pytest.mark.parametrize("loss", ["hinge", "least_squares"])
KERNELS = pytest.mark.parametrize("kernel", ["linear", RBF], ids=["linear", "rbf"])
COSTS = pytest.mark.parametrize("C", [1e-3, 1.0, 100.0])


def parts(model, rows, labels, k, ridge):
    """Return P + ridge I and the extended rows of the rest (raw units)."""
    H = np.column_stack([model.feature_map_.transform(rows), np.ones(len(rows))])
    own = H[labels == k]
    return own.T @ own + ridge * np.eye(H.shape[1]), H[labels != k]


def objective(metric, rest, C, loss, v):
    slack = 1 + rest @ v
    if loss == "hinge":
        return v @ metric @ v / 2 + C * np.maximum(0, slack).sum()
    return v @ metric @ v / 2 + C / 2 * (slack**2).sum()


def best_length(metric, rest, C, loss, direction):
    """Return the smallest objective along a ray: fitted planes are known up to their length."""
    scales = np.concatenate([np.geomspace(1e-6, 1e6, 4000), [0.0]])
    values = [objective(metric, rest, C, loss, t * direction) for t in scales]
    t = scales[int(np.argmin(values))]
    found = minimize(
        lambda s: objective(metric, rest, C, loss, s[0] * direction),
        [t],
        method="Nelder-Mead",
        options={"xatol": 1e-14 * max(t, 1e-9), "fatol": 1e-14, "maxiter": 2000},
    )
    return min(found.fun, min(values))


# --------------------------------------------------------------------------------------------
# Optima
# --------------------------------------------------------------------------------------------


@KERNELS
@COSTS
def test_hinge_planes_reach_the_dual_bound(kernel, C):
    """Any dual point bounds the optimum from below: L-BFGS-B finds one that meets our planes."""
    ridge = 0.5
    options = {"normalize": False, "kernel": kernel, "multiclass": "one_vs_rest"}
    model = TwinSVC(C1=C, ridge=ridge, loss="hinge", **options).fit(X, Y)
    for k in range(3):
        metric, rest = parts(model, X, Y, k, ridge)
        U = -scipy.linalg.solve_triangular(np.linalg.cholesky(metric), rest.T, lower=True).T
        bound = minimize(
            lambda a, U=U: (U.T @ a) @ (U.T @ a) / 2 - a.sum(),
            np.full(len(U), C / 2),
            jac=lambda a, U=U: U @ (U.T @ a) - 1,
            bounds=[(0, C)] * len(U),
            method="L-BFGS-B",
            options={"maxiter": 5000, "maxfun": 10000, "ftol": 1e-15, "gtol": 1e-9},
        )
        v = np.append(model.normals_[k], model.offsets_[k])
        reached = best_length(metric, rest, C, "hinge", v)
        assert reached == pytest.approx(-bound.fun, rel=2e-5)
        assert reached >= -bound.fun * (1 - 1e-9)


@KERNELS
@COSTS
def test_least_squares_planes_solve_the_normal_equations(kernel, C):
    options = {"normalize": False, "kernel": kernel, "multiclass": "one_vs_rest"}
    model = TwinSVC(C1=C, ridge=0.5, loss="least_squares", **options).fit(X, Y)
    for k in range(3):
        metric, rest = parts(model, X, Y, k, 0.5)
        v = np.linalg.solve(metric + C * rest.T @ rest, -C * rest.sum(axis=0))
        v /= np.linalg.norm(v[:-1])
        side = -np.sign((rest @ v).sum())
        assert_allclose(model.normals_[k], side * v[:-1], atol=1e-7)
        assert_allclose(model.offsets_[k], side * v[-1], atol=1e-7)


@pytest.mark.parametrize("C", [1e-6, 1e-2, 1.0, 1e3, 1e6])
@KERNELS
def test_gaps_are_certified(C, kernel):
    model = TwinSVC(C1=C, kernel=kernel, loss="hinge").fit(X, Y)
    assert model.gap_.shape == (6,)
    assert (model.gap_ >= 0).all()
    assert model.gap_.max() <= model.tol
    assert model.n_iter_ >= 1
    squares = TwinSVC(C1=C, kernel=kernel, loss="least_squares").fit(X, Y)
    assert_array_equal(squares.gap_, 0.0)


def test_a_tolerance_out_of_reach_is_confessed():
    with pytest.warns(UncertifiedWarning, match="TwinSVC: certified to"):
        model = TwinSVC(C1=37.0, loss="hinge", tol=1e-300).fit(X, Y)
    assert model.gap_.max() < 1e-9


def test_by_hand_in_one_dimension():
    """Rows at -1 (own) and 1 (rest), equal weights: v = (w, b) by symmetry and calculus.

    Own h = (-1, 1), rest h = (1, 1), least squares, C = 1, ridge d: with s = w + b, t = b - w,
    minimise t^2 / 2 + (1 + s)^2 / 2 + d (s^2 + t^2) / 4, so t = 0 and s = -1 / (1 + d / 2).
    """
    model = TwinSVC(loss="least_squares", ridge=0.2, normalize=False).fit([[-1.0], [1.0]], [0, 1])
    assert_allclose(model.coef_[:, 0], [-1.0, 1.0])
    assert_allclose(model.intercept_, [-1.0, -1.0], atol=1e-12)
    assert_allclose(model.distances([[-1.0], [1.0], [0.0]]), [[0, 2], [2, 0], [1, 1]], atol=1e-12)


@LOSSES
def test_tiny_costs_leave_the_direction_of_the_mean_of_the_rest(loss):
    """No row reaches the margin: v is -C (P + d I)^-1 sum_rest h for both losses."""
    options = {"normalize": False, "multiclass": "one_vs_rest"}
    model = TwinSVC(C1=1e-9, ridge=0.5, loss=loss, **options).fit(X, Y)
    for k in range(3):
        metric, rest = parts(model, X, Y, k, 0.5)
        v = -np.linalg.solve(metric, rest.sum(axis=0))
        v /= np.linalg.norm(v[:-1])
        assert_allclose(model.normals_[k] * np.sign(model.normals_[k] @ v[:-1]), v[:-1], atol=1e-6)


# --------------------------------------------------------------------------------------------
# Costs
# --------------------------------------------------------------------------------------------


@LOSSES
@KERNELS
def test_each_of_two_classes_has_its_cost(loss, kernel):
    """C1 belongs to the plane of classes_[0], C2 to that of classes_[1]."""
    rows, labels = X[TWO], np.where(Y[TWO] == 0, "a", "b")
    options = {"loss": loss, "kernel": kernel}
    both = TwinSVC(C1=1e-3, C2=5.0, **options).fit(rows, labels)
    first, second = (TwinSVC(C1=C, **options).fit(rows, labels) for C in (1e-3, 5.0))
    assert_allclose(both.distances(X)[:, 0], first.distances(X)[:, 0], atol=1e-8)
    assert_allclose(both.distances(X)[:, 1], second.distances(X)[:, 1], atol=1e-8)
    assert np.abs(first.distances(X) - second.distances(X)).max() > 1e-3


@LOSSES
def test_names_of_two_classes_swap_planes_and_costs(loss):
    rows, labels = X[TWO], Y[TWO]
    plain = TwinSVC(C1=0.1, C2=5.0, loss=loss).fit(rows, labels).distances(X)
    swapped = TwinSVC(C1=5.0, C2=0.1, loss=loss).fit(rows, 1 - labels).distances(X)
    assert_allclose(swapped[:, ::-1], plain, atol=1e-8)


@LOSSES
def test_the_second_cost_is_the_first_by_default_and_for_several_classes(loss):
    two = [TwinSVC(C1=0.3, C2=C, loss=loss).fit(X[TWO], Y[TWO]).distances(X) for C in (None, 0.3)]
    assert_array_equal(*two)
    three = [TwinSVC(C1=0.3, C2=C, loss=loss).fit(X, Y).distances(X) for C in (None, 50.0)]
    assert_array_equal(*three)


@LOSSES
def test_a_factor_of_everything_changes_nothing(loss):
    """Weights times t with ridge times t in raw units: the objective times t."""
    weights = 1.0 + np.arange(len(X)) % 2
    plain = TwinSVC(loss=loss, normalize=False, ridge=0.1).fit(X, Y, sample_weight=weights)
    heavy = TwinSVC(loss=loss, normalize=False, ridge=100.0).fit(X, Y, sample_weight=1e3 * weights)
    assert_allclose(heavy.distances(X), plain.distances(X), atol=1e-7)
    normalised = [
        TwinSVC(loss=loss).fit(X, Y, sample_weight=t * weights).distances(X) for t in (1.0, 1e3)
    ]
    assert_allclose(*normalised, atol=1e-7)


# --------------------------------------------------------------------------------------------
# Use
# --------------------------------------------------------------------------------------------


@LOSSES
def test_breast_cancer(loss):
    rows, labels = load_breast_cancer(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), TwinSVC(loss=loss))
    assert cross_val_score(pipeline, rows, labels, cv=4).mean() > 0.94


@KERNELS
def test_the_loss_is_the_hinge_for_the_linear_kernel_alone(kernel):
    loss = "hinge" if kernel == "linear" else "least_squares"
    found, expected = (TwinSVC(kernel=kernel, loss=name).fit(X, Y) for name in ("auto", loss))
    assert_array_equal(found.normals_, expected.normals_)


@KERNELS
def test_a_class_of_wide_spread_does_not_lose_its_rows_to_a_narrow_one(kernel):
    """By distance a row belongs to the plane with the wider margin, wherever it lies."""
    rng = np.random.default_rng(0)
    narrow = rng.normal([0.0, 0.0], [0.05, 1.0], (200, 2))
    wide = rng.normal([3.0, 0.0], [1.0, 1.0], (200, 2))
    rows, labels = np.vstack([narrow, wide]), np.repeat([0, 1], 200)
    model = TwinSVC(kernel=kernel, loss="hinge").fit(rows, labels)
    by_distance = clone(model).set_params(measure="distance").fit(rows, labels)
    assert model.score(rows, labels) >= by_distance.score(rows, labels)
    heights = model.distances(rows) / model.margins_
    values = model.decision_function(rows)
    assert_allclose(values, heights[:, 0] - heights[:, 1], atol=1e-12)


def test_digits_by_least_squares_and_a_kernel():
    rows, labels = load_digits(return_X_y=True)
    model = TwinSVC(loss="least_squares", kernel="rbf").fit(rows[:450] / 16, labels[:450])
    assert model.score(rows[450:850] / 16, labels[450:850]) > 0.9


def test_fewer_coordinates_are_nearly_as_good():
    rows, labels = load_digits(return_X_y=True)
    kernel = ExactKernel("rbf", rank=100)
    model = TwinSVC(loss="least_squares", kernel=kernel).fit(rows[:450] / 16, labels[:450])
    assert model.score(rows[450:850] / 16, labels[450:850]) > 0.87
    assert model.normals_.shape == (90, 100)


@LOSSES
def test_one_against_one_and_one_against_the_rest(loss):
    pairs = OneVsOneClassifier(TwinSVC(loss=loss)).fit(X, Y)
    assert len(pairs.estimators_) == 3
    assert pairs.score(X, Y) > 0.97
    first = TwinSVC(loss=loss).fit(X[TWO], Y[TWO])
    assert_allclose(
        pairs.estimators_[0].decision_function(X), first.decision_function(X), atol=1e-9
    )
    assert OneVsRestClassifier(TwinSVC(loss=loss)).fit(X, Y).score(X, Y) > 0.9


@LOSSES
def test_two_fits_are_equal_to_the_last_bit(loss):
    first, second = (TwinSVC(loss=loss, kernel=RBF).fit(X, Y) for _ in range(2))
    assert_array_equal(first.normals_, second.normals_)
    assert_array_equal(first.offsets_, second.offsets_)


@LOSSES
def test_separable_rows_are_met_at_their_distance(loss):
    """Two parallel lines of rows: each plane is one of them."""
    t = np.linspace(-1, 1, 20)
    rows = np.vstack([np.column_stack([t, 0 * t]), np.column_stack([t, 0 * t + 3.0])])
    labels = np.repeat([0, 1], 20)
    model = TwinSVC(loss=loss, ridge=1e-8, C1=100.0).fit(rows, labels)
    assert_allclose(np.abs(model.coef_), [[0, 1], [0, 1]], atol=1e-3)
    assert_allclose(model.distances(rows), np.abs(rows[:, 1:] - [[0.0, 3.0]]), atol=1e-2)


@pytest.mark.parametrize(
    "parameters",
    [
        {"C1": 0.0},
        {"C1": -1},
        {"C2": 0.0},
        {"C2": "C1"},
        {"ridge": "none"},
        {"loss": "squared"},
        {"measure": "angle"},
        {"tol": 0.0},
    ],
    ids=str,
)
def test_parameters_out_of_range(parameters):
    model = clone(TwinSVC()).set_params(**parameters)
    with pytest.raises(InvalidParameterError, match=next(iter(parameters))):
        model.fit(X, Y)
