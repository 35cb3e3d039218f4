"""Points of scatter pictures, put together again from shuffled records."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from marginfold.protocols.records import RecordStore, Result
from marginfold.protocols.results import points_by_label
from marginfold.protocols.studies import Task


def records_of(folder, results):
    with RecordStore(folder) as store:
        store.write(Task("demo", "wine", "PCA", work=print), results, seconds=0.0)
        return store.read()


def coordinates(points, labels, rows=None):
    return [
        Result("coordinate", float(value), {"row": int(row), "label": label}, dimension=k)
        for row, point, label in zip(rows or range(len(points)), points, labels, strict=True)
        for k, value in enumerate(point, start=1)
    ]


@pytest.mark.parametrize("axes", [(1, 2), (3, 4), (4, 1)])
@pytest.mark.parametrize("names", [[0, 1, 2], ["b", "a", "c d"]])
def test_points_come_back_by_label_and_in_the_order_of_rows(tmp_path, axes, names):
    rng = np.random.default_rng(0)
    points, labels = rng.normal(size=(30, 4)), [names[i] for i in rng.integers(3, size=30)]
    results = coordinates(points, labels)
    shuffled = [results[i] for i in rng.permutation(len(results))]
    found = points_by_label(records_of(tmp_path, shuffled), axes)
    assert list(found) == sorted(names)
    for label, (x, y) in found.items():
        members = np.array([own == label for own in labels])
        assert_array_equal(x, points[members, axes[0] - 1])
        assert_array_equal(y, points[members, axes[1] - 1])


def test_labels_may_share_rows(tmp_path):
    """As the rows of a picture and what is rebuilt of them."""
    results = coordinates([[1, 2], [3, 4]], ["data"] * 2)
    results += coordinates([[5, 6], [7, 8]], ["rebuilt"] * 2)
    found = points_by_label(records_of(tmp_path, results))
    assert_array_equal(found["data"], [[1, 3], [2, 4]])
    assert_array_equal(found["rebuilt"], [[5, 7], [6, 8]])


def test_a_point_of_one_dimension_lies_on_a_line(tmp_path):
    found = points_by_label(records_of(tmp_path, coordinates([[1], [2]], [0, 0])))
    assert_array_equal(found[0], [[1, 2], [0, 0]])


def test_other_metrics_and_skipped_tasks_are_no_points(tmp_path):
    results = [Result("plane", 1.0, {"label": 0}, dimension=1), Result("error", 0.1)]
    assert points_by_label(records_of(tmp_path, results)) == {}
    assert points_by_label([]) == {}
