"""From an estimator and rows to a plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from marginfold.errors import InvalidInputError
from marginfold.planner.costs import memory_needs, peaks
from marginfold.planner.machine import slowness
from marginfold.planner.memory_check import alternative
from marginfold.planner.parts import Part, parts_of
from marginfold.planner.plan import Plan, Step
from marginfold.planner.seconds import step_seconds
from marginfold.planner.workload import N_CLASSES, Rows, rows_of
from marginfold.runtime.memory import available_memory
from marginfold.validation.labels import is_unlabelled
from marginfold.validation.parameters import shown


def plan(estimator: Any, X: Any, y: Any = None, *, sample_weight: Any = None) -> Plan:
    """Return what a fit will need, without fitting.

    Memory is that beyond X; the refusal before every fit uses the same arithmetic.  Time is a guess
    within a factor of four or so: it does not look at the values, which decide how many iterations
    a solver takes.

    Parameters
    ----------
    estimator : estimator
        Unfitted: one of this package, a pipeline with one, `MarginMap`, or a search over one.
        Other steps of a pipeline count with the memory of their output and no time.
    X : array, sparse matrix, data frame, dask collection, or tuple (n_rows, n_columns)
        Rows, or just their shape.
    y : array of shape (n_samples,), optional
        Labels; without, two classes are assumed.
    sample_weight : array of shape (n_samples,), optional
        Rows of weight 0 do not count.

    Returns
    -------
    Plan

    Examples
    --------
    >>> from marginfold import LSVA, plan
    >>> small = plan(LSVA(n_components=3), (5000, 20))
    >>> small.route, small.rank, small.fits
    ('primal', 20, True)
    >>> large = plan(LSVA(kernel="rbf"), (100_000, 20))
    >>> large.fits, large.instead
    (False, 'LSVA(..., kernel=LowRankKernel("rbf", rank=...))')
    """
    rows = _rows(X, sample_weight)
    n_classes, notes = _classes(estimator, y)
    parts = parts_of(estimator, rows, n_classes)
    if not parts:
        raise InvalidInputError(
            f"plan got {shown(estimator)}; it knows the estimators of marginfold with a known "
            "kernel, pipelines with one of them, and searches over them."
        )
    steps = tuple(step for part in parts for step in _steps(part))
    main = max(parts, key=lambda part: max(peaks(memory_needs(part.work))))
    available = available_memory()
    result = Plan(
        estimator=type(estimator).__name__,
        n_rows=rows.n_rows,
        n_columns=rows.n_columns,
        rank=main.work.rank,
        route=main.work.route,
        steps=steps,
        available_bytes=available,
        instead=None,
        notes=(*notes, *(part.note for part in parts if part.note)),
    )
    if result.fits:
        return result
    return replace(result, instead=alternative(main.estimator, main.work))


def _rows(X: Any, sample_weight: Any) -> Rows:
    rows = rows_of(X)
    if rows is None:
        rows = rows_of(np.asarray(X))
    if rows is None:
        raise InvalidInputError(
            f"plan got X of shape {np.shape(X)}; it needs a table of rows and columns, or their "
            "numbers as a tuple (n_rows, n_columns)."
        )
    if rows.blocks and not (rows.n_rows and rows.n_columns):
        raise InvalidInputError(
            "plan got a dask collection that does not know its number of rows or columns; call "
            "X.compute_chunk_sizes() first, or give the numbers as a tuple (n_rows, n_columns)."
        )
    if rows.n_rows < 1 or rows.n_columns < 1:
        raise InvalidInputError(
            f"plan got {rows.n_rows} rows and {rows.n_columns} columns; it needs one of each at "
            "least."
        )
    if sample_weight is None:
        return rows
    return replace(rows, n_rows=int(np.count_nonzero(sample_weight)))


def _classes(estimator: Any, y: Any) -> tuple[int, list[str]]:
    """Return the number of classes, and a note if it is a guess."""
    if y is None:
        return N_CLASSES, [f"{N_CLASSES} classes are assumed; give y to count them"]
    labels = np.asarray(y)
    known = labels[~is_unlabelled(labels, getattr(estimator, "unlabeled", None))]
    return max(len(np.unique(known)), 1), []


def _steps(part: Part) -> list[Step]:
    """Return the steps of a part; what is done several times is shown once with its whole time."""
    work, needs = part.work, memory_needs(part.work)
    rules = iter(work.graphs)
    steps = []
    for need, memory in zip(needs, peaks(needs), strict=True):
        rule = next(rules) if need.step == "graph" else None
        seconds = part.fits * slowness() * step_seconds(work, need.step, rule)
        name = f"{part.name}{need.step}" + (f" x {part.fits}" if part.fits > 1 else "")
        steps.append(Step(name, memory + part.held_bytes, seconds))
    return steps
