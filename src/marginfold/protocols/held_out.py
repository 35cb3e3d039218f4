"""Scores on held-out rows: classifiers by their predictions, embeddings by nearest neighbors."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.metrics import get_scorer
from sklearn.utils import get_tags

from marginfold.errors import InvalidInputError, InvalidParameterError
from marginfold.linalg.tall import Array, dense
from marginfold.model_selection.nested_knn import nested_votes
from marginfold.model_selection.rows import take
from marginfold.validation.parameters import shown
from marginfold.validation.rows import is_unlabelled, refuse_lazy, unique_labels

HEAD = "1-nn"
"""The head that scores a transformer if nothing else is said."""

CENTROID = "centroid"
"""The head that takes the nearest class mean."""

Scoring = str | Callable[..., float] | None


@dataclass(frozen=True, eq=False)
class Split:
    """Rows to fit on with the labels that may be seen, and labelled rows to score on.

    Attributes
    ----------
    train, test : arrays of row numbers
    labels : array of shape (len(train),)
    labelled : array of shape (len(train),)
        Which of the labels are one.
    """

    train: Array
    labels: Array
    labelled: Array
    test: Array


def held_out_score(
    estimator: Any, X: Any, y: Array, split: Split, scoring: Scoring = None, marker: Any = None
) -> float:
    """Fit a clone on the training rows of a split and return its score on the test rows.

    Parameters
    ----------
    estimator : classifier or transformer
        Not fitted; left as it is.
    X : array, sparse matrix or data frame
        For a precomputed kernel, the square matrix.
    y : array of shape (n,)
        Labels; those of the test rows are looked at for the score only.
    split : Split
    scoring : str, callable or None, default=None
        For a transformer a head such as "1-nn", "5-nn" or "centroid", which sees the labelled
        training rows; for a classifier a scorer of scikit-learn. None is "1-nn" or accuracy.
    marker : object, default=None
        The label of unlabelled rows: no classifier may take it for a class.

    Returns
    -------
    float
        Larger is better.
    """
    pairwise = get_tags(estimator).input_tags.pairwise
    train = take(X, split.train, split.train if pairwise else None)
    test = take(X, split.test, split.train if pairwise else None)
    fitted = clone(estimator).fit(train, split.labels)
    if is_classifier(estimator):
        _check_classes(fitted, marker)
        if scoring is None:
            return float(np.mean(np.asarray(fitted.predict(test)) == y[split.test]))
        return float(get_scorer(scoring)(fitted, test, y[split.test]))
    known = split.labelled
    head = HEAD if scoring is None else str(scoring)
    rows, new = dense(fitted.transform(train))[known], dense(fitted.transform(test))
    errors = errors_by_dimension(
        [head], rows, split.labels[known], new, y[split.test], [rows.shape[1]]
    )
    return float(1.0 - errors[head][-1])


def check_scored(estimator: Any) -> None:
    """Refuse what neither classifies nor transforms."""
    if not is_classifier(estimator) and not hasattr(estimator, "transform"):
        raise InvalidParameterError(
            f"got {shown(estimator)}; it needs a classifier, or a transformer that embeds new rows "
            "by transform."
        )


def read_partly_labelled(X: Any, y: Any, unlabeled: Any) -> tuple[Array, Array]:
    """Return the labels as an array and which rows have one; every class needs two of them."""
    refuse_lazy(X, "A protocol", "a sample of the rows")
    labels = np.asarray(y)
    n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
    if labels.shape != (n_rows,):
        raise InvalidInputError(
            f"got y of shape {labels.shape} for {n_rows} rows of X; it needs one label for each."
        )
    labelled = ~is_unlabelled(labels, unlabeled)
    classes, codes = unique_labels(labels[labelled])
    counts = np.bincount(codes, minlength=1)
    if len(classes) < 2:
        hint = "" if labelled.all() else " If the marker is a class, choose another one."
        raise InvalidInputError(
            f"got {len(classes)} classes among the {np.count_nonzero(labelled)} labelled rows "
            f"(unlabeled={unlabeled!r}); it needs at least 2.{hint}"
        )
    if counts.min() < 2:
        raise InvalidInputError(
            f"the class {classes.tolist()[int(counts.argmin())]!r} has 1 labelled row; it needs at "
            "least 2, one to learn from and one to score on. Drop or merge the class."
        )
    return labels, labelled


def parameters_named(estimator: Any, name: str) -> list[str]:
    """Return the parameters of that name, of the estimator or its steps, outermost ones only.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from marginfold import LSVA
    >>> from marginfold.protocols.held_out import parameters_named
    >>> parameters_named(make_pipeline(StandardScaler(), LSVA()), "graph")
    ['lsva__graph']
    """
    found = [
        parameter
        for parameter in estimator.get_params(deep=True)
        if parameter == name or parameter.endswith(f"__{name}")
    ]
    return sorted(p for p in found if not any(p.startswith(f"{outer}__") for outer in found))


def _check_classes(fitted: Any, marker: Any) -> None:
    classes = np.asarray(getattr(fitted, "classes_", []))
    if marker is not None and len(classes) and is_unlabelled(classes, marker).any():
        raise InvalidInputError(
            f"{type(fitted).__name__} took the marker {marker!r} for a class; every step that "
            "reads labels needs a parameter unlabeled. Put a method that has one at the end."
        )


def errors_by_dimension(
    heads: Sequence[str],
    train: Array,
    train_labels: Array,
    test: Array,
    test_labels: Array,
    dimensions: Sequence[int] | None = None,
) -> dict[str, Array]:
    """Return the errors on the test rows with the first 1, 2, ... columns, for each head.

    Parameters
    ----------
    heads : sequence of str
        "1-nn", "5-nn", ... (majority of the nearest training rows; of equal votes the class that
        comes first when sorted) or "centroid" (nearest class mean).
    train, test : arrays of shape (n, k)
    train_labels, test_labels : arrays of labels
    dimensions : sequence of int, optional
        Numbers of leading columns; by default 1, 2, ..., k.

    Returns
    -------
    dict of str to array of shape (n_dimensions,)
        Shares of wrong test rows, by head.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.protocols.held_out import errors_by_dimension
    >>> train, labels = np.array([[0.0, 0.0], [0.0, 4.0]]), np.array(["a", "b"])
    >>> errors_by_dimension(["1-nn"], train, labels, np.array([[0.1, 3.0]]), np.array(["b"]))
    {'1-nn': array([1., 0.])}
    """
    classes, codes = np.unique(train_labels, return_inverse=True)
    counts = {h: min(neighbors_of(h), len(train)) for h in heads if h != CENTROID}
    votes = nested_votes(train, codes, test, list(counts.values()), dimensions) if counts else []
    found = dict(zip(counts, votes, strict=True))
    if CENTROID in heads:
        means = np.stack([train[codes == code].mean(axis=0) for code in range(len(classes))])
        (found[CENTROID],) = nested_votes(means, np.arange(len(classes)), test, [1], dimensions)
    return {
        head: np.asarray((classes[found[head].codes] != test_labels).mean(axis=1)) for head in heads
    }


def neighbors_of(head: str) -> int:
    """Return k of the head "k-nn"."""
    match = re.fullmatch(r"([1-9]\d*)-nn", head)
    if match is None:
        raise InvalidParameterError(
            "A transformer is scored by 'centroid' or a number of neighbors such as '1-nn'; got "
            f"{head!r}."
        )
    return int(match[1])
