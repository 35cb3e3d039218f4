"""Input validation of every estimator: rows, labels and weights, once; then they are trusted.

What comes out of `read_rows` and `read_labelled` is finite and of one shape: graphs, feature maps
and solvers that an estimator hands it to do not look again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import wraps
from numbers import Number
from typing import Any, TypeVar, cast

import numpy as np
import scipy.sparse
from sklearn.utils import assert_all_finite
from sklearn.utils.validation import check_is_fitted, validate_data

from marginfold.errors import InvalidInputError
from marginfold.linalg.tall import Array, row_blocks
from marginfold.validation.labels import encode_labels, is_missing, is_unlabelled
from marginfold.validation.row_types import backend_of, gathered, refuse_lazy
from marginfold.validation.weights import check_weights

M = TypeVar("M", bound=Callable[..., Any])

LARGEST_ENTRY = 1e150
"""Entries above this have squared distances that overflow."""

TRAINING: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": np.float64,
    "ensure_min_samples": 2,
    "ensure_all_finite": False,
}
"""How scikit-learn is asked to validate training rows; their entries are looked at once, here."""

SOME_ROWS = "give this method some rows of it"
"""What to do with a lazy collection in a method for few rows."""


@dataclass(frozen=True)
class LabelledInput:
    """Validated rows with their weights and classes; unlabelled rows have the code UNLABELLED."""

    X: Any
    weights: Array
    classes: Array
    codes: Array


def read_rows(
    estimator: Any, X: Any, sample_weight: Any, parts: Sequence[Any] = ()
) -> tuple[Any, Array]:
    """Validate the training rows and weights of a method that needs no labels.

    Parameters
    ----------
    estimator : object
        It learns the number and the names of the features.
    X : array, sparse matrix, data frame or lazy collection
    sample_weight : array of shape (n_samples,), number or None
    parts : sequence of objects
        The graphs and the solver of the fit, which must be able to work on a lazy collection.

    Returns
    -------
    X : array, CSR matrix or rows elsewhere
        Finite numbers whose squares do not overflow.
    weights : array of shape (n_samples,)
    """
    backend = backend_of(X)
    if backend is not None:
        X = backend.read_rows(estimator, X, parts)
    else:
        X = validate_data(estimator, X, **TRAINING)
        _check_entries(estimator, X)
    return X, check_weights(gathered(sample_weight), X.shape[0])


def read_labelled(
    estimator: Any,
    X: Any,
    y: Any,
    sample_weight: Any,
    unlabeled: Any = None,
    parts: Sequence[Any] = (),
) -> LabelledInput:
    """Validate training rows, labels and weights, as `read_rows` does.

    Rows whose label equals ``unlabeled`` have none.
    """
    y = gathered(y)
    marks_missing = unlabeled is not None and is_missing(unlabeled)
    y, missing = _without_missing(y) if marks_missing else (y, False)
    backend = backend_of(X)
    if backend is not None:
        X, y = backend.read_labelled(estimator, X, y, parts)
    else:
        X, y = validate_data(estimator, X, y, **TRAINING)
        _check_entries(estimator, X)
    weights = check_weights(gathered(sample_weight), X.shape[0])
    unlabelled = is_unlabelled(y, unlabeled) | missing
    classes, codes = encode_labels(y, unlabelled, weights, unlabeled)
    return LabelledInput(X, weights, classes, codes)


def read_new_rows(estimator: Any, X: Any, instead: str = SOME_ROWS) -> Any:
    """Validate rows for a fitted estimator; a lazy collection is refused, with advice."""
    check_is_fitted(estimator)
    refuse_lazy(X, estimator, instead)
    return validate_data(estimator, X, accept_sparse="csr", dtype=np.float64, reset=False)


def row_by_row(method: M) -> M:
    """Let a method that maps each row by itself take a lazy collection, and answer with one."""

    @wraps(method)
    def mapped(self: Any, X: Any) -> Any:
        backend = backend_of(X)
        if backend is None:
            return method(self, X)
        check_is_fitted(self)
        return backend.apply(self, method.__name__, X)

    return cast(M, mapped)


def _check_entries(estimator: Any, X: Any) -> None:
    """Refuse entries that are not finite, or whose squares overflow, in one pass."""
    largest = _largest_entry(X.data[:, None] if scipy.sparse.issparse(X) else X)
    if not np.isfinite(largest):
        assert_all_finite(X, estimator_name=type(estimator).__name__, input_name="X")
    if largest > LARGEST_ENTRY:
        raise InvalidInputError(
            f"X has entries of size {largest:.3g}, whose squares overflow; it needs entries up to "
            f"{LARGEST_ENTRY:g}. Scale the features, for example with StandardScaler."
        )


def _largest_entry(X: Array) -> float:
    """Return the largest size of an entry, NaN if one is NaN; the second look is in the cache."""
    blocks = (X[block] for block in row_blocks(*X.shape))
    ends = [(part.max(initial=0.0), -part.min(initial=0.0)) for part in blocks]
    return float(np.max(ends, initial=0.0))


def _without_missing(y: Any) -> tuple[Any, Any]:
    """Return labels with missing values replaced by another label, and where they were."""
    labels = np.asarray(y)
    if labels.ndim != 1:
        return y, False
    missing = np.fromiter((is_missing(label) for label in labels), dtype=bool, count=len(labels))
    if not missing.any() or missing.all():
        return y, False
    filled = labels.copy()
    filled[missing] = labels[~missing][0]
    numbers = filled.dtype == object and all(isinstance(label, Number) for label in filled)
    return np.array(filled.tolist()) if numbers else filled, missing
