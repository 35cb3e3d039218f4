"""The methods of paper 003 with its grids, and how their parameters are chosen."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any, Literal

import numpy as np
from sklearn.svm import SVC

from marginfold.errors import SolverError
from marginfold.estimators.mrgepsvm import GEPSVC, MRGEPSVC
from marginfold.estimators.twinsvm import TwinSVC
from marginfold.feature_maps import ExactKernel
from marginfold.graphs import NeighborGraph
from marginfold.protocols.splits import Fold
from marginfold.protocols.studies import study_size

STUDY = "mrgepsvm"

LARGEST_EXPONENT = 9
"""Parameters are 2^i with i from -9 to 9 (003 section 6)."""

STEPS = {
    "linear": {"quick": 6, "standard": 3, "full": 2},
    "rbf": {"quick": 6, "standard": 6, "full": 3},
}
"""Every how many of these exponents are tried, by kernel and scale."""

GRAPH_STEPS = {"quick": 9, "standard": 9, "full": 3}
"""The same for the weight of the graph, which is tried with each value of the ridge."""

GAMMA_EXPONENTS = (-6, -3, 0)
"""Widths 2^i of the rbf kernel; the paper has none."""

NEIGHBORS = 7
"""Mutual neighbors; the paper chooses among 3 to 20."""

TWIN_RIDGE = 2.0**-9
"""Tikhonov weight of the twin SVM: small, since it is there to make a system definite."""

NEVER = 2.0
"""The error of parameters for which a method has no solution: more than any share."""

Params = Mapping[str, Any]


@dataclass(frozen=True)
class Setting:
    """What the paper leaves open and is not chosen.

    Attributes
    ----------
    tikhonov : {"dual", "rkhs"}
        The Tikhonov term.
    width : float or "auto"
        Heat width of the graph.
    multiclass : {"one_vs_one", "one_vs_rest"}
        Planes of each pair of classes, or of each class against all others.
    """

    tikhonov: str = "dual"
    width: float | Literal["auto"] = 2.0
    multiclass: str = "one_vs_rest"


PRINTED_SETTING = Setting()
"""With a kernel, the Tikhonov term of the coefficients, as printed (E43); the width of 000."""


TUNED = {
    "MRGEPSVM": ("ridge", "graph_weight"),
    "TSVM": ("C",),
    "GEPSVM": ("ridge",),
    "SVM": ("C",),
}
"""The parameters of each method that are 2^i."""

PRINTED = ("MRGEPSVM", "TSVM", "GEPSVM", "SVM")
"""Columns of Tables 1 and 2."""

UNTUNED: dict[str, dict[str, dict[str, Any]]] = {
    "linear": {"GEPSVM 2^-9": {"ridge": 2.0**-LARGEST_EXPONENT}},
    "rbf": {"SVM defaults": {"C": 1.0, "gamma": "auto"}},
}
"""Parameters that were not chosen, by kernel and column: the smallest ridge of the grid, and the
defaults of LIBSVM, whose gamma is 1/d.  They stand beside the printed number of the first word."""

CONTROLS = {
    "linear": (*PRINTED, "MRGEPSVM numerator"),
    "rbf": (*PRINTED, "MRGEPSVM rkhs", "GEPSVM rkhs"),
}
"""Methods of the nested protocol, by kernel; "numerator" has the graph on the other side of the
quotient (E35), "rkhs" the ridge on the normal in feature space (E43)."""

Grid = Mapping[str, Sequence[int]]
"""Exponents i of the values 2^i of each parameter."""


def grid(kernel: str, size: str) -> dict[str, list[int]]:
    """Return what is tried with a kernel at a scale.

    Examples
    --------
    >>> from marginfold.papers.mrgepsvm.methods import grid
    >>> grid("rbf", "standard")["gamma"]
    [-6, -3, 0]
    """
    known = study_size(size).name
    main, graph = _exponents(STEPS[kernel][known]), _exponents(GRAPH_STEPS[known])
    found = {"C": main, "ridge": main, "graph_weight": graph}
    return found | ({"gamma": list(GAMMA_EXPONENTS)} if kernel == "rbf" else {})


def _exponents(step: int) -> list[int]:
    return list(range(-LARGEST_EXPONENT, LARGEST_EXPONENT + 1, step))


def candidates(method: str, tried: Grid) -> list[dict[str, float]]:
    """Return the parameters to choose from, those nearest to 2^0 first.

    Examples
    --------
    >>> from marginfold.papers.mrgepsvm.methods import candidates
    >>> candidates("GEPSVM", {"ridge": [-3, 0, 3]})
    [{'ridge': 1.0}, {'ridge': 0.125}, {'ridge': 8.0}]
    """
    names = TUNED[method.split()[0]] + (("gamma",) if "gamma" in tried else ())
    powers = product(*(tried[name] for name in names))
    return [
        {name: 2.0**i for name, i in zip(names, power, strict=True)}
        for power in sorted(powers, key=lambda power: sum(map(abs, power)))
    ]


def estimator(method: str, params: Params, setting: Setting = PRINTED_SETTING) -> Any:
    """Return an unfitted estimator, with the rbf kernel if there is a gamma."""
    name, _, variant = method.partition(" ")
    against_rest = variant == "one against rest"
    multiclass = "one_vs_rest" if against_rest else setting.multiclass
    common: dict[str, Any] = {"normalize": False, "multiclass": multiclass}
    if "gamma" in params:
        common["tikhonov"] = "rkhs" if variant == "rkhs" else setting.tikhonov
        common["kernel"] = ExactKernel("rbf", gamma=params["gamma"])
    match name:
        case "SVM":
            width = {"gamma": params["gamma"]} if "gamma" in params else {"kernel": "linear"}
            return SVC(C=params["C"], **width)
        case "TSVM":
            common |= {"loss": "hinge", "measure": "distance"}
            return TwinSVC(C1=params["C"], ridge=TWIN_RIDGE, **common)
        case "GEPSVM":
            return GEPSVC(ridge=params["ridge"], **common)
    return MRGEPSVC(
        ridge=params["ridge"],
        graph_weight=params["graph_weight"],
        graph=NeighborGraph(NEIGHBORS, width=setting.width, mode="mutual", within_class=True),
        manifold="numerator" if variant == "numerator" else "denominator",
        **common,
    )


def error(method: str, params: Params, fold: Fold, setting: Setting = PRINTED_SETTING) -> float:
    """Return the share of wrong test rows."""
    predicted = estimator(method, params, setting).fit(fold.X, fold.y).predict(fold.X_test)
    return float(np.mean(predicted != fold.y_test))


def chosen(
    method: str, tried: Grid, folds: Iterable[Fold], setting: Setting = PRINTED_SETTING
) -> dict[str, float]:
    """Return the parameters with the least mean error, those nearest to 2^0 of equal ones."""
    folds = list(folds)

    def error_or_never(params: Params, fold: Fold) -> float:
        try:
            return error(method, params, fold, setting)
        except SolverError:
            return NEVER

    def mean_error(params: Params) -> float:
        return float(np.mean([error_or_never(params, fold) for fold in folds]))

    return min(candidates(method, tried), key=mean_error)
