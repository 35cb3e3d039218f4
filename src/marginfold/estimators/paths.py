"""All solutions over a grid of costs and graph weights, from one graph and one factorisation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, TypeVar

from sklearn.base import clone

from marginfold.errors import InvalidParameterError, MarginfoldWarning, warn
from marginfold.validation.parameters import shown

E = TypeVar("E")

Values = Iterable[float] | float | None
"""The values of one parameter: several, one, or None for the estimator's own."""

Note = tuple[str, type[MarginfoldWarning]]
"""What the user should be warned of."""


def path(
    estimator: E,
    X: Any,
    y: Any,
    *,
    C: Values = None,
    graph_weight: Values = None,
    sample_weight: Any = None,
) -> list[E]:
    """Fit one clone for each cost and graph weight; they equal separate fits.

    The graph, the coordinates and the eigendecomposition of the metric are computed once, and every
    pass of the solver over the rows serves all problems.

    Parameters
    ----------
    estimator : MMDA, LSVA, WSVDA, GESVC or LapSVC
        Not changed; what is not in the grid is taken from it.
    X, y, sample_weight
        As in the estimator's ``fit``.
    C : float or iterable of float, optional
        Costs; by default the estimator's own.
    graph_weight : float or iterable of float, optional
        Weights of the graph (LSVA, GESVC and LapSVC only); by default the estimator's own.

    Returns
    -------
    list of estimators
        In the order of scikit-learn's ``ParameterGrid``: all graph weights for the first cost, then
        for the second.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginfold import LSVA, path
    >>> X, y = load_iris(return_X_y=True)
    >>> fits = path(LSVA(), X, y, C=[1, 10], graph_weight=[0.1, 1])
    >>> [(fitted.C, fitted.graph_weight) for fitted in fits]
    [(1, 0.1), (1, 1), (10, 0.1), (10, 1)]
    """
    members = members_of(estimator, grid_of(estimator, C, graph_weight))
    fit_members(members, X, y, sample_weight)
    return members


def grid_of(estimator: Any, C: Values, graph_weight: Values) -> dict[str, list[float]]:
    """Return the parameters that vary, by name, each with its values."""
    if not hasattr(estimator, "_fit_all") or isinstance(estimator, type):
        raise InvalidParameterError(
            f"A path needs an instance of MMDA, LSVA, WSVDA, GESVC or LapSVC; got "
            f"{shown(estimator)}. For other estimators use scikit-learn's GridSearchCV."
        )
    given = {"C": C, "graph_weight": graph_weight}
    grid = {name: listed(name, values) for name, values in given.items() if values is not None}
    unknown = [name for name in grid if name not in estimator.get_params(deep=False)]
    if unknown:
        raise InvalidParameterError(
            f"{type(estimator).__name__} has no parameter {unknown[0]}, so it cannot vary along a "
            f"path; got {unknown[0]}={shown(given[unknown[0]])}. Leave it out, or use LSVA."
        )
    return grid


def members_of(estimator: E, grid: dict[str, list[float]]) -> list[E]:
    """Return an unfitted clone for every point of the grid."""
    members: list[E] = []
    for point in points_of(grid):
        members.append(clone(estimator))
        for name, value in point.items():  # their own parameters: no search for nested ones
            setattr(members[-1], name, value)
    return members


def points_of(grid: dict[str, list[Any]]) -> list[dict[str, Any]]:
    """Return every combination in the order of ParameterGrid, which takes no empty lists."""
    names = sorted(grid)
    return [
        dict(zip(names, values, strict=True)) for values in product(*(grid[name] for name in names))
    ]


def fit_members(members: list[Any], X: Any, y: Any, sample_weight: Any) -> None:
    """Fit estimators that differ in C and in the graph weight only."""
    if members:
        members[0]._fit_all(members, X, y, sample_weight)


def finish(members: Sequence[Any], reader: Any, notes: Sequence[Note]) -> None:
    """Tell all members which features were read; warn once of each kind of note."""
    for member in members:
        for name in ("n_features_in_", "feature_names_in_"):
            if member is not reader and hasattr(reader, name):
                setattr(member, name, getattr(reader, name))
    for category in dict.fromkeys(category for _, category in notes):
        messages = [message for message, kind in notes if kind is category]
        first = "" if len(members) == 1 else f"{len(messages)} of {len(members)} fits; first: "
        warn(first + messages[0], category)


def listed(name: str, values: Any) -> list[Any]:
    """Return the values of a parameter, given as one or several."""
    if isinstance(values, str | Mapping):
        raise InvalidParameterError(
            f"{name} must be a number or several numbers; got {shown(values)}."
        )
    if getattr(values, "ndim", None) == 0:
        return [values.item()]
    return list(values) if isinstance(values, Iterable) else [values]
