"""The methods of a comparison as rows of a table."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from marginfold.compare.measures import AUC, BALANCED, LOG_LOSS
from marginfold.compare.methods import METHODS
from marginfold.compare.race import LEAST_FOLDS, Standing, behind, counted_records, difference
from marginfold.compare.runs import Comparison
from marginfold.protocols.cells import PERCENT
from marginfold.protocols.records import RecordStore, as_json
from marginfold.protocols.statistics import CONFIDENCE, Interval

ALONE = "a control, and no method to judge by it"
"""Why a control has no row when all methods failed."""

CHANCE = 0.5
"""The area under the curve of scores that know nothing."""

UNLIKELY = 1 - CONFIDENCE
"""A p-value below this is no chance."""


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
    balanced_accuracy, auc, log_loss : float or None
        Means over the same folds, the first in percent; None where the method gives no such score.
    chosen : mapping
        The parameters that it chose in most folds, the number of components apart.
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
    balanced_accuracy: float | None = None
    auc: float | None = None
    log_loss: float | None = None
    chosen: Mapping[str, Any] = field(default_factory=dict)


def mean_scores(comparison: Comparison, store: RecordStore) -> Mapping[str, dict[str, float]]:
    """Return the means of the further scores of every method, by metric."""
    values: dict[str, dict[str, list[float]]] = {m: defaultdict(list) for m in comparison.methods}
    for r in counted_records(comparison, store, metric=[BALANCED, AUC, LOG_LOSS]):
        if r.value is not None:
            values[r.method][r.metric].append(r.value)
    return {
        method: {metric: float(np.mean(found)) for metric, found in scores.items()}
        for method, scores in values.items()
    }


def best_ordered(comparison: Comparison, store: RecordStore) -> tuple[str, Interval] | None:
    """Return the method whose area under the curve is most surely above chance, and the area.

    It is in percent.  There is none if chance explains the area of each method, where that many
    were tried (Bonferroni).
    """
    areas = {m: np.full(comparison.n_measurements, np.nan) for m in comparison.methods}
    for r in counted_records(comparison, store, metric=[AUC]):
        if r.value is not None:
            areas[r.method][r.seed * comparison.n_folds + r.fold] = r.value
    tried = {m: area for m, area in areas.items() if not METHODS[m].control}
    above = {
        m: difference(area, np.full(len(area), CHANCE), comparison) for m, area in tried.items()
    }
    sure = [m for m, gap in above.items() if gap.low > 0 and gap.p_value * len(above) < UNLIKELY]
    if not sure:
        return None
    method = max(sure, key=lambda m: above[m].low)
    gap, chance = above[method], PERCENT * CHANCE
    ends = (gap.mean + chance, gap.low + chance, min(gap.high + chance, PERCENT))
    return method, Interval(*ends, gap.p_value)


def make_row(
    method: str,
    known: Mapping[str, Standing],
    best: str,
    comparison: Comparison,
    scores: Mapping[str, float],
) -> Row:
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
        balanced_accuracy=PERCENT * scores[BALANCED] if BALANCED in scores else None,
        auc=scores.get(AUC),
        log_loss=scores.get(LOG_LOSS),
        chosen=_most_chosen(standing),
    )


def _most_chosen(standing: Standing) -> Mapping[str, Any]:
    """Return the parameters of most folds; of several, those of the first fold among them."""
    counts = Counter(as_json(record.params) for record in standing.records)
    text = max(counts, key=counts.__getitem__)
    return next(r.params for r in standing.records if as_json(r.params) == text)


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
