"""Errors of simple classifiers on the leading components, all numbers of components at once."""

from __future__ import annotations

import re

import numpy as np

from marginfold.errors import InvalidParameterError
from marginfold.linalg.tall import Array
from marginfold.model_selection.nested_knn import nested_votes


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
    >>> from marginfold.protocols.knn_errors import errors_by_dimension
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
    votes = nested_votes(train, codes, test, n_neighbors)
    return np.asarray((classes[votes.codes] != test_labels).mean(axis=1))


def neighbors_of(head: str) -> int:
    """Return k of the head "k-nn"."""
    match = re.fullmatch(r"([1-9]\d*)-nn", head)
    if match is None:
        raise InvalidParameterError(
            f"A head is 'centroid' or a number of neighbors such as '1-nn'; got {head!r}."
        )
    return int(match[1])
