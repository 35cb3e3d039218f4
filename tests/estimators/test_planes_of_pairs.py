"""One against one for planes: a pair is the two-class problem of its own rows, and pairs vote."""

from __future__ import annotations

import pickle
import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits, load_wine
from sklearn.multiclass import OneVsOneClassifier
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from marginfold import GEPSVC, MRGEPSVC, ExactKernel, MarginMap, NeighborGraph, TwinSVC
from marginfold.data.models import load_model, save_model
from marginfold.errors import ExhaustedWarning, InvalidParameterError, TooLargeError
from marginfold.estimators.inputs import coordinates
from marginfold.estimators.plane_problem import plane_tasks
from marginfold.estimators.plane_rows import PlaneRows
from marginfold.feature_maps import Linear

WINE, Y = load_wine(return_X_y=True)
WINE = scale(WINE)
X, Y = WINE[::2], np.array(["rosso", "bianco", "arneis"])[Y[::2]]
NEW = WINE[1::2]
GRAPH = NeighborGraph(4, mode="mutual", within_class=True)
UNCENTRED = Linear(center=False)
MODELS = {
    "GEPSVC": GEPSVC(),
    "MRGEPSVC": MRGEPSVC(graph=GRAPH),
    "MRGEPSVC numerator": MRGEPSVC(graph=GRAPH, manifold="numerator"),
    "TwinSVC": TwinSVC(loss="least_squares"),
    "TwinSVC hinge": TwinSVC(loss="hinge"),
    "TwinSVC graph": TwinSVC(loss="hinge", graph=GRAPH, graph_weight=0.5),
}
EVERY_MODEL = pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
RBF = ExactKernel("rbf", gamma=0.05)
KERNELS = pytest.mark.parametrize("kernel", ["linear", RBF], ids=["linear", "rbf"])


def raw(model, **parameters):
    """The model in raw units: those of the data are not the same for a pair and for all rows."""
    ridge = {} if getattr(model, "ridge", None) == "auto" else {"ridge": 0.1}
    return clone(model).set_params(normalize=False, **ridge, **parameters)


# --------------------------------------------------------------------------------------------
# The two-class estimator on the rows of each pair
# --------------------------------------------------------------------------------------------


@EVERY_MODEL
@KERNELS
def test_each_pair_has_the_planes_of_the_two_class_problem_on_its_rows(model, kernel):
    if kernel is RBF and getattr(model, "graph", None) is not None:
        pytest.skip("a graph on coordinates is not one on features")
    pairs = raw(model, kernel=kernel).fit(X, Y)
    Z, Z_new = (pairs.feature_map_.transform(rows) for rows in (X, NEW))
    k = 0
    for i, first in enumerate(pairs.classes_):
        for second in pairs.classes_[i + 1 :]:
            rows = np.isin(Y, [first, second])
            alone = raw(model, kernel=UNCENTRED).fit(Z[rows], Y[rows])
            expected = alone.distances(Z_new)
            tol = 1e-7 * expected.max()
            assert_allclose(pairs.distances(NEW)[:, [k, k + 1]], expected, rtol=0, atol=tol)
            for name in ("gap_", "eigenvalues_"):
                if hasattr(alone, name):
                    found = getattr(pairs, name)[k : k + 2]
                    assert_allclose(found, getattr(alone, name), rtol=1e-6, atol=1e-8)
            k += 2
    assert len(pairs.normals_) == k == 6


@EVERY_MODEL
def test_it_is_scikit_learns_one_against_one_around_the_two_class_estimator(model):
    ours = raw(model, kernel=UNCENTRED).fit(X, Y)
    theirs = OneVsOneClassifier(raw(model, kernel=UNCENTRED)).fit(X, Y)
    assert_allclose(ours.decision_function(NEW), theirs.decision_function(NEW), atol=1e-6)
    assert_array_equal(ours.predict(NEW), theirs.predict(NEW))


@pytest.mark.parametrize("loss", ["hinge", "least_squares"])
def test_digits_by_a_kernel_are_those_of_explicit_pairs(loss):
    """Ten classes whose pairs have far fewer rows than there are coordinates."""
    rows, labels = load_digits(return_X_y=True)
    rows, labels, new = rows[:300] / 16, labels[:300], rows[300:500] / 16
    options = {"loss": loss, "ridge": 1e-2, "normalize": False}
    kernel = ExactKernel("rbf", gamma=0.1)
    ours = TwinSVC(kernel=kernel, **options).fit(rows, labels)
    Z, Z_new = (ours.feature_map_.transform(part) for part in (rows, new))
    theirs = OneVsOneClassifier(TwinSVC(kernel=UNCENTRED, **options)).fit(Z, labels)
    assert_allclose(ours.decision_function(new), theirs.decision_function(Z_new), atol=1e-6)
    assert ours.gap_.max() <= ours.tol


@EVERY_MODEL
def test_the_span_of_few_rows_and_all_coordinates_give_the_same_planes(model):
    """Every row as five copies of a fifth of its weight: as many rows as coordinates, or more."""
    if getattr(model, "graph", None) is not None:
        model = clone(model).set_params(graph_weight=0.0)
    few = clone(model).set_params(kernel=RBF).fit(X, Y)
    copies = np.repeat(np.arange(len(X)), 5)
    many = clone(few).fit(X[copies], Y[copies], sample_weight=np.full(5 * len(X), 0.2))
    tol = 1e-7 * many.distances(NEW).max()
    assert_allclose(few.distances(NEW), many.distances(NEW), rtol=0, atol=tol)


# --------------------------------------------------------------------------------------------
# Votes
# --------------------------------------------------------------------------------------------


@EVERY_MODEL
@KERNELS
def test_two_classes_are_the_same_in_both_readings(model, kernel):
    two = Y != "rosso"
    readings = [
        clone(model).set_params(kernel=kernel, multiclass=name).fit(X[two], Y[two])
        for name in ("one_vs_one", "one_vs_rest")
    ]
    assert_array_equal(*[fitted.normals_ for fitted in readings])
    assert_array_equal(*[fitted.decision_function(NEW) for fitted in readings])
    assert readings[0].decision_function(NEW).shape == (len(NEW),)
    assert [str(plane)[:9] for plane in readings[0].planes_] == ["'arneis':", "'bianco':"]


@EVERY_MODEL
def test_a_reading_chosen_after_the_fit_waits_for_the_next(model):
    fitted = clone(model).fit(X, Y)
    before = fitted.predict(NEW)
    fitted.set_params(multiclass="one_vs_rest")
    assert_array_equal(fitted.predict(NEW), before)
    assert len(fitted.planes_) == 6


@EVERY_MODEL
def test_identical_classes_leave_the_decision_to_the_other_pairs(model):
    """Nothing parts a class from its copy: half a vote each, and both beat the third class."""
    rows = np.random.default_rng(0).standard_normal((40, 2))
    X_3, y_3 = np.vstack([rows, rows, rows + 6]), np.repeat(["a", "copy", "far"], 40)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExhaustedWarning)
        fitted = clone(model).fit(X_3, y_3)
    values = fitted.decision_function(X_3)
    assert_allclose(values[:, 0], values[:, 1], atol=1e-6)
    own = np.where(y_3 == "far", 2, 0)
    assert (values[np.arange(120), own] > values[np.arange(120), 2 - own]).mean() > 0.9


def test_a_pair_with_one_plane_has_no_opinion_and_its_classes_are_still_predicted():
    """The core of a ring has no twin plane against the ring, but wins against what is far."""
    rng = np.random.default_rng(1)
    angle = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    ring = 3 * np.column_stack([np.cos(angle), np.sin(angle)])
    core, far = 0.2 * rng.standard_normal((30, 2)), rng.normal((12, 0), 1, (40, 2))
    rows = np.vstack([ring, core, far])
    labels = np.repeat(["ring", "core", "far"], [60, 30, 40])
    with pytest.warns(ExhaustedWarning, match="no plane describes 'core' against 'ring'"):
        model = TwinSVC(loss="hinge", measure="distance").fit(rows, labels)
    missing = [str(plane) for plane in model.planes_ if not plane.normal.any()]
    assert missing == ["'core' against 'ring': nowhere"]
    assert set(model.predict(rows)) == {"ring", "core", "far"}
    assert (model.predict(far) == "far").all()


@EVERY_MODEL
def test_rows_that_do_not_vary_are_predicted_as_the_largest_of_three_classes(model):
    rows, labels = np.full((9, 3), 0.1), np.array(list("abbcbbabb"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = clone(model).fit(rows, labels)
    assert (fitted.predict(rows + 1.0) == "b").all()


@EVERY_MODEL
@KERNELS
def test_a_class_of_one_row_is_found(model, kernel):
    rows, labels = np.vstack([X, np.full((1, 13), 4.0)]), np.append(Y, "zibibbo")
    fitted = clone(model).set_params(kernel=kernel).fit(rows, labels)
    assert np.isfinite(fitted.decision_function(NEW)).all()
    assert fitted.predict(rows[-1:]) == "zibibbo"
    plain = clone(fitted).fit(X, Y)
    assert (fitted.predict(NEW) == plain.predict(NEW)).mean() > 0.85


def test_the_margins_of_pairs_serve_a_map():
    assert MarginMap(TwinSVC(kernel="rbf")).fit_transform(X, Y).shape == (len(X), 2)


# --------------------------------------------------------------------------------------------
# Rows, files, many classes
# --------------------------------------------------------------------------------------------


@EVERY_MODEL
@KERNELS
def test_sparse_rows_pickles_and_files(model, kernel, tmp_path):
    fitted = clone(model).set_params(kernel=kernel).fit(X, Y)
    expected = fitted.decision_function(NEW)
    sparse = clone(fitted).fit(sp.csr_array(X), Y).decision_function(sp.csr_array(NEW))
    assert_allclose(sparse, expected, atol=1e-6)
    assert_array_equal(pickle.loads(pickle.dumps(fitted)).decision_function(NEW), expected)
    save_model(fitted, tmp_path / "planes.skops")
    again = load_model(tmp_path / "planes.skops")
    assert_array_equal(again.decision_function(NEW), expected)
    assert [str(plane) for plane in again.planes_] == [str(plane) for plane in fitted.planes_]


@EVERY_MODEL
def test_rows_of_dask(model):
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    if getattr(model, "graph", None) is not None:
        model = clone(model).set_params(graph="anchors")
    local = clone(model).fit(X, Y)
    lazy = clone(model).fit(da.from_array(X, chunks=(30, -1)), Y)
    tol = 1e-6 * local.distances(NEW).max()
    assert_allclose(lazy.distances(NEW), local.distances(NEW), rtol=0, atol=tol)
    answer = local.decision_function(da.from_array(NEW, chunks=(30, -1))).compute()
    assert_allclose(answer, local.decision_function(NEW), atol=1e-12)


def many_classes(n_classes, n_each, n_columns=12):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(n_classes), n_each)
    return 1.5 * rng.standard_normal((n_classes, n_columns))[y] + 0.5 * rng.standard_normal(
        (len(y), n_columns)
    ), y


@pytest.mark.parametrize(
    ("model", "n_classes"),
    [
        pytest.param(TwinSVC(), 60, id="TwinSVC"),
        pytest.param(TwinSVC(), 200, id="TwinSVC, 200", marks=pytest.mark.torture),
    ],
)
def test_many_classes_are_told_apart(model, n_classes):
    rows, labels = many_classes(n_classes, 10)
    check_that_classes_are_told_apart(clone(model).fit(rows, labels), rows, labels)


def check_that_classes_are_told_apart(fitted, rows, labels):
    n_classes = len(fitted.classes_)
    assert fitted.coef_.shape == (n_classes * (n_classes - 1), 12)
    some = slice(None, None, 9)
    assert fitted.decision_function(rows[some]).shape == (len(rows[some]), n_classes)
    theirs = SVC(kernel="linear").fit(rows, labels).score(rows[some], labels[some])
    assert fitted.score(rows[some], labels[some]) > theirs - 0.03


def test_two_hundred_classes_are_told_apart_without_a_table_of_rows_by_planes():
    """All distances would be 640 MB."""
    rows, labels = many_classes(200, 10)
    fitted = GEPSVC().fit(rows, labels)  # decides as TwinSVC does, fitted in a tenth of the time
    check_that_classes_are_told_apart(fitted, rows, labels)
    tracemalloc.start()
    fitted.predict(rows)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4e8


def test_normals_that_do_not_fit_are_refused_with_what_to_do(monkeypatch):
    rows, labels = many_classes(200, 4)
    monkeypatch.setenv("MARGINFOLD_MEMORY_LIMIT", "200MB")
    with pytest.raises(TooLargeError, match=r"19900 pairs.*one_vs_rest"):
        TwinSVC(kernel="rbf").fit(rows, labels)


@EVERY_MODEL
def test_an_unknown_reading_is_refused(model):
    with pytest.raises(InvalidParameterError, match="multiclass"):
        clone(model).set_params(multiclass="all").fit(X, Y)


def test_the_work_of_pairs_is_sized_by_their_rows_and_not_by_all_coordinates():
    """Threads pay for large problems: those of many small classes are small in any kernel."""
    labels = np.arange(len(X)) // 3
    c = coordinates(RBF, X, np.ones(len(X)), labels)
    tasks = plane_tasks(int(labels.max()) + 1, "one_vs_one")
    factors = np.ones(len(tasks))
    rows = PlaneRows.of(c, factors, tasks, graph=None, tikhonov="rkhs", normalize=True)
    sizes = []
    rows.solve(lambda problem: (problem.space.offset, sizes.append(len(problem.own)) or 0.0))
    assert max(sizes) == rows.n_unknowns == 6


def test_two_classes_are_not_advised_to_go_one_against_one():
    rows, labels = np.ones((10, 2)), np.repeat([0, 1], 5)
    with pytest.warns(ExhaustedWarning, match="try a kernel[.]"):
        TwinSVC().fit(rows, labels)
    with pytest.warns(ExhaustedWarning, match="try another kernel[.]"):
        TwinSVC(kernel="rbf").fit(rows, labels)
