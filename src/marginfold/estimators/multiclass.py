"""Decision values per class: those of the package's classifiers, and those of any other one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.feature_maps import KernelLike, is_pairwise
from marginfold.linalg.tall import Array
from marginfold.runtime.callbacks import FollowedFits
from marginfold.validation.parameters import shown
from marginfold.validation.rows import read_new_rows, row_by_row
from marginfold.validation.types import Rows

SMALLEST_PROBABILITY = 1e-12
"""Smaller probabilities count as this one: the margin of an impossible class stays finite."""

AGREEMENT = 0.8
"""Share of rows, mean over the predicted classes, on which the largest of three decision values
must be that of the predicted class; values of pairs of classes agree on about a third."""


class OneVsRestClassifier(FollowedFits, ClassifierMixin, BaseEstimator, ABC):
    """A classifier with a decision value for each class (one value for two classes).

    Subclasses say what the values of validated rows are; `classes_from` alone says which class
    follows from them.
    """

    kernel: KernelLike
    classes_: Array
    feature_map_: Any

    @abstractmethod
    def _decision_values(self, X: Any) -> Array:
        """Return the values of validated rows, (n_samples,) for two classes, else one a class."""

    @row_by_row
    def decision_function(self, X: Rows) -> Array:
        """Return decision values: the class with the largest one is predicted.

        Parameters
        ----------
        X : array, sparse matrix, data frame, dask array or dask data frame
            Rows and features, (n_samples, n_features).

        Returns
        -------
        array of shape (n_samples,) or (n_samples, n_classes)
            For two classes one value, positive for ``classes_[1]``; for more, one for each class.
        """
        return self._decision_values(read_new_rows(self, X))

    @row_by_row
    def predict(self, X: Rows) -> Array:
        """Return the class of each row.

        Parameters
        ----------
        X : array, sparse matrix, data frame, dask array or dask data frame
            Rows and features, (n_samples, n_features).

        Returns
        -------
        array of shape (n_samples,)
        """
        return classes_from(self.decision_function(X), self.classes_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_pairwise(self.kernel)
        return tags


def classes_from(values: Array, classes: Array) -> Array:
    """Return the class of the largest decision value, of the sign if there are two classes."""
    codes = (values > 0).astype(int) if values.ndim == 1 else values.argmax(axis=1)
    return np.asarray(classes[codes])


def one_vs_one_values(margins: Array, n_classes: int) -> Array:
    """Return one decision value per class from the margins of all pairs of classes.

    A class has a vote for every pair that it wins; both have half of it where the margin is 0, as
    for a pair of which nothing is known.  Equal votes are parted by the sums of the margins,
    squashed to less than a third of a vote, as scikit-learn's
    ``SVC(decision_function_shape="ovr")`` does.

    Parameters
    ----------
    margins : array of shape (n_rows, n_classes * (n_classes - 1) / 2)
        In the order of `class_pairs`; positive for the second class of the pair.
    n_classes : int

    Returns
    -------
    array of shape (n_rows, n_classes)
    """
    votes, sums = np.zeros((2, len(margins), n_classes))
    begin = 0
    for first in range(n_classes - 1):  # its pairs with all later classes stand side by side
        own = margins[:, begin : begin + n_classes - 1 - first]
        won = 0.5 + 0.5 * np.sign(own)
        votes[:, first + 1 :] += won
        votes[:, first] += (1.0 - won).sum(axis=1)
        sums[:, first + 1 :] += own
        sums[:, first] -= own.sum(axis=1)
        begin += own.shape[1]
    return np.asarray(votes + sums / (3.0 * (np.abs(sums) + 1.0)))


def class_pairs(n_classes: int) -> list[tuple[int, int]]:
    """Return all pairs of class codes: (0, 1), (0, 2), ..., (1, 2), ..."""
    return list(combinations(range(n_classes), 2))


def check_has_margins(classifier: Any, *, fitted: bool) -> None:
    """Refuse what has neither decision values nor probabilities, or can have neither after a fit.

    Which of its methods a classifier made of others offers may depend on their fits.
    """
    if isinstance(classifier, type) or not hasattr(classifier, "fit"):
        raise InvalidParameterError(
            f"classifier must be a classifier such as GESVC(kernel='rbf'); got {shown(classifier)}."
        )
    owners = (classifier,) if fitted else (classifier, type(classifier))
    if not any(hasattr(o, n) for o in owners for n in ("decision_function", "predict_proba")):
        raise InvalidParameterError(
            "classifier must have decision_function or predict_proba, from which the margins of "
            f"the classes are taken; {shown(classifier)} has neither. Wrap it in "
            "CalibratedClassifierCV or choose another one."
        )


def classes_of(classifier: Any) -> Array:
    """Return the classes that a fitted classifier tells apart, at least two."""
    classes = getattr(classifier, "classes_", None)
    if classes is None or np.ndim(classes) != 1:
        raise InvalidInputError(
            f"The classifier {shown(classifier)} has no attribute classes_ after fit; a classifier "
            "for one column of labels is needed."
        )
    classes = np.asarray(classes)
    if len(classes) < 2:
        raise InvalidInputError(
            f"The data has 1 class, {classes.tolist()[0]!r}; at least 2 classes are needed."
        )
    return classes


def class_margins(classifier: Any, X: Any) -> Array:
    """Return the margins of a fitted classifier, shape (n_rows, n_classes).

    Decision values as they are (two classes: -f and f), else logarithms of probabilities.
    """
    n_classes = len(classifier.classes_)
    if hasattr(classifier, "decision_function"):
        values = np.asarray(classifier.decision_function(X), dtype=np.float64)
        if values.ndim == 1 or values.shape[1] == 1:
            values = values.reshape(-1, 1) * [-1.0, 1.0]
    else:
        probabilities = np.asarray(classifier.predict_proba(X), dtype=np.float64)
        values = np.log(np.maximum(probabilities, SMALLEST_PROBABILITY))
    if values.ndim != 2 or values.shape[1] != n_classes:
        raise InvalidInputError(_wrong_columns(classifier, values.shape, n_classes))
    if not np.isfinite(values).all():
        raise InvalidInputError(
            f"The classifier {shown(classifier)} returned NaN or infinite decision values; "
            "finite ones are needed. Scale the features or choose another classifier."
        )
    return values


def check_one_vs_rest(classifier: Any, X: Any, margins: Array) -> None:
    """Refuse decision values of pairs of three classes, which have the shape of three margins."""
    if margins.shape[1] != 3:
        return
    predicted = np.asarray(classifier.predict(X))
    largest = classifier.classes_[margins.argmax(axis=1)] == predicted
    shares = [float(largest[predicted == label].mean()) for label in np.unique(predicted)]
    if np.mean(shares) < AGREEMENT:
        raise InvalidInputError(_wrong_columns(classifier, margins.shape, 3))


def _wrong_columns(classifier: Any, shape: tuple[int, ...], n_classes: int) -> str:
    pairs = ""
    if shape[1:] == (n_classes * (n_classes - 1) // 2,):
        pairs = " These are values of pairs of classes: set decision_function_shape='ovr'."
    return (
        f"The classifier {shown(classifier)} returned decision values of shape {shape} for "
        f"{n_classes} classes; one column per class is needed, whose largest value is that of the "
        f"predicted class.{pairs}"
    )
