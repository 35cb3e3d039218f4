"""The methods that can be looked through: titles, controls and the estimator that they stand for.

Estimators are those of the comparison (`marginfold.compare.methods`), with what a control sets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from difflib import get_close_matches
from typing import Any

from sklearn.base import clone

from marginfold.compare.methods import METHODS as COMPARED
from marginfold.compare.plan import fold_seconds
from marginfold.compare.table import Size
from marginfold.errors import InvalidParameterError
from marginfold.explorer.calls import Whole
from marginfold.graphs import NeighborGraph
from marginfold.planner import plan
from marginfold.planner.plan import UNCERTAINTY, duration
from marginfold.runtime.memory import readable
from marginfold.validation.parameters import Choice, Constraint, Either, Number, shown

COMPONENTS, MOST_COMPONENTS = 4, 10
"""Components at first, and at most: a path of 30 weights and 4 components takes 0.8 s of CPU time
on 5000 rows x 30 columns and 4 classes, one of 10 components 6.2 s."""

AUTOMATIC = None
"""The value of a control that leaves the choice to the estimator."""


ROUNDING = 1e-12
"""Share by which a value may be above its bound: a page computes it from a logarithm."""


@dataclass(frozen=True)
class Control:
    """One setting of a method, as a page shows it.

    Attributes
    ----------
    name, title, help : str
    kind : {"number", "log", "choice", "integer"}
    low, high : float or None
    value : object
        At first; None leaves it to the method where ``automatic`` says so.
    choices : tuple or None
    automatic, zero : bool
        Whether None is allowed, and whether 0 is, which has no place on a scale of logarithms.
    """

    name: str
    title: str
    kind: str
    low: float | None = None
    high: float | None = None
    value: Any = None
    choices: tuple[Any, ...] | None = None
    help: str | None = None
    automatic: bool = False
    zero: bool = False

    @property
    def constraint(self) -> Constraint:
        """What a value must be."""
        if self.kind == "choice":
            return Choice(*(self.choices or ()))
        assert self.low is not None
        assert self.high is not None
        within: Constraint = (
            Whole(int(self.low), int(self.high))
            if self.kind == "integer"
            else Number(0.0 if self.zero else self.low, self.high * (1 + ROUNDING))
        )
        return Either(Choice(None), within) if self.automatic else within


@dataclass(frozen=True)
class Method:
    """One method.

    Attributes
    ----------
    title, group : str
        What it is, and beside which others it is listed.
    compared : str
        Its name in `marginfold.compare.methods`.
    controls : tuple of str
        Names of `CONTROLS`.
    path, graph : bool
        Whether there is a path over graph weights, and a graph that can be permuted.
    """

    title: str
    group: str
    compared: str
    controls: tuple[str, ...]
    path: bool = False
    graph: bool = False


CONTROLS = {
    "n_components": Control(
        *("n_components", "Components", "integer", 1, MOST_COMPONENTS, COMPONENTS),
        help="How many axes there are to choose from.",
    ),
    "C": Control(
        *("C", "Cost C", "log", 1e-3, 1e4),
        help="What a row inside the margin costs; empty leaves it to the method.",
        automatic=True,
    ),
    "graph_weight": Control(
        *("graph_weight", "Graph weight", "log", 1e-3, 1e3, 1.0),
        help="How much neighbors are kept together; 0 is no graph.",
        zero=True,
    ),
    "neighbors": Control(
        *("neighbors", "Neighbors", "integer", 1, 100, 10),
        help="Neighbors that each row is joined with in the graph.",
    ),
    "kernel": Control(
        *("kernel", "Kernel", "choice"),
        value="rbf",
        choices=("rbf", "poly", "cosine"),
        help="What counts as similar.",
    ),
    "gamma": Control(
        *("gamma", "Kernel width (gamma)", "log", 1e-6, 1e3),
        help="Large values see near rows only; empty is one over the variance of the rows.",
        automatic=True,
    ),
    "shrinkage": Control(
        *("shrinkage", "Shrinkage", "log", 1e-10, 1.0, 1e-8),
        help="How far the scatter within classes is drawn towards a ball.",
    ),
    "ridge": Control(
        *("ridge", "Ridge", "log", 1e-8, 10.0, 1e-3),
        help="What is added to the scatter that is divided by.",
    ),
    "sharpness": Control(
        *("sharpness", "Sharpness", "log", 0.25, 64.0),
        help="How fast a row moves to the anchor of its class; empty is chosen by held-out rows.",
        automatic=True,
    ),
    "cost": Control(
        *("cost", "Cost C", "log", 1e-2, 1e4, 10.0),
        help="What a row inside the margin costs the classifier behind the map.",
    ),
}
"""All controls by name."""

KERNEL = ("kernel", "gamma")

METHODS: dict[str, Method] = {
    "PCA": Method("PCA: largest variance", "linear", "PCA", ("n_components",)),
    "LDA": Method("LDA: linear discriminants", "linear", "LDA", ("shrinkage",)),
    "LSVA": Method(
        "LSVA: margins on a neighbor graph",
        *("linear", "LSVA", ("n_components", "C", "graph_weight", "neighbors")),
        path=True,
        graph=True,
    ),
    "WSVDA": Method(
        "WSVDA: margins against the scatter within classes",
        *("linear", "WSVDA", ("n_components", "C", "ridge")),
    ),
    "MarginMap": Method(
        "MarginMap: rows among the anchors of classes",
        *("map", "MarginMap", ("cost", "sharpness")),
    ),
    "MMDA": Method("MMDA: successive margins", "linear", "MMDA", ("n_components", "C")),
    "LPP": Method(
        "LPP: neighbors stay neighbors",
        *("linear", "LPP", ("n_components", "neighbors", "ridge")),
        graph=True,
    ),
    "KPCA": Method("Kernel PCA", "kernel", "KPCA", ("n_components", *KERNEL)),
    "KDA": Method("Kernel discriminants", "kernel", "KDA", ("shrinkage", *KERNEL)),
    "KLSVA": Method(
        "LSVA with a kernel",
        *("kernel", "KLSVA", ("n_components", "C", "graph_weight", "neighbors", *KERNEL)),
        path=True,
        graph=True,
    ),
}
"""All methods by name, in the order in which they are offered."""


def controls_of(name: str, size: Size) -> list[Control]:
    """Return the controls of a method for a table of this size."""
    found = []
    for control in map(CONTROLS.__getitem__, method_named(name).controls):
        if control.name == "n_components":
            most = min(MOST_COMPONENTS, size.n_columns)
            control = replace(control, high=most, value=min(COMPONENTS, most))
        elif control.name == "shrinkage" and name == "KDA":
            control = replace(control, value=1e-3)
        elif control.name == "C" and name in ("WSVDA", "KLSVA"):
            control = replace(control, value=1.0 if name == "WSVDA" else 10.0)
        found.append(control)
    return found


def method_named(name: str) -> Method:
    """Return a method; refuse what is none."""
    if name in METHODS:
        return METHODS[name]
    close = get_close_matches(name, METHODS, n=1)
    meant = f"did you mean {close[0]}? " if close else ""
    raise InvalidParameterError(
        f"there is no method {shown(name)}; {meant}choose from {', '.join(METHODS)}."
    )


def settings_of(name: str, size: Size, params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of a method with its defaults; refuse unknown ones and wrong values."""
    controls = {control.name: control for control in controls_of(name, size)}
    for given, value in params.items():
        if given not in controls:
            raise InvalidParameterError(
                f"{name} has no setting {shown(given)}; it has {', '.join(controls)}."
            )
        if not controls[given].constraint.allows(value):
            raise InvalidParameterError(
                f"{given} of {name} must be {controls[given].constraint}; got {shown(value)}."
            )
    return {known: params.get(known, control.value) for known, control in controls.items()}


def estimator_of(name: str, size: Size, params: Mapping[str, Any]) -> Any:
    """Return the unfitted estimator that a method and its settings stand for.

    Examples
    --------
    >>> from marginfold.compare.table import Size
    >>> from marginfold.explorer.methods import estimator_of
    >>> estimator_of("LSVA", Size(150, 4, 3), {"graph_weight": 0.5})
    LSVA(graph=NeighborGraph(), graph_weight=0.5, n_components=4)
    """
    method, settings = method_named(name), settings_of(name, size, params)
    made = COMPARED[method.compared].make(size)
    estimator = made[0] if method.group == "map" else made
    for setting, value in settings.items():
        if value is not AUTOMATIC:
            SETTERS.get(setting, _set)(estimator, setting, value)
    return estimator


def _set(estimator: Any, name: str, value: Any) -> None:
    estimator.set_params(**{name: value})


def _set_neighbors(estimator: Any, name: str, value: Any) -> None:
    estimator.set_params(graph=NeighborGraph(value))


def _set_kernel(estimator: Any, name: str, value: Any) -> None:
    """Set a parameter of the kernel; rows are found again by the fixed point of the rbf kernel."""
    estimator.set_params(kernel=clone(estimator.kernel).set_params(**{name: value}))
    estimator.set_params(reconstruct="fixed_point" if estimator.kernel.kernel == "rbf" else None)


def _set_cost(estimator: Any, name: str, value: Any) -> None:
    estimator.set_params(classifier__C=value)


SETTERS: dict[str, Callable[[Any, str, Any], None]] = {
    "neighbors": _set_neighbors,
    "kernel": _set_kernel,
    "gamma": _set_kernel,
    "cost": _set_cost,
}
"""How settings are set that are no parameters of the estimator by their own name."""


@dataclass(frozen=True)
class Cost:
    """What a fit will take: seconds from the least to the most, bytes, and whether it can be."""

    seconds: tuple[float, float]
    memory: float | None
    why_not: str | None = None

    @property
    def text(self) -> str:
        """The time in words."""
        low, high = map(duration, self.seconds)
        return f"{low} to {high}"


def planned(name: str, size: Size, params: Mapping[str, Any]) -> Cost:
    """Return what a fit on a table of this size needs."""
    method, estimator = method_named(name), estimator_of(name, size, params)
    if method.group == "map":  # its classifier is not ours: what a comparison knows of it
        seconds = fold_seconds(method.compared, size.n_rows, size.n_columns, size.n_classes)
        return Cost((seconds / UNCERTAINTY, seconds * UNCERTAINTY), None)
    found = plan(estimator, (size.n_rows, size.n_columns), list(range(size.n_classes)))
    if found.fits:
        return Cost(found.seconds_range, found.memory_bytes)
    there = readable(found.available_bytes or 0)
    lacking = f"needs {readable(found.memory_bytes)} of memory, and {there} are there"
    return Cost(found.seconds_range, found.memory_bytes, lacking)


def listed_methods(size: Size) -> list[dict[str, Any]]:
    """Return all methods as a page is told of them."""
    rows = []
    for name, method in METHODS.items():
        cost = planned(name, size, {})
        rows.append(
            {
                "name": name,
                "title": method.title,
                "group": method.group,
                "path": method.path,
                "graph": method.graph,
                "controls": [asdict(control) for control in controls_of(name, size)],
                "plan": cost.text,
                "why_not": cost.why_not,
            }
        )
    return rows
