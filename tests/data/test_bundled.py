"""What comes with the package is what the catalogue says, and what others publish."""

from __future__ import annotations

import gzip
import os
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris, load_wine
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from marginfold.data import catalogue, load, status
from marginfold.data.loading import canonical_text, read_arrays, unordered_fingerprint
from marginfold.errors import InvalidInputError

NAMES = [name for name, entry in catalogue().items() if entry.where == "bundled"]
PAPER_SETS = set(
    """balance breast breast9 ecoli german glass heart hepatitis ionosphere iris liver
    sonar soy soy3 splice tae thyroid transfusion vehicle votes vowel wine wpbc""".split()  # noqa: SIM905
)
ERRORS_OF_1NN = {
    "heart": 24.44,
    "ionosphere": 13.69,
    "liver": 38.26,
    "glass": 30.3,
    "soy3": 8.46,
    "thyroid": 4.65,
    "wine": 4.56,
}
"""000 Tables I and III, column 1-NN: per cent of errors over five folds; no scaling is stated."""


def bundled(name):
    return files("marginfold.data").joinpath("bundled", f"{name}.csv.gz").read_bytes()


@pytest.mark.parametrize("name", NAMES)
def test_a_bundled_set_is_what_its_entry_says(name):
    entry, data = catalogue()[name], load(name)
    assert data.X.shape == (entry.rows, entry.columns)
    assert data.X.dtype == np.float64
    assert np.isnan(data.X).sum() == entry.missing
    assert not np.isinf(data.X).any()
    classes, counts = np.unique(data.y, return_counts=True)
    assert list(zip(map(str, classes), counts, strict=True)) == list(entry.class_counts.items())
    assert len(data.target_names) == len(classes)
    assert len(set(data.feature_names)) == entry.columns
    assert data.license == entry.license
    assert entry.citation in data.source


@pytest.mark.parametrize("name", NAMES)
def test_the_file_is_the_canonical_text_and_has_the_hash(name):
    text = gzip.decompress(bundled(name))
    data = load(name)
    assert text == canonical_text(data.X, data.y).encode()
    assert sha256(text).hexdigest() == catalogue()[name].sha256


def test_the_sets_of_the_papers_are_bundled_and_no_file_is_left_over():
    assert set(NAMES) >= PAPER_SETS
    folder = files("marginfold.data").joinpath("bundled")
    stored = {file.name: len(file.read_bytes()) for file in folder.iterdir()}
    assert set(stored) == {"LICENSES.md"} | {catalogue()[name].file for name in NAMES}
    assert sum(stored.values()) < 500_000


def test_a_set_that_its_publisher_withdrew_is_read_from_the_folder_only():
    entry = catalogue()["diabetes"]
    assert (entry.where, entry.file) == ("data_home", "diabetes.csv")
    if status("diabetes") == "missing":
        with pytest.raises(InvalidInputError, match=r"put diabetes\.csv there"):
            load("diabetes")
    else:
        assert load("diabetes").X.shape == (768, 8)


def test_wine_is_that_of_scikit_learn():
    X, y = load_wine(return_X_y=True)
    assert_array_equal(load("wine").X, X)
    assert_array_equal(load("wine").y, y + 1)


def test_iris_is_that_of_scikit_learn_but_for_the_two_rows_that_it_corrects():
    ours, theirs = load("iris"), load_iris()
    assert_array_equal(np.unique(ours.y, return_inverse=True)[1], theirs.target)
    assert_array_equal(np.flatnonzero((ours.X != theirs.data).any(axis=1)), [34, 37])
    assert_array_equal(ours.X[[34, 37]], [[4.9, 3.1, 1.5, 0.1], [4.9, 3.1, 1.5, 0.1]])


def test_relations_between_the_sets():
    breast, nine, all_rows = load("breast"), load("breast9"), load("breast699")
    assert_array_equal(breast.X[:, 1:], nine.X)
    complete = ~np.isnan(all_rows.X).any(axis=1)
    assert_array_equal(breast.X, all_rows.X[complete])
    assert_array_equal(breast.y, all_rows.y[complete])
    soy, soy3 = load("soy"), load("soy3")
    assert_array_equal(soy3.X, np.where(np.isnan(soy.X), 0, soy.X) > 0)
    assert_array_equal(np.bincount(soy3.y), [0, 100, 100, 107])
    assert (np.diff(soy3.y) >= 0).all()


def test_balance_obeys_the_law_of_the_lever():
    data = load("balance")
    torque = data.X[:, 0] * data.X[:, 1] - data.X[:, 2] * data.X[:, 3]
    assert_array_equal(data.y, np.select([torque > 0, torque < 0], ["L", "R"], "B"))


def test_every_load_gives_arrays_of_its_own():
    first = load("tae")
    first.X[:] = 0
    assert load("tae").X.any()


def test_frame_and_repr():
    data = load("votes")
    frame = data.frame
    assert list(frame.columns) == [*data.feature_names, "label"]
    assert_array_equal(frame["label"], data.y)
    assert frame.isna().to_numpy().sum() == 392
    assert repr(data) == "Dataset(435 x 16, 2 classes)"


@pytest.mark.parametrize("name", sorted(ERRORS_OF_1NN))
def test_nearest_neighbors_err_as_often_as_paper_000_prints(name):
    data = load(name)
    model = make_pipeline(MinMaxScaler(), KNeighborsClassifier(1))
    errors = []
    for seed in range(10):
        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        errors.append(100 - 100 * cross_val_score(model, data.X, data.y, cv=folds).mean())
    # One partition of the paper against the spread of ours.
    assert abs(np.mean(errors) - ERRORS_OF_1NN[name]) < 3 * np.std(errors)


@pytest.mark.parametrize("name", NAMES)
def test_copies_from_elsewhere_have_the_same_rows(name):
    path = Path(os.environ.get("MARGINFOLD_DATA") or "no folder") / f"{name}.csv"
    if not path.is_file():
        pytest.skip(f"no {path.name} in the folder that MARGINFOLD_DATA names")
    X, y = read_arrays(path)
    data = load(name)
    if name == "soy3":
        assert unordered_fingerprint(X, y) == unordered_fingerprint(data.X, data.y)
    else:
        assert_array_equal(X, data.X)
        assert_array_equal(y, data.y)


def test_splice_codes_the_letters_of_a_copy_from_elsewhere():
    path = Path(os.environ.get("MARGINFOLD_DATA") or "no folder") / "splice.csv.gz"
    if not path.is_file():
        pytest.skip("no splice.csv.gz in the folder that MARGINFOLD_DATA names")
    rows = [line.split(",") for line in gzip.decompress(path.read_bytes()).decode().split()[1:]]
    codes = {"A": 1, "C": 2, "G": 3, "T": 4, "N": 2.5, "S": 2.5, "R": 2, "D": 8 / 3}
    X = np.array([[codes[letter] for letter in row[:-1]] for row in rows])
    data = load("splice")
    labels = np.array([row[-1] for row in rows])
    assert unordered_fingerprint(X, labels) == unordered_fingerprint(data.X, data.y)


def test_the_terms_of_every_bundled_set_are_shipped_with_it():
    text = files("marginfold.data").joinpath("bundled", "LICENSES.md").read_text("utf-8")
    for entry in catalogue().values():
        if entry.where == "bundled":
            line = next(row for row in text.splitlines() if row.startswith(f"| {entry.name} |"))
            for part in (entry.title, entry.citation, entry.license, entry.source):
                assert part in line
