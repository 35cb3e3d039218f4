"""The common part of the transformers MMDA, LSVA and WSVDA."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from marginfold.errors import (
    CancelledWarning,
    ExhaustedWarning,
    NoDirectionError,
    UncertifiedWarning,
)
from marginfold.estimators.inputs import Prepared, uncertified_note
from marginfold.estimators.paths import AUTOMATIC, MarginEstimator, Note
from marginfold.estimators.projection import Projection
from marginfold.geometry.directions import (
    MIN_GAIN,
    Subspace,
    leading_directions,
    successive_directions,
)
from marginfold.geometry.one_vs_rest import AUTO, SCHEDULES, task_name
from marginfold.linalg.tall import Array
from marginfold.svm import SVMSolver
from marginfold.validation.parameters import (
    POSITIVE_FACTOR,
    TOLERANCE,
    Choice,
    Constraint,
    Count,
    Either,
)
from marginfold.validation.rows import read_new_rows, row_by_row
from marginfold.validation.types import ClassWeight, Rows

Tasks = Literal["auto", "one_vs_rest", "by_size", "random", "greedy", "splits"]
DeflationName = Literal["orthogonal", "uncorrelated"]
MarginScaling = Literal["unit", "margin"]
OnExhausted = Literal["stop", "pca"]


class MarginSubspace(MarginEstimator[Subspace], Projection):
    """Successive maximum-margin directions; subclasses say which penalty shapes the margin."""

    n_components: int
    class_weight: ClassWeight
    tasks: Tasks
    deflation: DeflationName
    scaling: MarginScaling
    on_exhausted: OnExhausted
    unlabeled: Any
    random_state: int

    def _constraints(self) -> dict[str, Constraint]:
        return {
            "n_components": Count(1),
            "C": Either(Choice(AUTOMATIC), POSITIVE_FACTOR),
            "tasks": Choice(AUTO, *SCHEDULES),
            "deflation": Choice("orthogonal", "uncorrelated"),
            "scaling": Choice("unit", "margin"),
            "on_exhausted": Choice("stop", "pca"),
            "tol": TOLERANCE,
            "random_state": Count(0),
        }

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._check_reconstruct()

    def _solve(
        self, prepared: Prepared, scales: Sequence[Array], costs: Sequence[float], solver: SVMSolver
    ) -> list[Subspace]:
        return successive_directions(
            prepared.rows,
            prepared.labelled,
            scales,
            costs,
            n_components=int(self.n_components),
            schedule=self.tasks,
            solver=solver,
            uncorrelated=self.deflation == "uncorrelated",
            scatter=prepared.scatter,
            random_state=int(self.random_state),
        )

    def _store(self, prepared: Prepared, subspace: Subspace) -> list[Note]:
        W = prepared.metric.rotate_back(subspace.W)
        found, wanted = W.shape[1], int(self.n_components)
        fillers = np.zeros((len(W), 0))
        exhausted = found < min(wanted, len(W)) and not subspace.cancelled
        if exhausted and self.on_exhausted == "pca" and prepared.total is not None:
            taken = prepared.total @ W if self.deflation == "uncorrelated" else W
            fillers = leading_directions(prepared.total, taken, wanted - found)
        extra = fillers.shape[1]
        notes = self._notes(prepared, subspace, found, extra)
        kept = subspace.components
        self._store_directions(prepared.feature_map, np.column_stack([W, fillers]))
        self.classes_ = prepared.classes
        self.C_ = subspace.C
        self.tasks_ = [task_name(c.task, prepared.classes) for c in kept] + [None] * extra
        self.gain_ = np.append([c.gain for c in kept], np.zeros(extra))
        self.new_gain_ = np.append([c.new_gain for c in kept], np.zeros(extra))
        self.norms_ = np.append([c.norm for c in kept], np.ones(extra))
        self._scaled = self.scaling == "margin"  # of this fit, whatever the parameter becomes
        self.intercepts_ = np.append([c.intercept for c in kept], np.zeros(extra))
        self.gap_ = np.append([c.solution.gap for c in kept], np.zeros(extra))
        self.n_iter_per_component_ = np.array([c.solution.n_iter for c in kept] + [0] * extra)
        self.n_iter_ = int(self.n_iter_per_component_.sum())
        self.exhausted_ = {
            task_name(task, prepared.classes): gain for task, gain in subspace.exhausted.items()
        }
        self._learn_reconstruction(prepared.X, prepared.weights)
        return notes

    def _notes(
        self, prepared: Prepared, subspace: Subspace, found: int, n_fillers: int
    ) -> list[Note]:
        """Note missing components and missing certificates; refuse to return nothing."""
        notes: list[Note] = []
        if subspace.worst_gap:
            notes.append((uncertified_note(self, subspace.worst_gap), UncertifiedWarning))
        if found + n_fillers == 0:
            raise NoDirectionError(self._explain(prepared, subspace, found))
        if subspace.cancelled:
            notes.append((self._cancelled(found), CancelledWarning))
        elif found < int(self.n_components):
            filled = (
                f" {n_fillers} directions of largest variance follow (tasks_ is None there)."
                if n_fillers
                else ""
            )
            notes.append((self._explain(prepared, subspace, found) + filled, ExhaustedWarning))
        return notes

    def _cancelled(self, found: int) -> str:
        return (
            f"{type(self).__name__} was cancelled after {found} of {self.n_components} components. "
            "They are kept and equal the first ones of a full fit; fit again for the others."
        )

    def _explain(self, prepared: Prepared, subspace: Subspace, found: int) -> str:
        name, wanted = type(self).__name__, self.n_components
        r = prepared.rows.n_columns
        if found == r:
            dimensions = "1 dimension" if r == 1 else f"{r} dimensions"
            return f"{name} found {found} of {wanted} components: the data has only {dimensions}."
        gains = ", ".join(
            f"{task_name(task, prepared.classes)!r}: {gain:.1e}"
            for task, gain in list(subspace.exhausted.items())[:5]
        )
        advice = "" if self.class_weight == "balanced" else " Try class_weight='balanced'."
        return (
            f"{name} found {found} of {wanted} components: no task has anything left to separate "
            f"(relative gains when dropped: {gains}; threshold {MIN_GAIN:g} of what is "
            f"attainable).{advice}"
        )

    @row_by_row
    def decision_function(self, X: Rows) -> Array:
        """Return the decision value of each component's own task, (n_samples, n_components_)."""
        rows = read_new_rows(self, X)
        projected = self.feature_map_.images(rows, self.directions_)
        return np.asarray(projected * self.norms_ + self.intercepts_)

    def _scaled_directions(self) -> Array:
        return self.directions_ * self.norms_ if self._scaled else self.directions_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags
