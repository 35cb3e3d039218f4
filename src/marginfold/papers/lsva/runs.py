"""What is computed for paper 000: Tables I-IV, Figures 1-2 and their controls."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from marginfold.papers import check_table
from marginfold.papers.lsva import methods
from marginfold.papers.paper_data import rows_and_labels
from marginfold.protocols.embeddings import measure, measure_nested
from marginfold.protocols.feature_scaling import split_scaled
from marginfold.protocols.records import Result
from marginfold.protocols.splits import folds
from marginfold.protocols.study_size import Scale, scale_named
from marginfold.protocols.study_tasks import Task

STUDY = "lsva"

N_FOLDS, INNER_FOLDS = 5, 3
"""Folds of 000 section IV, and those inside the training rows of the nested protocol."""

HEAD = "1-nn"
"""The classifier of 000 section IV."""

BINARY = (
    *("australian", "breast", "diabetes", "german", "heart"),
    *("ionosphere", "liver", "sonar", "transfusion"),
)
MULTICLASS = (
    *("balance", "ecoli", "glass", "iris", "soy3"),
    *("tae", "thyroid", "vehicle", "vowel", "wine"),
)

TABLES = {
    "I": (BINARY, methods.LINEAR),
    "II": (BINARY, methods.KERNEL),
    "III": (MULTICLASS, methods.LINEAR),
    "IV": (MULTICLASS, methods.KERNEL),
}
"""Rows and columns of the tables."""

FIGURES = {
    "figure 1": ("LLSVA", "LDA", "PCA", "LPP"),
    "figure 2": ("KLSVA", "KDA", "KPCA", "LE"),
}
"""Panels of the figures, all of thyroid."""

FIGURE_WEIGHT = 1.0
"""Graph weight of the figures: the paper gives none."""


def plan(scale: Scale, table: str | None = None) -> list[Task]:
    """Return the tasks of all tables and figures, or of one ("I", "figure 1")."""
    check_table(STUDY, table, [*TABLES, *FIGURES])
    wanted = [table] if table else [*TABLES, *FIGURES]
    tasks = [task for name in wanted for task in _tasks(name, scale)]
    return list({task.key: task for task in tasks}.values())


def _tasks(name: str, scale: Scale) -> Iterable[Task]:
    if name in FIGURES:
        for method in FIGURES[name]:
            yield Task(STUDY, "thyroid", method, "picture", options={}, work=draw_coordinates)
        return
    names, columns = TABLES[name]
    for dataset in names:
        for method in columns:
            yield from _runs(dataset, method, "paper", scale)
        if scale.controls and columns is methods.LINEAR:
            yield from _runs(dataset, methods.PERMUTED, "paper", scale)
            for method in methods.NESTED:
                yield from _runs(dataset, method, "nested", scale)


def _runs(dataset: str, method: str, protocol: str, scale: Scale) -> Iterable[Task]:
    options: dict[str, Any] = {"scale": scale.name, "folds": N_FOLDS, "head": HEAD}
    if protocol == "nested":
        options["inner_folds"] = INNER_FOLDS
    for seed in scale.seeds:
        for fold in range(N_FOLDS):
            yield Task(STUDY, dataset, method, protocol, seed, fold, options, work=evaluate)


def evaluate(task: Task) -> list[Result]:
    """Measure a method on one fold: all weights and dimensions, or those chosen inside it."""
    X, y = rows_and_labels(task.dataset)
    train, test = folds(y, N_FOLDS, task.seed)[task.fold]
    nested = task.protocol == "nested"
    rows, new = split_scaled(X, train, test, "train" if nested else "whole")
    scale = scale_named(task.options["scale"])
    if task.method == methods.PERMUTED:
        embedding = methods.permuted(scale, X.shape[1], task.seed * N_FOLDS + task.fold)
    else:
        embedding = methods.method(task.method).make(scale, X.shape[1])
    arguments: Any = (embedding, rows, y[train], new, y[test], [HEAD])
    if nested:
        return measure_nested(*arguments, n_folds=INNER_FOLDS, seed=task.seed)
    return measure(*arguments)


def draw_coordinates(task: Task) -> list[Result]:
    """Return the first two components of all rows (the figures show training rows)."""
    X, y = rows_and_labels(task.dataset)
    everything = np.arange(len(X))
    rows, _ = split_scaled(X, everything, everything, "whole")
    embedding = methods.method(task.method).make(scale_named("quick"), 2)
    estimator = embedding.estimator
    if embedding.weights:
        estimator = estimator.set_params(n_components=2, graph_weight=FIGURE_WEIGHT)
    Z = estimator.fit(rows, y).transform(rows)
    return [
        Result("coordinate", float(Z[i, k]), {"row": i, "label": int(y[i])}, dimension=k + 1)
        for i in range(len(Z))
        for k in range(min(2, Z.shape[1]))
    ]
