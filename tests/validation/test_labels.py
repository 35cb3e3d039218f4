"""Labels become codes, whatever their type."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from marginfold import GEPSVC, GESVC, LDA, LSVA
from marginfold.errors import MarginfoldWarning
from marginfold.validation.rows import unique_labels

rng = np.random.default_rng(0)
WHOLE = ["int8", "uint8", "int32", "int64", "uint64"]


@pytest.mark.parametrize("dtype", WHOLE)
@pytest.mark.parametrize("extreme", ["min", "max", "both"])
def test_whole_numbers_are_numbered_as_by_sorting(dtype, extreme):
    limits = np.iinfo(dtype)
    ends = {"min": [limits.min], "max": [limits.max], "both": [limits.min, limits.max]}[extreme]
    near = [end + step if end <= 0 else end - step for end in ends for step in (0, 3, 5)]
    labels = rng.choice(np.array(near, dtype=dtype), 400)
    classes, codes = unique_labels(labels)
    expected = np.unique(labels)
    assert classes.dtype == labels.dtype
    assert (classes == expected).all()
    assert (classes[codes] == labels).all()


@pytest.mark.parametrize("labels", [["b", "a", "b"], [2.5, 1.0, 2.5], [True, False, True]])
def test_other_labels_are_sorted(labels):
    classes, codes = unique_labels(np.array(labels))
    assert classes.tolist() == sorted(set(labels))
    assert codes.tolist() == [1, 0, 1]


PRICES = np.round(np.exp(np.random.default_rng(0).normal(7, 1, 300)))


@pytest.mark.parametrize("method", [LSVA(), LDA(), GEPSVC(), GESVC()], ids=str)
def test_float_labels_that_look_like_a_quantity_are_warned_of_and_learnt(method):
    y = np.repeat(PRICES[:60], 2)
    X = np.random.default_rng(1).standard_normal((len(y), 3))
    with pytest.warns(MarginfoldWarning, match=r"different numbers in 120 rows.*y\.astype\(int\)"):
        method.fit(X, y)


@pytest.mark.parametrize(
    "y",
    [
        np.repeat(PRICES[:60], 2).astype(int),
        np.repeat(np.arange(100.0), 10),
        np.repeat([1.0, 2.0, 900.0], 20),
        np.repeat(PRICES[:60], 2).astype(int).astype(str),
    ],
    ids=["integers", "100 classes", "few", "words"],
)
def test_labels_that_may_be_classes_are_not_warned_of(y):
    X = np.random.default_rng(1).standard_normal((len(y), 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error", MarginfoldWarning)
        LDA(1).fit(X, y)
