"""What a fitted classifier can say beside the class: margins, distances, components.

Searches, calibrations and pipelines are opened first: what counts is the classifier at the end, and
the transformers before it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import is_classifier
from sklearn.calibration import CalibratedClassifierCV
from sklearn.metrics import pairwise_distances_argmin_min
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline

from marginfold.graphs.neighbor_search import nearest_points
from marginfold.linalg.tall import Array
from marginfold.model_selection.neighbors_classifier import NeighborsClassifier

BY_NEIGHBORS = (KNeighborsClassifier, NeighborsClassifier)
"""Classifiers whose answer is that of the nearest rows."""


@dataclass(frozen=True)
class Scores:
    """A number for each row and class.

    Attributes
    ----------
    kind : {"margin", "distance"}
        Signed decision values, the largest being that of the predicted class, or distances to the
        nearest training row of each class.
    values : array of shape (n_rows, n_classes)
    """

    kind: str
    values: Array


def opened(model: Any) -> list[Any]:
    """Return the fitted steps of a model, from the first transformer to the classifier.

    A calibration that fits its classifier in every fold has no single one: it is a step itself.
    """
    if isinstance(model, Pipeline):
        steps = [step for _, step in model.steps if step not in (None, "passthrough")]
        return [*steps[:-1], *opened(steps[-1])]
    if hasattr(model, "best_estimator_"):
        return opened(model.best_estimator_)
    if isinstance(model, CalibratedClassifierCV) and len(model.calibrated_classifiers_) == 1:
        return opened(model.calibrated_classifiers_[0].estimator)
    return [model]


def chosen_parameters(model: Any) -> dict[str, Any]:
    """Return the parameters that a search inside a fitted model has chosen."""
    if isinstance(model, CalibratedClassifierCV) and len(model.calibrated_classifiers_) == 1:
        return chosen_parameters(model.calibrated_classifiers_[0].estimator)
    return dict(getattr(model, "best_params_", {}))


def counts_votes(model: Any) -> bool:
    """Return whether the probabilities of a model are shares of its nearest rows."""
    calibrated = isinstance(model, CalibratedClassifierCV)
    return not calibrated and isinstance(opened(model)[-1], BY_NEIGHBORS)


def has_scores(model: Any) -> bool:
    """Return whether `class_scores` has an answer."""
    classifier = opened(model)[-1]
    return hasattr(classifier, "decision_function") or isinstance(classifier, BY_NEIGHBORS)


def class_scores(model: Any, X: Any) -> Scores:
    """Return margins, or of nearest neighbors the distance to the nearest row of each class.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from marginfold.data.answers import class_scores
    >>> model = KNeighborsClassifier(1).fit([[0.0], [1.0], [5.0]], ["a", "a", "b"])
    >>> class_scores(model, [[2.0]]).values
    array([[1., 3.]])
    """
    *before, classifier = opened(model)
    rows = np.asarray(_through(before, X), dtype=np.float64)
    if isinstance(classifier, BY_NEIGHBORS):
        return Scores("distance", _class_distances(classifier, rows))
    values = np.asarray(classifier.decision_function(rows))
    return Scores("margin", np.column_stack([-values, values]) if values.ndim == 1 else values)


def embedding(model: Any) -> list[Any]:
    """Return the steps that give the components of rows; none if the model has no components."""
    steps = opened(model)
    last = steps[-1]
    return steps[:-1] if is_classifier(last) and not hasattr(last, "transform") else steps


def components(model: Any, X: Any) -> Array:
    """Return the components of rows."""
    return np.asarray(_through(embedding(model), X))


def _through(steps: list[Any], X: Any) -> Any:
    for step in steps:
        X = step.transform(X)
    return X


def _class_distances(classifier: Any, rows: Array) -> Array:
    """Return distances to the nearest training row of each class, in the classifier's metric."""
    if isinstance(classifier, NeighborsClassifier):
        known, codes, metric, options = classifier._rows, classifier._codes, "euclidean", {}
    else:
        known, codes = classifier._fit_X, classifier._y
        metric, options = classifier.effective_metric_, classifier.effective_metric_params_
    distances = np.empty((len(rows), len(classifier.classes_)))
    for code in range(len(classifier.classes_)):
        own = known[codes == code]
        if metric == "euclidean":  # by squares that cancel near rows may be lost
            nearest = nearest_points(own, rows, 1)[0][:, 0]
            distances[:, code] = np.linalg.norm(rows - own[nearest], axis=1)
        else:
            distances[:, code] = pairwise_distances_argmin_min(
                rows, own, metric=metric, metric_kwargs=options
            )[1]
    return distances
