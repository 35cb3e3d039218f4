"""Times of 003 Tables 3 and 4: all methods of a row in one task, so that their ratios mean much."""

from __future__ import annotations

import time
from collections.abc import Iterable

import numpy as np
from sklearn.base import clone

from marginfold.papers.mrgepsvm import methods
from marginfold.papers.paper_data import rows_and_labels
from marginfold.protocols.feature_scaling import split_scaled
from marginfold.protocols.records import Result
from marginfold.protocols.study_size import Scale, scale_named
from marginfold.protocols.study_tasks import Task

DATASETS = (
    *("votes", "sonar", "diabetes", "ida_flare_solar", "ida_waveform"),
    *("ida_thyroid", "ida_heart", "ida_banana", "ida_breast_cancer"),
)
"""Rows of Tables 3 and 4."""

KERNEL_ROWS = 1000
"""More rows than this are subsampled for the rbf kernel, whose cost is the cube of them."""

REPEATS = {"quick": 3, "standard": 5, "full": 11}
"""Fits of each method, of which the median counts, by scale."""

PARAMS = {"ridge": 1.0, "graph_weight": 1.0, "C": 1.0}
"""What is timed: the middle of the grids."""

ALL = "all methods"
"""The method of a task that times them side by side."""


def time_tasks(kernel: str, scale: Scale) -> Iterable[Task]:
    """Return one task for each row of a table of times."""
    options = {"repeats": repeats(scale), "largest": KERNEL_ROWS}
    for dataset in DATASETS:
        yield Task(
            methods.STUDY, dataset, ALL, f"{kernel}, times", 0, options=options, work=measure_times
        )


def repeats(scale: Scale) -> int:
    """Return how often each method is fitted at a scale."""
    return REPEATS[scale_named(scale.name).name]


def measure_times(task: Task) -> list[Result]:
    """Return the median CPU seconds of fitting each method; turns alternate between them."""
    X, y = rows_and_labels(task.dataset)
    kernel = task.protocol.split(",")[0]
    kept = np.arange(len(y))
    if kernel == "rbf" and len(y) > task.options["largest"]:
        drawn = np.random.default_rng(task.seed).choice(len(y), task.options["largest"], False)
        kept = np.sort(drawn)
    rows, _ = split_scaled(X[kept], np.arange(len(kept)), np.zeros(0, dtype=int), "whole")
    params = PARAMS | ({"gamma": 1.0 / rows.shape[1]} if kernel == "rbf" else {})
    models = {name: methods.estimator(name, params) for name in methods.PRINTED}
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for repeat in range(task.options["repeats"] + 1):
        for name, model in models.items():
            start = time.process_time()
            clone(model).fit(rows, y[kept])
            if repeat:  # the first turn warms up
                seconds[name].append(time.process_time() - start)
    return [
        Result("seconds", float(np.median(taken)), {"method": name, "rows": len(kept)})
        for name, taken in seconds.items()
    ]
