"""What all classifiers by planes share: distances, decisions, readable planes, degenerate rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import ortho_group
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.exceptions import NotFittedError
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from marginfold import GEPSVC, MRGEPSVC, ExactKernel, NeighborGraph, TwinSVC
from marginfold.errors import ExhaustedWarning, InvalidParameterError

WINE, WINE_Y = load_wine(return_X_y=True)
X, Y = scale(WINE)[::3], WINE_Y[::3]
TWO = Y < 2
RBF = ExactKernel("rbf", gamma=0.05)
MODELS = {
    "GEPSVC": GEPSVC(),
    "GEPSVC dual": GEPSVC(tikhonov="dual"),
    "GEPSVC raw": GEPSVC(normalize=False),
    "MRGEPSVC": MRGEPSVC(),
    "MRGEPSVC numerator": MRGEPSVC(manifold="numerator"),
    "TwinSVC": TwinSVC(loss="hinge"),
    "TwinSVC dual": TwinSVC(loss="hinge", ridge=1e-2, tikhonov="dual"),
    "TwinSVC least squares": TwinSVC(loss="least_squares"),
    "TwinSVC graph": TwinSVC(loss="least_squares", graph=NeighborGraph(5, mode="mutual")),
}
EVERY_MODEL = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
MAIN_MODELS = pytest.mark.parametrize(
    "model",
    [MODELS[name] for name in ("GEPSVC", "MRGEPSVC", "TwinSVC", "TwinSVC least squares")],
    ids=["GEPSVC", "MRGEPSVC", "TwinSVC", "TwinSVC least squares"],
)
MULTICLASS = pytest.mark.parametrize("multiclass", ["one_vs_one", "one_vs_rest"])
KERNELS = pytest.mark.parametrize("kernel", ["linear", RBF], ids=["linear", "rbf"])


def fitted(model, rows=X, labels=Y, weights=None, **parameters):
    return clone(model).set_params(**parameters).fit(rows, labels, sample_weight=weights)


def crossing_lines(n, rng, noise=0.05):
    """Two noisy lines that cross (003 Fig. 5), n rows of each."""
    t, y = rng.uniform(-2, 2, 2 * n), np.arange(2 * n) % 2
    lines = np.where(y[:, None], np.column_stack([t, 1 - t]), np.column_stack([t, t / 2]))
    return lines + noise * rng.standard_normal((2 * n, 2)), y


# --------------------------------------------------------------------------------------------
# Distances and decisions
# --------------------------------------------------------------------------------------------


@EVERY_MODEL
@KERNELS
def test_distances_are_those_to_planes_with_unit_normals(model, kernel):
    model = fitted(model, kernel=kernel)
    assert_allclose(np.linalg.norm(model.normals_, axis=1), 1.0, rtol=1e-12)
    heights = model.feature_map_.transform(X) @ model.normals_.T + model.offsets_
    assert_allclose(model.distances(X), np.abs(heights), atol=1e-9)
    if kernel == "linear":
        assert_allclose(np.linalg.norm(model.coef_, axis=1), 1.0, rtol=1e-12)
        assert_allclose(heights, X @ model.coef_.T + model.intercept_, atol=1e-10)
    else:
        assert not hasattr(model, "coef_")


@EVERY_MODEL
def test_the_foot_of_a_row_is_on_the_plane(model):
    """Going the distance along the normal ends at distance 0."""
    model = fitted(model)
    heights = X @ model.coef_.T + model.intercept_
    for k in range(6):
        feet = X - heights[:, k : k + 1] * model.coef_[k]
        assert_allclose(model.distances(feet)[:, k], 0.0, atol=1e-10)


@EVERY_MODEL
@KERNELS
def test_against_the_rest_several_classes_decide_by_the_nearest_plane(model, kernel):
    labels = np.array(["c", "a", "b"])[Y]
    model = fitted(model, labels=labels, kernel=kernel, multiclass="one_vs_rest")
    heights = _heights(model)
    assert_array_equal(model.decision_function(X), -heights)
    assert_array_equal(model.predict(X), model.classes_[heights.argmin(axis=1)])
    assert list(model.classes_) == ["a", "b", "c"]


@EVERY_MODEL
@KERNELS
def test_two_classes_decide_by_the_difference(model, kernel):
    model = fitted(model, X[TWO], np.where(Y[TWO], "yes", "no"), kernel=kernel)
    heights = _heights(model)
    assert heights.shape == (len(X), 2)
    assert_array_equal(model.decision_function(X), heights[:, 0] - heights[:, 1])
    assert_array_equal(model.predict(X) == "yes", heights[:, 1] < heights[:, 0])


def _heights(model):
    """Distances, those of TwinSVC in units of the margins of its planes."""
    return model.distances(X) / getattr(model, "margins_", 1.0)


@EVERY_MODEL
@KERNELS
@MULTICLASS
def test_the_rest_lies_on_the_negative_side_on_average(model, kernel, multiclass):
    weights = 1.0 + np.arange(len(X)) % 3
    options = {"kernel": kernel, "multiclass": multiclass}
    model = fitted(model, weights=weights, class_weight={0: 2.0, 1: 0.5, 2: 1.0}, **options)
    heights = model.feature_map_.transform(X) @ model.normals_.T + model.offsets_
    weights = weights * np.array([2.0, 0.5, 1.0])[Y]
    for k, plane in enumerate(model.planes_):
        rest = Y != plane.label if plane.opponent is None else Y == plane.opponent
        assert weights[rest] @ heights[rest, k] < 0


@MAIN_MODELS
def test_accuracy_on_standardised_wine(model):
    pipeline = make_pipeline(StandardScaler(), clone(model))
    assert cross_val_score(pipeline, WINE, WINE_Y, cv=3).mean() > 0.75
    pipeline = make_pipeline(StandardScaler(), clone(model).set_params(kernel="rbf"))
    assert cross_val_score(pipeline, WINE, WINE_Y, cv=3).mean() > 0.92


@EVERY_MODEL
@pytest.mark.parametrize("ask", ["predict", "decision_function", "distances"])
def test_before_fit_and_with_other_features(model, ask):
    with pytest.raises(NotFittedError):
        getattr(clone(model), ask)(X)
    with pytest.raises(ValueError, match="features"):
        getattr(fitted(model), ask)(X[:, :4])


def test_planes_before_fit():
    with pytest.raises(NotFittedError):
        _ = GEPSVC().planes_


# --------------------------------------------------------------------------------------------
# Readable planes
# --------------------------------------------------------------------------------------------


@EVERY_MODEL
def test_planes_carry_the_equations(model):
    pairs = fitted(model)
    labels = [(plane.label, plane.opponent) for plane in pairs.planes_]
    assert labels == [(0, 1), (1, 0), (0, 2), (2, 0), (1, 2), (2, 1)]
    assert str(pairs.planes_[3]).startswith("2 against 0: ")
    model = fitted(model, multiclass="one_vs_rest")
    for k, plane in enumerate(model.planes_):
        assert (plane.label, plane.opponent) == (k, None)
        assert_array_equal(plane.normal, model.coef_[k])
        assert plane.offset == model.intercept_[k]
        assert plane.names == tuple(f"x{j}" for j in range(13))


def test_planes_are_printed_with_the_names_of_features():
    rng = np.random.default_rng(0)
    t = rng.uniform(-1, 1, 60)
    frame = pd.DataFrame({"length": t, "width": np.where(np.arange(60) % 2, 2.0, t)})
    model = GEPSVC(ridge=1e-6).fit(frame, np.where(np.arange(60) % 2, "flat", "steep"))
    flat, steep = (str(plane) for plane in model.planes_)
    assert flat in ("'flat': -1 width +2 = 0", "'flat': +1 width -2 = 0")
    assert steep.startswith(("'steep': +0.707 length -0.707", "'steep': -0.707 length +0.707"))


def test_planes_of_a_kernel_are_in_coordinates():
    model = fitted(GEPSVC(), kernel=RBF)
    plane = model.planes_[0]
    assert plane.names[:2] == ("z0", "z1")
    assert_array_equal(plane.normal, model.normals_[0])
    assert " z0 " in str(plane)


def test_small_terms_are_not_printed():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((60, 3)) * [1.0, 1e-3, 1.0]
    rows[:, 1] += np.arange(60) % 2
    model = GEPSVC(ridge=1e-6).fit(rows, np.arange(60) % 2)
    assert "x1" in str(model.planes_[0])
    assert "x0" not in str(model.planes_[0])


# --------------------------------------------------------------------------------------------
# Weights and invariants
# --------------------------------------------------------------------------------------------


@EVERY_MODEL
def test_class_weights_are_sample_weights(model):
    weights = {0: 3.0, 1: 1.0, 2: 0.5}
    by_class = fitted(model, class_weight=weights)
    assert_allclose(by_class.distances(X), _by_sample_weight(model, weights), atol=1e-6)


def _by_sample_weight(model, weights):
    """Sample weights move the mean of the rows too: centre them as without."""
    rows = ExactKernel("linear", center=False)
    factors = np.array([weights[label] for label in Y])
    Z = X - X.mean(axis=0)
    return clone(model).set_params(kernel=rows).fit(Z, Y, sample_weight=factors).distances(Z)


@EVERY_MODEL
def test_balanced_classes_have_equal_weight(model):
    counts = np.bincount(Y)
    weights = {k: len(Y) / (3 * counts[k]) for k in range(3)}
    balanced, given = (fitted(model, class_weight=w) for w in ("balanced", weights))
    assert_allclose(balanced.distances(X), given.distances(X), atol=1e-7)


@EVERY_MODEL
@KERNELS
def test_a_weight_is_a_number_of_copies(model, kernel):
    copies = np.arange(len(X)) % 3
    copies[:3] = 1
    weighted = fitted(model, weights=copies.astype(float), kernel=kernel)
    repeated = fitted(model, np.repeat(X, copies, axis=0), np.repeat(Y, copies), kernel=kernel)
    assert_allclose(weighted.distances(X), repeated.distances(X), atol=1e-6)


@EVERY_MODEL
@KERNELS
def test_rotations_shifts_and_orders_change_nothing(model, kernel):
    Q, order = ortho_group.rvs(13, random_state=0), np.random.default_rng(0).permutation(len(X))
    plain = fitted(model, kernel=kernel).distances(X)
    moved = X @ Q + 100.0
    found = fitted(model, moved[order], Y[order], kernel=kernel).distances(moved)
    assert_allclose(found, plain, atol=1e-6)


@EVERY_MODEL
def test_storage_does_not_matter(model):
    plain = fitted(model).distances(X)
    assert_allclose(fitted(model, sp.csr_array(X)).distances(sp.csr_array(X)), plain, atol=1e-7)
    frame = pd.DataFrame(X).rename(columns=str)
    assert_allclose(fitted(model, frame, pd.Series(Y)).distances(frame), plain, atol=1e-7)


@EVERY_MODEL
def test_a_precomputed_kernel_is_the_kernel(model):
    K = rbf_kernel(X, gamma=0.05)
    if getattr(model, "graph_weight", 0):  # the graph has distances of features, or of the kernel
        model = clone(model).set_params(graph_weight=0.0)
    given, named = fitted(model, K, kernel="precomputed"), fitted(model, kernel=RBF)
    assert_allclose(given.distances(K[:9]), named.distances(X[:9]), atol=1e-7)


@pytest.mark.parametrize("unit", [1e-2, 1e2])
@MAIN_MODELS
def test_normalised_weights_are_free_of_units(model, unit):
    """Rows in centimetres have the predictions of rows in metres."""
    plain = fitted(model).distances(X)
    assert_allclose(fitted(model, unit * X).distances(unit * X) / unit, plain, atol=1e-6)


def test_the_dual_term_serves_long_rows_too():
    """With u for w = Z'u the coordinates are products of rows: the offset is all but forbidden."""
    rng = np.random.default_rng(0)
    y = np.arange(24) % 3
    wide = rng.standard_normal((24, 200)) + 3 * np.eye(3, 200)[y]
    assert TwinSVC(tikhonov="dual").fit(wide, y).score(wide, y) > 0.9


# --------------------------------------------------------------------------------------------
# Degenerate rows
# --------------------------------------------------------------------------------------------


@EVERY_MODEL
@KERNELS
def test_constant_columns_change_nothing(model, kernel):
    rows = np.column_stack([X, np.full((len(X), 2), 0.3)])
    plain = fitted(model, kernel=kernel).distances(X)
    assert_allclose(fitted(model, rows, kernel=kernel).distances(rows), plain, atol=1e-7)


@EVERY_MODEL
def test_more_features_than_rows(model):
    rng = np.random.default_rng(0)
    y = np.arange(24) % 3
    wide = rng.standard_normal((24, 200)) + 3 * np.eye(3, 200)[y]
    model = fitted(model, wide, y)
    if model.tikhonov == "rkhs":
        assert model.score(wide, y) == 1.0
    assert model.coef_.shape == (6, 200)
    assert_allclose(
        np.abs(wide @ model.coef_.T + model.intercept_), model.distances(wide), atol=1e-9
    )


@MAIN_MODELS
def test_a_class_of_one_row(model):
    """GEPSVC puts its plane through it; a twin plane is at least defined."""
    rows, labels = np.vstack([X, np.full((1, 13), 3.0)]), np.append(Y, 3)
    model = fitted(model, rows, labels, multiclass="one_vs_rest")
    assert np.isfinite(model.distances(rows)).all()
    if isinstance(model, MRGEPSVC):
        assert model.predict(rows[-1:]) == 3
        assert model.distances(rows[-1:])[0, 3] < 0.05
    assert (model.predict(X) == Y).mean() > 0.8


@EVERY_MODEL
def test_a_class_of_copies(model):
    rows = np.vstack([X, np.full((8, 13), 3.0)])
    model = fitted(model, rows, np.append(Y, np.full(8, 3)))
    assert np.isfinite(model.distances(rows)).all()
    assert_allclose(np.linalg.norm(model.normals_, axis=1), 1.0, rtol=1e-10)


@EVERY_MODEL
@pytest.mark.parametrize("copies", [1, 5])
def test_two_points(model, copies):
    rows = np.repeat([[0.0, 0.0], [1.0, 2.0]], copies, axis=0)
    model = fitted(model, rows, np.repeat(["a", "b"], copies))
    assert model.score(rows, np.repeat(["a", "b"], copies)) == 1.0
    normals = np.abs(model.coef_)
    assert_allclose(normals, np.broadcast_to([1, 2] / np.sqrt(5), (2, 2)), atol=1e-6)


@EVERY_MODEL
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_rows_that_do_not_vary_are_predicted_as_the_largest_class(model, kernel):
    rows, labels = np.full((9, 3), 0.1), np.array(list("abbabbabb"))
    with pytest.warns(ExhaustedWarning, match="the prediction is 'b'"):
        model = fitted(model, rows, labels, kernel=kernel)
    assert (model.predict(rows + 1.0) == "b").all()
    assert np.isfinite(model.distances(rows)).all()
    assert_array_equal(model.normals_, 0.0)


def test_a_plane_without_coordinates_can_be_printed():
    with pytest.warns(ExhaustedWarning):
        model = GEPSVC(kernel="rbf").fit(np.full((6, 2), 0.1), [0, 1] * 3)
    assert str(model.planes_[0]).startswith("0:")


@EVERY_MODEL
def test_weights_decide_which_class_is_the_largest(model):
    rows, weights = np.full((5, 2), 0.1), np.array([1.0, 1.0, 1.0, 4.0, 4.0])
    with pytest.warns(ExhaustedWarning, match="the prediction is 1"):
        fitted(model, rows, [0, 0, 0, 1, 1], weights)


def test_a_class_without_a_plane_is_hardly_predicted_and_named():
    """Copies in the middle of the others: twin planes that end nowhere."""
    rng = np.random.default_rng(0)
    rows, labels = crossing_lines(100, rng)
    rows, labels = np.vstack([rows, np.zeros((10, 2))]), np.append(labels, np.full(10, 2))
    options = {"loss": "hinge", "ridge": 1e-2, "multiclass": "one_vs_rest"}
    with pytest.warns(ExhaustedWarning, match="no plane describes 2"):
        model = TwinSVC(tikhonov="dual", **options).fit(rows, labels)
    assert_array_equal(model.normals_[2], 0.0)
    distances = model.distances(rows)
    assert_allclose(distances[:, 2], distances[0, 2])
    assert distances[0, 2] >= distances[:, :2].max() - 1e-9
    assert (model.predict(rows) != 2).mean() > 0.99


@pytest.mark.parametrize(
    "parameters",
    [
        {"ridge": 0.0},
        {"ridge": -1.0},
        {"tikhonov": "l2"},
        {"normalize": 1},
        {"class_weight": "even"},
        {"class_weight": {0: 0.0, 1: 1.0, 2: 1.0}},
        {"class_weight": {7: 1.0}},
        {"kernel": "gauss"},
    ],
    ids=str,
)
@MAIN_MODELS
def test_parameters_out_of_range(model, parameters):
    with pytest.raises(InvalidParameterError, match=next(iter(parameters))):
        fitted(model, **parameters)


@MAIN_MODELS
def test_one_class_is_none(model):
    with pytest.raises(ValueError, match="1 class"):
        fitted(model, labels=np.zeros(len(X)))


@pytest.mark.parametrize(
    "model", [GEPSVC(ridge=1e-18), TwinSVC(ridge=1e-18, loss="hinge")], ids=str
)
def test_a_ridge_below_rounding_says_what_to_do(model):
    wide = np.random.default_rng(0).standard_normal((20, 100))
    with pytest.raises(InvalidParameterError, match="ridge"):
        fitted(model, wide, np.arange(20) % 2)


@EVERY_MODEL
def test_a_fit_that_fails_leaves_the_old_one(model):
    model = fitted(model)
    before = model.distances(X)
    with pytest.raises(ValueError, match="1 class"):
        model.fit(X[:, :3], np.zeros(len(X)))
    assert_array_equal(model.distances(X), before)


# --------------------------------------------------------------------------------------------
# Rows without a label
# --------------------------------------------------------------------------------------------

SOME = np.where(np.arange(len(Y)) % 3 == 0, Y, -1)
WITH_GRAPH = pytest.mark.parametrize(
    "model",
    [MRGEPSVC(), TwinSVC(graph=NeighborGraph(5, mode="mutual"))],
    ids=["MRGEPSVC", "TwinSVC"],
)


@WITH_GRAPH
@KERNELS
@MULTICLASS
def test_unlabelled_rows_without_a_graph_weight_only_move_the_mean(model, kernel, multiclass):
    known = SOME != -1
    rows = np.vstack([X[known], np.full((4, X.shape[1]), 0.0) + X[known].mean(axis=0)])
    labels = np.append(SOME[known], [-1] * 4)
    options = {"graph_weight": 0.0, "multiclass": multiclass, "ridge": 0.1, "kernel": "linear"}
    plain = fitted(model, X[known], SOME[known], **options)
    assert_allclose(
        fitted(model, rows, labels, unlabeled=-1, **options).distances(X),
        plain.distances(X),
        atol=1e-9,
    )
    options |= {"graph_weight": 0.5, "kernel": kernel}
    plain = fitted(model, X[known], SOME[known], **options)
    acting = fitted(model, X, SOME, unlabeled=-1, **options)
    assert_array_equal(acting.classes_, [0, 1, 2])
    assert np.abs(acting.distances(X) - plain.distances(X)).max() > 1e-3


@WITH_GRAPH
def test_unlabelled_rows_may_be_sparse_and_marked_by_anything(model):
    marked = np.array(["p", "q", "r", "?"], dtype=object)[SOME]
    plain = fitted(model, X, SOME, unlabeled=-1)
    other = fitted(model, sp.csr_array(X), marked, unlabeled="?")
    assert_allclose(other.distances(sp.csr_array(X)), plain.distances(X), atol=1e-8)
    assert other.predict(X).tolist() == np.array(["p", "q", "r"])[plain.predict(X)].tolist()


@WITH_GRAPH
@KERNELS
@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_weights_of_unlabelled_rows_are_copies(model, kernel, class_weight):
    weights = np.random.default_rng(5).integers(0, 4, len(X))
    weights[[np.flatnonzero(SOME == code)[0] for code in range(3)]] = 2
    rows = np.repeat(np.arange(len(X)), weights)
    options = {"unlabeled": -1, "kernel": kernel, "class_weight": class_weight}
    weighted = fitted(model, X, SOME, weights, **options).distances(X)
    copied = fitted(model, X[rows], SOME[rows], **options).distances(X)
    assert_allclose(weighted, copied, atol=1e-7 * copied.max())
