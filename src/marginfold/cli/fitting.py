"""Fit a procedure of the catalogue to a table: its choice, its components and its errors.

What each component of an embedding separates is said in words, and by its measures.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier

from marginfold.cli.output import watched
from marginfold.cli.settings import GRAPHS, PARAMETERS, Settings, in_words, option_of
from marginfold.compare.calibration import calibrated, fit_to_keep
from marginfold.compare.measures import fit_parameters
from marginfold.compare.methods import METHODS, command_name, kernel_map, procedure
from marginfold.compare.table import Size
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
"""Folds of the cross-validated error; fewer if no class has so many rows."""

PLACING_GRAPHS = {"LaplacianEigenmaps": ("knn", "lle"), "LocallyLinearEmbedding": ("lle",)}
"""Graphs by which methods that embed the rows themselves can place new rows."""

MEASURES = {
    "gain": "gain_",
    "new gain": "new_gain_",
    "gap": "gap_",
    "eigenvalue": "eigenvalues_",
}
"""What is shown of each component, and the attribute that holds it."""

LEAST_APART = 0.5
"""Standard deviations: classes that are less apart overlap in more than two thirds of their rows,
and the component is not said to separate them."""

APART = (
    "apart: how far the means of the two sides are from each other on these rows, in standard "
    "deviations within the sides; with little noise most rows can be told apart from about 2 on"
)
"""What the column of that name means."""


@dataclass(frozen=True, eq=False)
class Table:
    """A table to learn from: features, labels, how they are taken, and groups of rows."""

    frame: pd.DataFrame
    labels: Array
    target: str
    columns: Columns
    scale: str = "standard"
    seed: int = 0
    groups: Array | None = None

    @cached_property
    def size(self) -> Size:
        """What procedures are made for."""
        columns = self.columns
        arranged = arrange(self.frame, columns.numbers, columns.levels, columns.written)
        encoded = encoder(columns, self.scale).fit_transform(arranged)
        grouped = self.groups is not None
        return Size.of(self.labels, encoded.shape[1], self.seed, grouped=grouped)

    @property
    def n_folds(self) -> int:
        """Folds of the cross-validated error."""
        n_groups = FOLDS if self.groups is None else len(np.unique(self.groups))
        return min(FOLDS, self.size.n_largest, n_groups)

    def fit(self, estimator: Any, name: str, rows: Any = slice(None)) -> TableModel:
        """Fit a clone of an estimator to some of the rows; all by default."""
        groups = None if self.groups is None else self.groups[rows]
        return TableModel.fit(
            *(estimator, self.frame.iloc[rows], self.labels[rows], self.target, self.columns),
            scale=self.scale,
            name=name,
            **fit_parameters(estimator, groups),
        )

    def count_errors(self, model: TableModel, rows: Any = slice(None)) -> int:
        """Return how many of the rows a model gets wrong."""
        return int((model.predict(self.frame.iloc[rows]) != self.labels[rows]).sum())


def build(method: str, table: Table, settings: Settings, *, proba: bool = False) -> Any:
    """Return a method of the catalogue for a table, the given options being taken as they are.

    With ``proba`` it is a classifier around that, whose probabilities are calibrated by folds.
    """
    needed = table.size.folds.n_splits
    if table.groups is not None and len(np.unique(table.groups)) < needed:
        raise InvalidInputError(
            f"--group makes {len(np.unique(table.groups))} groups, and {needed} folds choose the "
            "parameters: collect more groups, or leave --group out."
        )
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
    kernel: Any = settings.kernel  # one of the names, as the settings have checked
    if settings.low_rank is not None:
        fixed["kernel"] = LowRankKernel(kernel or "rbf", rank=settings.low_rank)
    elif kernel not in (None, "linear") and _is_ours(estimator):
        fixed["kernel"] = kernel_map(kernel, table.size)
    made = procedure(method, table.size, fixed)
    return calibrated(made, table.labels, table.seed) if proba else made


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


def fit_table(
    estimator: Any, table: Table, name: str, given: Mapping[str, Any], *, kept: bool = False
) -> tuple[TableModel, dict[str, Any]]:
    """Fit an estimator to a table; collect its choice, components, errors and warnings.

    What the options ``given`` say was not chosen.  A model that is to be ``kept`` has probabilities
    if the rows are enough.
    """
    n_folds = table.n_folds
    chosen_at = [0]  # how much was said when the last choice was made: the best fit comes after it

    def listen(event: Progress) -> None:
        if event.stage == "folds" and event.done == event.total:
            chosen_at.append(len(caught))

    with watched(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        report("fits", 0, n_folds + 1)
        with watch(listen):
            fit = partial(table.fit, name=name)
            if kept and table.groups is None:
                model = fit_to_keep(estimator, table.labels, fit, table.seed)
            else:
                model = fit(estimator)
        notes = [*table.columns.notes, *_said(caught[chosen_at[-1] :])]
        error, reason = _cross_validated(estimator, table, name, n_folds)
    if reason:
        why = in_words(reason).rstrip(".")
        notes.append(f"no cross-validated error: too few rows for folds inside folds ({why})")
    best = {option_of(name): value for name, value in chosen_parameters(model.method).items()}
    return model, {
        "given": dict(given),
        "chosen": {option: value for option, value in best.items() if option not in given},
        "components": _components(model, table),
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
        parts = folds(table.labels, n_folds, table.seed, groups=table.groups)
        for done, (train, test) in enumerate(parts, start=1):
            report("fits", done, n_folds + 1)
            wrong += table.count_errors(table.fit(estimator, name, train), test)
    except ValueError as error:
        if table.size.n_smallest > FOLDS and table.groups is None:
            raise
        return None, str(error)  # some fold inside a fold lacks a class, or groups
    return wrong / len(table.labels), ""


def _said(caught: list[warnings.WarningMessage]) -> list[str]:
    texts = [str(w.message) for w in caught if issubclass(w.category, MarginfoldWarning)]
    return list(dict.fromkeys(in_words(text) for text in texts))


def _components(model: TableModel, table: Table) -> list[dict[str, Any]]:
    """Return what is known of each component; none of a model without components."""
    if not model.component_names:
        return []
    return found_components(model, model.transform(table.frame), table.labels)


def found_components(model: TableModel, Z: Array, labels: Array) -> list[dict[str, Any]]:
    """Return what is known of each component: its name, what it separates, its measures.

    A margin separates the classes that it was made for.  Any other component, of eigenvectors, of
    NCA or of a map, is said to separate the classes that lie farthest apart along it.

    Parameters
    ----------
    model : TableModel
    Z : array of shape (n_rows, n_components)
        Components of the rows it was fitted to.
    labels : array
        Their classes.
    """
    names = model.component_names
    method = embedding(model.method)[-1]
    measures = {
        measure: np.asarray(getattr(method, attribute))
        for measure, attribute in MEASURES.items()
        if len(getattr(method, attribute, ())) == len(names)
    }
    tasks = getattr(method, "tasks_", [None] * len(names))
    return [
        {"name": name, **separation(Z[:, k], labels, _side(tasks[k]))}
        | {measure: float(values[k]) for measure, values in measures.items()}
        for k, name in enumerate(names)
    ]


def separation(values: Array, labels: Array, side: Collection[Any] = ()) -> dict[str, Any]:
    """Return which classes lie on two sides along a component, and how far apart the sides are.

    Parameters
    ----------
    values : array
        The component of each row.
    labels : array
    side : collection, optional
        The classes on one side.  By default the classes are parted, in the order of their means,
        where the sides are farthest apart.

    Returns
    -------
    dict
        ``separates``, such as "setosa | the rest", and ``apart``: the difference of the means of
        the sides, divided by the standard deviation within them.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.cli.fitting import separation
    >>> separation(np.array([0.0, 2.0, 9.0, 11.0, 1.0, 1.0]), np.array(list("aabbcc")))
    {'separates': 'b | the rest', 'apart': 11.02...}
    """
    classes = np.unique(labels).tolist()
    if side:
        return {"separates": _in_words(side, classes), "apart": _apart(values, labels, side)}
    means = [float(values[labels == label].mean()) for label in classes]
    order = [classes[k] for k in np.argsort(means, kind="stable")]
    parted = [(_apart(values, labels, order[:n]), n) for n in range(1, len(order))]
    distance, n = max(parted, key=lambda pair: pair[0])
    if distance < LEAST_APART:
        return {"separates": "no classes clearly", "apart": distance}
    smaller = order[:n] if 2 * n < len(order) else order[n:]
    return {"separates": _in_words(smaller, classes), "apart": distance}


def _side(task: Any) -> tuple[Any, ...]:
    """Return the classes on the one side of a margin; none if there is no margin."""
    if task is None:
        return ()
    return task if isinstance(task, tuple) else (task,)


def _apart(values: Array, labels: Array, side: Collection[Any]) -> float:
    """Return the difference of the means of two sides in standard deviations within them."""
    inside = np.isin(labels, list(side))
    numbers = np.asarray(values, dtype=np.float64)
    one, other = numbers[inside], numbers[~inside]
    within = (np.square(one - one.mean()).sum() + np.square(other - other.mean()).sum()) / len(
        values
    )
    distance = abs(float(one.mean() - other.mean()))
    return distance / float(np.sqrt(within)) if within > 0 else (np.inf if distance > 0 else 0.0)


def _in_words(side: Collection[Any], classes: Sequence[Any]) -> str:
    others = [label for label in classes if label not in side]
    rest = str(others[0]) if len(others) == 1 else "the rest"
    return f"{', '.join(map(str, side))} | {rest}"
