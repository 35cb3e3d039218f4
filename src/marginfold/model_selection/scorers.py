"""The metrics of a search, as scikit-learn names and makes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any

from sklearn.metrics import check_scoring, get_scorer

from marginfold.errors import InvalidParameterError
from marginfold.validation.parameters import shown

SINGLE = "score"
"""The name of the only metric, as in GridSearchCV."""


@dataclass(frozen=True)
class Scorers:
    """Scorers by name.

    Attributes
    ----------
    by_name : dict
        Callables of a fitted model, rows and labels.
    several : bool
        Whether they were given with names; else there is one, named `SINGLE`.
    see_predictions_only : bool
        Whether all of them depend on a model through its predictions (or its ``score``) only.
    """

    by_name: Mapping[str, Any]
    several: bool
    see_predictions_only: bool


def read_scorers(model: Any, scoring: Any, refit: Any) -> Scorers:
    """Return the scorers that ``scoring`` means for a model."""
    if isinstance(scoring, list | tuple | set):
        scoring = {name: name for name in scoring}
    if not isinstance(scoring, dict):
        scorer = check_scoring(model, scoring)
        return Scorers({SINGLE: scorer}, False, _sees_predictions_only(scoring))
    if not scoring or not all(isinstance(name, str) for name in scoring):
        raise InvalidParameterError(
            f"scoring must name at least one metric, by text; got {shown(scoring)}."
        )
    if not (refit is False or callable(refit) or (isinstance(refit, str) and refit in scoring)):
        raise InvalidParameterError(
            f"With several metrics refit must be one of {sorted(scoring)}, a function of "
            f"cv_results_ or False; got {shown(refit)}."
        )
    by_name = {name: check_scoring(model, given) for name, given in scoring.items()}
    return Scorers(by_name, True, all(map(_sees_predictions_only, scoring.values())))


def chosen_index(refit: Any, results: Mapping[str, Any]) -> int:
    """Return the best index by a function of the results, checked."""
    index, n_points = refit(results), len(results["params"])
    if not isinstance(index, Integral) or not 0 <= int(index) < n_points:
        raise InvalidParameterError(
            f"The function refit must return an index from 0 to {n_points - 1}; got {shown(index)}."
        )
    return int(index)


def _sees_predictions_only(scoring: Any) -> bool:
    return scoring is None or isinstance(scoring, (str, type(get_scorer("accuracy"))))
