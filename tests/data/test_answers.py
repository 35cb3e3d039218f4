"""What a classifier says beside the class, against distances that are computed one by one."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.spatial.distance import cdist
from sklearn.neighbors import KNeighborsClassifier

from marginfold import NeighborsClassifier
from marginfold.data.answers import class_scores

rng = np.random.default_rng(3)


@pytest.mark.parametrize("gap", [0.0, 1e9])
@pytest.mark.parametrize(
    ("classifier", "metric"),
    [
        (NeighborsClassifier(), "euclidean"),
        (KNeighborsClassifier(), "euclidean"),
        (KNeighborsClassifier(metric="manhattan"), "cityblock"),
    ],
)
def test_distances_are_those_to_the_nearest_row_of_each_class(classifier, metric, gap):
    rows, y = rng.standard_normal((90, 12)), np.arange(90) % 3
    rows[:45, 0] += gap
    new = rows + 0.1
    found = class_scores(classifier.fit(rows, y), new)
    expected = [cdist(new, rows[y == code], metric).min(axis=1) for code in range(3)]
    assert found.kind == "distance"
    assert_allclose(found.values, np.transpose(expected), rtol=1e-12)
