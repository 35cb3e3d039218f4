"""The compiled nearest neighbor against NumPy's and scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.neighbors import KNeighborsClassifier

from marginfold.model_selection import nested_knn as nested_neighbors
from marginfold.model_selection.nested_knn import nested_votes
from marginfold.runtime.jit import compiled_module

NAME = "marginfold.model_selection.compiled_votes"

BOTH = pytest.mark.parametrize("compiled", [True, False])


def draw(seed=0, *, n_train=90, n_test=70, n_columns=7, n_classes=4):
    rng = np.random.default_rng(seed)
    codes = np.concatenate(
        [np.arange(n_classes), rng.integers(n_classes, size=n_train - n_classes)]
    )
    rows = rng.standard_normal((n_train + n_test, n_columns))
    return rows[:n_train], codes, rows[n_train:]


def lattice():
    train, codes, test = draw(1)
    return np.round(train), codes, np.round(test)


def duplicates():
    train, codes, test = draw(2)
    return np.vstack([train, train]), np.concatenate([codes, np.roll(codes, 1)]), test


def float32_strided():
    train, codes, test = draw(3, n_columns=14)
    return train.astype(np.float32)[:, ::2], codes, test.astype(np.float32)[:, ::2]


DATA = {
    "several classes": draw,
    "two classes, more rows than a block": lambda: draw(4, n_train=301, n_test=530, n_classes=2),
    "one class": lambda: draw(n_classes=1),
    "one row of each class": lambda: draw(n_train=40, n_classes=40),
    "one training row": lambda: draw(n_train=1, n_classes=1),
    "one test row": lambda: draw(n_test=1),
    "one column": lambda: draw(n_columns=1),
    "lattice": lattice,
    "duplicates": duplicates,
    "float32, strided": float32_strided,
}


def choose(monkeypatch, compiled):
    """Have the votes compiled however few they are, or not at all."""
    if compiled and compiled_module(NAME) is None:
        pytest.skip("needs numba")
    monkeypatch.setattr(nested_neighbors, "COMPILED_ENTRIES", 0)
    if not compiled:
        monkeypatch.setattr(nested_neighbors, "compiled_module", lambda name: None)


def both(monkeypatch, *arguments):
    found = []
    for compiled in (True, False):
        with monkeypatch.context() as patch:
            choose(patch, compiled)
            found.append(nested_votes(*arguments))
    return found


def by_sklearn(train, codes, test, dimensions):
    classifier = KNeighborsClassifier(1, algorithm="kd_tree")
    return np.stack([classifier.fit(train[:, :k], codes).predict(test[:, :k]) for k in dimensions])


@pytest.mark.parametrize("dimensions", [None, [2, 5, 6], [7]])
@pytest.mark.parametrize("case", DATA)
def test_compiled_votes_are_those_of_numpy(monkeypatch, case, dimensions):
    train, codes, test = DATA[case]()
    if dimensions and dimensions[-1] > train.shape[1]:
        dimensions = [1]
    compiled, plain = both(monkeypatch, train, codes, test, 1, dimensions)
    assert_array_equal(compiled.codes, plain.codes)
    assert_array_equal(compiled.close, plain.close)


@BOTH
@pytest.mark.filterwarnings("ignore:The number of unique classes:UserWarning")
@pytest.mark.parametrize("dimensions", [[1, 2, 3, 4, 5, 6, 7], [2, 5, 6]])
@pytest.mark.parametrize("case", DATA)
def test_votes_are_those_of_scikit_learn(monkeypatch, compiled, case, dimensions):
    choose(monkeypatch, compiled)
    train, codes, test = DATA[case]()
    dimensions = [k for k in dimensions if k <= train.shape[1]] or [1]
    votes = nested_votes(train, codes, test, 1, dimensions)
    differ = votes.codes != by_sklearn(train, codes, test, dimensions)
    assert not (differ & ~votes.close).any()
    if case not in ("lattice", "duplicates"):
        assert not votes.close.any()


@pytest.mark.parametrize("shift", [1e3, 1e6, 1e9])
def test_far_from_the_origin_they_choose_the_same(monkeypatch, shift):
    """A gap within rounding of the slack may be flagged by one of the two."""
    train, codes, test = draw(5)
    compiled, plain = both(monkeypatch, train + shift, codes, test + shift, 1)
    assert_array_equal(compiled.codes, plain.codes)
    assert np.mean(compiled.close != plain.close) < 0.01
    differ = compiled.codes != by_sklearn(train + shift, codes, test + shift, range(1, 8))
    assert not (differ & ~compiled.close).any()


def test_wide_groups_of_columns(monkeypatch):
    train, codes, test = draw(6, n_columns=40)
    compiled, plain = both(monkeypatch, train, codes, test, 1, [1, 6, 15, 40])
    assert_array_equal(compiled.codes, plain.codes)
    assert_array_equal(compiled.codes, by_sklearn(train, codes, test, [1, 6, 15, 40]))


def test_of_equally_near_classes_the_lowest_code_wins_with_no_gap():
    module = pytest.importorskip(NAME, exc_type=ImportError)
    train = np.array([[5.0], [1.0], [-1.0], [1.0], [3.0]])
    starts, test = np.array([0, 1, 2, 4]), np.array([[0.0], [1.0], [4.5], [4.0]])
    codes, gaps = module.nearest_classes(train, starts, test, np.array([1]))
    assert_array_equal(codes, [[1, 1, 0, 0]])
    assert_array_equal(gaps, [[0.0, 0.0, 1.0, 0.0]])


def test_one_class_has_no_rival():
    module = pytest.importorskip(NAME, exc_type=ImportError)
    train, _, test = draw(n_classes=1)
    codes, gaps = module.nearest_classes(train, np.array([0]), test, np.array([2, 7]))
    assert not codes.any()
    assert np.isposinf(gaps).all()


@pytest.mark.parametrize(("n_test", "n_neighbors", "loads"), [(20, 1, 0), (70, 1, 1), (70, 2, 0)])
def test_few_distances_do_not_wait_for_the_module(monkeypatch, n_test, n_neighbors, loads):
    asked = []
    monkeypatch.setattr(nested_neighbors, "compiled_module", asked.append)
    monkeypatch.setattr(nested_neighbors, "COMPILED_ENTRIES", 4000)
    nested_votes(*draw(n_test=n_test), n_neighbors)
    assert asked == [NAME] * loads


def test_rows_that_cannot_be_written_to(monkeypatch):
    train, codes, test = draw()
    for array in (train, codes, test):
        array.flags.writeable = False
    compiled, plain = both(monkeypatch, train, codes, test, 1)
    assert_array_equal(compiled.codes, plain.codes)
