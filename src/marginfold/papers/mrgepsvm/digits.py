"""003 Table 5: digits with few training images."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from marginfold.estimators.lpp import LPP
from marginfold.graphs import NeighborGraph
from marginfold.linalg.tall import Array
from marginfold.papers.mrgepsvm import methods
from marginfold.papers.paper_data import rows_and_labels
from marginfold.protocols.embeddings import Embedding, best
from marginfold.protocols.feature_scaling import split_scaled
from marginfold.protocols.records import Result
from marginfold.protocols.splits import folds
from marginfold.protocols.study_size import Scale
from marginfold.protocols.study_tasks import Skip, Task

DATASET, RENDERING = "usps", "usps_roweis8"
"""All ten digits; and the images that the paper used, of which the digits 6 and 7 are lost."""

PER_CLASS = 110
"""Images drawn of each digit (003 section 6)."""

LABELLED = (10, 20, 30, 40, 50)
"""Of these, training images of each digit: the rows of Table 5."""

METHODS = ("SVM", "LPP", "TSVM", "GEPSVM", "MRGEPSVM")
"""Columns of Table 5."""

INNER_FOLDS = 3
"""Folds of the training images on which parameters are chosen; the paper does not say how."""

GAMMA_EXPONENT = -8
"""gamma = 2^-8 = 1/d of the rbf kernel; with planes of pixels GEPSVM is right on half the rows."""

GRID = {"C": [-3, 3], "ridge": [-6, -3, 0, 3], "graph_weight": [-6, 0, 6]}
QUICK_GRID = {"C": [0], "ridge": [-3, 0], "graph_weight": [0]}
"""Exponents of what is tried."""

SETTING = methods.Setting(tikhonov="rkhs", width="auto")
"""Images are too far apart for the heat width 2, and the printed Tikhonov term fails on them."""

LPP_COMPONENTS = 60
"""Most components of LPP."""

HEAD = "1-nn"
"""The classifier on the components of LPP."""


def digit_tasks(scale: Scale) -> Iterable[Task]:
    """Return the tasks of Table 5; the other rendering of the digits is a control."""
    options = {"grid": grid(scale), "per_class": PER_CLASS, "inner_folds": INNER_FOLDS}
    for dataset in renderings(scale):
        for n_labelled in LABELLED:
            for method in METHODS:
                for seed in scale.seeds:
                    yield Task(
                        methods.STUDY,
                        dataset,
                        method,
                        row_name(n_labelled),
                        seed,
                        options=options | {"labelled": n_labelled},
                        work=measure_digits,
                    )


def grid(scale: Scale) -> dict[str, list[int]]:
    """Return the exponents that are tried at a scale."""
    return (QUICK_GRID if scale.name == "quick" else GRID) | {"gamma": [GAMMA_EXPONENT]}


def renderings(scale: Scale) -> tuple[str, ...]:
    """Return the data sets: the second one costs as much again, and is for the full scale."""
    return (DATASET, RENDERING) if scale.name == "full" else (DATASET,)


def row_name(n_labelled: int) -> str:
    """Return the name of a row of Table 5."""
    return f"l = {n_labelled}"


def measure_digits(task: Task) -> list[Result]:
    """Draw images, choose parameters by folds of the training images, measure on the others."""
    X, y = rows_and_labels(task.dataset)
    train, test = drawn(y, task.options["per_class"], task.options["labelled"], task.seed)
    rows, new = split_scaled(X, train, test, "global")
    inner = [
        (rows[own], y[train][own], rows[other], y[train][other])
        for own, other in folds(y[train], task.options["inner_folds"], task.seed)
    ]
    outer = (rows, y[train], new, y[test])
    if task.method == "LPP":
        return _measure_lpp(task, inner, outer)
    params = methods.chosen(task.method, task.options["grid"], inner, SETTING)
    error = methods.error(task.method, params, outer, SETTING)
    return [Result("error", error, params)]


def drawn(y: Array, per_class: int, n_labelled: int, seed: int) -> tuple[Array, Array]:
    """Return training and test rows: of each class so many, of which the first are labelled.

    The rows of a seed are the same for all numbers of labels, and training rows are nested.
    """
    rng = np.random.default_rng(seed)
    train, test = [], []
    for label in np.unique(y):
        members = np.flatnonzero(y == label)
        if len(members) < per_class:
            raise Skip(f"{per_class} rows of each class are needed; class {label} has fewer")
        chosen = rng.permutation(members)[:per_class]
        train.append(chosen[:n_labelled])
        test.append(chosen[n_labelled:])
    return np.concatenate(train), np.concatenate(test)


def _measure_lpp(task: Task, inner: list[methods.Split], outer: methods.Split) -> list[Result]:
    """Choose ridge and dimension of LPP with 1-NN; return the test error."""
    choices = []
    for ridge in (2.0**i for i in task.options["grid"]["ridge"]):
        choice = best([_lpp(ridge).curves(*split, [HEAD]) for split in inner], HEAD)
        if choice is not None:
            choices.append((choice.error, choice.dimension, ridge))
    if not choices:
        raise Skip("LPP finds no direction in some fold")
    _, dimension, ridge = min(choices)
    errors = _lpp(ridge).curves(*outer, [HEAD])[HEAD, None]
    k = min(dimension, len(errors))
    return [Result("error", float(errors[k - 1]), {"head": HEAD, "ridge": ridge}, k)]


def _lpp(ridge: float) -> Embedding:
    graph = NeighborGraph(methods.NEIGHBORS, within_class=True)
    return Embedding(LPP(LPP_COMPONENTS, graph=graph, ridge=ridge))
