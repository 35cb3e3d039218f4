"""What was once taken without a word: now it is refused, warned of or done.

The table of ``test_estimators`` sees errors and numbers that are not finite; here is what only a
closer look tells.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from attack.test_estimators import FRAME, SYMMETRIC, lopsided
from bad_data import N, X, Y, refuse
from estimator_families import (
    DIRECT,
    ESTIMATORS,
    EVERY_ESTIMATOR,
    SUBSPACES,
    every,
    having,
    images,
    where_it_applies,
)
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from marginfold import (
    GESVC,
    LDA,
    LSVA,
    MMDA,
    ExactKernel,
    LapSVC,
    LowRankKernel,
    MarginMap,
    PathSearchCV,
    PrecomputedGraph,
    SubspaceSearchCV,
)
from marginfold.errors import (
    GraphError,
    InvalidInputError,
    InvalidParameterError,
    MarginfoldWarning,
    TooLargeError,
)
from marginfold.svm import Automatic, InteriorPoint, LibSVM

pytestmark = pytest.mark.attack("misuse of estimators")

SEARCHES = {
    "subspace": SubspaceSearchCV(LSVA(2), cv=2),
    "path": PathSearchCV(GESVC(), C=[0.1, 1.0], cv=2),
}
SCORE = "mean_test_score"
searches = pytest.mark.parametrize("search", SEARCHES.values(), ids=list(SEARCHES))

# ------------------------------------------------------------------------------------------- rows


@every(EVERY_ESTIMATOR)
@pytest.mark.parametrize("size", [1e151, -1e160, 1e300])
def test_rows_that_a_fit_refuses_are_refused_at_use(cls, size):
    fitted = cls().fit(X, Y)
    far = X.copy()
    far[3, 1] = size
    with pytest.raises(InvalidInputError, match=r"entries of size.*1e\+150.*Scale"):
        images(fitted, far)


@every(DIRECT)
def test_rows_at_the_limit_have_an_image(cls):
    far = X.copy()
    far[3, 1] = 1e149
    assert np.isfinite(cls().fit(X, Y).transform(far)).all()


def test_a_kernel_that_overflows_predicts_no_class():
    fitted = GESVC(kernel="poly").fit(X, Y)
    with pytest.raises(InvalidInputError, match="coordinates of a row overflow"):
        fitted.predict(X * 1e140)


@every(ESTIMATORS)
@pytest.mark.parametrize("weights", [2.0 + 1j, np.ones(N) + 1j])
def test_complex_weights_are_refused(cls, weights):
    refuse(cls(), X, Y, weights, "sample_weight must be numbers", InvalidInputError)


@every(having("graph"))
def test_complex_graphs_are_refused(cls):
    for adjacency in (SYMMETRIC * (1 + 1j), np.full((N, N), "near"), None):
        with pytest.raises(GraphError, match="needs a matrix of real numbers"):
            cls(graph=PrecomputedGraph(adjacency)).fit(X, Y)


LARGE = {
    "tol": ({"tol": 1.0}, "tol must be a finite number > 0 and < 1; got 1.0"),
    "cost": ({"C": 1e308}, r"C must be.*< 1e\+150; got 1e\+308"),
    "ridge": ({"ridge": 1e308}, r"ridge must be.*< 1e\+150; got 1e\+308"),
    "graph weight": ({"graph_weight": 1e308}, r"graph_weight must be.*< 1e\+150; got 1e\+308"),
}


@where_it_applies(LARGE)
def test_parameters_whose_products_overflow_are_refused(cls, case):
    parameters, message = LARGE[case]
    refuse(cls(**parameters), X, Y, None, message, InvalidParameterError)


@pytest.mark.parametrize("solver", [InteriorPoint, Automatic, LibSVM])
def test_a_solver_takes_no_tolerance_that_certifies_nothing(solver):
    with pytest.raises(InvalidParameterError, match=r"tol must be.*< 1; got 1"):
        solver(tol=1.0)


# ---------------------------------------------------------------------------------------- kernels


@every(ESTIMATORS)
@pytest.mark.parametrize(
    "kernel",
    [lopsided, ExactKernel(lopsided), ExactKernel(lopsided, rank=3), LowRankKernel(lopsided)],
    ids=["function", "exact", "few", "low rank"],
)
def test_a_kernel_function_must_be_as_symmetric_as_a_given_matrix(cls, kernel):
    refuse(cls(kernel="precomputed"), lopsided(X, X), Y, None, "symmetric in fit; entries differ")
    refuse(cls(kernel=kernel), X, Y, None, "kernel function lopsided must be symmetric in fit")


def test_what_a_kernel_function_raises_is_told_with_its_arguments():
    with pytest.raises(InvalidInputError, match=r"your_kernel failed.*\(20, 4\).*KeyError") as told:
        LDA(kernel=lambda A, B: {}["key"]).fit(X, Y)
    assert isinstance(told.value.__cause__, KeyError)


def test_advice_for_a_kernel_function_is_code(monkeypatch):
    monkeypatch.setenv("MARGINFOLD_MEMORY_LIMIT", "1MB")
    rows = np.random.default_rng(0).standard_normal((2000, 3))
    for kernel, name in ((lopsided, "lopsided"), (lambda A, B: A @ B.T, "your_kernel")):
        with pytest.raises(TooLargeError, match=rf"LowRankKernel\({name}, gamma='scale'"):
            ExactKernel(kernel).fit(rows)


# ----------------------------------------------------------------------------------------- labels


def test_a_class_that_is_the_default_marker_is_warned_of():
    y = np.arange(N) % 3 - 1
    with pytest.warns(MarginfoldWarning, match=r"LapSVC.*7 of 20.*-1.*\[0, 1\].*unlabeled=None"):
        fitted = LapSVC().fit(X, np.sort(y)[::-1])
    assert_array_equal(fitted.classes_, [0, 1])
    with pytest.warns(MarginfoldWarning, match=r"-1 as unlabelled.*\[-2, 0, 1\]"):
        LapSVC().fit(X, np.arange(N) % 4 - 2)


@pytest.mark.parametrize(
    ("model", "y"),
    [
        (LapSVC(unlabeled=None), np.arange(N) % 3 - 1),
        (LapSVC(), np.where(np.arange(N) % 3, -1, Y)),
        (LapSVC(), np.where(np.arange(N) % 4, np.arange(N) % 3, -1)),
        (GESVC(unlabeled=-1), np.arange(N) % 3 - 1),
    ],
    ids=["all classes", "mostly unlabelled", "numbered classes", "asked for"],
)
def test_unlabelled_rows_are_no_news_where_they_are_meant(model, y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.fit(X, y)


@pytest.mark.parametrize("model", [LSVA(), GESVC(), MarginMap(), SEARCHES["subspace"]], ids=repr)
def test_many_classes_are_not_called_a_quantity(model):
    y = np.array([f"t{i % 25}" for i in range(2 * N)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", "The number of unique classes")
        model.fit(np.vstack([X, X]), y)


# --------------------------------------------------------------------------------------- searches


def test_a_search_tries_as_many_components_as_rows_can_have():
    search = SubspaceSearchCV(MMDA(10**9), cv=2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MarginfoldWarning)
        search.fit(X, np.arange(N) % 4)
    assert [point["n_components"] for point in search.cv_results_["params"]] == [1, 2, 3, 4]


@searches
def test_a_search_takes_one_weight_for_all_rows(search):
    one = search.fit(X, Y, sample_weight=2.0).cv_results_[SCORE]
    assert_array_equal(one, search.fit(X, Y, sample_weight=np.full(N, 2.0)).cv_results_[SCORE])


@searches
def test_a_search_reads_pyarrow_tables_as_arrays(search):
    table = pa.Table.from_pandas(FRAME)
    expected = search.fit(FRAME, Y).cv_results_[SCORE]
    assert_allclose(search.fit(table, Y).cv_results_[SCORE], expected)
    assert_array_equal(search.predict(table), search.predict(FRAME))


def test_a_map_reads_pyarrow_tables_as_arrays():
    model = MarginMap(make_pipeline(StandardScaler(), GESVC()))
    expected = model.fit(FRAME, Y).transform(FRAME)
    table = pa.Table.from_pandas(FRAME)
    assert_allclose(model.fit(table, Y).transform(table), expected, rtol=0, atol=1e-9)


@searches
@pytest.mark.parametrize("refit", ["nonsense", 3, None, []], ids=repr)
def test_refit_is_true_false_or_a_function(search, refit):
    search = type(search)(search.estimator, cv=2, refit=refit)
    with pytest.raises(InvalidParameterError, match="refit must be True, False or a function"):
        search.fit(X, Y)


@searches
@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.where(np.arange(N) == 3, None, Y.astype(object)), "None, NaN or NA"),
        (np.where(np.arange(N) == 3, np.nan, Y), "y contains NaN"),
        (np.where(np.arange(N) == 3, np.inf, Y), "y contains infinity"),
        (np.where(np.arange(N) < 10, "a", Y.astype(object)), "types that cannot be compared"),
    ],
    ids=["None", "NaN", "infinity", "mixed"],
)
def test_a_search_says_what_is_wrong_with_labels(search, y, message):
    with pytest.raises(InvalidInputError, match=message):
        search.fit(X, y)


@pytest.mark.parametrize(
    "search",
    [SubspaceSearchCV(LSVA(kernel="precomputed")), PathSearchCV(GESVC(kernel="precomputed"))],
    ids=repr,
)
def test_a_search_refuses_a_kernel_that_is_not_square(search):
    with pytest.raises(InvalidInputError, match=r"square in fit; got shape \(20, 4\)"):
        search.fit(X, Y)


def test_a_search_returns_what_set_output_asks_for():
    search = SubspaceSearchCV(LSVA(2), n_components=2, cv=2).fit(FRAME, Y)
    plain = search.transform(FRAME)
    assert isinstance(plain, np.ndarray)
    table = search.set_output(transform="pandas").transform(FRAME)
    assert isinstance(clone(search).fit(FRAME, Y).transform(FRAME), pd.DataFrame)
    assert isinstance(table, pd.DataFrame)
    assert list(table.columns) == list(search.get_feature_names_out())
    assert_array_equal(table.index, FRAME.index)
    assert_array_equal(table.to_numpy(), plain)
    assert isinstance(search.set_output(transform="default").transform(FRAME), np.ndarray)
    with pytest.raises(ValueError, match="nonsense"):
        search.set_output(transform="nonsense").transform(FRAME)
    steps = make_pipeline(SubspaceSearchCV(LSVA(2), cv=2), KNeighborsClassifier())
    assert isinstance(
        steps.set_output(transform="pandas").fit(FRAME, Y)[:-1].transform(FRAME), pd.DataFrame
    )


# ------------------------------------------------------------------------------------ after a fit


@every(SUBSPACES)
def test_another_scaling_waits_for_the_next_fit(cls):
    fitted = cls().fit(X, Y)
    before = fitted.transform(X)
    assert_array_equal(fitted.set_params(scaling="margin").transform(X), before)
    assert np.abs(fitted.fit(X, Y).transform(X) - before).max() > 1e-3


def test_a_map_has_no_names_before_its_fit():
    with pytest.raises(NotFittedError):
        MarginMap().get_feature_names_out()
    assert list(MarginMap().fit(X, Y).get_feature_names_out()) == ["marginmap0", "marginmap1"]
