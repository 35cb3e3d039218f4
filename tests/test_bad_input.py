"""Bad input: a clear error or the documented result, and nothing else.

Every refusal is a ValueError whose message says what was got and what is needed.  No numpy warning
may leak out of one, no input may be changed by one, and an estimator must be after it what it was
before.  Bad parameters, kernels and graphs are in ``test_bad_parameters``, failed
fits and misuse of fitted estimators in ``test_misuse``.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from bad_data import BAD_LABELS, BAD_ROWS, N, X, Y, changed, refuse
from estimator_families import (
    DISCRIMINANTS,
    EMBEDDINGS,
    ESTIMATORS,
    MACHINES,
    PLANES,
    SUBSPACES,
    SUPERVISED,
    UNSUPERVISED,
    cases,
    every,
    having,
    images,
    state,
)
from sklearn.base import clone
from sklearn.decomposition import PCA

from marginfold import (
    GEPSVC,
    GESVC,
    LPP,
    LSVA,
    MMDA,
    MRGEPSVC,
    NPE,
    WSVDA,
    ExactKernel,
    GraphEmbedding,
    LapSVC,
    Linear,
    NeighborGraph,
    TwinSVC,
)
from marginfold.errors import (
    ExhaustedWarning,
    InvalidInputError,
    InvalidParameterError,
    MarginfoldWarning,
    NoDirectionError,
)
from marginfold.feature_maps import Transformed

pytestmark = [
    pytest.mark.filterwarnings("error::RuntimeWarning", "error::DeprecationWarning"),
    pytest.mark.attack("misuse of estimators"),
]

FEATURE_MAPS = [Linear(), ExactKernel("rbf"), ExactKernel("poly"), Transformed(PCA(2))]

# --------------------------------------------------------------------------------------- the data


@every(ESTIMATORS)
@cases(BAD_ROWS)
def test_bad_rows_and_weights_are_refused(cls, case):
    refuse(cls(), *BAD_ROWS[case])


@every(SUPERVISED)
@cases(BAD_LABELS)
def test_bad_labels_are_refused(cls, case):
    refuse(cls(), *BAD_LABELS[case])


@every(UNSUPERVISED)
@cases(BAD_LABELS)
def test_labels_that_are_not_used_are_not_looked_at(cls, case):
    """In a pipeline with a regressor y is continuous; an unsupervised step must not mind."""
    rows, y, weights, _ = BAD_LABELS[case]
    fitted = cls().fit(rows, y, sample_weight=weights)
    expected = cls().fit(rows, sample_weight=weights)
    np.testing.assert_array_equal(fitted.transform(X), expected.transform(X))
    assert not hasattr(fitted, "classes_")


LABELLED_GRAPHS = {
    "between": GraphEmbedding(intrinsic=None, penalty="between"),
    "within": GraphEmbedding(intrinsic="within", penalty="total"),
    "neighbors within classes": LPP(graph=NeighborGraph(3, within_class=True)),
    "a sum": NPE(graph=NeighborGraph(3) + 0.5 * NeighborGraph(3, within_class=True)),
}


@pytest.mark.parametrize("model", LABELLED_GRAPHS.values(), ids=list(LABELLED_GRAPHS))
@cases(BAD_LABELS)
def test_labels_are_checked_where_a_graph_has_classes(model, case):
    refuse(model, *BAD_LABELS[case])


@every(ESTIMATORS)
@cases(["NaN in X", "infinity in X", "1-D X", "text in X"])
def test_bad_rows_are_refused_with_a_kernel_too(cls, case):
    refuse(cls(kernel="rbf"), *BAD_ROWS[case])


@every(ESTIMATORS)
def test_bad_sparse_rows_are_refused(cls):
    refuse_sparse = sp.csr_array(changed(X, (3, 1), np.nan))
    with pytest.raises(ValueError, match="contains NaN"):
        cls().fit(refuse_sparse, Y)


@every(having("unlabeled", "class_weight") + DISCRIMINANTS)
def test_all_rows_unlabelled(cls):
    refuse(cls(unlabeled=-1), X, np.full(N, -1), None, "All 20 rows are unlabelled.*-1.*two class")


@every(having("unlabeled", "class_weight") + DISCRIMINANTS)
def test_one_class_beside_unlabelled_rows(cls):
    y = np.where(Y == 0, "a", "?")
    refuse(cls(unlabeled="?"), X, y, None, r"1 class.*'a'.*at least 2.*'\?'.*unlabelled")


def test_labels_plus_and_minus_one_are_explained_by_lapsvc():
    y = np.where(Y == 0, -1, 1)
    refuse(LapSVC(), X, y, None, "1 class.*at least 2.*-1 count as unlabelled.*unlabeled=None")
    assert list(LapSVC(unlabeled=None).fit(X, y).classes_) == [-1, 1]


@every(SUPERVISED)
def test_labels_of_mixed_types_without_a_marker(cls):
    """["a", "b", -1] with no marker for -1 is no set of classes; the message must say so."""
    y = np.array(["a", "b"], dtype=object)[Y]
    y[3] = -1
    marker = {"unlabeled": None} if "unlabeled" in cls().get_params() else {}
    refuse(cls(**marker), X, y, None, "types|unlabeled")


@every(SUPERVISED)
def test_missing_text_labels(cls):
    y = np.array(["a", "b"], dtype=object)[Y]
    y[3] = None
    refuse(cls(), X, y, None, "None|missing|types")


@every(having("unlabeled", "class_weight") + DISCRIMINANTS)
def test_nan_marks_unlabelled_rows_where_the_graphs_say_so(cls):
    """`WithinClassGraph` advises unlabeled=np.nan; here it works, or an error names it."""
    expected = cls(unlabeled=-1).fit(X, changed(Y, [3, 14], -1))
    try:
        estimator = cls(unlabeled=np.nan).fit(X, changed(Y, [3, 14], np.nan))
    except ValueError as error:
        assert "unlabeled" in str(error)  # noqa: PT017
        return
    np.testing.assert_array_equal(estimator.classes_, [0, 1])
    np.testing.assert_array_equal(images(estimator, X), images(expected, X))


@every(having("unlabeled", "class_weight") + DISCRIMINANTS)
def test_a_marker_that_is_not_one_value(cls):
    refuse(cls(unlabeled=np.array([-1, -2])), X, Y, None, "unlabeled.*one|single|scalar")


@every(SUPERVISED)
@pytest.mark.parametrize("y", [np.full(N, 7), np.full(N, "a"), np.full(N, True)])
def test_messages_show_labels_as_the_user_wrote_them(cls, y):
    message = refuse(cls(), X, y, None, "1 class")
    assert "np." not in message


@every(having("class_weight"))
def test_messages_show_classes_as_the_user_wrote_them(cls):
    message = refuse(cls(class_weight={"z": 1.0}), X, Y, None, "'z'", InvalidParameterError)
    assert "np." not in message


@every(ESTIMATORS)
def test_a_scalar_weight_is_one_for_all_rows(cls):
    """As in scikit-learn: ``sample_weight=2.0`` is two for every row."""
    one = cls().fit(X, Y, sample_weight=np.full(N, 2.0))
    np.testing.assert_array_equal(images(cls().fit(X, Y, sample_weight=2.0), X), images(one, X))


@every(ESTIMATORS)
@pytest.mark.parametrize("weight", [1e-310, 1e-20, 1e90, 1e300])
def test_weights_at_the_ends_of_the_range(cls, weight):
    """A result, or an error that blames the weights; no numpy warning in between."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", MarginfoldWarning)
            fitted = cls().fit(X, Y, sample_weight=np.full(N, weight))
    except ValueError as error:
        assert "weight" in str(error) or isinstance(error, NoDirectionError)  # noqa: PT017
    else:
        assert np.isfinite(images(fitted, X)).all()


@every(EMBEDDINGS)
def test_weight_of_a_single_row_leaves_nothing_to_embed(cls):
    weights = np.eye(N)[3]
    refuse(cls(), X, Y, weights, "1 class|no component|no scatter|edges", InvalidInputError)


@pytest.mark.parametrize("feature_map", FEATURE_MAPS, ids=repr)
@cases(["NaN in X", "infinity in X", "text in X", "1-D X", "3-D X", "no rows", "no columns"])
def test_feature_maps_refuse_bad_rows(feature_map, case):
    rows, _, _, message = BAD_ROWS[case]
    feature_map = clone(feature_map)
    with pytest.raises(ValueError, match=f"(?s){message.replace('minimum of 2', 'minimum')}"):
        feature_map.fit(rows)
    assert state(feature_map) == {}


@pytest.mark.parametrize("feature_map", FEATURE_MAPS, ids=repr)
@cases(["weights too short", "negative weight", "NaN weight", "zero weights"])
def test_feature_maps_refuse_bad_weights(feature_map, case):
    rows, _, weights, message = BAD_ROWS[case]
    feature_map = clone(feature_map)
    with pytest.raises(ValueError, match=message):
        feature_map.fit(rows, sample_weight=weights)
    assert state(feature_map) == {}


# --------------------------------------------------------------------------------- odd, but valid


@every(SUBSPACES)
def test_more_components_than_dimensions(cls):
    y = X[:, :2].argmax(axis=1) + 2 * (X[:, 2] > X[:, 3])
    with pytest.warns(ExhaustedWarning, match=r"4 of 9 components.*4 dimensions") as caught:
        fitted = cls(n_components=9).fit(X, y)
    assert fitted.n_components_ == 4
    assert fitted.transform(X).shape == (N, 4)
    assert caught[0].filename == __file__


@every(UNSUPERVISED)
def test_more_components_than_dimensions_without_labels(cls):
    with pytest.warns(ExhaustedWarning, match=f"{cls.__name__} found 4 of 9 components") as caught:
        fitted = cls(n_components=9).fit(X)
    assert fitted.transform(X).shape == (N, fitted.n_components_) == (N, 4)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        everything = cls(n_components=None).fit(X)
    np.testing.assert_array_equal(everything.transform(X), fitted.transform(X))


@every(DISCRIMINANTS)
def test_more_components_than_class_means(cls):
    with pytest.warns(ExhaustedWarning, match=f"{cls.__name__} found 1 of 3 components") as caught:
        fitted = cls(n_components=3).fit(X, Y)
    assert caught[0].filename == __file__
    np.testing.assert_array_equal(fitted.transform(X), cls().fit(X, Y).transform(X))


@every(SUBSPACES)
def test_a_single_feature(cls):
    with pytest.warns(ExhaustedWarning, match=r"1 of 2 components.*1 dimension"):
        assert cls().fit(X[:, :1], Y).transform(X[:, :1]).shape == (N, 1)


@every(EMBEDDINGS)
def test_a_single_feature_is_embedded_on_a_line(cls):
    """The only direction there is: the image is the feature, moved and scaled."""
    scores = cls(n_components=1, kernel="linear").fit(X[:, :1], Y).transform(X[:, :1])
    assert abs(np.corrcoef(scores[:, 0], X[:, 0])[0, 1]) > 1 - 1e-12


@every(MACHINES)
def test_a_single_feature_is_enough_to_classify(cls):
    rows = np.where(Y == 0, -2.0, 2.0)[:, None] + X[:, :1] / 4
    assert cls().fit(rows, Y).score(rows, Y) == 1


@every([GEPSVC, MRGEPSVC])
def test_planes_of_a_single_feature_are_points(cls):
    """Far from each other and each close to its own class: the nearest point decides."""
    rows = np.where(Y == 0, -2.0, 2.0)[:, None] + X[:, :1] / 4
    fitted = cls().fit(rows, Y)
    assert fitted.score(rows, Y) == 1
    np.testing.assert_array_equal(np.abs(fitted.normals_), [[1.0], [1.0]])
    places = -fitted.intercept_ / fitted.coef_[:, 0]
    np.testing.assert_allclose(fitted.distances(rows), np.abs(rows - places), rtol=0, atol=1e-12)


@every(SUPERVISED)
def test_a_class_with_a_single_row(cls):
    y = Y.copy()
    y[0] = 2
    fitted = cls().fit(X, y)
    assert list(fitted.classes_) == [0, 1, 2]
    assert np.isfinite(images(fitted, X)).all()


@every([MMDA, LSVA, GESVC, LapSVC])
def test_every_class_with_a_single_row(cls):
    fitted = cls().fit(X, np.arange(N))
    assert len(fitted.classes_) == N
    assert np.isfinite(fitted.decision_function(X)).all()


@every([GEPSVC, MRGEPSVC])
def test_planes_through_single_rows(cls):
    """A plane through one row: the row is nearest to its own of 20."""
    fitted = cls(ridge=1e-6, multiclass="one_vs_rest").fit(X, np.arange(N))
    np.testing.assert_array_equal(fitted.predict(X), np.arange(N))
    assert np.diagonal(fitted.distances(X)).max() < 1e-3


def test_every_class_with_a_single_row_leaves_wsvda_no_metric():
    refuse(WSVDA(), X, np.arange(N), None, "scatter.*WithinClassGraph.*zero.*MMDA")


@every(DISCRIMINANTS)
def test_every_class_with_a_single_row_has_no_scatter_within(cls):
    refuse(cls(), X, np.arange(N), None, "no scatter", InvalidInputError)


@every([*SUBSPACES, *MACHINES])
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


@every([*PLANES, *EMBEDDINGS])
@pytest.mark.parametrize("kernel", ["linear", "rbf", "poly", "cosine"])
@pytest.mark.parametrize("n_features", [3, 30])
def test_constant_rows_have_no_eigenvectors(cls, kernel, n_features):
    rows, y = np.full((7, n_features), 0.1), [0, 1, 0, 1, 0, 1, 0]
    if cls in EMBEDDINGS:
        message = "no component|no scatter|edges"
        refuse(cls(kernel=kernel), rows, y, None, message, InvalidInputError)
        return
    with pytest.warns(ExhaustedWarning, match=f"{cls.__name__}: no class has a plane") as caught:
        fitted = cls(kernel=kernel).fit(rows, y)
    assert caught[0].filename == __file__
    assert set(fitted.predict(rows)) == {0}  # the class with most rows


@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "cosine"])
def test_rounding_of_a_constant_kernel_is_no_coordinate(kernel):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Z = ExactKernel(kernel).fit_transform(np.full((7, 3), 123.4))
    assert Z.shape == (7, 0)


@every([*SUBSPACES, *MACHINES])
def test_copies_with_different_labels(cls):
    rows, y = np.vstack([X, X]), np.repeat([0, 1], N)
    if cls in SUBSPACES:
        refuse(cls(), rows, y, None, "0 of 2 components", NoDirectionError)
        return
    with pytest.warns(ExhaustedWarning, match="no class is separated"):
        cls().fit(rows, y)


@every(DISCRIMINANTS)
def test_classes_of_equal_means_have_no_discriminant(cls):
    rows, y = np.vstack([X, X]), np.repeat([0, 1], N)
    refuse(cls(), rows, y, None, f"{cls.__name__}: there is no direction.*means", NoDirectionError)


@every([GEPSVC, MRGEPSVC])
def test_copies_with_different_labels_have_the_same_plane(cls):
    """P = Q for both classes: the same plane, if there is one, and no class is nearer."""
    rows, y = np.vstack([X, X]), np.repeat([0, 1], N)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        fitted = cls().fit(rows, y)
    if caught:
        assert {warning.category for warning in caught} == {ExhaustedWarning}
        assert set(fitted.predict(X)) == {0}
        return
    distances = fitted.distances(X)
    np.testing.assert_allclose(distances[:, 0], distances[:, 1], rtol=0, atol=1e-7)


def test_twin_planes_of_equal_classes_are_infinitely_far():
    rows, y = np.vstack([X, X]), np.repeat([0, 1], N)
    with pytest.warns(ExhaustedWarning, match="no class has a plane near the rows"):
        TwinSVC().fit(rows, y)


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
        assert np.isfinite(images(fitted, X * size)).all()
        assert caught or not hasattr(fitted, "gap_") or fitted.gap_.max() <= fitted.tol
