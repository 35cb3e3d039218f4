"""MarginMap: the rule recomputed, the circle, the choice of sharpness, classifiers of all kinds."""

from __future__ import annotations

import pickle
import warnings
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from scipy.spatial import ConvexHull
from scipy.spatial.distance import pdist
from sklearn import config_context
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine, make_blobs
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.model_selection import (
    GridSearchCV,
    ShuffleSplit,
    StratifiedKFold,
    StratifiedShuffleSplit,
    train_test_split,
)
from sklearn.multiclass import OneVsOneClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler, scale
from sklearn.semi_supervised import LabelSpreading
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from marginfold import GESVC, LapSVC, MarginMap
from marginfold.errors import InvalidInputError, InvalidParameterError, MarginfoldWarning
from marginfold.estimators import held_out

WINE, WINE_Y = load_wine(return_X_y=True)
WINE = scale(WINE)
TWO = WINE_Y != 2


def overlapping(n_classes=6, n=120, seed=0):
    """Classes that are confused unequally: their centres lie at random in a plane."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) % n_classes
    centres = np.column_stack([rng.normal(size=(n_classes, 2)) * 2, np.zeros(n_classes)])
    return centres[y] + rng.normal(size=(n, 3)), y


X, Y = overlapping()
NEW, NEW_Y = overlapping(n=60)

CLASSIFIERS = {
    "default": None,
    "SVC": SVC(),
    "GaussianNB": GaussianNB(),
    "one vs one": OneVsOneClassifier(RidgeClassifier()),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()),
    "search": GridSearchCV(RidgeClassifier(), {"alpha": [0.1, 1.0]}, cv=2),
    "calibrated": CalibratedClassifierCV(RidgeClassifier(), cv=2),
    "tree": DecisionTreeClassifier(random_state=0),
}
each_classifier = pytest.mark.parametrize(
    "classifier", CLASSIFIERS.values(), ids=CLASSIFIERS.keys()
)


@parametrize_with_checks([MarginMap(sharpness=4.0)])
def test_scikit_learn_contract(estimator, check):
    check(estimator)


def image(margins, unit, sharpness, anchors):
    """The map of one row, written down literally."""
    weights = [np.exp(sharpness * (m - max(margins)) / unit) for m in margins]
    return sum(w * a for w, a in zip(weights, anchors, strict=True)) / sum(weights)


def mean_lead(margins):
    return np.mean([np.sort(row)[-1] - np.sort(row)[-2] for row in margins])


@pytest.mark.parametrize(
    ("classifier", "margins"),
    [
        (SVC(), lambda model, rows: model.decision_function(rows)),
        (GESVC(class_weight="balanced"), lambda model, rows: model.decision_function(rows)),
        (GaussianNB(), lambda model, rows: np.log(np.clip(model.predict_proba(rows), 1e-12, 1))),
        (
            DecisionTreeClassifier(random_state=0),
            lambda model, rows: np.log(np.clip(model.predict_proba(rows), 1e-12, 1)),
        ),
    ],
    ids=["SVC", "GESVC", "GaussianNB", "tree"],
)
def test_the_rule_recomputed(classifier, margins):
    fitted = MarginMap(classifier, sharpness=3.0).fit(X, Y)
    alone = clone(classifier).fit(X, Y)
    unit = mean_lead(margins(alone, X))
    assert_allclose(fitted.scale_, unit)
    expected = [image(m, unit, 3.0, fitted.anchors_) for m in margins(alone, NEW)]
    assert_allclose(fitted.transform(NEW), expected, atol=1e-12)
    weights = fitted.memberships(NEW)
    assert_allclose(weights.sum(axis=1), 1.0)
    assert_array_equal(
        fitted.classes_[weights.argmax(axis=1)], alone.classes_[margins(alone, NEW).argmax(axis=1)]
    )


def test_the_first_coordinate_of_two_classes_is_the_margin():
    for classifier in (None, SVC(), GaussianNB()):
        fitted = MarginMap(classifier, cv=2).fit(WINE[TWO], WINE_Y[TWO])
        assert_array_equal(fitted.anchors_, [[1.0, 0.0], [-1.0, 0.0]])
        Z = fitted.transform(WINE[TWO])
        assert (((Z[:, 0] > 0) == (WINE_Y[TWO] == 0)).mean()) > 0.95
    f = fitted.classifier_.predict_proba(WINE[TWO])
    logit = np.log(np.clip(f, 1e-12, 1)) @ [1, -1]
    unit = np.abs(logit).mean()
    assert_allclose(Z[:, 0], np.tanh(fitted.sharpness_ * logit / unit / 2), atol=1e-12)


def literal_second(rows, x, new_rows, new_x):
    """The residuals of ten principal scores after a regression on x, along their main axis."""
    pca = PCA(min(10, *rows.shape)).fit(rows)
    design = np.column_stack([np.ones_like(x), x])
    slopes = np.linalg.lstsq(design, pca.transform(rows), rcond=None)[0]
    seen = pca.transform(rows) - design @ slopes
    axis = np.linalg.svd(seen, full_matrices=False)[2][0]
    new = pca.transform(new_rows) - np.column_stack([np.ones_like(new_x), new_x]) @ slopes
    u = new @ axis / (seen @ axis).std()
    return 0.5 * u / np.sqrt(4 + u**2)


@pytest.mark.parametrize("classifier", [None, SVC(), make_pipeline(PCA(4), LogisticRegression())])
def test_the_second_coordinate_of_two_classes_is_what_else_varies_most(classifier):
    seen, new = np.flatnonzero(TWO)[::2], np.flatnonzero(TWO)[1::2]
    fitted = MarginMap(classifier).fit(WINE[seen], WINE_Y[seen])
    images, others = fitted.transform(WINE[seen]), fitted.transform(WINE[new])
    features = WINE if classifier is None or len(getattr(classifier, "steps", [])) < 2 else None
    if features is None:
        features = fitted.classifier_[:-1].transform(WINE)
    for rows, drawn in ((seen, images), (new, others)):
        expected = literal_second(features[seen], images[:, 0], features[rows], drawn[:, 0])
        assert_allclose(np.abs(drawn[:, 1]), np.abs(expected), atol=1e-9)
        assert_allclose(drawn[:, 1], expected * np.sign(expected @ drawn[:, 1]), atol=1e-9)
    u = 2 * images[:, 1] / np.sqrt(1 - (2 * images[:, 1]) ** 2)  # before it was bent
    assert abs(np.corrcoef(images[:, 0], u)[0, 1]) < 1e-9
    assert np.abs(images[:, 1]).max() < 0.5
    assert images[:, 1].std() > 0.1
    for k in range(0, len(new), 9):  # each row on its own
        assert_allclose(fitted.transform(WINE[new[[k]]])[0], others[k], atol=1e-9)


def test_the_second_coordinate_costs_no_accuracy():
    rows, labels = load_breast_cancer(return_X_y=True)
    right = []
    for seed in range(3):
        parts = train_test_split(scale(rows), labels, stratify=labels, random_state=seed)
        X_seen, X_new, y_seen, y_new = parts
        fitted = MarginMap().fit(X_seen, y_seen)
        seen, new = fitted.transform(X_seen), fitted.transform(X_new)
        for columns in (slice(1), slice(2)):
            knn = KNeighborsClassifier().fit(seen[:, columns], y_seen)
            right.append(knn.score(new[:, columns], y_new))
    assert np.mean(right[1::2]) > np.mean(right[::2]) - 0.01


def test_weights_of_two_classes_are_copies_in_the_second_coordinate_too():
    rows, labels = WINE[TWO], WINE_Y[TWO]
    times = np.arange(len(labels)) % 3
    machine = GESVC(kernel="rbf", graph_weight=0.0)
    weighted = MarginMap(machine, sharpness=2.0).fit(rows, labels, sample_weight=times)
    copied = MarginMap(machine, sharpness=2.0)
    copied.fit(np.repeat(rows, times, axis=0), np.repeat(labels, times))
    assert_allclose(weighted.transform(rows), copied.transform(rows), atol=1e-6)


def test_rows_that_are_no_numbers_have_no_second_coordinate():
    texts = ["good film", "bad film", "good good", "bad bad bad", "good", "bad"] * 4
    labels = ["+", "-"] * 12
    words = MarginMap(make_pipeline(CountVectorizer(), LogisticRegression())).fit(texts, labels)
    assert words.second_axis_ is not None  # the counts of words are numbers

    frame = pd.DataFrame({"a": ["x", "y"] * 12, "b": np.arange(24.0)})
    encoder = make_column_transformer((OneHotEncoder(), ["a"]), remainder="passthrough")
    inside = MarginMap(make_pipeline(encoder, LogisticRegression())).fit(frame, labels)
    assert inside.second_axis_ is not None

    missing = WINE[TWO].copy()
    missing[3, 2] = np.nan
    trees = MarginMap(HistGradientBoostingClassifier(max_iter=5)).fit(missing, WINE_Y[TWO])
    assert trees.second_axis_ is None
    assert_array_equal(trees.transform(missing)[:, 1], 0.0)
    whole = MarginMap(HistGradientBoostingClassifier(max_iter=5)).fit(WINE[TWO], WINE_Y[TWO])
    assert np.isfinite(whole.transform(missing)).all()


def test_sparse_rows_of_two_classes_are_mapped_as_their_array():
    rows = np.where(np.abs(WINE[TWO]) > 0.5, WINE[TWO], 0.0)
    array, sparse = (
        MarginMap(SVC(), sharpness=2.0).fit(kind, WINE_Y[TWO])
        for kind in (rows, sp.csr_array(rows))
    )
    assert_allclose(sparse.transform(sp.csr_array(rows)), array.transform(rows), atol=1e-4)


@each_classifier
def test_rows_lie_in_the_polygon_of_the_anchors_each_on_its_own(classifier):
    model = MarginMap(classifier, cv=2)
    Z = model.fit_transform(X, Y)
    assert_array_equal(Z, clone(model).fit(X, Y).transform(X))
    images = model.transform(NEW)
    hull = ConvexHull(model.anchors_).equations
    assert (images @ hull[:, :2].T + hull[:, 2] <= 1e-12).all()
    for k in range(0, len(NEW), 7):
        assert_allclose(model.transform(NEW[[k]])[0], images[k], atol=1e-10)
    assert_allclose(model.transform(NEW[::-1])[::-1], images, atol=1e-10)
    assert_allclose(pickle.loads(pickle.dumps(model)).transform(NEW), images, atol=1e-12)


def test_sharper_maps_are_nearer_to_the_anchors():
    previous = np.inf
    for sharpness in (0.1, 0.5, 1.0, 2.0, 4.0, 8.0, 100.0):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fitted = MarginMap(SVC(), sharpness=sharpness).fit(X, Y)
        dots = [w for w in caught if issubclass(w.category, MarginfoldWarning)]
        assert len(dots) == (sharpness == 100)  # then most rows of a class are one point
        predicted = np.searchsorted(fitted.classes_, fitted.classifier_.predict(NEW))
        distance = np.linalg.norm(fitted.transform(NEW) - fitted.anchors_[predicted], axis=1).mean()
        assert distance < previous
        previous = distance
    assert distance < 0.05
    flat = MarginMap(SVC(), sharpness=1e-9).fit(X, Y)
    assert_allclose(flat.transform(NEW), 0.0, atol=1e-8)


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_the_scale_of_the_margins_does_not_matter(factor):
    class Scaled(LinearDiscriminantAnalysis):
        def decision_function(self, X):
            return factor * super().decision_function(X) + 7.0

    plain = MarginMap(LinearDiscriminantAnalysis(), sharpness=2.0).fit(X, Y)
    other = MarginMap(Scaled(), sharpness=2.0).fit(X, Y)
    assert_allclose(other.transform(NEW), plain.transform(NEW), atol=1e-8)


@pytest.mark.parametrize("n_classes", [4, 6])
@pytest.mark.parametrize("sharpness", ["auto", 3.0])
def test_confused_classes_are_neighbors(n_classes, sharpness):
    rows, labels = overlapping(n_classes, 30 * n_classes, seed=n_classes)
    fitted = MarginMap(GaussianNB(), sharpness=sharpness).fit(rows, labels)
    both = fitted.confusion_ + fitted.confusion_.T

    def value(order):
        return sum(both[a, b] for a, b in zip(order, (*order[1:], order[0]), strict=True))

    best = max(value((0, *rest)) for rest in permutations(range(1, n_classes)))
    assert_allclose(value(tuple(fitted.order_)), best)
    angles = np.arctan2(*fitted.anchors_[fitted.order_].T[::-1]) % (2 * np.pi)
    assert_allclose(angles, 2 * np.pi * np.arange(n_classes) / n_classes, atol=1e-12)
    assert fitted.order_[0] == 0
    assert fitted.order_[1] < fitted.order_[-1]


def test_the_confusion_is_that_of_held_out_rows():
    fitted = MarginMap(GaussianNB(), cv=4).fit(X, Y)
    drawn = np.zeros((6, 6))
    for train, test in StratifiedKFold(4).split(X, Y):
        model = GaussianNB().fit(X[train], Y[train])
        unit = mean_lead(model.predict_log_proba(X[train]))
        for row, label in zip(model.predict_log_proba(X[test]), Y[test], strict=True):
            drawn[label] += image(row, unit, 2.0, np.eye(6))
    assert_allclose(fitted.confusion_, drawn / 20, atol=1e-9)
    inside = MarginMap(GaussianNB(), sharpness=2.0).fit(X, Y)
    seen = [inside.memberships(X[label == Y]).mean(axis=0) for label in range(6)]
    assert_allclose(inside.confusion_, seen, atol=1e-12)


@pytest.mark.parametrize("sharpness", ["auto", 2.0])
@pytest.mark.parametrize(
    "classifier",
    [None, GESVC(class_weight="balanced"), LinearDiscriminantAnalysis(), GaussianNB()],
    ids=["default", "GESVC", "LDA", "GaussianNB"],
)
def test_names_of_classes_change_the_picture_by_a_turn_or_a_mirror_only(classifier, sharpness):
    names = np.array(["w", "e", "a", "x", "k", "b"])
    plain = MarginMap(classifier, sharpness=sharpness, cv=2).fit(X, Y)
    named = MarginMap(classifier, sharpness=sharpness, cv=2).fit(X, names[Y])
    assert_array_equal(named.classes_, np.sort(names))
    assert named.sharpness_ == plain.sharpness_
    A, B = (np.vstack([model.transform(NEW), model.anchors_]) for model in (plain, named))
    B[-6:] = named.anchors_[np.searchsorted(named.classes_, names)]
    assert_allclose(pdist(A), pdist(B), atol=1e-5)


def test_the_order_can_be_kept():
    first = MarginMap(GaussianNB()).fit(X, Y)
    kept = MarginMap(
        LinearDiscriminantAnalysis(), sharpness=2.0, order=first.classes_[first.order_]
    )
    assert_array_equal(kept.fit(X, Y).anchors_, first.anchors_)
    given = MarginMap(GaussianNB(), order=[3, 1, 2, 5, 4, 0]).fit(X, Y)
    assert_array_equal(given.order_, [3, 1, 2, 5, 4, 0])
    assert_allclose(given.anchors_[3], [1.0, 0.0])
    for order in ([0, 1, 2], [0, 1, 2, 3, 4, 4], [0, 1, 2, 3, 4, 9], "abcdef", 3, [[0, 1]]):
        with pytest.raises(InvalidParameterError, match="order must name each class once"):
            MarginMap(GaussianNB(), order=order).fit(X, Y)


def test_the_sharpness_chosen_is_the_smoothest_of_the_good_ones():
    fitted = MarginMap(GaussianNB(), cv=5).fit(X, Y)
    grid = fitted.cv_results_["sharpness"]
    folds = list(StratifiedKFold(5).split(X, Y))
    scores = np.zeros((5, len(grid)))
    for fold, (train, test) in enumerate(folds):
        model = GaussianNB().fit(X[train], Y[train])
        unit = mean_lead(model.predict_log_proba(X[train]))
        for column, sharpness in enumerate(grid):
            seen, held = (
                [
                    image(row, unit, sharpness, fitted.anchors_)
                    for row in model.predict_log_proba(rows)
                ]
                for rows in (X[train], X[test])
            )
            nearest = KNeighborsClassifier(1).fit(seen, Y[train])
            scores[fold, column] = nearest.score(held, Y[test])
    assert_allclose(fitted.cv_results_["split_accuracy"], scores)
    mean = fitted.cv_results_["accuracy"]
    assert_allclose(mean, scores.mean(axis=0))
    chosen = list(grid).index(fitted.sharpness_)
    assert mean[chosen] >= mean.max() - 0.002
    assert (mean[:chosen] < mean.max() - 0.002).all()


def test_where_every_map_is_right_the_smoothest_is_taken():
    rows, labels = make_blobs(90, centers=[[0, 0], [40, 0], [0, 40]], random_state=0)
    fitted = MarginMap(LinearDiscriminantAnalysis()).fit(rows, labels)
    assert_array_equal(fitted.cv_results_["accuracy"], 1.0)
    assert fitted.sharpness_ == fitted.cv_results_["sharpness"].min() == 1.0


def test_one_fit_per_fold_and_one_more():
    class Counting(GaussianNB):
        fits = 0

        def fit(self, X, y, sample_weight=None):
            Counting.fits += 1
            return super().fit(X, y, sample_weight)

    for parameters, fits in [({}, 2), ({"cv": 3}, 4), ({"sharpness": 2.0}, 1)]:
        Counting.fits = 0
        fitted = MarginMap(Counting(), **parameters).fit(X, Y)
        assert Counting.fits == fits
        assert hasattr(fitted, "cv_results_") == ("sharpness" not in parameters)


def test_splitters_and_lists_of_splits():
    splitter = StratifiedKFold(4, shuffle=True, random_state=3)
    by_object = MarginMap(GaussianNB(), cv=splitter).fit(X, Y)
    by_list = MarginMap(GaussianNB(), cv=list(splitter.split(X, Y))).fit(X, Y)
    assert_array_equal(
        by_object.cv_results_["split_accuracy"], by_list.cv_results_["split_accuracy"]
    )
    once = StratifiedShuffleSplit(1, train_size=60, test_size=30, random_state=0)
    assert MarginMap(GaussianNB(), cv=once).fit(X, Y).cv_results_["split_accuracy"].shape == (1, 5)
    order = np.argsort(Y, kind="stable")
    with pytest.raises(InvalidInputError, match="no row in a training part"):
        MarginMap(GaussianNB(), cv=[(np.arange(50), np.arange(50, 120))]).fit(X[order], Y[order])
    with pytest.raises(InvalidInputError, match="holds out no labelled row"):
        MarginMap(GaussianNB(), cv=[(np.arange(120), [])]).fit(X, Y)


@pytest.mark.filterwarnings("error")
def test_small_classes_are_held_out_as_far_as_they_go():
    few = np.r_[np.flatnonzero(Y > 1), np.flatnonzero(Y == 0)[:2], np.flatnonzero(Y == 1)[:1]]
    for cv, n_splits in (("half", 1), (5, 5)):
        fitted = MarginMap(LinearDiscriminantAnalysis(), cv=cv).fit(X[few], Y[few])
        assert_array_equal(fitted.classes_, np.arange(6))
        assert fitted.cv_results_["split_accuracy"].shape == (n_splits, 5)
        assert_array_equal(fitted.confusion_[1], 0.0)
        assert_allclose(np.delete(fitted.confusion_, 1, axis=0).sum(axis=1), 1.0)
    three = np.flatnonzero(Y < 2)[:6]
    folds = MarginMap(SVC(), cv=5).fit(X[three], Y[three])
    assert folds.cv_results_["split_accuracy"].shape[0] == 3
    with pytest.raises(InvalidInputError, match="every class has 1"):
        MarginMap(SVC()).fit(X[:6], Y[:6])
    assert MarginMap(SVC(), sharpness=2.0).fit_transform(X[:6], Y[:6]).shape == (6, 2)


@pytest.mark.parametrize("sharpness", ["auto", 2.0])
def test_weights_are_copies_and_zero_is_absent(sharpness):
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    copies = np.repeat(np.arange(len(X)), weights)
    turns = np.arange(len(X)) // 6 % 2
    folds = [(np.flatnonzero(turns != k), np.flatnonzero(turns == k)) for k in range(2)]
    copied_folds = [tuple(np.flatnonzero(np.isin(copies, side)) for side in fold) for fold in folds]
    for classifier in (GaussianNB(), GESVC(C=0.1, class_weight="balanced")):
        weighted = MarginMap(classifier, sharpness=sharpness, cv=folds)
        copied = MarginMap(classifier, sharpness=sharpness, cv=copied_folds)
        weighted.fit(X, Y, sample_weight=weights)
        copied.fit(X[copies], Y[copies])
        assert weighted.sharpness_ == copied.sharpness_
        assert_allclose(weighted.confusion_, copied.confusion_, atol=1e-6)
        assert_allclose(weighted.transform(NEW), copied.transform(NEW), atol=1e-5)


def test_unlabelled_rows_take_part_in_every_fit():
    labels = np.where(np.arange(len(Y)) // 6 % 3 == 0, Y, -1)
    known = labels != -1
    for classifier in (LapSVC(kernel="rbf"), LabelSpreading(gamma=1.0)):
        fitted = MarginMap(classifier, cv=2).fit(X, labels)
        assert_array_equal(fitted.classes_, np.arange(6))
        assert_allclose(fitted.confusion_.sum(axis=1), 1.0)
    plain = GESVC(graph_weight=0.0, unlabeled=-1, class_weight="balanced")
    with_them = MarginMap(plain, cv=2).fit(X, labels)
    without = MarginMap(plain, cv=2).fit(X[known], labels[known])
    assert with_them.sharpness_ == without.sharpness_
    assert_allclose(with_them.transform(NEW), without.transform(NEW), atol=1e-6)
    words = np.array([None if label < 0 else f"c{label}" for label in labels], dtype=object)
    named = MarginMap(clone(plain).set_params(unlabeled=np.nan), cv=2).fit(X, words)
    assert_allclose(named.transform(NEW), with_them.transform(NEW), atol=1e-6)


def test_a_precomputed_kernel_gives_the_same_map():
    gamma = 0.3
    direct = MarginMap(SVC(gamma=gamma, tol=1e-9), cv=2).fit(X, Y)
    kernel = MarginMap(SVC(kernel="precomputed", tol=1e-9), cv=2)
    K, K_new = rbf_kernel(X, X, gamma), rbf_kernel(NEW, X, gamma)
    for stored in (K, pd.DataFrame(K), K.tolist()):
        kernel.fit(stored, Y)
        assert kernel.sharpness_ == direct.sharpness_
    assert_allclose(kernel.transform(K_new.tolist()), direct.transform(NEW), atol=1e-6)


def test_whatever_the_classifier_takes():
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    frame["kind"] = np.where(np.arange(len(X)) % 2, "odd", "even")
    prepare = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    mixed = MarginMap(make_pipeline(prepare, LinearDiscriminantAnalysis()), cv=2)
    mixed.set_output(transform="pandas")
    out = mixed.fit_transform(frame, pd.Series(Y))
    assert list(out.columns) == ["marginmap0", "marginmap1"]
    assert list(mixed.feature_names_in_) == ["a", "b", "c", "kind"]
    assert_array_equal(out.index, frame.index)
    texts = ["red apple", "green apple", "blue sky", "grey sky", "old car", "fast car"] * 5
    labels = np.repeat(["fruit", "air", "road"], 2).tolist() * 5
    words = MarginMap(make_pipeline(CountVectorizer(), LogisticRegression()), cv=2).fit(
        texts, labels
    )
    fruit = words.anchors_[words.classes_.tolist().index("fruit")]
    assert np.linalg.norm(words.transform(["an apple"])[0] - fruit) < 0.9
    machine = GESVC(class_weight="balanced")
    stored = MarginMap(machine, cv=2).fit(sp.coo_matrix(X), Y)
    assert_allclose(
        stored.transform(sp.csc_matrix(NEW)),
        MarginMap(machine, cv=2).fit(X, Y).transform(NEW),
        atol=1e-6,
    )


def test_many_classes():
    rng = np.random.default_rng(0)
    labels = np.arange(600) % 100
    rows = rng.normal(size=(100, 8))[labels] * 3 + rng.normal(size=(600, 8))
    fitted = MarginMap(LinearDiscriminantAnalysis(), cv=2).fit(rows, labels)
    assert_array_equal(np.sort(fitted.order_), np.arange(100))
    both = fitted.confusion_ + fitted.confusion_.T
    neighbors = both[fitted.order_, np.roll(fitted.order_, 1)].mean()
    assert neighbors > 3 * both[~np.eye(100, dtype=bool)].mean()


def every_second(labels):
    """Return the rows seen and those held out: the second, fourth, ... of each class."""
    seen, new = [], []
    for row, label in enumerate(labels):
        before = np.count_nonzero(labels[:row] == label)
        (new if before % 2 else seen).append(row)
    return seen, new


def test_by_default_one_half_of_each_class_is_judged_by_the_other():
    few = np.flatnonzero((Y > 0) | (np.arange(len(Y)) < 40))
    half = MarginMap(GaussianNB()).fit(X[few], Y[few])
    by_hand = MarginMap(GaussianNB(), cv=[every_second(Y[few])]).fit(X[few], Y[few])
    assert_array_equal(half.confusion_, by_hand.confusion_)
    assert_array_equal(half.cv_results_["accuracy"], by_hand.cv_results_["accuracy"])
    assert_array_equal(half.transform(NEW), by_hand.transform(NEW))


def test_of_many_rows_some_of_each_class_are_held_out(monkeypatch):
    rows, labels = overlapping(4, 400)
    monkeypatch.setattr(held_out, "HALF_ROWS", 50)
    thinned = MarginMap(GaussianNB()).fit(rows, labels)
    quarter = np.flatnonzero(np.arange(400) // 4 % 4 == 0)
    splits = [tuple(quarter[side] for side in every_second(labels[quarter]))]
    assert [len(side) for side in splits[0]] == [52, 48]
    by_hand = MarginMap(GaussianNB(), cv=splits).fit(rows, labels)
    assert_array_equal(thinned.confusion_, by_hand.confusion_)
    assert_array_equal(thinned.transform(NEW), by_hand.transform(NEW))


@pytest.mark.parametrize("cost", [100.0, 1.0])
def test_the_default_takes_the_larger_cost_where_it_is_surely_better(cost):
    """A board has fields too small for a cost of 1; clouds in noise are learnt by heart at 100."""
    rng = np.random.default_rng(1)
    if cost == 100.0:
        rows = rng.uniform(size=(900, 2))
        labels = (5 * rows).astype(int).sum(axis=1) % 3
    else:
        labels = np.arange(900) % 3
        rows = rng.normal(size=(900, 8)) + 2 * np.eye(3, 8)[labels]
    seen, new = every_second(labels)
    fitted = MarginMap().fit(rows, labels)
    gamma = 1 / (rows.shape[1] * rows.var())
    right = [
        SVC(C=C, gamma=gamma).fit(rows[seen], labels[seen]).predict(rows[new]) == labels[new]
        for C in (1.0, 100.0)
    ]
    won, lost = (right[1] & ~right[0]).sum(), (right[0] & ~right[1]).sum()
    assert (won - lost > np.sqrt(won + lost)) == (cost == 100.0)
    assert fitted.classifier_.C == cost
    assert_allclose(fitted.cv_results_["classifier_accuracy"], np.mean(right, axis=1), atol=0.02)


def test_the_default_takes_the_principal_components_of_many_columns():
    rng = np.random.default_rng(0)
    mixing = rng.normal(size=(120, 130)) / np.arange(1, 131)
    wide = np.hstack([X, rng.normal(size=(len(X), 117))]) @ mixing
    fitted = MarginMap(sharpness=2.0).fit(wide, Y)
    with_pca = make_pipeline(PCA(100, svd_solver="full"), SVC(C=10.0))
    by_hand = MarginMap(with_pca, sharpness=2.0).fit(wide, Y)
    assert np.abs(fitted.transform(wide) - by_hand.transform(wide)).mean() < 1e-2
    sparse = MarginMap(sharpness=2.0).fit(sp.csr_matrix(wide), Y)
    direct = MarginMap(SVC(C=10.0), sharpness=2.0).fit(wide, Y)
    assert np.abs(sparse.transform(wide) - direct.transform(wide)).mean() < 1e-2


def test_weights_reach_all_steps_of_a_pipeline_that_take_them():
    weights = 1 + np.arange(len(X)) % 2
    copies = np.repeat(np.arange(len(X)), weights)
    chain = make_pipeline(StandardScaler(), PCA(2), GaussianNB())
    assert_allclose(
        MarginMap(chain.set_params(pca="passthrough"), sharpness=2.0)
        .fit(X, Y, sample_weight=weights)
        .transform(NEW),
        MarginMap(chain, sharpness=2.0).fit(X[copies], Y[copies]).transform(NEW),
        atol=1e-9,
    )


@pytest.mark.parametrize("classifier", [None, make_pipeline(StandardScaler(), SVC())])
def test_weights_reach_the_steps_where_metadata_are_routed_too(classifier):
    wide = np.random.default_rng(0).normal(size=(40, 120))  # the default is a pipeline, too
    labels, weights = np.arange(40) % 3, np.arange(40.0) % 4
    expected = MarginMap(classifier).fit(wide, labels, weights).transform(wide)
    with config_context(enable_metadata_routing=True):
        found = MarginMap(classifier).fit(wide, labels, weights).transform(wide)
    assert_array_equal(found, expected)


def test_digits_in_two_dimensions():
    """The bar: supervised UMAP 0.974 and two discriminant directions 0.65 on the same split."""
    rows, labels = load_digits(return_X_y=True)
    A, B, a, b = train_test_split(rows / 16, labels, test_size=540, stratify=labels, random_state=0)
    discriminant = LinearDiscriminantAnalysis(n_components=2)
    accuracy = {}
    for name, model in {"map": MarginMap(SVC(C=10)), "two directions": discriminant}.items():
        nearest = KNeighborsClassifier(1).fit(model.fit(A, a).transform(A), a)
        accuracy[name] = nearest.score(model.transform(B), b)
    assert accuracy["map"] > 0.975
    assert accuracy["two directions"] < 0.75


class Silent(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


class Shapeless(Silent):
    def decision_function(self, X):
        return np.full((len(X), len(self.classes_)), self.value)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"classifier": Silent()}, "neither"),
        ({"classifier": VotingClassifier([("a", SVC())])}, "neither"),
        ({"classifier": SVC}, "classifier must be a classifier"),
        ({"classifier": "svc"}, "classifier must be a classifier"),
        ({"sharpness": 0.0}, "sharpness must be"),
        ({"sharpness": "sharp"}, "sharpness must be"),
        ({"sharpness": np.nan}, "sharpness must be"),
        ({"cv": 1}, "cv must be"),
        ({"cv": "five"}, "cv must be"),
        ({"cv": StratifiedKFold}, "cv must be"),
    ],
)
def test_bad_parameters_are_refused(parameters, message):
    with pytest.raises(InvalidParameterError, match=message):
        MarginMap(**parameters).fit(X, Y)


def test_margins_may_come_with_the_fit():
    stack = StackingClassifier([("svm", SVC()), ("bayes", GaussianNB())], cv=2)
    assert not hasattr(stack, "predict_proba")  # that of the final estimator, which is not yet made
    fitted = MarginMap(stack, sharpness=2.0).fit(WINE, WINE_Y)
    margins = np.log(fitted.classifier_.predict_proba(WINE[:5]))
    expected = [image(m, fitted.scale_, 2.0, fitted.anchors_) for m in margins]
    assert_allclose(fitted.transform(WINE[:5]), expected, atol=1e-9)


def test_values_of_pairs_of_classes_are_refused():
    pairs = SVC(decision_function_shape="ovo")
    iris, kinds = load_iris(return_X_y=True)
    uneven = np.r_[np.arange(50), np.arange(50, 60), np.arange(100, 110)]
    for rows, labels in [
        (X, Y),
        (X[Y < 4], Y[Y < 4]),
        (iris, kinds),
        (iris[uneven], kinds[uneven]),
        (WINE, WINE_Y),
    ]:
        with pytest.raises(InvalidInputError, match="decision_function_shape='ovr'"):
            MarginMap(pairs).fit(rows, labels)
        MarginMap(SVC(), sharpness=1.0).fit(rows, labels)
    MarginMap(pairs).fit(X[Y < 2], Y[Y < 2])


@pytest.mark.parametrize("absent", [0, 1, 2])
def test_a_class_whose_rows_weigh_nothing_is_not_held_out(absent):
    weights = np.where(WINE_Y == absent, 0.0, 1.0)
    fitted = MarginMap(LogisticRegression()).fit(WINE, WINE_Y, sample_weight=weights)
    assert_array_equal(np.flatnonzero(fitted.confusion_.sum(axis=1) == 0), [absent])
    others = np.flatnonzero(WINE_Y != absent)
    assert fitted.cv_results_["split_accuracy"].shape == (1, 5)
    nearest = KNeighborsClassifier(5).fit(fitted.transform(WINE[others]), WINE_Y[others])
    assert nearest.score(fitted.transform(WINE[others]), WINE_Y[others]) > 0.95


def test_other_misfits_are_explained():
    frozen = FrozenEstimator(GaussianNB().fit(X, Y))
    with pytest.raises(InvalidInputError, match="no row has a label among the classes"):
        MarginMap(frozen).fit(X, Y.astype(str))
    with pytest.raises(InvalidInputError, match="1 class"):
        MarginMap(DecisionTreeClassifier()).fit(X, np.zeros(len(X)))
    with pytest.raises(InvalidInputError, match="1 class"):
        MarginMap().fit(X, np.zeros(len(X)))
    chain = make_pipeline(StandardScaler(), KNeighborsClassifier())
    with pytest.raises(InvalidInputError, match="takes no sample_weight"):
        MarginMap(chain).fit(X, Y, sample_weight=np.ones(len(X)))
    broken = type("Broken", (Shapeless,), {"value": np.nan})()
    with pytest.raises(InvalidInputError, match="NaN or infinite"):
        MarginMap(broken).fit(X, Y)
    with pytest.raises(NotFittedError):
        MarginMap().transform(X)
    with pytest.raises(ValueError, match="requires y"):
        MarginMap().fit(X, None)
    with pytest.raises(ValueError, match="inconsistent"):
        MarginMap().fit(X, Y[:-1])


def test_a_classifier_without_an_opinion_leaves_all_rows_in_the_middle():
    undecided = type("Undecided", (Shapeless,), {"value": 0.5})()
    assert_allclose(MarginMap(undecided).fit(X, Y).transform(NEW), 0.0, atol=1e-12)


def test_a_failed_fit_leaves_the_map_as_it_was():
    model = MarginMap(GaussianNB()).fit(X, Y)
    before = model.transform(NEW)
    with pytest.raises(InvalidInputError):
        model.fit(X, np.zeros(len(X)))
    assert_array_equal(model.transform(NEW), before)
    model.set_params(sharpness=2.0).fit(X, Y)
    assert not hasattr(model, "cv_results_")


def test_parameters_of_the_classifier_can_be_searched():
    chain = make_pipeline(MarginMap(GaussianNB(), sharpness=4.0), KNeighborsClassifier(1))
    grid = {"marginmap__classifier__var_smoothing": [1e9, 1e-9], "marginmap__sharpness": [2.0]}
    search = GridSearchCV(chain, grid, cv=ShuffleSplit(3, random_state=0)).fit(WINE, WINE_Y)
    assert search.best_params_["marginmap__classifier__var_smoothing"] == 1e-9
    assert search.best_estimator_[0].sharpness_ == 2.0


def test_a_frame_is_mapped_without_a_word():
    """The default classifier is fitted on what was read of the frame, and so are new rows."""
    frame = pd.DataFrame(X, columns=[f"column {j}" for j in range(X.shape[1])])
    model = MarginMap().fit(frame, Y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        images = model.transform(frame)
    assert_allclose(images, MarginMap().fit(X, Y).transform(X))
