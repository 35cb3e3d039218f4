"""What a search over a grid reports: the table of scikit-learn's GridSearchCV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata
from sklearn.exceptions import FitFailedWarning

from marginfold.errors import InvalidInputError, MarginfoldWarning, warn
from marginfold.linalg.tall import Array
from marginfold.model_selection.folds import FoldScores


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
            f"All {tried} fits failed, so there is nothing to choose from. Mend what the errors "
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
