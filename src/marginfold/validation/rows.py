"""Input validation of every estimator: rows, labels and weights, once; then they are trusted.

What comes out of `read_rows` and `read_labelled` is finite and of one shape: graphs, feature maps
and solvers that an estimator hands it to do not look again.

Collections that are not in the memory of this process are read by a registered module (see
`RowsBackend`), which is imported when the first of them is met.  NumPy and scikit-learn would turn
a dask array into a NumPy array without a word, so that whatever takes rows asks or refuses.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from inspect import signature
from numbers import Number
from typing import Any, Protocol, TypeVar, cast

import numpy as np
import scipy.sparse
from sklearn.utils import assert_all_finite
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from marginfold.errors import InvalidInputError, InvalidParameterError, MarginfoldWarning, warn
from marginfold.linalg.tall import Array, row_blocks
from marginfold.validation import SERVED_BY
from marginfold.validation.parameters import shown

WEIGHT_RANGE = (1e-100, 1e100)
"""Positive weights outside this range would under- or overflow in products."""


def check_weights(sample_weight: Any, n_rows: int) -> Array:
    """Return the weights as an array of n_rows numbers; None means ones, a number means equal."""
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        given = np.asarray(sample_weight)
        if given.dtype.kind == "c":  # NumPy would drop the imaginary parts
            raise TypeError(f"they are complex: {shown(sample_weight)}")
        weights = given.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"sample_weight must be numbers ({error}).") from error
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise InvalidInputError(
            f"sample_weight has shape {weights.shape} for {n_rows} rows; give one weight per row."
        )
    if not np.isfinite(weights).all():
        what = "NaN" if np.isnan(weights).any() else "infinity"
        raise InvalidInputError(f"sample_weight contains {what}; every weight must be finite.")
    if (weights < 0).any():
        raise InvalidInputError(
            f"sample_weight must not be negative; the smallest is {weights.min():g}."
        )
    positive = weights[weights > 0]
    if not len(positive):
        raise InvalidInputError("All sample weights are zero; at least two rows must count.")
    low, high = WEIGHT_RANGE
    if positive.min() < low or positive.max() > high:
        raise InvalidInputError(
            f"sample_weight must lie between {low:g} and {high:g} (or be 0); it ranges from "
            f"{positive.min():g} to {positive.max():g}. Multiply all weights by a constant."
        )
    return weights


UNLABELLED = -1
"""The code of a row without a label."""


def is_unlabelled(y: Array, unlabeled: Any) -> Array:
    """Return which labels equal the marker.

    Text and numbers are compared by what they say: the marker -1 is found in ``["a", "-1"]`` and
    the marker "-1" in ``[0, -1]``.  The marker NaN finds every missing value.
    """
    if unlabeled is None:
        return np.zeros(len(y), dtype=bool)
    if np.ndim(unlabeled) != 0:
        raise InvalidParameterError(
            f"unlabeled must be one label that marks rows without a class; got {unlabeled!r}."
        )
    if y.dtype.kind in "iufb" and not isinstance(unlabeled, str):
        return np.asarray(y != y if is_missing(unlabeled) else y == unlabeled)
    known: dict[Any, bool] = {}
    return np.fromiter(
        (known.setdefault(label, _says(label, unlabeled)) for label in y.tolist()),
        dtype=bool,
        count=len(y),
    )


def is_missing(label: Any) -> bool:
    """Return whether a label is None, NaN or a missing value of pandas."""
    if label is None or np.ndim(label):
        return label is None
    try:
        return bool(label != label)
    except TypeError:  # pandas.NA has no truth value
        return True


def _says(label: Any, marker: Any) -> bool:
    if is_missing(label) or is_missing(marker):
        return is_missing(label) and is_missing(marker)
    if label == marker or str(label) == str(marker):
        return True
    try:
        return float(label) == float(marker)
    except (TypeError, ValueError):
        return False


def encode_labels(y: Array, unlabelled: Array, weights: Array, marker: Any) -> tuple[Array, Array]:
    """Return (classes, codes); unlabelled rows and rows with weight 0 get the code -1."""
    counted = weights > 0
    labelled = counted & ~unlabelled
    everyone = bool(labelled.all())
    if not everyone and not labelled.any():
        raise InvalidInputError(
            f"All {np.count_nonzero(counted)} rows are unlabelled (y is {marker!r}); at least two "
            "classes need a labelled row."
        )
    known = y if everyone else y[labelled]
    classes, known_codes = unique_labels(known)
    if known.dtype.kind not in "iub" or 2 * len(classes) > len(known):
        with taken_as_classes():
            check_classification_targets(known)  # few whole numbers are classes
    if known.dtype.kind == "f" and is_quantity(np.bincount(known_codes)):
        warn(
            f"y has {len(classes)} different numbers in {len(known)} rows: a quantity rather than "
            "classes. Each number is taken as a class of its own; for a regression use another "
            "method, to get classes group the numbers into a few (numpy.digitize), and if they "
            "are the numbers of classes give integers: y.astype(int).",
            MarginfoldWarning,
        )
    if len(classes) < 2:
        hint = ""
        if (counted & unlabelled).any():
            hint = (
                f" Rows with the label {marker!r} count as unlabelled: if that is a class, pass "
                "unlabeled=None or another marker."
            )
        raise InvalidInputError(
            f"The data has 1 class, {classes.tolist()[0]!r}; at least 2 classes are needed.{hint}"
        )
    if everyone:
        return classes, known_codes
    codes = np.full(len(y), UNLABELLED)
    codes[labelled] = known_codes
    return classes, codes


def warn_if_class(estimator: Any, y: Array, unlabelled: Array, marker: Any) -> None:
    """Warn if rows were taken as unlabelled that look like a class, by a marker nobody asked for.

    That is the marker -1 of an estimator that has it by default, in labels below and above 0 such
    as -1, 0 and 1, unless these rows outnumber all others as unlabelled ones do.
    """
    default = signature(type(estimator)).parameters.get("unlabeled")
    count = np.count_nonzero(unlabelled)
    if not count or y.dtype.kind not in "if" or not isinstance(marker, int):
        return
    if default is None or marker != default.default:
        return
    others = np.unique(y[~unlabelled])
    signed = bool(len(others)) and (others[0] < marker or others.tolist() == [0, 1])
    if signed and 2 * count <= len(y):
        warn(
            f"{type(estimator).__name__} takes the {count} of {len(y)} rows with the label "
            f"{marker!r} as unlabelled, beside the classes {shown(others.tolist())}. If {marker!r} "
            "is a class, pass unlabeled=None; if these rows have no label, mark them with NaN and "
            "pass unlabeled=np.nan.",
            MarginfoldWarning,
        )


@contextmanager
def taken_as_classes() -> Iterator[None]:
    """Leave scikit-learn's guess unsaid that many classes are a quantity.

    The labels were looked at before: `is_quantity` knows more than their number.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        yield


MANY_VALUES = 50
"""Distinct numbers above which labels may be a quantity."""

MANY_SHARE = 1 / 3
"""Distinct numbers per row above which many numbers are a quantity."""

SINGLE_SHARE = 0.1
"""Share of the distinct numbers with one row above which many numbers are a quantity: of 53,940
log-normal prices around 2400 a fifth differ and 38 % of these are there once; classes repeat."""


def is_quantity(counts: Array) -> bool:
    """Return whether numbers with so many rows each are measured or counted, and no classes.

    Examples
    --------
    >>> import numpy as np
    >>> is_quantity(np.full(100, 10)), is_quantity(np.full(100, 2))
    (False, True)
    """
    many_differ = len(counts) > MANY_SHARE * counts.sum()
    many_single = np.count_nonzero(counts == 1) > SINGLE_SHARE * len(counts)
    return bool(len(counts) > MANY_VALUES and (many_differ or many_single))


def unique_labels(labels: Array) -> tuple[Array, Array]:
    """Return the sorted classes and the code of each label."""
    if labels.dtype.kind in "iu" and len(labels):
        low, high = int(labels.min()), int(labels.max())
        if high - low < len(labels):  # a table of all whole numbers between saves the sorting
            return _numbered(labels, low, high)
    try:
        classes, codes = np.unique(labels, return_inverse=True)
    except TypeError as error:
        raise InvalidInputError(
            f"The labels have types that cannot be compared ({error}); give labels of one type. "
            "Rows without a label need a marker: unlabeled=np.nan takes None and NaN."
        ) from error
    return classes, codes


def _numbered(labels: Array, low: int, high: int) -> tuple[Array, Array]:
    """Return the sorted classes and codes of whole numbers between two that are not far apart."""
    wide = labels if labels.dtype.itemsize == 8 else labels.astype(np.int64)  # no overflow
    places = (wide - wide.dtype.type(low)).astype(np.intp)
    present = np.flatnonzero(np.bincount(places, minlength=high - low + 1))
    codes = np.zeros(high - low + 1, dtype=np.intp)
    codes[present] = np.arange(len(present))
    classes = present.astype(wide.dtype) + wide.dtype.type(low)
    return classes.astype(labels.dtype), codes[places]


M = TypeVar("M", bound=Callable[..., Any])

LARGEST_ENTRY = 1e150
"""Entries above this have squared distances that overflow."""

LEAST_ROWS = 2
"""Rows that a fit needs."""

ENTRIES: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": np.float64,
    "ensure_all_finite": False,
}
"""How scikit-learn is asked to validate rows; their entries are looked at once, here."""

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
        X = read_entries(estimator, X, reset=True, least=LEAST_ROWS)
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
        X, y = validate_data(estimator, X, y, **ENTRIES, ensure_min_samples=LEAST_ROWS)
        X = tidy(X)
        check_entries(estimator, X)
    weights = check_weights(gathered(sample_weight), X.shape[0])
    unlabelled = is_unlabelled(y, unlabeled) | missing
    warn_if_class(estimator, y, unlabelled, unlabeled)
    classes, codes = encode_labels(y, unlabelled, weights, unlabeled)
    return LabelledInput(X, weights, classes, codes)


def read_new_rows(estimator: Any, X: Any, instead: str = SOME_ROWS) -> Any:
    """Validate rows for a fitted estimator; a lazy collection is refused, with advice."""
    check_is_fitted(estimator)
    refuse_lazy(X, estimator, instead)
    return read_entries(estimator, X, reset=False)


def read_entries(estimator: Any, X: Any, *, reset: bool, least: int = 1) -> Any:
    """Return rows, dense or CSR, that are finite and whose squares do not overflow.

    The estimator learns their features or, without ``reset``, knows them; there are at least so
    many rows.
    """
    X = tidy(validate_data(estimator, X, **ENTRIES, ensure_min_samples=least, reset=reset))
    check_entries(estimator, X)
    return X


def tidy(X: Any) -> Any:
    """Return rows that, if sparse, have each entry once and in order, with the shortest indices.

    Entries of one place add up: sums over the squares of what is stored would be wrong.  Functions
    of scikit-learn would put the user's matrix in order, and some take no indices of 64 bits.
    """
    if not scipy.sparse.issparse(X):
        return X
    is_short = max(X.nnz, *X.shape) <= np.iinfo(np.int32).max
    index = np.dtype(np.int32 if is_short else np.int64)
    if X.has_canonical_format and X.indices.dtype == X.indptr.dtype == index:
        return X
    parts = (X.data.copy(), X.indices.astype(index), X.indptr.astype(index))
    X = type(X)(parts, shape=X.shape)
    X.sum_duplicates()
    return X


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


def check_entries(estimator: Any, X: Any) -> None:
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


class RowsBackend(Protocol):
    """What a module offers that fits and applies estimators to rows elsewhere."""

    def read_rows(self, estimator: Any, X: Any, parts: Sequence[Any] = ()) -> Any:
        """Validate rows for a fit.

        ``parts`` are the graphs and the solver of the fit: one that needs all rows at one place is
        refused before a row is read.
        """

    def read_labelled(
        self, estimator: Any, X: Any, y: Any, parts: Sequence[Any] = ()
    ) -> tuple[Any, Any]:
        """Validate rows and labels for a fit."""

    def apply(self, estimator: Any, method: str, X: Any) -> Any:
        """Return what a method of a fitted estimator gives, not yet computed."""


def is_lazy(X: Any) -> bool:
    """Return whether X is a collection of a registered package; nothing is imported for that."""
    return _package(X) in SERVED_BY


def backend_of(X: Any) -> RowsBackend | None:
    """Return who reads rows of this type, None for rows in the memory of this process."""
    module = SERVED_BY.get(_package(X))
    return None if module is None else cast(RowsBackend, import_module(module))


def gathered(values: Any) -> Any:
    """Return labels or weights, one number per row, in the memory of this process."""
    return values.compute() if is_lazy(values) else values


def refuse_lazy(X: Any, owner: object, instead: str) -> None:
    """Refuse a lazy collection where rows must be in one place."""
    if is_lazy(X):
        name = owner if isinstance(owner, str) else type(owner).__name__
        raise InvalidInputError(
            f"{name} got a {_package(X).split('_')[0]} {type(X).__name__}; it needs all rows in "
            f"the memory of this process. Give it X.compute() if they fit, or {instead}."
        )


def _package(X: Any) -> str:
    return type(X).__module__.split(".")[0]
