"""Labels become codes, whatever their type."""

from __future__ import annotations

import numpy as np
import pytest

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
