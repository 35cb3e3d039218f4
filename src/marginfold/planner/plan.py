"""What a fit will cost, planned before it is started: steps, memory, time, and whether it fits."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sized
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.model_selection import ParameterGrid, check_cv

from marginfold.errors import InvalidInputError
from marginfold.planner.check import alternative
from marginfold.planner.costs import machine, peak_memory, peaks, step_costs
from marginfold.planner.workload import (
    N_CLASSES,
    Rows,
    Workload,
    output_columns,
    rows_of,
    workload_of,
)
from marginfold.runtime.memory import available_memory, readable
from marginfold.validation.parameters import shown
from marginfold.validation.rows import is_unlabelled
from marginfold.validation.types import Estimator, Labels, Weights
from marginfold.validation.types import Rows as RowsLike

UNCERTAINTY = 4.0
"""Factor by which the time may differ either way (see ``benchmarks/planner.py``)."""


BUSY = 1.5
"""Waiting above which a plan says that the machine is busy."""


@dataclass(frozen=True)
class Step:
    """One step of a fit.

    Attributes
    ----------
    name : str
        What is done, such as "coordinates", "graph" or "solver".
    memory_bytes : float
        Memory in use at the worst moment of the step, beyond the rows that are given.
    seconds : float
        Its CPU time on one core of this machine.
    """

    name: str
    memory_bytes: float
    seconds: float


@dataclass(frozen=True)
class Plan:
    """What a fit will need; ``print`` shows it as a table.

    Attributes
    ----------
    estimator : str
        Name of the class.
    n_rows, n_columns : int
        Shape of the rows.
    rank : int
        Coordinates in which each row is represented; an upper bound where the data decide.
    route : str
        "primal", "dual" (more columns than rows), "exact kernel", "gram" (a kernel matrix without
        coordinates), "low rank" (a feature map or transformer), "graph" (no coordinates) or
        "blocks" (dask: the memory is that of this process, not of the workers).
    steps : tuple of Step
    available_bytes : int or None
        Memory that is available now, None if that is unknown.
    instead : str or None
        What to use instead if the fit does not fit, else None.
    notes : tuple of str
        What was assumed.
    waiting : float
        How many times longer than its CPU time a process takes here by the clock, as measured once
        in this process: 1 where it is alone.
    """

    estimator: str
    n_rows: int
    n_columns: int
    rank: int
    route: str
    steps: tuple[Step, ...]
    available_bytes: int | None
    instead: str | None
    notes: tuple[str, ...] = ()
    waiting: float = 1.0

    @property
    def memory_bytes(self) -> float:
        """The largest memory in use at one time, beyond the rows that are given."""
        return max(step.memory_bytes for step in self.steps)

    @property
    def seconds(self) -> float:
        """The CPU time of all steps, on one core."""
        return sum(step.seconds for step in self.steps)

    @property
    def seconds_range(self) -> tuple[float, float]:
        """From when to when the fit is likely to be done by the clock.

        At the earliest it is alone on its core, at the latest it waits as long as a process did
        when the machine was measured.
        """
        return self.seconds / UNCERTAINTY, self.seconds * self.waiting * UNCERTAINTY

    @property
    def fits(self) -> bool:
        """Whether the memory is enough (also if it is unknown how much there is)."""
        return self.available_bytes is None or self.memory_bytes <= self.available_bytes

    def __str__(self) -> str:
        head = f"{self.estimator} on {self.n_rows} x {self.n_columns}: {self.route}"
        head += f", {self.rank} coordinates" if self.rank else ""
        width = max(len(step.name) for step in self.steps)
        lines = [
            f"  {step.name:<{width}}  {readable(step.memory_bytes):>9}  {duration(step.seconds):>9}"
            for step in self.steps
        ]
        return "\n".join([head, *lines, *self._summary()])

    def _summary(self) -> list[str]:
        low, high = map(duration, self.seconds_range)
        busy = ""
        if self.waiting > BUSY:
            busy = f"; the machine is busy, work takes {self.waiting:.1f} times as long"
        there = "unknown" if self.available_bytes is None else readable(self.available_bytes)
        fits = "it fits" if self.fits else "it does not fit"
        lines = [
            f"memory: {readable(self.memory_bytes)} of {there}: {fits}",
            f"time: {low} to {high} (one core{busy})",
            *(f"note: {note}" for note in self.notes),
        ]
        return lines if self.instead is None else [*lines, f"instead: {self.instead}"]


def plan(
    estimator: Estimator,
    X: RowsLike | tuple[int, int],
    y: Labels | None = None,
    *,
    sample_weight: Weights | None = None,
) -> Plan:
    """Return the memory and the time that a fit will need, without fitting.

    Memory is what is needed in addition to X; the check before every fit uses the same calculation.
    Time is a range, because the number of iterations depends on the values of X, which are not
    looked at, and because a fit waits for other work on a busy machine.  Speed and waiting are
    measured once in a process.

    Parameters
    ----------
    estimator : estimator
        Unfitted: one of this package, a pipeline with one, `MarginMap`, or a search over one.
        Other steps of a pipeline count with the memory of their output and no time.
    X : array, sparse matrix, data frame, dask collection, or tuple (n_rows, n_columns)
        Rows, or just their shape.
    y : array of shape (n_samples,), optional
        Labels; if there are none, two classes are assumed.
    sample_weight : array of shape (n_samples,), optional
        Rows of weight 0 do not count.

    Returns
    -------
    Plan

    Examples
    --------
    >>> from marginfold import ExactKernel, LSVA, plan
    >>> small = plan(LSVA(n_components=3), (5000, 20))
    >>> small.route, small.rank, small.fits
    ('primal', 20, True)
    >>> large = plan(LSVA(kernel=ExactKernel("rbf")), (100_000, 20))
    >>> large.fits, large.instead
    (False, 'LSVA(..., kernel=LowRankKernel("rbf", rank=...))')
    """
    rows = _rows(X, sample_weight)
    n_classes, notes = _classes(estimator, y)
    parts = _parts_of(estimator, rows, n_classes)
    if not parts:
        raise InvalidInputError(
            f"plan got {shown(estimator)}; it knows the estimators of marginfold with a known "
            "kernel, pipelines with one of them, and searches over them."
        )
    steps = tuple(step for part in parts for step in _steps(part))
    main = max(parts, key=lambda part: peak_memory(part.work))
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
        waiting=machine().waiting,
    )
    if result.fits:
        return result
    return replace(result, instead=alternative(main.estimator, main.work))


def duration(seconds: float) -> str:
    """Return a time in a unit that makes it short.

    Examples
    --------
    >>> duration(0.0123), duration(75), duration(9000)
    ('12 ms', '1.2 min', '2.5 h')
    """
    sizes = {"h": 3600.0, "min": 60.0, "s": 1.0, "ms": 1e-3}
    unit = next((unit for unit, size in sizes.items() if seconds >= size), "ms")
    count = seconds / sizes[unit]
    return f"{count:.0f} {unit}" if count >= 10 else f"{count:.2g} {unit}"


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


def _steps(part: _Part) -> Iterator[Step]:
    """Yield the steps of a part; what is done several times is shown once with its whole time."""
    costs = step_costs(part.work)
    for cost, memory in zip(costs, peaks(costs), strict=True):
        name = f"{part.name}{cost.step}" + (f" x {part.fits}" if part.fits > 1 else "")
        yield Step(name, memory + part.held_bytes, part.fits * machine().slowness * cost.seconds)


@dataclass(frozen=True)
class _Part:
    """Fits of an estimator of this package inside another, one after the other.

    Its steps are called ``name`` before their own names; others hold ``held_bytes`` meanwhile.
    """

    estimator: Any
    work: Workload
    fits: int = 1
    name: str = ""
    held_bytes: float = 0.0
    note: str = ""


def _parts_of(estimator: Any, rows: Rows, n_classes: int) -> list[_Part]:
    """Return the fits of estimators of this package, none for a stranger without any inside."""
    if hasattr(estimator, "steps"):
        return _pipeline(estimator, rows, n_classes)
    if hasattr(estimator, "planned_classifiers"):
        return _margin_map(estimator, rows, n_classes)
    if hasattr(estimator, "estimator") and hasattr(estimator, "cv"):
        return _search(estimator, rows, n_classes)
    if not type(estimator).__module__.startswith("marginfold."):
        return []
    work = workload_of(estimator, rows, n_classes)
    return [] if work is None else [_Part(estimator, work)]


def _pipeline(pipeline: Any, rows: Rows, n_classes: int) -> list[_Part]:
    """Return the parts of the steps; each hands an array of its columns to the next."""
    parts: list[_Part] = []
    held = 0.0
    for name, step in pipeline.steps:
        if step is None or isinstance(step, str):
            continue
        found = _parts_of(step, rows, n_classes)
        parts += [
            replace(part, name=f"{name}: {part.name}", held_bytes=held + part.held_bytes)
            for part in found
        ]
        if hasattr(step, "transform"):
            width = output_columns(step, rows.n_columns)
            rows = Rows(rows.n_rows, width, blocks=rows.blocks)
            held = 0.0 if rows.blocks else 8.0 * rows.n_rows * width
    return parts


def _margin_map(margin_map: Any, rows: Rows, n_classes: int) -> list[_Part]:
    """Return the classifier, fitted once for the map and once a split for each candidate."""
    candidates = margin_map.planned_classifiers(rows.n_columns)
    automatic = isinstance(margin_map.sharpness, str)
    fits = 1 + (_folds(margin_map.cv) * len(candidates) if automatic else 0)
    parts = _parts_of(candidates[0], rows, n_classes)
    return [replace(part, fits=fits * part.fits) for part in parts]


def _search(search: Any, rows: Rows, n_classes: int) -> list[_Part]:
    """Return the fits of all folds; `SubspaceSearchCV` shares all but the solver among values."""
    n_folds = _folds(search.cv)
    shared = type(search).__module__.startswith("marginfold.")
    if shared:
        side_by_side = _count(search.C) * _count(getattr(search, "graph_weight", None))
        fits = n_folds
    else:
        side_by_side, fits = 1, n_folds * _candidates(search)
    fits += bool(getattr(search, "refit", False))
    parts = _parts_of(search.estimator, rows, n_classes)
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
    if isinstance(cv, str):  # one half against the other
        return 1
    if isinstance(cv, Iterable) and isinstance(cv, Sized):
        return len(cv)
    return int(check_cv(cv).get_n_splits())


def _count(values: Any) -> int:
    return 1 if values is None else int(np.size(np.asarray(values, dtype=object)))
