"""Where an estimator keeps its graph, and the weight that goes with it."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from marginfold.errors import InvalidParameterError
from marginfold.graphs import resolve_graph
from marginfold.protocols.held_out import parameters_named
from marginfold.validation.parameters import shown


def graph_parameter(estimator: Any, parameter: str | None) -> str:
    """Return the name of the one parameter that holds the graph."""
    if parameter is not None:
        if parameter not in estimator.get_params(deep=True):
            raise InvalidParameterError(
                f"{shown(estimator)} has no parameter {parameter!r}; it needs the name of one that "
                "holds a graph, as in get_params()."
            )
        return parameter
    names = parameters_named(estimator, "graph")
    if not names:
        raise InvalidParameterError(
            f"{shown(estimator)} has no parameter graph; it needs a method with one, such as LSVA, "
            "LapSVC or LPP, or a pipeline with such a step. Name a parameter that holds a graph "
            "under another name by parameter=."
        )
    if len(names) > 1:
        raise InvalidParameterError(
            f"{shown(estimator)} has several graphs: {', '.join(names)}; one is tested at a time. "
            f"Pass parameter={names[0]!r}, for example."
        )
    return names[0]


def with_rule(estimator: Any, name: str) -> Any:
    """Return a clone whose graph is a rule, with a weight that lets it act."""
    value = estimator.get_params(deep=True)[name]
    if value is None:
        raise InvalidParameterError(
            f"{shown(estimator)} has {name}=None, its own default; the test needs to know the "
            "graph. Pass a rule, for example NeighborGraph(mode='mutual', within_class=True)."
        )
    weight = weight_parameter(estimator, name)
    if weight is not None and estimator.get_params(deep=True)[weight] == 0:
        raise InvalidParameterError(
            f"{shown(estimator)} has {weight}=0, so that no graph has any effect; the test needs a "
            "positive weight."
        )
    return clone(estimator).set_params(**{name: resolve_graph(value)})


def weight_parameter(estimator: Any, name: str) -> str | None:
    """Return the name of the graph's weight, which stands beside the graph, if there is one."""
    prefix, separator, _ = name.rpartition("__")
    weight = f"{prefix}{separator}graph_weight"
    return weight if weight in estimator.get_params(deep=True) else None
