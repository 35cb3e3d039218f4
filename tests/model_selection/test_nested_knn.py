"""Neighbors on nested columns: scikit-learn's predictions, and a flag wherever chance decides."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.neighbors import KNeighborsClassifier

from marginfold.model_selection.nested_knn import finds_nested, nested_knn, nested_votes


def draw(seed, *, n_train=50, n_test=30, n_columns=4, n_classes=3, step=0.0):
    """Return rows with classes; with a step they lie on a lattice, where many are equally near."""
    rng = np.random.default_rng(seed)
    codes = np.concatenate(
        [np.arange(n_classes), rng.integers(n_classes, size=n_train - n_classes)]
    )
    rows = rng.standard_normal((n_train + n_test, n_columns))
    if step:
        rows = step * np.round(rows / step)
    return rows[:n_train], codes, rows[n_train:]


def by_sklearn(train, codes, test, n_neighbors=1, algorithm="kd_tree", dimensions=None):
    classifier = KNeighborsClassifier(n_neighbors, algorithm=algorithm)
    columns = dimensions or range(1, train.shape[1] + 1)
    return np.stack([classifier.fit(train[:, :k], codes).predict(test[:, :k]) for k in columns])


def duplicates():
    train, codes, test = draw(2)
    return np.vstack([train, train]), np.concatenate([codes, np.roll(codes, 1)]), test


def float32_strided():
    train, codes, test = draw(3, n_columns=14)
    return train.astype(np.float32)[:, ::2], codes, test.astype(np.float32)[:, ::2]


DATA = {
    "two classes, more rows than a chunk": lambda: draw(4, n_train=450, n_test=530, n_classes=2),
    "one class": lambda: draw(0, n_classes=1),
    "one row of each class": lambda: draw(0, n_train=40, n_classes=40),
    "one training row": lambda: draw(0, n_train=1, n_classes=1),
    "one test row": lambda: draw(0, n_test=1),
    "one column": lambda: draw(0, n_columns=1),
    "many columns": lambda: draw(6, n_columns=40),
    "lattice": lambda: draw(1, step=1.0),
    "duplicates": duplicates,
    "float32, strided": float32_strided,
}


@pytest.mark.filterwarnings("ignore:The number of unique classes:UserWarning")
@pytest.mark.parametrize("case", DATA)
def test_votes_on_rows_of_every_kind(case):
    train, codes, test = DATA[case]()
    for array in (train, codes, test):
        array.flags.writeable = False
    dimensions = [k for k in (1, 2, 3, 6, 15, 40) if k <= train.shape[1]]
    (votes,) = nested_votes(train, codes, test, [1], dimensions)
    differ = votes.codes != by_sklearn(train, codes, test, dimensions=dimensions)
    assert not (differ & ~votes.close).any()
    assert votes.close.any() == (case in ("lattice", "duplicates"))


@pytest.mark.parametrize("algorithm", ["brute", "kd_tree"])
@given(seed=st.integers(0, 10**6), k=st.integers(1, 9), step=st.sampled_from([0.0, 0.25, 1.0]))
def test_votes_are_those_of_scikit_learn_wherever_they_are_not_close(algorithm, seed, k, step):
    train, codes, test = draw(seed, step=step)
    (votes,) = nested_votes(train, codes, test, [k])
    differ = votes.codes != by_sklearn(train, codes, test, k, algorithm)
    assert not (differ & ~votes.close).any()
    if not step:
        assert not votes.close.any()


@pytest.mark.parametrize("n_values", [2, 3, 16])
def test_votes_on_columns_of_few_values_are_those_of_a_stable_sort(n_values):
    """Whole numbers in scaled columns: many equal rows, and more that are equally near."""
    rng = np.random.default_rng(n_values)
    scale = rng.uniform(0.5, 2.0, 6)
    train, test = (rng.integers(n_values, size=(n, 6)) * scale for n in (700, 90))
    codes = np.concatenate([np.arange(5), rng.integers(5, size=695)])
    counts = [1, 5, 15]
    for k, votes in zip(counts, nested_votes(train, codes, test, counts), strict=True):
        for d in range(6):
            squared = np.zeros((90, 700))
            for new, old in zip(test[:, : d + 1].T, train[:, : d + 1].T, strict=True):
                squared += (new[:, None] - old) ** 2
            nearest = np.argsort(squared, axis=1, kind="stable")[:, :k]
            voted = [np.bincount(codes[row]).argmax() for row in nearest]
            np.testing.assert_array_equal(votes.codes[d], voted)
            last = np.sort(squared, axis=1)[:, [k - 1]]
            tied = np.isclose(squared, last, rtol=1e-9, atol=1e-12)
            within = (squared < last) | tied
            several = [len(set(codes[row])) > 1 for row in tied]
            np.testing.assert_array_equal(votes.close[d], several & (within.sum(axis=1) > k))


def test_equally_near_rows_of_one_class_are_not_close():
    train = np.array([[0.0], [0.0], [2.0], [2.0], [2.0]])
    (votes,) = nested_votes(train, np.array([0, 0, 1, 1, 1]), np.array([[0.4], [1.0], [2.0]]), [1])
    assert votes.close.tolist() == [[False, True, False]]
    (two,) = nested_votes(train, np.array([0, 0, 1, 1, 1]), np.array([[0.4], [1.0], [2.0]]), [2])
    assert two.codes[0, [0, 2]].tolist() == [0, 1]
    assert two.close.tolist() == [[False, True, False]]


def test_a_tie_up_to_rounding_is_close():
    train = np.array([[0.1 + 0.2], [-0.3]])
    assert nested_votes(train, np.array([0, 1]), np.zeros((1, 1)), [1])[0].close.all()


@pytest.mark.parametrize("n_neighbors", [1, 4])
def test_some_dimensions_are_rows_of_all_of_them(n_neighbors):
    train, codes, test = draw(3)
    (all_votes,) = nested_votes(train, codes, test, [n_neighbors])
    (some,) = nested_votes(train, codes, test, [n_neighbors], [2, 4])
    np.testing.assert_array_equal(some.codes, all_votes.codes[[1, 3]])


@pytest.mark.parametrize("entries", [1, 130, 10**7])
def test_chunks_of_any_size_give_the_same(monkeypatch, entries):
    train, codes, test = draw(4, step=0.5)
    (whole,) = nested_votes(train, codes, test, [3])
    monkeypatch.setattr("marginfold.model_selection.nested_knn.CHUNK_ENTRIES", entries)
    (parts,) = nested_votes(train, codes, test, [3])
    np.testing.assert_array_equal(parts.codes, whole.codes)
    np.testing.assert_array_equal(parts.close, whole.close)


def test_one_class_and_all_rows_as_neighbors():
    train, codes, test = draw(5)
    assert not nested_votes(train, np.zeros(len(train), int), test, [1])[0].codes.any()
    (votes,) = nested_votes(train, codes, test, [len(train)])
    assert (votes.codes == np.bincount(codes).argmax()).all()
    assert not votes.close.any()


def test_a_shift_of_all_rows_is_followed_or_flagged():
    """Far from the origin distances lose digits; what they can decide no longer is flagged."""
    train, codes, test = draw(6)
    (votes,) = nested_votes(train, codes, test, [1])
    for shift in (1e3, 1e6, 1e9):
        (moved,) = nested_votes(train + shift, codes, test + shift, [1])
        assert not ((moved.codes != votes.codes) & ~moved.close).any()


@pytest.mark.parametrize(
    ("classifier", "nested"),
    [
        (KNeighborsClassifier(1), True),
        (KNeighborsClassifier(5, weights="distance", metric="l2"), True),
        (KNeighborsClassifier(5, p=1), False),
        (KNeighborsClassifier(5, metric="manhattan"), False),
        (KNeighborsClassifier(5, weights=lambda d: 1 / (1 + d)), False),
        (KNeighborsClassifier(31), False),
        (KNeighborsClassifier(0), False),
        (type("Other", (KNeighborsClassifier,), {})(1), False),
    ],
)
def test_only_plain_euclidean_neighbors_are_found_at_once(classifier, nested):
    assert finds_nested(classifier, 30) is nested


@pytest.mark.parametrize("weights", ["uniform", "distance"])
@pytest.mark.parametrize("n_neighbors", [1, 6])
def test_predictions_made_at_once_are_those_of_the_fitted_classifier(weights, n_neighbors):
    train, codes, test = draw(7)
    labels = np.array(["b", "c", "a"])[codes]
    classifier = KNeighborsClassifier(n_neighbors, weights=weights)
    dimensions = [3, 1, 3]
    models = nested_knn(classifier, train, labels, test, dimensions)
    for k, model in zip(dimensions, models, strict=True):
        fitted = KNeighborsClassifier(n_neighbors, weights=weights).fit(train[:, :k], labels)
        assert model.rows.shape == (len(test), k)
        np.testing.assert_array_equal(model.classes_, fitted.classes_)
        for rows in (model.rows, test[5:, :k]):  # those of the predictions, and others
            truth = np.roll(fitted.predict(rows), 1)
            np.testing.assert_array_equal(model.predict(rows), fitted.predict(rows))
            np.testing.assert_array_equal(model.predict_proba(rows), fitted.predict_proba(rows))
            assert model.score(rows, truth) == fitted.score(rows, truth)


def test_where_chance_decides_there_is_no_model():
    train, codes = np.array([[1.0, 0.0], [-1.0, 5.0]]), np.array([0, 1])
    models = nested_knn(KNeighborsClassifier(1), train, codes, np.zeros((1, 2)), [1, 2])
    assert models[0] is None
    assert models[1].predict(models[1].rows) == [0]
