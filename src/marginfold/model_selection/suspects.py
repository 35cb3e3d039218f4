"""Rows whose label is contradicted by fits that have not seen them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from marginfold.linalg.tall import Array
from marginfold.model_selection.neighbors_classifier import NeighborsClassifier
from marginfold.runtime.progress import report

VOTERS = 15
"""Neighbors that vote on a row: enough to tell a clear majority from a chance one."""


@dataclass(frozen=True, eq=False)
class Suspects:
    """Rows that speak against their label, the clearest first.

    Attributes
    ----------
    rows : array of int
    suggested : array
        The class that most neighbors have.
    margins : array
        Share of votes for that class, less the share for the row's own.
    """

    rows: Array
    suggested: Array
    margins: Array


def suspect_rows(
    transformer: Any,
    X: Array,
    y: Array,
    splits: Sequence[tuple[Array, Array]],
    n_neighbors: int = VOTERS,
) -> Suspects:
    """Fit a map without some rows, place them, and let their neighbors vote on their class.

    A row is judged by fits alone that have seen neither it nor its label.

    Parameters
    ----------
    transformer : estimator
        Not changed; a clone is fitted in each split.
    X : array of shape (n_samples, n_features)
    y : array of shape (n_samples,)
    splits : sequence of pairs
        Training and held-out rows; a row that is held out in none is never a suspect.
    n_neighbors : int, default=15

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from marginfold import LDA
    >>> from marginfold.model_selection.suspects import suspect_rows
    >>> from marginfold.protocols.splits import folds
    >>> X, y = load_iris(return_X_y=True)
    >>> y[7] = 2  # a setosa that somebody calls virginica
    >>> suspects = suspect_rows(LDA(2), X, y, folds(y, 5, seed=0))
    >>> int(suspects.rows[0]), int(suspects.suggested[0])
    (7, 0)
    """
    classes, codes = np.unique(y, return_inverse=True)
    votes = np.full((len(y), len(classes)), np.nan)
    for done, (train, test) in enumerate(splits):
        report("folds", done, len(splits))
        fitted = clone(transformer).fit(X[train], y[train])
        judge = NeighborsClassifier(n_neighbors).fit(fitted.transform(X[train]), y[train])
        votes[test] = 0.0
        known = np.searchsorted(classes, judge.classes_)
        votes[np.ix_(test, known)] = judge.predict_proba(fitted.transform(X[test]))
    report("folds", len(splits), len(splits))
    best = np.where(np.isnan(votes), -1.0, votes).argmax(axis=1)
    every = np.arange(len(y))
    margins = np.nan_to_num(votes[every, best] - votes[every, codes])
    rows = np.flatnonzero(margins > 0)
    rows = rows[np.argsort(-margins[rows], kind="stable")]
    return Suspects(rows, classes[best[rows]], margins[rows])
