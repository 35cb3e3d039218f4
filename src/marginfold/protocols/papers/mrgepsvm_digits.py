"""003 Table 5: digits with few training images."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from marginfold.estimators.lpp import LPP
from marginfold.graphs import NeighborGraph
from marginfold.protocols.embeddings import Embedding, measure_nested
from marginfold.protocols.papers import mrgepsvm_methods as methods
from marginfold.protocols.papers.data import rows_and_labels
from marginfold.protocols.records import Result
from marginfold.protocols.scales import Scale
from marginfold.protocols.scaling import split_scaled
from marginfold.protocols.splits import folds
from marginfold.protocols.tasks import Skip, Task
from marginfold.rows import Array

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

EXPONENT_STEPS = {"standard": 6, "full": 6}
"""Every how many exponents from -9 to 9 are tried; 9 where nothing is said."""

COARSEST_STEP = 9

LPP_COMPONENTS = 60
"""Most components of LPP."""


def digit_tasks(scale: Scale) -> Iterable[Task]:
    """Return the tasks of Table 5; the other rendering of the digits is a control."""
    step = EXPONENT_STEPS.get(scale.name, COARSEST_STEP)
    tried = list(range(-methods.LARGEST_EXPONENT, methods.LARGEST_EXPONENT + 1, step))
    options = {"exponents": tried, "per_class": PER_CLASS, "inner_folds": INNER_FOLDS}
    for dataset in (DATASET, RENDERING) if scale.controls else (DATASET,):
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


def row_name(n_labelled: int) -> str:
    """Return the name of a row of Table 5."""
    return f"l = {n_labelled}"


def measure_digits(task: Task) -> list[Result]:
    """Draw images, choose parameters by folds of the training images, measure on the others."""
    X, y = rows_and_labels(task.dataset)
    train, test = drawn(y, task.options["per_class"], task.options["labelled"], task.seed)
    rows, new = split_scaled(X, train, test, "global")
    if task.method == "LPP":
        return _measure_lpp(task, (rows, y[train], new, y[test]))
    inner = [
        (rows[own], y[train][own], rows[other], y[train][other])
        for own, other in folds(y[train], task.options["inner_folds"], task.seed)
    ]
    params = methods.chosen(task.method, "linear", task.options["exponents"], inner)
    error = methods.error(task.method, "linear", params, (rows, y[train], new, y[test]))
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


def _measure_lpp(task: Task, split: methods.Split) -> list[Result]:
    rows, y, new, y_new = split
    most = min(LPP_COMPONENTS, rows.shape[1])
    lpp = LPP(most, graph=NeighborGraph(methods.NEIGHBORS, within_class=True))
    n_folds = task.options["inner_folds"]
    heads = ["1-nn"]
    return measure_nested(
        Embedding(lpp), rows, y, new, y_new, heads, n_folds=n_folds, seed=task.seed
    )
