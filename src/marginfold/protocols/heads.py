"""Errors of simple classifiers on the leading components, all numbers of components at once.

Components are nested, so the squared distances of k components are those of k - 1 plus one column.
"""

from __future__ import annotations

import re

import numpy as np

from marginfold.errors import InvalidParameterError
from marginfold.rows import Array

CHUNK_ENTRIES = 4_000_000
"""Distances held at once."""


def errors_by_dimension(
    head: str, train: Array, train_labels: Array, test: Array, test_labels: Array
) -> Array:
    """Return the error on the test rows with the first 1, 2, ... columns.

    Parameters
    ----------
    head : str
        "1-nn", "5-nn", ... (majority of the nearest training rows; of equal votes the class that
        comes first when sorted) or "centroid" (nearest class mean).
    train, test : arrays of shape (n, k)
    train_labels, test_labels : arrays of labels

    Returns
    -------
    array of shape (k,)
        Shares of wrong test rows.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.protocols.heads import errors_by_dimension
    >>> train, labels = np.array([[0.0, 0.0], [0.0, 4.0]]), np.array(["a", "b"])
    >>> errors_by_dimension("1-nn", train, labels, np.array([[0.1, 3.0]]), np.array(["b"]))
    array([1., 0.])
    """
    classes, codes = np.unique(train_labels, return_inverse=True)
    if head == "centroid":
        train = np.stack([train[codes == code].mean(axis=0) for code in range(len(classes))])
        codes, n_neighbors = np.arange(len(classes)), 1
    else:
        n_neighbors = min(neighbors_of(head), len(train))
    n_columns = train.shape[1]
    wrong = np.zeros(n_columns)
    step = max(1, CHUNK_ENTRIES // max(1, len(train)))
    for start in range(0, len(test), step):
        chunk, wanted = test[start : start + step], test_labels[start : start + step]
        squared = np.zeros((len(chunk), len(train)))
        for k in range(n_columns):
            squared += (chunk[:, k, None] - train[:, k]) ** 2
            votes = _votes(squared, codes, n_neighbors, len(classes))
            wrong[k] += np.count_nonzero(classes[votes] != wanted)
    return np.asarray(wrong / len(test))


def neighbors_of(head: str) -> int:
    """Return k of the head "k-nn"."""
    match = re.fullmatch(r"([1-9]\d*)-nn", head)
    if match is None:
        raise InvalidParameterError(
            f"A head is 'centroid' or a number of neighbors such as '1-nn'; got {head!r}."
        )
    return int(match[1])


def _votes(squared: Array, codes: Array, n_neighbors: int, n_classes: int) -> Array:
    if n_neighbors == 1:
        return np.asarray(codes[squared.argmin(axis=1)])
    nearest = np.argpartition(squared, n_neighbors - 1, axis=1)[:, :n_neighbors]
    counts = np.zeros((len(squared), n_classes), dtype=int)
    np.add.at(counts, (np.arange(len(squared))[:, None], codes[nearest]), 1)
    return np.asarray(counts.argmax(axis=1))
