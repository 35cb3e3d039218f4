"""What a search scores by, and what it reports: the table of scikit-learn's GridSearchCV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.exceptions import FitFailedWarning
from sklearn.metrics import check_scoring, get_scorer

from marginfold.errors import InvalidInputError, InvalidParameterError, MarginfoldWarning, warn
from marginfold.linalg.tall import Array
from marginfold.model_selection.folds import FoldScores
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
        if not (isinstance(refit, bool | np.bool_) or callable(refit)):
            raise InvalidParameterError(
                "With one metric refit must be True, False or a function of cv_results_; got "
                f"{shown(refit)}."
            )
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


def results_table(points: Sequence[dict[str, Any]], folds: Sequence[FoldScores]) -> dict[str, Any]:
    """Return the keys of ``GridSearchCV.cv_results_`` for points of the grid, in their order."""
    results: dict[str, Any] = {
        **_summary("fit_time", [fold.fit_seconds for fold in folds]),
        **_summary("score_time", [fold.score_seconds for fold in folds]),
    }
    for name in points[0]:
        values = np.array([point[name] for point in points])
        results[f"param_{name}"] = np.ma.MaskedArray(values, mask=np.zeros(len(values), dtype=bool))
    results["params"] = list(points)
    for name in folds[0].test:
        results |= _scores(f"test_{name}", [fold.test[name] for fold in folds])
        results[f"rank_test_{name}"] = _ranks(results[f"mean_test_{name}"])
        if folds[0].train:
            results |= _scores(f"train_{name}", [fold.train[name] for fold in folds])
    return results


def check_failures(folds: Sequence[FoldScores], n_points: int, error_score: Any) -> None:
    """Warn of fits that failed; raise if none succeeded."""
    errors = Counter(error for fold in folds for error in fold.errors)
    failed, tried = errors.total(), n_points * len(folds)
    if not failed:
        return
    texts = "\n".join(
        f"{count} fits failed with this error:\n{text}" for text, count in errors.items()
    )
    if failed == tried:
        raise InvalidInputError(
            f"All {tried} fits failed, so there is nothing to choose from. Correct what the errors "
            f"say; error_score='raise' stops at the first of them.\n{texts}"
        )
    warn(
        f"{failed} of {tried} fits failed; their score is set to {error_score}. "
        f"error_score='raise' stops at the first of them.\n{texts}",
        FitFailedWarning,
    )


def _scores(key: str, tables: Sequence[Array]) -> dict[str, Array]:
    splits = {f"split{i}_{key}": table.ravel() for i, table in enumerate(tables)}
    summary = _summary(key, tables)
    if not np.isfinite(summary[f"mean_{key}"]).all():
        shown = summary[f"mean_{key}"]
        warn(f"Some {key.split('_')[0]} scores are not finite: {shown}", MarginfoldWarning)
    return splits | summary


def _summary(key: str, tables: Sequence[Array]) -> dict[str, Array]:
    values = np.stack([table.ravel() for table in tables], axis=1)
    means = np.average(values, axis=1)
    spread = np.sqrt(np.average((values - means[:, None]) ** 2, axis=1))
    return {f"mean_{key}": means, f"std_{key}": spread}


def _ranks(means: Array) -> Array:
    """Return 1 for the largest mean; equal means share the better rank, NaN is last."""
    if np.isnan(means).all():
        return np.ones(len(means), dtype=np.int32)
    worst = np.nanmin(means) - 1.0
    return rankdata(-np.where(np.isnan(means), worst, means), method="min").astype(np.int32)


def _sees_predictions_only(scoring: Any) -> bool:
    return scoring is None or isinstance(scoring, (str, type(get_scorer("accuracy"))))
