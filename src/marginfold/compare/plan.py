"""What a comparison may cost: how many rows are taken, and which methods come first.

Nothing here looks at a clock.  The plan follows from the size of the table, the methods and the
budget, so that the same command gives the same answer on a slow machine and on a fast one.
"""

from __future__ import annotations

from collections.abc import Sequence

from marginfold.compare.methods import METHODS, MOST_COMPONENTS

BUDGET = 60.0
"""Seconds that a comparison is planned for if nothing else is said."""

CORES = 2.0
"""Cores that the plan counts on; the number of processes does not change the answer."""

PLANNED_FOLDS = 5.0
"""Folds of all methods that a race of ten folds comes to: three of all, the rest of a third."""

FEWEST_ROWS = 500
"""A sample is never smaller than this, whatever the budget."""

ROWS, COLUMNS, CLASSES = 4_500, 13, 5
"""The table on which the seconds of `Compared` were measured."""

BY_ROWS, BY_CLASSES, WIDE = 1.5, 0.3, 40.0
"""How time grows: as this power of the rows above those of that table (below it in proportion), as
this power of the classes (pairs of them come on top), and twice the time for so many columns."""


def fold_seconds(method: str, n_rows: int, n_columns: int, n_classes: int) -> float:
    """Return about how long one fold of a method takes, with all its choices.

    Parameters
    ----------
    method : str
    n_rows : int
        Rows of the table, not of the fold.
    n_columns, n_classes : int

    Examples
    --------
    >>> from marginfold.compare.plan import fold_seconds
    >>> fold_seconds("PCA", 1000, 4, 2) < fold_seconds("KLSVA", 1000, 4, 2)
    True
    """
    ratio = n_rows / ROWS
    by_rows = ratio**BY_ROWS if ratio > 1 else ratio
    by_classes = (n_classes / CLASSES) ** BY_CLASSES
    by_components = (1 + min(n_columns, MOST_COMPONENTS) / MOST_COMPONENTS) / 2
    by_columns = (1 + n_columns / WIDE) / (1 + COLUMNS / WIDE)
    seconds = METHODS[method].seconds * by_rows * by_classes * by_components * by_columns
    return seconds + METHODS[method].pair_seconds * n_classes * (n_classes - 1) / 2


def planned_rows(
    methods: Sequence[str], n_rows: int, n_columns: int, n_classes: int, budget: float
) -> int:
    """Return how many rows these methods can be compared on within a budget in seconds.

    Examples
    --------
    >>> from marginfold.compare.plan import planned_rows
    >>> planned_rows(["LDA"], 150, 4, 3, budget=60.0)
    150
    >>> planned_rows(["LDA", "KLSVA"], 1_000_000, 20, 10, budget=60.0) < 50_000
    True
    """
    reference = sum(fold_seconds(method, ROWS, n_columns, n_classes) for method in methods)
    share = budget * CORES / (PLANNED_FOLDS * reference)
    affordable = ROWS * (share ** (1 / BY_ROWS) if share > 1 else share)
    return min(n_rows, max(FEWEST_ROWS, _rounded(int(affordable))))


def _rounded(number: int) -> int:
    """Return a number of two digits and zeros, so that a report reads well."""
    unit = 10 ** max(len(str(number)) - 2, 0)
    return number // unit * unit
