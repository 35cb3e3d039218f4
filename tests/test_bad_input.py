"""Bad input: a clear error or the documented result, and nothing else.

Every refusal is a ValueError whose message says what was got and what is needed.  No numpy warning
may leak out of one, no input may be changed by one, and an estimator must be after it what it was
before.
"""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier

from marginfold import (
    GESVC,
    LSVA,
    MMDA,
    WSVDA,
    BetweenClassGraph,
    ExactKernel,
    InteriorPoint,
    LapSVC,
    Linear,
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
    MarginfoldWarning,
    NoDirectionError,
)
from marginfold.feature_maps import Transformed

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning", "error::DeprecationWarning")

SUBSPACES = [MMDA, LSVA, WSVDA]
CLASSIFIERS = [GESVC, LapSVC]
ESTIMATORS = [*SUBSPACES, *CLASSIFIERS]
WITH_GRAPH = [LSVA, WSVDA, GESVC, LapSVC]
FEATURE_MAPS = [Linear(), ExactKernel("rbf"), ExactKernel("poly"), Transformed(PCA(2))]
GRAPHS = [
    NeighborGraph(3),
    NeighborGraph(3, within_class=True),
    WithinClassGraph(),
    BetweenClassGraph(),
    TotalGraph(),
    ReconstructionGraph(3),
    0.5 * NeighborGraph(3) + WithinClassGraph(),
]

N = 20
X = np.random.default_rng(0).standard_normal((N, 4))
Y = np.repeat([0, 1], N // 2)
K = X @ X.T


def every(values):
    return pytest.mark.parametrize("cls", values, ids=lambda cls: cls.__name__)


def cases(table):
    return pytest.mark.parametrize("case", table, ids=list(table))


def where_it_applies(table):
    """Every estimator with every case (parameters first) whose parameters it has."""
    pairs = [
        pytest.param(cls, case, id=f"{case}-{cls.__name__}")
        for case, (parameters, *_) in table.items()
        for cls in ESTIMATORS
        if parameters.keys() <= cls().get_params().keys()
    ]
    return pytest.mark.parametrize(("cls", "case"), pairs)


def changed(array, index, value):
    array = np.array(array, dtype=object if isinstance(value, str) else float)
    array[index] = value
    return array


def state(estimator):
    """Everything that a fit may set, as bytes-comparable values."""
    return {name: value for name, value in vars(estimator).items() if name.endswith("_")}


# --------------------------------------------------------------------------------------- the data

BAD_DATA = {
    "NaN in X": (changed(X, (3, 1), np.nan), Y, None, "X contains NaN"),
    "infinity in X": (changed(X, (3, 1), np.inf), Y, None, "X contains infinity"),
    "text in X": (changed(X, (3, 1), "red"), Y, None, "could not convert string to float.*red"),
    "complex X": (X * 1j, Y, None, "Complex data not supported"),
    "1-D X": (X[:, 0], Y, None, "Expected 2D array, got 1D array"),
    "3-D X": (X[:, :, None], Y, None, "Found array with dim 3.*<= 2"),
    "no rows": (X[:0], Y[:0], None, r"0 sample\(s\).*minimum of 2"),
    "one row": (X[:1], Y[:1], None, r"1 sample\(s\).*minimum of 2"),
    "no columns": (X[:, :0], Y, None, r"0 feature\(s\).*minimum of 1"),
    "y missing": (X, None, None, "requires y.*None"),
    "y too short": (X, Y[:-1], None, r"inconsistent numbers of samples: \[20, 19\]"),
    "y continuous": (X, X[:, 0], None, "Unknown label type: continuous"),
    "y with two columns": (X, np.c_[Y, Y], None, r"y should be a 1d array.*\(20, 2\)"),
    "NaN in y": (X, changed(Y, 3, np.nan), None, "y contains NaN"),
    "infinity in y": (X, changed(Y, 3, np.inf), None, "y contains infinity"),
    "one class": (X, np.full(N, 7), None, "1 class.*7.*at least 2"),
    "weights too short": (X, Y, np.ones(3), r"sample_weight.*\(3,\).*20 rows"),
    "weights with two columns": (X, Y, np.ones((N, 2)), r"sample_weight.*\(20, 2\)"),
    "negative weight": (X, Y, changed(np.ones(N), 2, -0.5), "sample_weight.*negative.*-0.5"),
    "NaN weight": (X, Y, changed(np.ones(N), 2, np.nan), "sample_weight contains NaN"),
    "infinite weight": (X, Y, changed(np.ones(N), 2, np.inf), "sample_weight contains infinity"),
    "zero weights": (X, Y, np.zeros(N), "sample weights are zero.*at least two"),
    "one class has weight": (X, Y, 1.0 - Y, "1 class.*0.*at least 2"),
}


def refuse(estimator, X, y, sample_weight, message, error=ValueError):
    copies = [None if part is None else np.array(part) for part in (X, y, sample_weight)]
    with pytest.raises(error, match=f"(?s){message}") as caught:
        estimator.fit(X, y, sample_weight=sample_weight)
    for part, copy in zip((X, y, sample_weight), copies, strict=True):
        if part is not None:
            np.testing.assert_array_equal(np.asarray(part), copy)
    return str(caught.value)


@every(ESTIMATORS)
@cases(BAD_DATA)
def test_bad_data_is_refused(cls, case):
    refuse(cls(), *BAD_DATA[case])


@every(ESTIMATORS)
@cases(["NaN in X", "infinity in X", "1-D X", "text in X"])
def test_bad_rows_are_refused_with_a_kernel_too(cls, case):
    refuse(cls(kernel="rbf"), *BAD_DATA[case])


@every(ESTIMATORS)
def test_bad_sparse_rows_are_refused(cls):
    refuse_sparse = sp.csr_array(changed(X, (3, 1), np.nan))
    with pytest.raises(ValueError, match="contains NaN"):
        cls().fit(refuse_sparse, Y)


@every(ESTIMATORS)
def test_all_rows_unlabelled(cls):
    refuse(cls(unlabeled=-1), X, np.full(N, -1), None, "All 20 rows are unlabelled.*-1.*two class")


@every(ESTIMATORS)
def test_one_class_beside_unlabelled_rows(cls):
    y = np.where(Y == 0, "a", "?")
    refuse(cls(unlabeled="?"), X, y, None, r"1 class.*'a'.*at least 2.*'\?'.*unlabelled")


def test_labels_plus_and_minus_one_are_explained_by_lapsvc():
    y = np.where(Y == 0, -1, 1)
    refuse(LapSVC(), X, y, None, "1 class.*at least 2.*-1 count as unlabelled.*unlabeled=None")
    assert list(LapSVC(unlabeled=None).fit(X, y).classes_) == [-1, 1]


@every(ESTIMATORS)
def test_labels_of_mixed_types_without_a_marker(cls):
    """["a", "b", -1] with no marker for -1 is no set of classes; the message must say so."""
    y = np.array(["a", "b"], dtype=object)[Y]
    y[3] = -1
    refuse(cls(unlabeled=None), X, y, None, "types|unlabeled")


@every(ESTIMATORS)
def test_missing_text_labels(cls):
    y = np.array(["a", "b"], dtype=object)[Y]
    y[3] = None
    refuse(cls(), X, y, None, "None|missing|types")


@every(ESTIMATORS)
def test_nan_marks_unlabelled_rows_where_the_graphs_say_so(cls):
    """`WithinClassGraph` advises unlabeled=np.nan; here it works, or an error names it."""
    expected = cls(unlabeled=-1).fit(X, changed(Y, [3, 14], -1))
    try:
        estimator = cls(unlabeled=np.nan).fit(X, changed(Y, [3, 14], np.nan))
    except ValueError as error:
        assert "unlabeled" in str(error)  # noqa: PT017
        return
    np.testing.assert_array_equal(estimator.classes_, [0, 1])
    np.testing.assert_array_equal(estimator.directions_, expected.directions_)


@every(ESTIMATORS)
def test_a_marker_that_is_not_one_value(cls):
    refuse(cls(unlabeled=np.array([-1, -2])), X, Y, None, "unlabeled.*one|single|scalar")


@every(ESTIMATORS)
@pytest.mark.parametrize("y", [np.full(N, 7), np.full(N, "a"), np.full(N, True)])
def test_messages_show_labels_as_the_user_wrote_them(cls, y):
    message = refuse(cls(), X, y, None, "1 class")
    assert "np." not in message
    with pytest.raises(InvalidParameterError) as caught:
        cls(class_weight={"z": 1.0}).fit(X, Y)
    assert "np." not in str(caught.value)


@every(ESTIMATORS)
def test_a_scalar_weight_is_one_for_all_rows(cls):
    """As in scikit-learn: ``sample_weight=2.0`` is two for every row."""
    one = cls().fit(X, Y, sample_weight=np.full(N, 2.0))
    np.testing.assert_array_equal(cls().fit(X, Y, sample_weight=2.0).directions_, one.directions_)


@every(ESTIMATORS)
@pytest.mark.parametrize("weight", [1e-310, 1e300])
def test_weights_at_the_ends_of_the_range(cls, weight):
    """A result, or an error that blames the weights; no numpy warning in between."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MarginfoldWarning)
            fitted = cls().fit(X, Y, sample_weight=np.full(N, weight))
    except ValueError as error:
        assert "weight" in str(error) or isinstance(error, NoDirectionError)  # noqa: PT017
    else:
        assert np.isfinite(fitted.directions_).all()


# -------------------------------------------------------------------------------- the parameters

BAD_PARAMETERS = {
    "C negative": ({"C": -1.0}, "C must be a finite number > 0; got -1"),
    "C zero": ({"C": 0}, "C must be.*> 0; got 0"),
    "C NaN": ({"C": np.nan}, "C must be.*finite.*got nan"),
    "C infinite": ({"C": np.inf}, "C must be.*finite.*got inf"),
    "C text": ({"C": "1"}, "C must be.*number.*got '1'"),
    "C truth value": ({"C": True}, "C must be.*number.*got True"),
    "tol zero": ({"tol": 0.0}, "tol must be.*> 0; got 0"),
    "tol text": ({"tol": "tight"}, "tol must be.*number.*got 'tight'"),
    "graph weight negative": ({"graph_weight": -0.1}, "graph_weight must be.*>= 0; got -0.1"),
    "graph weight NaN": ({"graph_weight": np.nan}, "graph_weight must be.*finite.*got nan"),
    "normalize_graph": ({"normalize_graph": "yes"}, "normalize_graph must be True or False.*'yes'"),
    "ridge zero": ({"ridge": 0.0}, "ridge must be.*> 0; got 0"),
    "ridge negative": ({"ridge": -1.0}, "ridge must be.*> 0; got -1"),
    "no components": ({"n_components": 0}, "n_components must be a whole number >= 1; got 0"),
    "half components": ({"n_components": 1.5}, "n_components must be a whole.*got 1.5"),
    "float components": ({"n_components": 2.0}, "n_components must be a whole.*got 2.0"),
    "None components": ({"n_components": None}, "n_components must be a whole.*got None"),
    "tasks": ({"tasks": "pairs"}, "tasks must be one of 'one_vs_rest'.*got 'pairs'"),
    "scaling": ({"scaling": "none"}, "scaling must be one of 'unit', 'margin'; got 'none'"),
    "on_exhausted": ({"on_exhausted": "go"}, "on_exhausted must be one of 'stop', 'pca'; got 'go'"),
    "solver text": ({"solver": "newton"}, "solver must be 'interior_point'.*got 'newton'"),
    "solver None": ({"solver": None}, "solver must be 'interior_point'.*got None"),
    "solver class": ({"solver": InteriorPoint}, "solver must be.*got.*InteriorPoint"),
    "kernel text": ({"kernel": "rfb"}, "kernel must be one of linear, rbf.*got 'rfb'"),
    "kernel None": ({"kernel": None}, "kernel must be one of.*got None"),
    "kernel class": ({"kernel": ExactKernel}, "kernel must be one of.*got.*ExactKernel"),
    "kernel number": ({"kernel": 3}, "kernel must be one of.*got 3"),
    "inner kernel text": ({"kernel": ExactKernel("rfb")}, "kernel must be one of.*got 'rfb'"),
    "inner kernel array": ({"kernel": ExactKernel(K)}, "kernel must be one of"),
    "gamma zero": ({"kernel": ExactKernel(gamma=0.0)}, "gamma must be.*> 0; got 0"),
    "gamma text": ({"kernel": ExactKernel(gamma="s")}, "gamma must be.*'scale', 'auto'.*got 's'"),
    "gamma None": ({"kernel": ExactKernel(gamma=None)}, "gamma must be.*'scale'.*got None"),
    "degree": ({"kernel": ExactKernel("poly", degree=1.5)}, "degree must be a whole.*got 1.5"),
    "coef0": ({"kernel": ExactKernel("poly", coef0=np.nan)}, "coef0 must be a finite.*got nan"),
    "graph text": ({"graph": "kkn"}, "graph='kkn'.*one of 'knn'"),
    "graph number": ({"graph": 5}, "graph=5.*one of 'knn'"),
    "graph class": ({"graph": NeighborGraph}, "NeighborGraph.*needs one of 'knn'.*rule such as"),
    "graph None": ({"graph": None}, "graph=None.*one of 'knn'"),
    "negative factor": ({"graph": -1.0 * NeighborGraph()}, "NeighborGraph.*factor=-1.*>= 0"),
    "NaN factor": ({"graph": np.nan * NeighborGraph()}, "NeighborGraph.*factor=nan.*finite"),
    "no neighbors": ({"graph": NeighborGraph(0)}, "n_neighbors must be a whole number >= 1; got 0"),
    "half neighbors": ({"graph": NeighborGraph(2.5)}, "n_neighbors must be a whole.*got 2.5"),
    "heat width": ({"graph": NeighborGraph(width=0.0)}, "width must be.*'auto'.*> 0; got 0"),
    "graph mode": ({"graph": NeighborGraph(mode="both")}, "mode must be.*'mutual'; got 'both'"),
    "lle ridge": ({"graph": ReconstructionGraph(reg=-1.0)}, "reg must be.*> 0; got -1"),
    "sum with a text": (
        {"graph": (NeighborGraph() + TotalGraph()).set_params(second="within")},
        "SumGraph got 'within'.*graph rule",
    ),
    "weights of no class": ({"class_weight": {5: 2.0}}, "class_weight names 5.*classes"),
    "class weight negative": ({"class_weight": {0: -1.0}}, "class_weight.*> 0; got {0: -1.0}"),
    "class weight zero": ({"class_weight": {0: 0.0}}, "class_weight.*> 0"),
    "class weight NaN": ({"class_weight": {0: np.nan}}, "class_weight.*finite"),
    "class weight text": ({"class_weight": {0: "heavy"}}, "class_weight.*'heavy'"),
    "class weight None": ({"class_weight": {0: None}}, "class_weight.*None"),
    "class weight list": ({"class_weight": [1.0, 2.0]}, r"class_weight must be None.*\[1.0, 2.0\]"),
    "class weight word": ({"class_weight": "balance"}, "class_weight must be.*got 'balance'"),
}


@where_it_applies(BAD_PARAMETERS)
def test_bad_parameters_are_refused(cls, case):
    parameters, message = BAD_PARAMETERS[case]
    refuse(cls(**parameters), X, Y, None, message, InvalidInputError)


@every(SUBSPACES)
def test_choices_may_be_numpy_text(cls):
    """A grid written as an array hands over ``np.str_``."""
    grid = np.array(["margin", "unit"])
    assert cls(scaling=grid[0]).fit(X, Y).transform(X).shape == (N, 2)


def test_graph_choices_may_be_numpy_values():
    graph = NeighborGraph(weights=np.str_("binary"), within_class=np.bool_(True))
    assert graph.build(X, Y).n_edges > 0


# ------------------------------------------------------------------------------- the feature maps


class Broken(TransformerMixin, BaseEstimator):
    """A transformer whose output is wrong in a chosen way."""

    def __init__(self, way="nan"):
        self.way = way

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        if self.way == "nan":
            return X * np.nan
        return X[:, 0] if self.way == "flat" else X[:3]


BAD_KERNELS = {
    "wrong shape": (lambda A, B: np.ones((3, 3)), r"\(3, 3\).*20 and 20 rows.*one value per pair"),
    "a number": (lambda A, B: 1.0, r"shape \(\).*one value per pair"),
    "NaN": (lambda A, B: np.full((len(A), len(B)), np.nan), "NaN|finite"),
    "infinity": (lambda A, B: np.full((len(A), len(B)), np.inf), "infinit|finite"),
    "complex": (lambda A, B: (A @ B.T) * 1j, "[Cc]omplex"),
    "transformer to NaN": (Broken("nan"), "NaN|finite"),
    "transformer to one dimension": (Broken("flat"), "Broken|transformer|shape"),
    "transformer that drops rows": (Broken("short"), "Broken|transformer|shape"),
    "transformer that needs y": (MMDA(), "MMDA|requires y|without labels"),
}


@every(ESTIMATORS)
@cases(BAD_KERNELS)
def test_a_kernel_that_returns_nonsense_is_blamed(cls, case):
    kernel, message = BAD_KERNELS[case]
    refuse(cls(kernel=kernel), X, Y, None, message)


@every(ESTIMATORS)
def test_a_precomputed_kernel_of_wrong_shape(cls):
    refuse(cls(kernel="precomputed"), K[:, :5], Y, None, r"square.*\(20, 5\)")
    fitted = cls(kernel="precomputed").fit(K, Y)
    with pytest.raises(ValueError, match=r"5 features.*expecting 20"):
        fitted.decision_function(K[:3, :5])


@every(ESTIMATORS)
def test_a_precomputed_kernel_that_is_not_symmetric_is_noticed(cls):
    """Its symmetric part is another kernel: an error, or at least a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", MarginfoldWarning)
        with pytest.raises((ValueError, MarginfoldWarning), match="symmetric"):
            cls(kernel="precomputed").fit(np.triu(K), Y)


@every(SUBSPACES)
def test_a_negative_kernel_has_no_directions(cls):
    """All eigenvalues of -K are negative or rounding; rounding is not a coordinate."""
    with pytest.warns(MarginfoldWarning, match="not positive semi-definite"):
        refuse(cls(kernel="precomputed"), -K, Y, None, "0 of 2|no metric|semi-definite")


@pytest.mark.parametrize("feature_map", FEATURE_MAPS, ids=repr)
@cases(["NaN in X", "infinity in X", "text in X", "1-D X", "3-D X", "no rows", "no columns"])
def test_feature_maps_refuse_bad_rows(feature_map, case):
    rows, _, _, message = BAD_DATA[case]
    feature_map = clone(feature_map)
    with pytest.raises(ValueError, match=f"(?s){message.replace('minimum of 2', 'minimum')}"):
        feature_map.fit(rows)
    assert state(feature_map) == {}


@pytest.mark.parametrize("feature_map", FEATURE_MAPS, ids=repr)
@cases(["weights too short", "negative weight", "NaN weight", "zero weights"])
def test_feature_maps_refuse_bad_weights(feature_map, case):
    rows, _, weights, message = BAD_DATA[case]
    feature_map = clone(feature_map)
    with pytest.raises(ValueError, match=message):
        feature_map.fit(rows, sample_weight=weights)
    assert state(feature_map) == {}


@pytest.mark.parametrize("feature_map", FEATURE_MAPS, ids=repr)
def test_feature_maps_at_use(feature_map):
    feature_map = clone(feature_map)
    with pytest.raises(NotFittedError):
        feature_map.transform(X)
    with pytest.raises(NotFittedError):
        feature_map.project(X, np.eye(4))
    feature_map.fit(X)
    with pytest.raises(ValueError, match=r"3 features.*expecting 4"):
        feature_map.transform(X[:, :3])


@pytest.mark.parametrize("feature_map", FEATURE_MAPS, ids=repr)
def test_feature_maps_take_lists(feature_map):
    feature_map = clone(feature_map)
    expected = clone(feature_map).fit(X).transform(X)
    np.testing.assert_array_equal(feature_map.fit(X.tolist()).transform(X.tolist()), expected)


# ------------------------------------------------------------------------------------ the graphs


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: str(graph)[:40])
@pytest.mark.parametrize(
    ("rows", "y", "weights", "message"),
    [
        (changed(X, (3, 1), np.nan), Y, None, "NaN.*Impute"),
        (changed(X, (3, 1), np.inf), Y, None, "infinite.*Impute"),
        (X * 1e200, Y, None, r"overflowing.*1e\+150.*rescale"),
        (X[:, 0], Y, None, r"shape \(20,\).*rows and columns"),
        (X[:0], Y[:0], None, r"shape \(0, 4\).*rows and columns"),
        (X, Y[:5], None, r"y of shape \(5,\).*one label"),
        (X, np.c_[Y, Y], None, r"y of shape \(20, 2\).*one label"),
        (X, Y, np.ones(3), r"sample_weight has shape \(3,\).*20 rows"),
        (X, Y, -np.ones(N), "sample_weight.*negative"),
        (X, Y, np.full(N, np.nan), "sample_weight contains NaN"),
        (X, Y, np.zeros(N), "sample weights are zero"),
    ],
)
def test_graphs_refuse_bad_data(graph, rows, y, weights, message):
    with pytest.raises(GraphError, match=message):
        graph.build(rows, y, sample_weight=weights)


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: str(graph)[:40])
def test_graphs_refuse_text(graph):
    with pytest.raises(ValueError, match=r"could not convert string to float.*red"):
        graph.build(changed(X, (3, 1), "red"), Y)


def test_graphs_add_and_scale_with_what_they_know_only():
    for operation in (
        lambda: NeighborGraph() + "within",
        lambda: NeighborGraph() + NeighborGraph,
        lambda: NeighborGraph() * "2",
        lambda: -NeighborGraph(),
        lambda: NeighborGraph() - TotalGraph(),
    ):
        with pytest.raises(TypeError):
            operation()


ADJACENCY = NeighborGraph(3, merge_duplicates=False).build(X).adjacency.toarray()


@every(WITH_GRAPH)
@pytest.mark.parametrize(
    ("adjacency", "message"),
    [
        (ADJACENCY[:5, :5], r"\(5, 5\) for 20 rows.*cross-validation"),
        (ADJACENCY[:, :5], r"\(20, 5\) for 20 rows"),
        (np.triu(ADJACENCY), r"not symmetric.*\(W \+ W.T\) / 2"),
        (-ADJACENCY, "not positive semi-definite.*smallest eigenvalue is -"),
        (np.where(ADJACENCY > 0, np.nan, 0.0), "NaN or infinite weights"),
    ],
    ids=["too small", "not square", "asymmetric", "indefinite", "NaN"],
)
def test_a_precomputed_graph_that_does_not_fit(cls, adjacency, message):
    graph = PrecomputedGraph(adjacency)
    refuse(cls(graph=graph), X, Y, None, message, GraphError)


@every(WITH_GRAPH)
@pytest.mark.parametrize("graph", [NeighborGraph, ReconstructionGraph])
def test_more_neighbors_than_rows_are_all_rows(cls, graph):
    all_rows = cls(graph=graph(N - 1)).fit(X, Y)
    np.testing.assert_array_equal(
        cls(graph=graph(10 * N)).fit(X, Y).directions_, all_rows.directions_
    )


# --------------------------------------------------------------------------------- odd, but valid


@every(SUBSPACES)
def test_more_components_than_dimensions(cls):
    y = X[:, :2].argmax(axis=1) + 2 * (X[:, 2] > X[:, 3])
    with pytest.warns(ExhaustedWarning, match=r"4 of 9 components.*4 dimensions") as caught:
        fitted = cls(n_components=9).fit(X, y)
    assert fitted.n_components_ == 4
    assert fitted.transform(X).shape == (N, 4)
    assert caught[0].filename == __file__


@every(SUBSPACES)
def test_a_single_feature(cls):
    with pytest.warns(ExhaustedWarning, match=r"1 of 2 components.*1 dimension"):
        assert cls().fit(X[:, :1], Y).transform(X[:, :1]).shape == (N, 1)


@every(CLASSIFIERS)
def test_a_single_feature_is_enough_to_classify(cls):
    rows = np.where(Y == 0, -2.0, 2.0)[:, None] + X[:, :1] / 4
    assert cls().fit(rows, Y).score(rows, Y) == 1


@every(ESTIMATORS)
def test_a_class_with_a_single_row(cls):
    y = Y.copy()
    y[0] = 2
    fitted = cls().fit(X, y)
    assert list(fitted.classes_) == [0, 1, 2]
    assert np.isfinite(fitted.decision_function(X)).all()


@every([MMDA, LSVA, GESVC, LapSVC])
def test_every_class_with_a_single_row(cls):
    fitted = cls().fit(X, np.arange(N))
    assert len(fitted.classes_) == N
    assert np.isfinite(fitted.decision_function(X)).all()


def test_every_class_with_a_single_row_leaves_wsvda_no_metric():
    refuse(WSVDA(), X, np.arange(N), None, "scatter.*WithinClassGraph.*zero.*MMDA")


@every(ESTIMATORS)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "cosine"])
@pytest.mark.parametrize("n_features", [3, 30])
def test_constant_rows(cls, kernel, n_features):
    """Nothing to separate: an error for a subspace, a warning for a classifier; no other noise."""
    rows, y = np.full((7, n_features), 0.1), [0, 1, 0, 1, 0, 1, 0]
    if cls in SUBSPACES:
        refuse(cls(kernel=kernel), rows, y, None, "0 of 2 components|no metric")
        return
    with pytest.warns(ExhaustedWarning, match="no class is separated"):
        fitted = cls(kernel=kernel).fit(rows, y)
    assert set(fitted.predict(rows)) == {0}


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "cosine"])
def test_rounding_of_a_constant_kernel_is_no_coordinate(kernel):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Z = ExactKernel(kernel).fit_transform(np.full((7, 3), 123.4))
    assert Z.shape == (7, 0)


@every(ESTIMATORS)
def test_copies_with_different_labels(cls):
    rows, y = np.vstack([X, X]), np.repeat([0, 1], N)
    if cls in SUBSPACES:
        refuse(cls(), rows, y, None, "0 of 2 components", NoDirectionError)
        return
    with pytest.warns(ExhaustedWarning, match="no class is separated"):
        cls().fit(rows, y)


def test_the_balanced_advice_is_not_given_to_who_follows_it():
    rows, y = np.vstack([X, X]), np.repeat([0, 1], N)
    with pytest.warns(ExhaustedWarning) as caught:
        GESVC(class_weight="balanced").fit(rows, y)
    assert "balanced" not in str(caught[0].message)


@every(ESTIMATORS)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly"])
def test_huge_entries(cls, kernel):
    refuse(cls(kernel=kernel), X * 1e200, Y, None, r"1e\+?150|large|overflow|rescale|scale")


@every(ESTIMATORS)
@pytest.mark.parametrize("size", [1e100, 1e-150, 1e-310])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_entries_of_extreme_size(cls, kernel, size):
    """A certified result, a warning of ours or an error of ours, never a numpy warning."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            fitted = cls(kernel=kernel).fit(X * size, Y)
        except InvalidInputError:
            fitted = None
    foreign = {w.category for w in caught if not issubclass(w.category, MarginfoldWarning)}
    assert not foreign
    if fitted is not None:
        assert np.isfinite(fitted.decision_function(X * size)).all()
        assert caught or fitted.gap_.max() <= fitted.tol


# --------------------------------------------------------------------------------------- the use


@every(ESTIMATORS)
def test_unfitted_use(cls):
    methods = ["decision_function", "predict" if cls in CLASSIFIERS else "transform"]
    if cls in SUBSPACES:
        methods += ["inverse_transform"]
    for method in methods:
        with pytest.raises(NotFittedError, match=f"{cls.__name__} instance is not fitted"):
            getattr(cls(), method)(X)
    if cls in SUBSPACES:
        with pytest.raises(NotFittedError):
            cls().get_feature_names_out()


@every(ESTIMATORS)
@pytest.mark.parametrize("kernel", ["linear", "rbf", PCA(2)], ids=str)
def test_other_columns_at_use(cls, kernel):
    frame = pd.DataFrame(X, columns=list("abcd"))
    fitted = cls(kernel=kernel).fit(frame, Y)
    with pytest.raises(ValueError, match=r"3 features.*expecting 4"):
        fitted.decision_function(X[:, :3])
    with pytest.raises(ValueError, match=r"(?s)feature names should match.*z"):
        fitted.decision_function(frame.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="same order"):
        fitted.decision_function(frame[list("dcba")])
    with pytest.raises(ValueError, match="X contains NaN"):
        fitted.decision_function(frame.where(frame < 1))
    with pytest.raises(ValueError, match="Expected 2D"):
        fitted.decision_function(X[0])
    with pytest.warns(UserWarning, match="valid feature names"):
        fitted.decision_function(X)


@every(SUBSPACES)
def test_inverse_transform_of_another_width(cls):
    fitted = cls().fit(X, Y)
    with pytest.raises(ValueError, match=r"X has 3 columns.*2 components"):
        fitted.inverse_transform(X[:, :3])
    with pytest.raises(ValueError, match="contains NaN"):
        fitted.inverse_transform(np.full((2, 2), np.nan))


@every(SUBSPACES)
def test_there_is_no_inverse_with_a_kernel(cls):
    fitted = cls(kernel="rbf").fit(X, Y)
    assert not hasattr(fitted, "inverse_transform")
    with pytest.raises(AttributeError, match="inverse_transform"):
        _ = fitted.inverse_transform


@pytest.mark.parametrize("weights", [[-1.0], [1.0, np.nan], ["a"], [1.0, -2.0]])
def test_a_path_refuses_the_weights_that_a_fit_refuses(weights):
    with pytest.raises(InvalidParameterError, match="graph_weight must be"):
        LSVA().fit_path(X, Y, weights)


# -------------------------------------------------------------------------------- after a failure

FAILURES = {
    "bad parameter": ({"C": -1.0}, X, Y),
    "NaN": ({}, changed(X, (3, 1), np.nan), Y),
    "one class": ({}, X, np.zeros(N)),
    "one class, fewer columns": ({}, X[:, :2], np.zeros(N)),
    "class weight": ({"class_weight": {9: 1.0}}, X[:, :2], Y),
    "kernel function": ({"kernel": lambda A, B: np.ones((2, 2))}, X[:, :2], Y),
    "kernel name": ({"kernel": "rfb"}, X[:, :2], Y),
    "graph": ({"graph": "kkn"}, X[:, :2], Y),
}


@where_it_applies(FAILURES)
def test_nothing_is_fitted_after_a_failure(cls, case):
    parameters, rows, y = FAILURES[case]
    estimator = cls(**parameters)
    with pytest.raises(ValueError):  # noqa: PT011
        estimator.fit(rows, y)
    assert state(estimator) == {}
    with pytest.raises(NotFittedError):
        estimator.decision_function(rows)


@where_it_applies(FAILURES)
def test_a_fitted_estimator_survives_a_failed_fit(cls, case):
    parameters, rows, y = FAILURES[case]
    estimator = cls().fit(X, Y)
    before, decisions = dict(state(estimator)), estimator.decision_function(X)
    estimator.set_params(**parameters)
    with pytest.raises(ValueError):  # noqa: PT011
        estimator.fit(rows, y)
    estimator.set_params(**cls().get_params(deep=False))
    assert all(state(estimator)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(estimator.decision_function(X), decisions)


@every(ESTIMATORS)
def test_feature_names_survive_a_failed_fit(cls):
    frame = pd.DataFrame(X, columns=list("abcd"))
    estimator = cls().fit(frame, Y)
    with pytest.raises(ValueError, match="1 class"):
        estimator.fit(frame.rename(columns=str.upper), np.zeros(N))
    assert list(estimator.feature_names_in_) == list("abcd")


@every(ESTIMATORS)
def test_a_new_fit_forgets_the_old_one(cls):
    """After a change from linear to a kernel nothing of the linear fit may be left."""
    estimator = cls().fit(pd.DataFrame(X, columns=list("abcd")), Y)
    estimator.set_params(kernel="rbf").fit(X[:, :2], Y)
    fresh = cls(kernel="rbf").fit(X[:, :2], Y)
    assert state(estimator).keys() == state(fresh).keys()


@every(ESTIMATORS)
def test_neighbors_see_the_same_rows_afterwards(cls):
    """Read-only arrays are enough: nothing is written into what the user gave."""
    rows, y, weights = X.copy(), Y.copy(), np.ones(N)
    for array in (rows, y, weights):
        array.flags.writeable = False
    fitted = cls().fit(rows, y, sample_weight=weights)
    fitted.decision_function(rows)
    KNeighborsClassifier().fit(rows, y)
    np.testing.assert_array_equal(rows, X)
