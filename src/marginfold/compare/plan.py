"""What a comparison may cost: how many rows are taken, and which methods come first.

Nothing here looks at a clock.  The plan follows from the size of the table, the methods and the
budget, so that the same command gives the same answer on a slow machine and on a fast one.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from itertools import accumulate

from marginfold.compare.methods import LARGEST_CLASS, METHODS, Compared, method_named
from marginfold.compare.table import MOST_COMPONENTS, Size

BUDGET = 60.0
"""Seconds that a comparison is planned for if nothing else is said."""

CORES = 2.0
"""Cores that the plan counts on; the number of processes does not change the answer."""

PLANNED_FOLDS = 5.0
"""Folds of all methods that a race of ten folds comes to: three of all, the rest of a third."""

SLOW_ROWS = 1_000
"""Rows above which methods whose time grows with the square are left out: at 1000 a fold of NCA
with its choices takes about as long as one of all other methods."""

MANY_CLASSES = 100
"""Classes above which methods of pairs of classes are left out: at 100 a fold of all of them takes
about 50 s, however few the rows."""

FEWEST_ROWS = 500
"""A sample is never smaller than this, whatever the budget."""

FOR_THE_LEAST = 0.75
"""Share of the budget that methods may take on the fewest rows, or the dearest of them go."""

SPENT = 0.75
"""Share of a budget that is planned for the folds; starting, waiting and the end take the rest."""

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
    return _row_seconds(method, n_rows, n_columns, n_classes) + _pair_seconds(method, n_classes)


def planned_seconds(budget: float) -> float:
    """Return the CPU time that the folds of all methods may take within a budget in seconds."""
    return SPENT * CORES * budget


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
    per_row = sum(_row_seconds(method, ROWS, n_columns, n_classes) for method in methods)
    pairs = sum(_pair_seconds(method, n_classes) for method in methods)
    share = max(budget * CORES / PLANNED_FOLDS - pairs, 0.0) / per_row
    affordable = ROWS * (share ** (1 / BY_ROWS) if share > 1 else share)
    return min(n_rows, max(FEWEST_ROWS, _rounded(int(affordable))))


def without_the_dearest(
    methods: Sequence[str], n_rows: int, n_columns: int, n_classes: int, budget: float
) -> tuple[list[str], dict[str, str]]:
    """Return the methods that a budget can pay for, and why the dearest are left out.

    Fewer rows make a comparison cheaper, fewer classes are not to be had: where many classes, or
    very many columns, take more than `FOR_THE_LEAST` of the budget on `FEWEST_ROWS` rows, the
    dearest methods go.

    Examples
    --------
    >>> from marginfold.compare.plan import without_the_dearest
    >>> kept, left_out = without_the_dearest(["LDA", "GESVC"], 750, 8, 90, budget=60.0)
    >>> kept, list(left_out)
    (['LDA'], ['GESVC'])
    """
    least = min(n_rows, FEWEST_ROWS)
    seconds = {m: fold_seconds(m, least, n_columns, n_classes) for m in methods}
    limit = budget * CORES * FOR_THE_LEAST / PLANNED_FOLDS
    by_price = sorted(methods, key=seconds.__getitem__)
    n_paid = sum(total <= limit for total in accumulate(map(seconds.__getitem__, by_price)))
    paid = set(by_price[: max(n_paid, 1)])
    reasons = {
        m: f"about {seconds[m]:.0f} s a fold with {n_classes} classes, more than the budget of "
        f"{budget:g} s allows (--budget, --thorough or --methods has it measured)"
        for m in methods
        if m not in paid
    }
    return [m for m in methods if m in paid], reasons


def _row_seconds(method: str, n_rows: int, n_columns: int, n_classes: int) -> float:
    ratio = n_rows / ROWS
    by_rows = ratio**BY_ROWS if ratio > 1 else ratio
    by_classes = (n_classes / CLASSES) ** BY_CLASSES
    by_components = (1 + min(n_columns, MOST_COMPONENTS) / MOST_COMPONENTS) / 2
    by_columns = (1 + n_columns / WIDE) / (1 + COLUMNS / WIDE)
    return METHODS[method].seconds * by_rows * by_classes * by_components * by_columns


def _pair_seconds(method: str, n_classes: int) -> float:
    return METHODS[method].pair_seconds * n_classes * (n_classes - 1) / 2


def _rounded(number: int) -> int:
    """Return a number of two digits and zeros, so that a report reads well."""
    unit = 10 ** max(len(str(number)) - 2, 0)
    return number // unit * unit


def suitable(size: Size, wanted: Sequence[str] | None = None) -> tuple[list[str], dict[str, str]]:
    """Return the methods to run, and those left out with the reason.

    Parameters
    ----------
    size : Size
    wanted : sequence of str, optional
        Names in any spelling; all suitable ones by default. The largest class is always there.
    """
    if wanted:
        named = {method_named(name) for name in [*wanted, LARGEST_CLASS]}
        names = [name for name in METHODS if name in named]
    else:
        names = [name for name, m in METHODS.items() if m.by_default and not _lacks(m)]
    reasons = {name: _lacks(METHODS[name]) or _too_slow(METHODS[name], size) for name in names}
    left_out = {name: reason for name, reason in reasons.items() if reason}
    return [name for name in names if name not in left_out], left_out


def _lacks(method: Compared) -> str:
    """Return which package a method lacks, or nothing."""
    if not method.needs or find_spec(method.needs) is not None:
        return ""
    return f"needs the package {method.needs}, which is not installed"


def _too_slow(method: Compared, size: Size) -> str:
    """Return why a method would take too long, or nothing."""
    if method.slow and size.n_rows > SLOW_ROWS:
        return f"more than {SLOW_ROWS} rows ({size.n_rows}): its time grows with the square"
    if method.pair_seconds and size.n_classes > MANY_CLASSES:
        return f"more than {MANY_CLASSES} classes ({size.n_classes}): it solves each pair of them"
    return ""
