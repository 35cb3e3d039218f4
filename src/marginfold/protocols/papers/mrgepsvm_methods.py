"""The methods of paper 003 with its grids, and how their parameters are chosen."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from sklearn.svm import SVC

from marginfold.errors import SolverError
from marginfold.estimators.gepsvm import GEPSVC
from marginfold.estimators.mrgepsvm import MRGEPSVC
from marginfold.estimators.twinsvm import TwinSVC
from marginfold.feature_maps import ExactKernel
from marginfold.graphs import NeighborGraph
from marginfold.rows import Array

STUDY = "mrgepsvm"

LARGEST_EXPONENT = 9
"""Parameters are 2^i with i from -9 to 9 (003 section 6)."""

STEPS = {"linear": {"quick": 6, "standard": 3, "full": 2}, "rbf": {"standard": 6, "full": 3}}
"""Every how many of these exponents are tried; 6 where nothing is said."""

COARSEST_STEP = 6

GAMMA_EXPONENTS = (-6, -3, 0)
"""Widths 2^i of the rbf kernel; the paper has none."""

NEIGHBORS, WIDTH = 7, 2.0
"""Mutual neighbors and heat width; the paper chooses among 3 to 20 and does not give the width."""

TWIN_RIDGE = 2.0**-9
"""Tikhonov weight of the twin SVM: small, since it is there to make a system definite."""

NEVER = 2.0
"""The error of parameters for which a method has no solution: more than any share."""

Params = Mapping[str, float]


@dataclass(frozen=True)
class Method:
    """How a method is made of parameters, and which of them are 2^i."""

    make: Callable[[Params, dict[str, Any]], Any]
    tuned: tuple[str, ...]


def _mrgepsvm(manifold: str) -> Callable[[Params, dict[str, Any]], Any]:
    def make(params: Params, kernel: dict[str, Any]) -> Any:
        graph = NeighborGraph(NEIGHBORS, width=WIDTH, mode="mutual", within_class=True)
        return MRGEPSVC(
            ridge=params["ridge"],
            graph_weight=params["graph_weight"],
            graph=graph,
            manifold=manifold,
            normalize=False,
            **kernel,
        )

    return make


def _twin(params: Params, kernel: dict[str, Any]) -> Any:
    return TwinSVC(C1=params["C"], ridge=TWIN_RIDGE, normalize=False, **kernel)


def _gepsvm(params: Params, kernel: dict[str, Any]) -> Any:
    return GEPSVC(ridge=params["ridge"], normalize=False, **kernel)


def _svm(params: Params, kernel: dict[str, Any]) -> Any:
    if "gamma" in params:
        return SVC(C=params["C"], gamma=params["gamma"])
    return SVC(C=params["C"], kernel="linear")


METHODS = {
    "MRGEPSVM": Method(_mrgepsvm("denominator"), ("ridge", "graph_weight")),
    "TSVM": Method(_twin, ("C",)),
    "GEPSVM": Method(_gepsvm, ("ridge",)),
    "SVM": Method(_svm, ("C",)),
    "MRGEPSVM numerator": Method(_mrgepsvm("numerator"), ("ridge", "graph_weight")),
}
"""The printed columns, and the graph on the other side of the quotient (E35)."""

PRINTED = ("MRGEPSVM", "TSVM", "GEPSVM", "SVM")
"""Columns of Tables 1 and 2."""


def exponents(scale: str, kernel: str) -> list[int]:
    """Return the exponents that are tried, the same on both sides of 0."""
    step = STEPS[kernel].get(scale, COARSEST_STEP)
    return list(range(-LARGEST_EXPONENT, LARGEST_EXPONENT + 1, step))


def candidates(method: str, kernel: str, tried: Sequence[int]) -> list[dict[str, float]]:
    """Return the parameters to choose from, those nearest to 2^0 first.

    Examples
    --------
    >>> from marginfold.protocols.papers.mrgepsvm_methods import candidates
    >>> candidates("GEPSVM", "linear", [-3, 0, 3])
    [{'ridge': 1.0}, {'ridge': 0.125}, {'ridge': 8.0}]
    """
    names = METHODS[method].tuned
    ranges: list[Sequence[int]] = [tried] * len(names)
    if kernel == "rbf":
        names, ranges = (*names, "gamma"), [*ranges, GAMMA_EXPONENTS]
    powers = sorted(product(*ranges), key=lambda power: sum(map(abs, power)))
    return [{name: 2.0**i for name, i in zip(names, power, strict=True)} for power in powers]


def estimator(method: str, kernel: str, params: Params) -> Any:
    """Return an unfitted estimator; with a kernel the Tikhonov term is the printed one (E43)."""
    options: dict[str, Any] = {}
    if kernel == "rbf":
        mapping = ExactKernel("rbf", gamma=params["gamma"])
        options = {"kernel": mapping, "tikhonov": "dual"}
    return METHODS[method].make(params, options)


Split = tuple[Array, Array, Array, Array]
"""Training rows and labels, test rows and labels."""


def error(method: str, kernel: str, params: Params, split: Split) -> float:
    """Return the share of wrong test rows."""
    rows, y, new, y_new = split
    predicted = estimator(method, kernel, params).fit(rows, y).predict(new)
    return float(np.mean(predicted != y_new))


def chosen(
    method: str, kernel: str, tried: Sequence[int], splits: Iterable[Split]
) -> dict[str, float]:
    """Return the parameters with the least mean error, those nearest to 2^0 of equal ones."""
    options, splits = candidates(method, kernel, tried), list(splits)
    means = [
        np.mean([_error_or_never(method, kernel, params, split) for split in splits])
        for params in options
    ]
    return options[int(np.argmin(means))]


def _error_or_never(method: str, kernel: str, params: Params, split: Split) -> float:
    try:
        return error(method, kernel, params, split)
    except SolverError:
        return NEVER
