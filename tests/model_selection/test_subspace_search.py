"""SubspaceSearchCV: the answer of GridSearchCV over the pipeline, to the digit."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse
from grid_search import assert_same, both
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, make_scorer
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import GridSearchCV, GroupKFold, ShuffleSplit, StratifiedKFold
from sklearn.neighbors import (
    KNeighborsClassifier,
    NearestCentroid,
    NeighborhoodComponentsAnalysis,
)
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import scale
from sklearn.tree import DecisionTreeClassifier

from marginfold import (
    KDA,
    LDA,
    LPP,
    LSVA,
    MMDA,
    SVMPCA,
    WSVDA,
    LaplacianEigenmaps,
    LowRankKernel,
    NeighborsClassifier,
)
from marginfold.model_selection.subspace_search import SubspaceSearchCV

IRIS = load_iris().data[::2], load_iris().target[::2]
WINE = scale(load_wine().data)[::2], load_wine().target[::2]
CANCER = scale(load_breast_cancer().data)[::3], load_breast_cancer().target[::3]
DIGITS = load_digits().data[:200], load_digits().target[:200]

WEIGHTS = {"graph_weight": [0.1, 10.0]}
COSTS = {"C": [0.5, 20]}
X, Y = IRIS
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)
SHUFFLED = np.random.default_rng(0).permutation(len(Y))


# ------------------------------------------------------------------------- data sets and methods

DATA = {
    "iris": (IRIS, LSVA(3), {**COSTS, **WEIGHTS}),
    "wine": (WINE, WSVDA(4), COSTS),
    "cancer": (CANCER, LSVA(3), WEIGHTS),
    "digits": (DIGITS, LSVA(12), {"graph_weight": [1.0], "n_components": [9, 2]}),
    "plain": (WINE, MMDA(4), {}),
}


@pytest.mark.parametrize("name", DATA)
def test_one_neighbor(name):
    data, estimator, grid = DATA[name]
    assert_same(*both(estimator, *data, grid=grid, cv=2))


METHODS = {
    "greedy": LSVA(3, tasks="greedy"),
    "splits": MMDA(3, tasks="splits"),
    "margin": LSVA(3, scaling="margin"),
    "variance after the end": MMDA(4, class_weight=None, on_exhausted="pca"),
    "fewer than asked": LSVA(5),
    "kernel": LSVA(3, kernel="rbf"),
    "rows on the margin": WSVDA(3, kernel="rbf"),
    "reconstruction": MMDA(2, kernel="rbf", reconstruct="linear"),
    "libsvm": MMDA(2, solver="libsvm"),
}


@pytest.mark.parametrize("name", METHODS)
def test_options_of_the_method(name):
    """Rows on the margin have equal images: which is the nearest is left to rounding."""
    grid = {"C": [1.0, 30.0], "n_components": [1, METHODS[name].n_components]}
    assert_same(*both(METHODS[name], X, Y, grid=grid, cv=2))


def test_a_precomputed_kernel_is_split_by_rows_and_columns():
    K = rbf_kernel(X, gamma=0.5)
    assert_same(*both(LSVA(2, kernel="precomputed"), K, Y, grid=WEIGHTS, cv=2))


# ------------------------------------------------------------------------- classifiers and scores

CLASSIFIERS = {
    "three": KNeighborsClassifier(3),
    "four": KNeighborsClassifier(4, algorithm="brute"),
    "by distance": KNeighborsClassifier(5, weights="distance"),
    "manhattan": KNeighborsClassifier(3, p=1),
    "centroid": NearestCentroid(),
    "tree": DecisionTreeClassifier(max_depth=3, random_state=0),
    "logistic": LogisticRegression(),
}


@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name):
    options = {"classifier": CLASSIFIERS[name], "cv": 2, "return_train_score": True}
    assert_same(*both(LSVA(2), *IRIS, grid=WEIGHTS, **options))


@pytest.mark.parametrize("scoring", ["f1_macro", "balanced_accuracy", make_scorer(f1_score)])
def test_scorers_of_predictions(scoring):
    two = Y > 0 if callable(scoring) else Y >= 0
    assert_same(*both(LSVA(2), X[two], Y[two], grid=WEIGHTS, scoring=scoring, cv=2))


@pytest.mark.parametrize("scoring", ["roc_auc", "neg_log_loss"])
@pytest.mark.parametrize("classifier", [KNeighborsClassifier(7), LogisticRegression()])
def test_scorers_of_probabilities(scoring, classifier):
    """A score that is not a count has the rounding of the images."""
    rows = Y > 0
    options = {"classifier": classifier, "scoring": scoring, "cv": 2}
    assert_same(*both(LSVA(2), X[rows], Y[rows], grid=WEIGHTS, **options), tolerance=1e-12)


def sees_the_pipeline(pipeline, X, y):
    return pipeline.score(X, y) + pipeline["subspace"].gain_.min() + 10 * X.shape[1]


def test_a_function_that_looks_into_the_pipeline():
    options = {"scoring": sees_the_pipeline, "cv": 2, "return_train_score": True}
    assert_same(*both(LSVA(2), *IRIS, grid=WEIGHTS, **options))


@pytest.mark.parametrize(
    "scoring",
    [
        ["accuracy", "f1_macro"],
        {"accuracy": "accuracy", "f1_macro": make_scorer(f1_score, average="macro")},
    ],
)
def test_several_metrics(scoring):
    ours, theirs = both(WSVDA(2), *WINE, grid=COSTS, scoring=scoring, refit="f1_macro", cv=2)
    assert_same(ours, theirs)
    assert ours.score(*WINE) == theirs.score(*WINE)


def test_several_metrics_without_a_choice():
    options = {"scoring": ["accuracy", "f1_macro"], "refit": False, "cv": 2}
    assert_same(*both(WSVDA(2), *WINE, grid={"C": [1.0]}, **options))


def fewest_components(results):
    good = results["mean_test_score"] >= results["mean_test_score"].max() - 0.03
    return int(np.flatnonzero(good)[0])


def test_a_function_chooses():
    ours, theirs = both(LSVA(2), *IRIS, grid=WEIGHTS, refit=fewest_components, cv=2)
    assert_same(ours, theirs)
    assert_array_equal(ours.predict(X), theirs.predict(X))


# ---------------------------------------------------------------------------------- folds and rows


@pytest.mark.parametrize(
    "cv",
    [StratifiedKFold(3, shuffle=True, random_state=1), ShuffleSplit(2, random_state=0), None],
)
def test_splitters(cv):
    assert_same(*both(LSVA(2), *IRIS, grid=WEIGHTS, cv=cv))


def test_folds_given_as_row_numbers():
    folds = [
        (np.arange(0, 75, 2), np.arange(1, 75, 2)),
        (np.arange(1, 75, 2), np.arange(0, 75, 2)),
    ]
    assert_same(*both(LSVA(2), *IRIS, grid=WEIGHTS, cv=folds))


def test_groups_stay_together():
    groups = np.random.default_rng(0).integers(0, 9, len(Y))
    assert_same(*both(LSVA(2), *IRIS, grid=WEIGHTS, cv=GroupKFold(2), groups=groups))


@pytest.mark.parametrize("classifier", [None, LogisticRegression()])
def test_weights_of_rows(classifier):
    weights = np.random.default_rng(0).uniform(0.2, 3.0, len(Y))
    ours, theirs = both(LSVA(2), *IRIS, grid=WEIGHTS, classifier=classifier, weights=weights, cv=2)
    assert_same(ours, theirs)
    assert_array_equal(ours.predict(X), theirs.predict(X))


def test_a_class_whose_rows_weigh_nothing_is_no_class():
    rows, labels = DIGITS[0][DIGITS[1] < 4], DIGITS[1][DIGITS[1] < 4]
    weights = np.where(labels == 3, 0.0, 1.0)
    grid = {"n_components": [2, 3]}  # of three classes these are different tasks, of four the same
    assert_same(*both(LSVA(2), rows, labels, grid=grid, weights=weights, cv=2))


def test_frames_and_words():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(X, columns=["a", "b", "c", "d"], index=np.arange(75) * 3)
    words = pd.Series(np.array(["zebra", "ant", "10"])[Y], index=frame.index)
    ours, theirs = both(LSVA(2), frame, words, grid=WEIGHTS, cv=2)
    assert_same(ours, theirs)
    assert_array_equal(ours.feature_names_in_, theirs.feature_names_in_)
    assert_array_equal(ours.classes_, theirs.classes_)
    assert_array_equal(ours.predict(frame), theirs.predict(frame))


@pytest.mark.parametrize("kind", [scipy.sparse.csr_matrix, scipy.sparse.csc_array])
def test_sparse_rows(kind):
    assert_same(*both(LSVA(2), kind(DIGITS[0][:100]), DIGITS[1][:100], grid=WEIGHTS, cv=2))


def test_lists():
    assert_same(*both(LSVA(2), X.tolist(), Y.tolist(), grid=WEIGHTS, cv=2))


def test_copies_of_a_row_in_two_classes():
    """Equally near rows: the rule of scikit-learn decides, whatever its search structure."""
    rng = np.random.default_rng(0)
    rows = rng.integers(0, 3, (60, 2)).astype(float)
    y = (rows.sum(axis=1) + rng.integers(0, 2, 60) > 2).astype(int)
    for n_neighbors in (1, 3):
        options = {"classifier": KNeighborsClassifier(n_neighbors), "cv": 2}
        assert_same(*both(LSVA(2), rows, y, grid=WEIGHTS, **options))


# ------------------------------------------------------------------------------------------ errors


def fails_on_a_fold(estimator, X, y):
    if y[0] == 0 and X[0, 0] > 5.0:
        raise ZeroDivisionError("nothing to divide")
    return estimator.score(X, y)


@pytest.mark.parametrize("error_score", [np.nan, -1.0])
@pytest.mark.filterwarnings("ignore:.*(S|s)coring failed.*", "ignore:.*finite.*")
def test_a_scorer_that_fails_has_the_error_score(error_score):
    options = {"scoring": fails_on_a_fold, "error_score": error_score, "cv": 2}
    ours, theirs = both(LSVA(2), *IRIS, grid=WEIGHTS, **options)
    assert_same(ours, theirs)
    assert (
        np.isin(ours.cv_results_["split0_test_score"], [error_score]).all()
        or np.isnan(ours.cv_results_["split0_test_score"]).all()
    )


@pytest.mark.filterwarnings("ignore:.*finite.*")
def test_a_member_without_any_direction_has_the_error_score():
    """A cost so small that nothing is separated; the others are not lost with it."""
    rng = np.random.default_rng(0)
    noise = np.repeat(rng.standard_normal((40, 3)), 2, axis=0)
    y = np.tile([0, 1], 40)
    folds = [(np.arange(40), np.arange(40, 80)), (np.r_[0:40, 41], np.arange(42, 80))]
    with pytest.warns(match="fits failed") as caught:
        ours, theirs = both(MMDA(2), noise, y, grid={"C": [1.0, 10.0]}, cv=folds, refit=False)
    assert_same(ours, theirs)
    assert np.isnan(ours.cv_results_["split0_test_score"]).all()
    assert np.isfinite(ours.cv_results_["split1_test_score"]).all()
    assert any("NoDirectionError" in str(warning.message) for warning in caught)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_classifier_that_fails_has_the_error_score():
    classifier = KNeighborsClassifier(50)
    folds = [(np.arange(0, 75, 2), np.arange(1, 75, 2)), (np.arange(60), np.arange(60, 75))]
    options = {"classifier": classifier, "cv": folds, "error_score": 0.25}
    assert_same(*both(LSVA(2), X[SHUFFLED], Y[SHUFFLED], grid=WEIGHTS, **options))


def test_seconds_are_spread_over_the_candidates():
    search = SubspaceSearchCV(LSVA(3), graph_weight=[0.1, 1.0], cv=2).fit(X, Y)
    for name in ("mean_fit_time", "std_fit_time", "mean_score_time", "std_score_time"):
        assert search.cv_results_[name].shape == (6,)
        assert (search.cv_results_[name] >= 0).all()
    assert search.cv_results_["mean_fit_time"].min() > 0


# ------------------------------------------------------------- other transformers, and neighbors

TRANSFORMERS = {
    "discriminants": LDA(2),
    "kernel discriminants": KDA(2, kernel=LowRankKernel("rbf", rank=30)),
    "projections": LPP(3),
    "principal components": SVMPCA(3),
    "a graph's own coordinates": LaplacianEigenmaps(3),
    "of scikit-learn": PCA(3),
    "not nested": NeighborhoodComponentsAnalysis(3, max_iter=5, random_state=0),
}


@pytest.mark.parametrize("name", TRANSFORMERS)
@pytest.mark.parametrize("classifier", [NeighborsClassifier(3), LogisticRegression(max_iter=500)])
def test_any_transformer_with_a_number_of_components(name, classifier):
    data, labels = WINE
    found = both(TRANSFORMERS[name], data, labels, grid={}, classifier=classifier, cv=FOLDS)
    assert_same(*found, tolerance=1e-12)


@pytest.mark.parametrize("estimator", [LDA(2), LSVA(4), PCA(3)])
@pytest.mark.parametrize("scoring", [None, "neg_log_loss"])
def test_numbers_of_neighbors_are_chosen_as_grid_search_does(estimator, scoring):
    data, labels = WINE
    weights = WEIGHTS if isinstance(estimator, LSVA) else {}
    ours = SubspaceSearchCV(
        estimator, **weights, n_neighbors=(1, 5, 80), cv=FOLDS, scoring=scoring
    ).fit(data, labels)
    grid = {f"subspace__{name}": values for name, values in weights.items()}
    grid["subspace__n_components"] = list(range(1, estimator.n_components + 1))
    grid["classifier__n_neighbors"] = [1, 5, 80]
    pipeline = Pipeline([("subspace", estimator), ("classifier", NeighborsClassifier())])
    theirs = GridSearchCV(pipeline, grid, cv=FOLDS, scoring=scoring).fit(data, labels)
    plain = [
        {name.split("__")[1]: value for name, value in point.items()}
        for point in theirs.cv_results_["params"]
    ]
    order = [plain.index(point) for point in ours.cv_results_["params"]]
    assert sorted(order) == list(range(len(plain)))
    expected = theirs.cv_results_["mean_test_score"][order]
    assert_allclose(ours.cv_results_["mean_test_score"], expected, rtol=0, atol=1e-12)
    best = {f"subspace__{name}": value for name, value in ours.best_params_.items()}
    best["classifier__n_neighbors"] = best.pop("subspace__n_neighbors")
    alone = clone(pipeline).set_params(**best).fit(data, labels)
    assert_array_equal(ours.predict(data), alone.predict(data))
