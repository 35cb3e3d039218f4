"""Points of a scatter picture from the records of their coordinates."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

import numpy as np

from marginfold.linalg.tall import Array
from marginfold.protocols.records import Record

COORDINATE = "coordinate"
"""The metric of a record that holds one coordinate of one point."""


def points_by_label(
    records: Iterable[Record], axes: tuple[int, int] = (1, 2)
) -> dict[Any, tuple[Array, Array]]:
    """Return the two coordinates of the points of each label, in the order of their rows.

    Parameters
    ----------
    records : iterable of Record
        Those of other metrics are passed over; params name the "row" and the "label" of a point.
    axes : pair of int, default=(1, 2)
        The dimensions to show, numbered from 1.  A point without the second lies at 0 there.

    Returns
    -------
    dict of label to (x, y), sorted by label

    Examples
    --------
    >>> import tempfile
    >>> from marginfold.protocols.scatter_points import points_by_label
    >>> from marginfold.protocols.records import RecordStore, Result
    >>> from marginfold.protocols.study_tasks import Task
    >>> results = [
    ...     Result("coordinate", value, {"row": 0, "label": "a"}, dimension=k)
    ...     for k, value in enumerate([0.5, 1.5], start=1)
    ... ]
    >>> with tempfile.TemporaryDirectory() as folder, RecordStore(folder) as store:
    ...     store.write(Task("demo", "wine", "PCA", work=print), results, seconds=0.1)
    ...     points_by_label(store.read())
    {'a': (array([0.5]), array([1.5]))}
    """
    first, second = axes
    points: dict[Any, dict[int, dict[int, float]]] = defaultdict(lambda: defaultdict(dict))
    for r in records:
        if r.metric == COORDINATE and r.value is not None and r.dimension is not None:
            points[r.params["label"]][r.params["row"]][r.dimension] = r.value
    found = {}
    for label, rows in sorted(points.items()):
        ordered = [point for _, point in sorted(rows.items())]
        x = np.array([point[first] for point in ordered])
        y = np.array([point.get(second, 0.0) for point in ordered])
        found[label] = (x, y)
    return found
