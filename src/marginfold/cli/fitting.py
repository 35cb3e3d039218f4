"""Fit a procedure of the catalogue to a table: its choice, its components and its errors."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold

from marginfold.cli.output import watched
from marginfold.cli.settings import GRAPHS, PARAMETERS, Settings, in_words, option_of
from marginfold.compare.methods import METHODS, Size, command_name, kernel_map, procedure
from marginfold.data import Columns, TableModel
from marginfold.data.answers import chosen_parameters, embedding
from marginfold.data.columns import arrange, encoder
from marginfold.errors import InvalidInputError, MarginfoldWarning
from marginfold.feature_maps import LowRankKernel
from marginfold.linalg.tall import Array
from marginfold.protocols.splits import folds
from marginfold.runtime.progress import Progress, report, watch

if TYPE_CHECKING:
    import pandas as pd

FOLDS = 5
"""Folds of the cross-validated error, and of the calibration; fewer if no class has so many rows,
or, for the calibration, if the smallest has fewer."""

LEAST_TRAINED = 2
"""Rows that two classes need where parameters are chosen: then both are in every fold inside."""

MEASURES = {
    "gain": "gain_",
    "new gain": "new_gain_",
    "gap": "gap_",
    "eigenvalue": "eigenvalues_",
}
"""What is shown of each component, and the attribute that holds it."""


PLACING_GRAPHS = {"LaplacianEigenmaps": ("knn", "lle"), "LocallyLinearEmbedding": ("lle",)}
"""Graphs by which methods that embed the rows themselves can place new rows."""


@dataclass(frozen=True, eq=False)
class Table:
    """A table to learn from: features, labels, and how they are taken."""

    frame: pd.DataFrame
    labels: Array
    target: str
    columns: Columns
    scale: str = "standard"
    seed: int = 0

    @cached_property
    def size(self) -> Size:
        """What procedures are made for."""
        columns = self.columns
        arranged = arrange(self.frame, columns.numbers, columns.levels, columns.written)
        encoded = encoder(columns, self.scale).fit_transform(arranged)
        return Size.of(self.labels, encoded.shape[1], self.seed)

    def fit(self, estimator: Any, name: str, rows: Any = slice(None)) -> TableModel:
        """Fit a clone of an estimator to some of the rows; all by default."""
        return TableModel.fit(
            *(estimator, self.frame.iloc[rows], self.labels[rows], self.target, self.columns),
            scale=self.scale,
            name=name,
        )

    def count_errors(self, model: TableModel, rows: Any = slice(None)) -> int:
        """Return how many of the rows a model gets wrong."""
        return int((model.predict(self.frame.iloc[rows]) != self.labels[rows]).sum())


def build(method: str, table: Table, settings: Settings, *, proba: bool = False) -> Any:
    """Return a method of the catalogue for a table, the given options being taken as they are.

    With ``proba`` it is a classifier around that, whose probabilities are calibrated by folds.
    """
    estimator = METHODS[method].make(table.size)
    known = options_of(method, estimator, with_graph=settings.graph is not None)
    fixed = {}
    for option, value in settings.given().items():
        if option not in known:
            has = f"it takes {', '.join(known)}" if known else "it takes none of these options"
            raise InvalidInputError(f"method {command_name(method)} has no {option}; {has}.")
        fixed[known[option]] = None if value == "none" else value
    placing = PLACING_GRAPHS.get(method, GRAPHS)
    if settings.graph is not None and settings.graph not in placing:
        raise InvalidInputError(
            f"method {command_name(method)} cannot place new rows with --graph {settings.graph}; "
            f"take {' or '.join(placing)}, or another method."
        )
    if settings.low_rank is not None:
        fixed["kernel"] = LowRankKernel(settings.kernel or "rbf", rank=settings.low_rank)
    elif settings.kernel not in (None, "linear") and _is_ours(estimator):
        fixed["kernel"] = kernel_map(settings.kernel, table.size)
    made = procedure(method, table.size, fixed)
    return _calibrated(made, table) if proba else made


def options_of(method: str, estimator: Any, *, with_graph: bool) -> dict[str, str]:
    """Return the options that a method has, and the parameter that each of them sets."""
    parameters = list(estimator.get_params(deep=True))
    in_steps = "steps" in parameters
    known = {}
    for option, names in PARAMETERS.items():
        for parameter in parameters:
            if parameter in names or (in_steps and parameter.rpartition("__")[2] in names):
                known[option] = parameter
                break
    if not is_classifier(estimator):
        known["--neighbors"] = "n_neighbors"
    if not _is_ours(estimator):
        known.pop("--low-rank", None)
    if method == "SVC linear":  # with a graph it were another method
        known.pop("--graph"), known.pop("--graph-weight")
    elif method == "TwinSVC" and not with_graph:  # it has none by itself
        known.pop("--graph-weight")
    return known


def _is_ours(estimator: Any) -> bool:
    """Return whether an estimator takes feature maps as kernels."""
    return type(estimator).__module__.startswith("marginfold.")


def _calibrated(estimator: Any, table: Table) -> CalibratedClassifierCV:
    """Return the classifier with probabilities, calibrated by folds of the rows.

    There is a row of every class in each fold, also in the training rows of the outer ones.
    """
    counts = np.sort(np.unique(table.labels, return_counts=True)[1])
    n_folds = min(FOLDS, max(LEAST_TRAINED, int(counts[0] - -(-counts[0] // FOLDS))))
    trained = int(counts[-2] - -(-counts[-2] // n_folds))
    if counts[0] < n_folds or trained < LEAST_TRAINED:
        raise InvalidInputError(
            "--proba needs at least two rows of every class and four of the second largest, for "
            f"folds inside folds; got {counts[0]} and {counts[-2]}. Add rows, or leave --proba out."
        )
    cv = StratifiedKFold(n_folds, shuffle=True, random_state=table.seed)
    return CalibratedClassifierCV(estimator, cv=cv, ensemble=False)


def fit_table(
    estimator: Any, table: Table, name: str, given: Mapping[str, Any]
) -> tuple[TableModel, dict[str, Any]]:
    """Fit an estimator to a table; collect its choice, components, errors and warnings.

    What the options ``given`` say was not chosen.
    """
    n_folds = min(FOLDS, table.size.n_largest)
    chosen_at = [0]  # how much was said when the last choice was made: the best fit comes after it

    def listen(event: Progress) -> None:
        if event.stage == "folds" and event.done == event.total:
            chosen_at.append(len(caught))

    with watched(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report("fits", 0, n_folds + 1)
        with watch(listen):
            model = table.fit(estimator, name)
        notes = [*table.columns.notes, *_said(caught[chosen_at[-1] :])]
        error, reason = _cross_validated(estimator, table, name, n_folds)
    if reason:
        why = in_words(reason).rstrip(".")
        notes.append(f"no cross-validated error: too few rows for folds inside folds ({why})")
    best = {option_of(name): value for name, value in chosen_parameters(model.method).items()}
    return model, {
        "given": dict(given),
        "chosen": {option: value for option, value in best.items() if option not in given},
        "components": found_components(model),
        "training_error": table.count_errors(model) / len(table.labels),
        "cross_validated_error": error,
        "folds": n_folds,
        "notes": notes,
    }


def _cross_validated(
    estimator: Any, table: Table, name: str, n_folds: int
) -> tuple[float | None, str]:
    """Return the error on rows held out, choice included, or why there is none."""
    wrong = 0
    try:
        for done, (train, test) in enumerate(folds(table.labels, n_folds, table.seed), start=1):
            report("fits", done, n_folds + 1)
            wrong += table.count_errors(table.fit(estimator, name, train), test)
    except ValueError as error:
        if table.size.n_smallest > FOLDS:
            raise
        return None, str(error)  # some fold inside a fold lacks a class
    return wrong / len(table.labels), ""


def _said(caught: list[warnings.WarningMessage]) -> list[str]:
    texts = [str(w.message) for w in caught if issubclass(w.category, MarginfoldWarning)]
    return list(dict.fromkeys(in_words(text) for text in texts))


def found_components(model: TableModel) -> list[dict[str, Any]]:
    """Return what is known of each component: its name, what it separates, its measures."""
    names = model.component_names
    if not names:
        return []
    method = embedding(model.method)[-1]
    measures = {
        measure: np.asarray(getattr(method, attribute))
        for measure, attribute in MEASURES.items()
        if len(getattr(method, attribute, ())) == len(names)
    }
    tasks = getattr(method, "tasks_", None)
    found = []
    for k, name in enumerate(names):
        row: dict[str, Any] = {"name": name}
        if tasks is not None:
            row["separates"] = _separated(tasks[k], model.classes)
        found.append(row | {measure: float(values[k]) for measure, values in measures.items()})
    return found


def _separated(task: Any, classes: tuple[Any, ...]) -> str:
    """Return the two sides of a component's margin in words."""
    if task is None:
        return "largest variance"
    positive = task if isinstance(task, tuple) else (task,)
    others = [label for label in classes if label not in positive]
    rest = str(others[0]) if len(others) == 1 else "the rest"
    return f"{', '.join(map(str, positive))} | {rest}"
