"""Probabilities for classifiers that have margins only, calibrated by folds of the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.model_selection import StratifiedKFold

from marginfold.errors import InvalidInputError
from marginfold.linalg.tall import Array

if TYPE_CHECKING:
    from marginfold.data import TableModel

FOLDS, KEPT_FOLDS = 5, 3
"""Folds of a calibration: of one that was asked for, and of the one that every saved model of
margins brings along.  A fold costs a fit with all its choices."""

LEAST_TRAINED = 2
"""Rows that two classes need where parameters are chosen: then both are in every fold inside."""


def calibrated(
    estimator: Any, labels: Array, seed: int = 0, n_folds: int = FOLDS
) -> CalibratedClassifierCV:
    """Return the classifier with probabilities, unfitted; it calibrates them by folds of the rows.

    There is a row of every class in each fold, also in the training rows of outer folds.
    """
    counts = np.sort(np.unique(labels, return_counts=True)[1])
    usable = min(n_folds, max(LEAST_TRAINED, int(counts[0] - -(-counts[0] // FOLDS))))
    trained = int(counts[-2] - -(-counts[-2] // usable))
    if counts[0] < usable or trained < LEAST_TRAINED:
        raise InvalidInputError(
            "--proba needs at least two rows of every class and four of the second largest, for "
            f"folds inside folds; got {counts[0]} and {counts[-2]}. Add rows, or leave --proba out."
        )
    cv = StratifiedKFold(usable, shuffle=True, random_state=seed)
    return CalibratedClassifierCV(estimator, cv=cv, ensemble=False)


def fit_to_keep(
    estimator: Any, labels: Array, fit: Callable[[Any], TableModel], seed: int = 0
) -> TableModel:
    """Fit a procedure that is to be saved; probabilities of margins are calibrated beside it.

    Its answers are those of the procedure alone.  Where rows are too few there are no
    probabilities.

    Parameters
    ----------
    estimator : classifier
        Unfitted.
    labels : array
    fit : callable
        From an unfitted classifier to the fitted model of the table.
    seed : int
        Of the folds.
    """
    if isinstance(estimator, CalibratedClassifierCV):
        return fit(estimator)
    inner = getattr(estimator, "estimator", estimator)
    if not is_classifier(inner) or hasattr(inner, "predict_proba"):
        return fit(estimator)
    try:
        wrapped = calibrated(estimator, labels, seed, KEPT_FOLDS)
    except InvalidInputError:
        return fit(estimator)
    return fit(wrapped).with_calibration_beside()
