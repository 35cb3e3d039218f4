"""One fit, or the fits over a grid of costs and graph weights, with one graph and one metric."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any, Generic, Self, TypeVar

from sklearn.base import BaseEstimator, clone

from marginfold.errors import InvalidParameterError, MarginfoldWarning, warn
from marginfold.estimators.inputs import Prepared, prepare, resolve_solver
from marginfold.geometry.metric import Penalty
from marginfold.linalg.tall import Array
from marginfold.runtime.callbacks import FollowedFits
from marginfold.runtime.threads import sized, threads_for
from marginfold.svm import SVMSolver
from marginfold.validation.parameters import Constraint, atomic_fit, check_parameters, shown

E = TypeVar("E")

S = TypeVar("S")
"""What the solver finds for one estimator."""

Values = Iterable[float] | float | None
"""The values of one parameter: several, one, or None for the estimator's own."""

AUTOMATIC = "auto"
"""The cost ``AUTOMATIC_COST / mean |u|^2``, over the labelled rows with their weights;
``u = A^(-1/2) (z - mean)`` with A the metric of the margin."""

AUTOMATIC_COST = 3.0
"""What a multiplier at its bound adds to the decision value of its own row, in the mean: at 1, rows
that are nearly orthogonal to each other stay inside the margin on the larger of two balanced sides.
0.3, 1 and 3 for LSVA and MMDA without and with rbf kernels: 0.801, 0.808 and 0.808 right by 5
nearest neighbors on 9 sets (C = 1: 0.791), 0.711, 0.715 and 0.720 on 11 (0.704), where 3 lost 0.8
points on a set at most and 1 lost 6 (60 rows x 2000).  On 18 further sets 3 has 0.805 (C = 1:
0.792) without a kernel and 0.797 (0.794) with one, there with losses on wide rows."""

Note = tuple[str, type[MarginfoldWarning]]
"""What the user should be warned of."""


class MarginEstimator(FollowedFits, BaseEstimator, ABC, Generic[S]):
    """An estimator of maximum-margin problems, fitted alone or as a member of a path.

    A fit reads, prepares and solves in the same steps either way (`fit_members`); a subclass says
    what its problems are and what it keeps of their solutions.
    """

    C: float | str
    solver: str | SVMSolver
    tol: float

    @abstractmethod
    def _penalty(self) -> Penalty:
        """Return the penalty that shapes the margin."""

    @abstractmethod
    def _constraints(self) -> dict[str, Constraint]:
        """Return what the parameters must be."""

    def _prepare(self, X: Any, y: Any, sample_weight: Any, penalties: Sequence[Penalty]) -> Any:
        """Read the rows and compute what the members, which have these penalties, share."""
        return prepare(self, X, y, sample_weight, penalties[0])

    @abstractmethod
    def _solve(
        self, prepared: Prepared, scales: Sequence[Array], costs: Sequence[float], solver: SVMSolver
    ) -> Sequence[S]:
        """Solve the problems of each metric (scale) and cost, one result for each pair of them."""

    @abstractmethod
    def _store(self, prepared: Prepared, found: S) -> list[Note]:
        """Set the fitted attributes; return what the user should be warned of."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the estimator.

        Parameters
        ----------
        X : array, sparse matrix, data frame, dask array or dask data frame
            Rows and features, (n_samples, n_features).  A dask collection is fitted on the current
            client of ``distributed``, without gathering it.
        y : array of shape (n_samples,)
            Class labels of any type; rows equal to ``unlabeled`` have none.
        sample_weight : array of shape (n_samples,), optional
            Weight 2 is the row twice, weight 0 the row absent.

        Returns
        -------
        self

        Notes
        -----
        Cancelled inside `marginfold.watch`, MMDA, LSVA and WSVDA keep the components found so far
        and warn with `CancelledWarning`; without any component, and the classifiers always, a
        cancelled fit raises `CancelledError`.
        """
        with atomic_fit(self):
            fit_members([self], X, y, sample_weight)  # a path of one point
        return self

    def _check_parameters(self) -> None:
        check_parameters(self, self._constraints())


@sized
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
    if not isinstance(estimator, MarginEstimator):
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


def fit_members(members: Sequence[Any], X: Any, y: Any, sample_weight: Any) -> Prepared | None:
    """Fit estimators that differ in C and in the graph weight only; return what they share."""
    if not members:
        return None
    for member in members:
        member._check_parameters()
    reader = members[0]
    prepared = reader._prepare(X, y, sample_weight, [member._penalty() for member in members])
    fit_prepared(members, prepared)
    _tell_features(members)
    return prepared


def fit_prepared(members: Sequence[Any], prepared: Any) -> None:
    """Solve the problems of all members side by side and store what was found."""
    scales = prepared.scales([member._penalty() for member in members])
    costs = [
        cost_of(member.C, scale, prepared) for member, scale in zip(members, scales, strict=True)
    ]
    solver = resolve_solver(members[0].solver, members[0].tol)
    with threads_for(len(prepared.weights), prepared.n_columns):
        found = members[0]._solve(prepared, scales, costs, solver)
    notes: list[Note] = []
    for member, own in zip(members, found, strict=True):
        notes += member._store(prepared, own)
    _warn_once_of_each_kind(notes, len(members))


def cost_of(C: float | str, scale: Array, prepared: Prepared) -> float:
    """Return the cost of a margin violation for one metric (scale); see `AUTOMATIC`."""
    if C != AUTOMATIC:
        return float(C)
    square = float(scale**2 @ prepared.variances)
    return AUTOMATIC_COST / square if square > 0 else 1.0  # rows without variance have no direction


def _tell_features(members: Sequence[Any]) -> None:
    """Tell all members which features the first one has read."""
    reader, *others = members
    for name in ("n_features_in_", "feature_names_in_"):
        if hasattr(reader, name):
            for member in others:
                setattr(member, name, getattr(reader, name))


def _warn_once_of_each_kind(notes: Sequence[Note], n_members: int) -> None:
    for category in dict.fromkeys(category for _, category in notes):
        messages = [message for message, kind in notes if kind is category]
        first = "" if n_members == 1 else f"{len(messages)} of {n_members} fits; first: "
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
