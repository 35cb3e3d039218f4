"""What is computed for paper 000: its methods, the readings of what it leaves open, the tasks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from marginfold.data import catalogue
from marginfold.estimators.discriminant import KDA, LDA
from marginfold.estimators.eigenmaps import LaplacianEigenmaps
from marginfold.estimators.lpp import LPP
from marginfold.estimators.lsva import LSVA
from marginfold.estimators.mmda import MMDA
from marginfold.estimators.svm_pca import SVMPCA
from marginfold.feature_maps import ExactKernel
from marginfold.graphs import NeighborGraph, PermutedGraph
from marginfold.papers.paper_data import rows_and_labels, scaled_fold, split_scaled
from marginfold.protocols.embeddings import EmbeddingMethod, measure, measure_nested
from marginfold.protocols.published_numbers import printed
from marginfold.protocols.records import Result
from marginfold.protocols.results import coordinate_results
from marginfold.protocols.splits import Fold, folds
from marginfold.protocols.studies import StudySize, Task, select_tasks, study_size

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

COST = 100.0
"""C of 000 section IV."""

NEIGHBORS, WIDTH = 10, 2.0
"""K and 2 sigma^2 of 000 section IV."""

GAMMA = 1.0 / WIDTH
"""sigma = 1 of 000 section IV, as the width of a kernel: exp(-d^2 / (2 sigma^2)).  It is the only
width in the paper.  KLSVA and KMMDA, which are SVMs, have LIBSVM's default 1/d instead."""

KDA_SHRINKAGE = 0.1
"""Shrinkage of KDA, which the paper does not print."""

WEIGHTS = (0.1, 100.0)
"""The range of lambda in 000 section IV; it has 30 values, and does not say how they are spread."""

GOES_ON = "pca"
"""What follows when no task has a margin left.  000 section III goes on after all classes, and its
solver returns something: the directions of largest variance are what can be repeated."""

LINEAR = (
    *("1-NN", "LLSVA", "PCA", "LDA", "LPP", "MMDA"),
    *("LLSVA balanced", "MMDA balanced", "LLSVA margin", "MMDA margin"),
)
"""Columns of Tables I and III, the printed ones first."""

KERNEL = (
    *("1-NN", "KLSVA", "KPCA", "KDA", "LE", "KMMDA"),
    *("KLSVA balanced", "KPCA 1/d", "KDA 1/d", "LE all neighbors", "LE eigenmaps"),
)
"""Columns of Tables II and IV."""

SIGNS = ("KLSVA sign", "KMMDA sign")
"""More columns of Table II: the first SVM as a classifier, which needs two classes."""

NESTED = ("LLSVA", "LLSVA balanced", "MMDA", "MMDA balanced", "PCA", "LDA", "LPP")
"""Linear methods whose weight and dimension are also chosen inside the training rows."""

PERMUTED = "LLSVA permuted graph"
"""The control: the same graph on other rows, which keeps the spectrum and not the geometry."""

TABLES = {
    "I": (BINARY, LINEAR),
    "II": (BINARY, (*KERNEL, *SIGNS)),
    "III": (MULTICLASS, LINEAR),
    "IV": (MULTICLASS, KERNEL),
}
"""Rows and columns of the tables."""

FIGURES = {"figure 1": ("LLSVA", "LDA", "PCA", "LPP"), "figure 2": ("KLSVA", "KDA", "KPCA", "LE")}
"""Panels of the figures, all of thyroid."""

FIGURE_WEIGHT = 1.0
"""Graph weight of the figures: the paper gives none."""

SUCCESSIVE = {"LLSVA", "MMDA", "KLSVA", "KMMDA"}
"""The methods of successive margins, by the first word of their names."""


def is_kernel(number: str) -> bool:
    """Return whether a table is one of the kernel methods."""
    return number in ("II", "IV")


def study_tasks(size: StudySize, table: str | None = None) -> list[Task]:
    """Return the tasks of all tables and figures, or of one ("I", "figure 1")."""
    return select_tasks(STUDY, table, [*TABLES, *FIGURES], lambda name: _tasks(name, size))


def _tasks(name: str, size: StudySize) -> Iterable[Task]:
    if name in FIGURES:
        for method in FIGURES[name]:
            options = _reading(method, "thyroid", size)
            yield Task(STUDY, "thyroid", method, "picture", options=options, work=draw_coordinates)
        return
    names, columns = TABLES[name]
    for dataset in names:
        for method in columns:
            yield from _runs(dataset, method, "paper", size)
        if size.controls and not is_kernel(name):
            yield from _runs(dataset, PERMUTED, "paper", size)
            for method in NESTED:
                yield from _runs(dataset, method, "nested", size)


def _runs(dataset: str, method: str, protocol: str, size: StudySize) -> Iterable[Task]:
    options: dict[str, Any] = {"scale": size.name, "folds": N_FOLDS, "head": HEAD}
    options |= _reading(method, dataset, size)
    work = evaluate_sign if method in SIGNS else evaluate
    if protocol == "nested":
        options["inner_folds"] = INNER_FOLDS
    for seed in size.seeds:
        for fold in range(N_FOLDS):
            yield Task(STUDY, dataset, method, protocol, seed, fold, options, work=work)


def _reading(method: str, dataset: str, size: StudySize) -> dict[str, Any]:
    """Return the options that hold what the paper leaves open and was read in some way."""
    name, _, variant = method.partition(" ")
    options: dict[str, Any] = {}
    if name in SUCCESSIVE and variant not in ("balanced", "margin"):
        options["on_exhausted"] = GOES_ON
    if name in ("KLSVA", "KMMDA"):
        options |= {"gamma": "auto", "weights": size.n_kernel_weights}
        options["components"] = 1 if variant == "sign" else kernel_components(dataset, size)
    elif name in ("KPCA", "KDA", "LE") and variant != "eigenmaps":
        options["gamma"] = "auto" if variant == "1/d" else GAMMA
    if name == "KDA":
        options["shrinkage"] = KDA_SHRINKAGE
    return options


def kernel_components(dataset: str, size: StudySize) -> int:
    """Return the components of KLSVA: those of the scale, one a class, and as many as printed.

    Examples
    --------
    >>> from marginfold.papers.lsva.runs import kernel_components
    >>> from marginfold.protocols.studies import STUDY_SIZES
    >>> kernel_components("vehicle", STUDY_SIZES["quick"])  # printed: 17
    17
    """
    numbers = {**printed(STUDY, "II"), **printed(STUDY, "IV")}
    cells = [numbers.get((dataset, method)) for method in ("KLSVA", "KMMDA")]
    dimensions = [c.dimension or 0 for c in cells if c is not None]
    n_classes = len(catalogue()[dataset].class_counts)
    return max(size.n_kernel_components, n_classes if n_classes > 2 else 1, *dimensions)


def evaluate(task: Task) -> list[Result]:
    """Measure a method on one fold: all weights and dimensions, or those chosen inside it."""
    nested = task.protocol == "nested"
    rows = _fold(task, "train" if nested else "whole")
    method = embedding(task, study_size(task.options["scale"]), rows.X.shape[1])
    if nested:
        return measure_nested(method, rows, [HEAD], n_folds=INNER_FOLDS, seed=task.seed)
    return measure(method, rows, [HEAD])


def evaluate_sign(task: Task) -> list[Result]:
    """Return the error of the first SVM as a classifier, by the sign of its decision function."""
    rows = _fold(task, "whole")
    method = embedding(task, study_size(task.options["scale"]), rows.X.shape[1])
    results = []
    for weight, fitted in method.fits(rows.X, rows.y):
        if fitted.tasks_[0] is None:
            predicted = np.full(len(rows.y_test), np.bincount(rows.y).argmax())
        else:
            predicted = (fitted.decision_function(rows.X_test)[:, 0] > 0).astype(int)
        params = {} if weight is None else {"graph_weight": weight}
        results.append(Result("error", float(np.mean(predicted != rows.y_test)), params, 1))
    return results


def _fold(task: Task, scaling: str) -> Fold:
    X, y = rows_and_labels(task.dataset)
    train, test = folds(y, N_FOLDS, task.seed)[task.fold]
    return scaled_fold(X, y, train, test, scaling)


def embedding(task: Task, size: StudySize, n_columns: int) -> EmbeddingMethod:
    """Return the method of a task; a permuted graph has its seed and fold."""
    name, _, variant = task.method.partition(" ")
    options = task.options
    if name in SUCCESSIVE:
        return _successive(task, size, options.get("components", n_columns))
    graph = NeighborGraph(NEIGHBORS, width=WIDTH)
    kernel = ExactKernel("rbf", gamma=options.get("gamma", GAMMA))
    match name:
        case "PCA":
            return EmbeddingMethod(SVMPCA(n_columns))
        case "KPCA":
            return EmbeddingMethod(SVMPCA(n_columns, kernel=kernel))
        case "LDA":
            return EmbeddingMethod(LDA())
        case "KDA":
            return EmbeddingMethod(KDA(kernel=kernel, shrinkage=options["shrinkage"]))
        case "LPP":
            return EmbeddingMethod(LPP(n_columns, graph=graph))
        case "LE" if variant == "eigenmaps":
            return EmbeddingMethod(LaplacianEigenmaps(n_columns, graph=graph))
        case "LE":
            graph = graph.set_params(within_class=not variant)
            return EmbeddingMethod(LPP(n_columns, graph=graph, kernel=kernel))
        case _:
            return EmbeddingMethod(None, nested=False)


def _successive(task: Task, size: StudySize, n_components: int) -> EmbeddingMethod:
    """Return LLSVA, MMDA or one of their kernel versions."""
    name, _, variant = task.method.partition(" ")
    options = task.options
    params: dict[str, Any] = {
        "C": COST,
        "tasks": "one_vs_rest",
        "deflation": "orthogonal",  # 000 Alg. 1
        "class_weight": "balanced" if variant in ("balanced", "margin") else None,
        "scaling": "margin" if variant == "margin" else "unit",
        "on_exhausted": options.get("on_exhausted", "stop"),
    }
    kernel = name in ("KLSVA", "KMMDA")
    if kernel:
        params["kernel"] = ExactKernel("rbf", gamma=options["gamma"])
    if name in ("MMDA", "KMMDA"):
        return EmbeddingMethod(MMDA(n_components, **params))
    graph: Any = NeighborGraph(NEIGHBORS, width=WIDTH)
    if task.method == PERMUTED:
        graph = PermutedGraph(graph, random_state=task.seed * N_FOLDS + task.fold)
    estimator = LSVA(n_components, graph=graph, normalize_graph=False, **params)
    return EmbeddingMethod(estimator, size.weights(*WEIGHTS, kernel=kernel))


def draw_coordinates(task: Task) -> list[Result]:
    """Return the first two components of all rows (the figures show training rows)."""
    X, y = rows_and_labels(task.dataset)
    everything = np.arange(len(X))
    rows, _ = split_scaled(X, everything, everything, "whole")
    method = embedding(task, study_size("quick"), 2)
    estimator = method.estimator
    if method.weights:
        estimator = estimator.set_params(n_components=2, graph_weight=FIGURE_WEIGHT)
    Z = estimator.fit(rows, y).transform(rows)
    return coordinate_results(Z[:, :2], y.tolist())
