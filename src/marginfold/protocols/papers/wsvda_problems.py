"""The rows of 001 Table 3: two classes each, their folds, and the scaling that explains them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginfold import datasets
from marginfold.protocols.papers.data import rows_and_labels
from marginfold.rows import Array

PER_FEATURE, ONE_FACTOR = "whole", "global"
"""The two readings of "scaled uniformly to [-1, 1]" (errata E18), by their names in `SCALINGS`."""

OTHER = {PER_FEATURE: ONE_FACTOR, ONE_FACTOR: PER_FEATURE}
"""The reading that a row does not have."""


@dataclass(frozen=True)
class Problem:
    """Two classes of a data set.

    Attributes
    ----------
    dataset : str
        Its name in the catalogue.
    sides : pair of tuples of int
        The classes on either side, numbered in sorted order; rows of others are left out.
    n_folds : int
        Of which one is trained on.
    scaling : str
        The reading whose first columns (KNN, NC) come nearest to the printed ones.
    one_unit : bool
        Whether all features have the same range, so that both readings are the same.
    """

    dataset: str
    sides: tuple[tuple[int, ...], tuple[int, ...]]
    n_folds: int
    scaling: str
    one_unit: bool = False


PROBLEMS = {
    "sonar": Problem("sonar", ((0,), (1,)), 10, PER_FEATURE),
    "heart": Problem("heart", ((0,), (1,)), 5, PER_FEATURE),
    "wine 1v2": Problem("wine", ((0,), (1,)), 5, ONE_FACTOR),
    "wine 1v3": Problem("wine", ((0,), (2,)), 7, ONE_FACTOR),
    "wine 2v3": Problem("wine", ((1,), (2,)), 10, ONE_FACTOR),
    "splice": Problem("splice", ((0, 1), (2,)), 10, PER_FEATURE, one_unit=True),
}
"""By the name of the row.  Folds as in the captions of Figures 3 and 4; splice has none printed, \
nor its classes or coding: junctions (EI, IE) against none, the four letters as 1 to 4."""


def rows_of(name: str) -> tuple[Array, Array]:
    """Return the rows of a problem as they are in the data set, and sides 0 and 1.

    Examples
    --------
    >>> from marginfold.protocols.papers.wsvda_problems import rows_of
    >>> X, y = rows_of("wine 2v3")
    >>> X.shape, y.sum()
    ((119, 13), 48)
    """
    problem = PROBLEMS[name]
    X, codes = rows_and_labels(problem.dataset)
    first, second = (np.isin(codes, side) for side in problem.sides)
    kept = first | second
    return np.asarray(X[kept]), np.asarray(second[kept].astype(int))


def size_of(name: str) -> int:
    """Return the number of rows of a problem, from the catalogue.

    Examples
    --------
    >>> from marginfold.protocols.papers.wsvda_problems import size_of
    >>> size_of("wine 1v2")
    130
    """
    problem = PROBLEMS[name]
    counts = list(datasets.catalogue()[problem.dataset].class_counts.values())
    return sum(counts[code] for side in problem.sides for code in side)
