"""Folds: stratified and seeded, those that keep groups together, the inverted ones of paper 001."""

from __future__ import annotations

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.model_selection import StratifiedGroupKFold, StratifiedKFold

from marginfold.errors import InvalidInputError
from marginfold.linalg.tall import Array


def folds(
    y: Array,
    n_folds: int,
    seed: int,
    *,
    inverted: bool = False,
    groups: Array | None = None,
) -> list[tuple[Array, Array]]:
    """Return the training and test rows of stratified, shuffled folds.

    Parameters
    ----------
    y : array of labels
    n_folds : int
        A class with fewer rows than folds is absent from some test parts.
    seed : int
    inverted : bool, default=False
        Train on one fold and test on all others (001 section 3).
    groups : array, optional
        Rows of the same group are never on both sides.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.protocols.splits import folds
    >>> y = np.repeat([0, 1], 6)
    >>> [(len(train), len(test)) for train, test in folds(y, 3, seed=0)]
    [(8, 4), (8, 4), (8, 4)]
    >>> [(len(train), len(test)) for train, test in folds(y, 3, seed=0, inverted=True)]
    [(4, 8), (4, 8), (4, 8)]
    """
    n_largest = int(np.unique(y, return_counts=True)[1].max())
    if n_largest < n_folds:
        raise InvalidInputError(
            f"{n_folds} folds need a class with at least {n_folds} rows; the largest has "
            f"{n_largest}. Use fewer folds."
        )
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    splitter = kind(n_folds, shuffle=True, random_state=seed)
    with warnings.catch_warnings():  # of small classes: the papers' sets have them
        warnings.filterwarnings("ignore", message="The least populated class", category=UserWarning)
        pairs = list(splitter.split(np.zeros(len(y)), y, groups))
    return [(test, train) for train, test in pairs] if inverted else pairs


def hold_out(y: Array, share: float, seed: int) -> Array:
    """Return which rows are held out: a share of each class, drawn by the seed.

    Every class keeps a row to be learnt from, and of two rows or more it has one held out.

    Parameters
    ----------
    y : array of labels
    share : float
        Between 0 and 1.
    seed : int

    Returns
    -------
    array of bool

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.protocols.splits import hold_out
    >>> y = np.repeat([0, 1, 2], [10, 2, 1])
    >>> held_out = hold_out(y, 0.3, seed=0)
    >>> np.bincount(y[held_out], minlength=3).tolist()
    [3, 1, 0]
    """
    codes = np.unique(y, return_inverse=True)[1]
    rng = np.random.default_rng(seed)
    held_out = np.zeros(len(codes), dtype=bool)
    for code, count in enumerate(np.bincount(codes).tolist()):
        drawn = rng.permutation(np.flatnonzero(codes == code))
        wanted = max(round(share * count), min(1, count - 1))
        held_out[drawn[: min(wanted, count - 1)]] = True
    return held_out


class Fold(NamedTuple):
    """Training rows and labels, test rows and labels."""

    X: Array
    y: Array
    X_test: Array
    y_test: Array

    def inner(self, n_folds: int, seed: int) -> list[Fold]:
        """Return folds of the training rows, to choose parameters by."""
        X, y = self.X, self.y
        return [Fold(X[a], y[a], X[b], y[b]) for a, b in folds(y, n_folds, seed)]
