"""What estimators that hold others will do: pipelines, searches and `MarginMap`."""

from __future__ import annotations

from collections.abc import Iterable, Sized
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid, check_cv

from marginfold.errors import InvalidInputError
from marginfold.planner.workload import Rows, Workload, output_columns, workload_of
from marginfold.validation.parameters import shown


@dataclass(frozen=True)
class Part:
    """Fits of one estimator inside another.

    Attributes
    ----------
    estimator : object
        One of this package.
    work : Workload
    fits : int
        How many fits like this, one after the other.
    name : str
        What its steps are called before their own names.
    held_bytes : float
        Memory that others hold meanwhile.
    note : str
        What was assumed.
    """

    estimator: Any
    work: Workload
    fits: int = 1
    name: str = ""
    held_bytes: float = 0.0
    note: str = ""


def parts_of(estimator: Any, rows: Rows, n_classes: int) -> list[Part]:
    """Return the fits of estimators of this package, none for a stranger without any inside."""
    if hasattr(estimator, "steps"):
        return _pipeline(estimator, rows, n_classes)
    if hasattr(estimator, "planned_classifier"):
        return _margin_map(estimator, rows, n_classes)
    if hasattr(estimator, "estimator") and hasattr(estimator, "cv"):
        return _search(estimator, rows, n_classes)
    if not type(estimator).__module__.startswith("marginfold."):
        return []
    work = workload_of(estimator, rows, n_classes)
    return [] if work is None else [Part(estimator, work)]


def _pipeline(pipeline: Any, rows: Rows, n_classes: int) -> list[Part]:
    """Return the parts of the steps; each hands an array of its columns to the next."""
    parts: list[Part] = []
    held = 0.0
    for name, step in pipeline.steps:
        if step is None or isinstance(step, str):
            continue
        found = parts_of(step, rows, n_classes)
        parts += [
            replace(part, name=f"{name}: {part.name}", held_bytes=held + part.held_bytes)
            for part in found
        ]
        if hasattr(step, "transform"):
            width = output_columns(step, rows.n_columns)
            rows = Rows(rows.n_rows, width, blocks=rows.blocks)
            held = 0.0 if rows.blocks else 8.0 * rows.n_rows * width
    return parts


def _margin_map(margin_map: Any, rows: Rows, n_classes: int) -> list[Part]:
    """Return the classifier, fitted once for the map and once for each fold of its sharpness."""
    classifier = margin_map.planned_classifier(rows.n_rows)
    automatic = isinstance(margin_map.sharpness, str)
    fits = 1 + (_folds(margin_map.cv) if automatic else 0)
    return [replace(part, fits=fits * part.fits) for part in parts_of(classifier, rows, n_classes)]


def _search(search: Any, rows: Rows, n_classes: int) -> list[Part]:
    """Return the fits of all folds; `SubspaceSearchCV` shares all but the solver among values."""
    n_folds = _folds(search.cv)
    shared = type(search).__module__.startswith("marginfold.")
    if shared:
        side_by_side = _count(search.C) * _count(getattr(search, "graph_weight", None))
        fits = n_folds
    else:
        side_by_side, fits = 1, n_folds * _candidates(search)
    fits += bool(getattr(search, "refit", False))
    parts = parts_of(search.estimator, rows, n_classes)
    note = f"{n_folds} folds, {fits} fits" + (f" of {side_by_side} values" if shared else "")
    return [
        replace(
            part,
            fits=fits * part.fits,
            work=replace(part.work, solves=part.work.solves * side_by_side),
            note=note,
        )
        for part in parts
    ]


def _candidates(search: Any) -> int:
    """Return the number of settings that a search of scikit-learn tries."""
    if hasattr(search, "param_grid"):
        return len(ParameterGrid(search.param_grid))
    if hasattr(search, "n_iter"):
        return int(search.n_iter)
    raise InvalidInputError(
        f"plan cannot count what {shown(search)} will fit; it needs GridSearchCV, "
        "RandomizedSearchCV or SubspaceSearchCV. Plan its estimator instead."
    )


def _folds(cv: Any) -> int:
    if isinstance(cv, Iterable) and isinstance(cv, Sized):
        return len(cv)
    return int(check_cv(cv).get_n_splits())


def _count(values: Any) -> int:
    return 1 if values is None else int(np.size(np.asarray(values, dtype=object)))
