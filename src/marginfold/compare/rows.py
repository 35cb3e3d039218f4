"""The methods of a comparison as rows of a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from marginfold.compare.methods import METHODS
from marginfold.compare.race import LEAST_FOLDS, Standing, behind, difference
from marginfold.compare.runs import Comparison
from marginfold.protocols.cells import PERCENT
from marginfold.protocols.statistics import Interval

ALONE = "a control, and no method to judge by it"
"""Why a control has no row when all methods failed."""


@dataclass(frozen=True)
class Row:
    """One method of the comparison.

    Attributes
    ----------
    method, words : str
    error, spread : float or None
        Mean and standard deviation over the folds it was measured on, in percent.
    dimension : float or None
        Median of the chosen dimensions.
    seconds : float or None
        Mean CPU time of one fold with all its choices.
    behind : Interval or None
        Error minus that of the best method on the same folds, in points; None for the best itself.
    n_folds : int
        Folds it was measured on.
    reason : str
        Why there is no error.
    interval : Interval or None
        The error with its 95 % interval, in percent; None if there are too few folds.
    """

    method: str
    words: str
    error: float | None = None
    spread: float | None = None
    dimension: float | None = None
    seconds: float | None = None
    behind: Interval | None = None
    n_folds: int = 0
    reason: str = ""
    interval: Interval | None = None


def make_row(method: str, known: Mapping[str, Standing], best: str, comparison: Comparison) -> Row:
    """Return what the records say of a method."""
    standing = known[method]
    if standing.reason or not standing.n_measured:
        return without_error(method, standing)
    percent = PERCENT * standing.shares[~np.isnan(standing.shares)]
    dimensions = [r.dimension for r in standing.records if r.dimension is not None]
    seconds = {r.task: r.seconds for r in standing.records}
    return Row(
        method,
        METHODS[method].words,
        float(percent.mean()),
        float(percent.std(ddof=1)) if len(percent) > 1 else None,
        float(np.median(dimensions)) if dimensions else None,
        float(np.mean(list(seconds.values()))),
        None if method == best else behind(standing, known[best], comparison),
        len(percent),
        interval=error_interval(standing, comparison),
    )


def error_interval(standing: Standing, comparison: Comparison) -> Interval | None:
    """Return the error in percent with the interval that is corrected for the overlap of folds."""
    if standing.n_measured < LEAST_FOLDS:
        return None
    found = difference(standing.shares, np.zeros(len(standing.shares)), comparison)
    return Interval(found.mean, max(found.low, 0.0), found.high, found.p_value)


def without_error(method: str, standing: Standing) -> Row:
    """Return the row of a method that could not be measured, with the reason."""
    lacking = ALONE if standing.n_measured else "not measured on all folds"
    return Row(method, METHODS[method].words, reason=standing.reason or lacking)
