"""003 Figure 5: the planes that GEPSVM and MRGEPSVM learn from crossing lines."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from marginfold.data import cross_planes
from marginfold.papers.mrgepsvm import methods
from marginfold.protocols.records import Result
from marginfold.protocols.study_tasks import Task

PICTURE = "picture"
"""The protocol of a figure."""

DATASET = "cross_planes"

METHODS = ("GEPSVM", "MRGEPSVM")
"""The panels."""

PARAMS = {"ridge": 2.0**-3, "graph_weight": 1.0}
"""Weights of the figure; the paper gives none."""


def plane_tasks() -> Iterable[Task]:
    """Return one task for each panel."""
    for method in METHODS:
        yield Task(
            methods.STUDY, DATASET, method, PICTURE, 0, options=dict(PARAMS), work=learn_planes
        )


def learn_planes(task: Task) -> list[Result]:
    """Return the rows, the planes (normal, then offset) and the training error."""
    data = cross_planes(random_state=task.seed)
    X, y = data.X, np.asarray(data.y)
    model = methods.estimator(task.method, task.options).fit(X, y)
    results = [
        Result("coordinate", float(X[i, k]), {"row": i, "label": int(y[i])}, dimension=k + 1)
        for i in range(len(X))
        for k in range(2)
    ]
    for plane in model.planes_:
        values = (*plane.normal, plane.offset)
        results += [
            Result("plane", float(value), {"label": int(plane.label)}, dimension=k)
            for k, value in enumerate(values, start=1)
        ]
    wrong = float(np.mean(model.predict(X) != y))
    return [*results, Result("error", wrong, dict(PARAMS))]
