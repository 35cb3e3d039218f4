"""What a comparison says: a table, a recommendation with its uncertainty, and pictures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marginfold.protocols.choices import PERCENT, Evidence, best_by_seed
from marginfold.protocols.comparison_methods import METHODS
from marginfold.protocols.comparison_runs import PICTURES, STUDY, Comparison
from marginfold.protocols.records import Record, RecordStore
from marginfold.protocols.results import Figure, Panel, Series
from marginfold.protocols.statistics import Interval, paired_interval
from marginfold.rows import Array

CONTROL = ("LSVA", "LSVA, graph permuted")
"""The pair that tells whether the neighborhoods matter."""

CURVE_METHODS = ("all features", "PCA", "LDA", "MMDA", "LSVA", "WSVDA", "KDA", "KLSVA")
"""Lines of the error by dimension."""


@dataclass(frozen=True)
class Row:
    """One method of the comparison.

    Attributes
    ----------
    method, words : str
    error, spread : float or None
        Mean over all folds and standard deviation over repeats of the means over folds (over
        folds, if there is one repeat), in percent.
    dimension : float or None
        Median of the chosen dimensions.
    seconds : float or None
        Mean CPU time of one fold with all its choices.
    behind : Interval or None
        Error minus that of the best method, in points; None for the best itself.
    reason : str
        Why there is no error.
    """

    method: str
    words: str
    error: float | None = None
    spread: float | None = None
    dimension: float | None = None
    seconds: float | None = None
    behind: Interval | None = None
    reason: str = ""


@dataclass(frozen=True)
class Verdict:
    """What came out, in rows and in words."""

    rows: Sequence[Row]
    best: str
    as_good: Sequence[str]
    sentences: Sequence[str]


def conclude(comparison: Comparison, store: RecordStore) -> Verdict:
    """Return the methods by error, the best, and all that cannot be told from it."""
    evidence = Evidence(store, comparison.tasks())
    records = {
        method: evidence.records(method=method, protocol=comparison.protocol)
        for method in comparison.methods
    }
    shares = {method: _shares(rows, comparison) for method, rows in records.items()}
    complete = {method: share for method, share in shares.items() if not np.isnan(share).any()}
    if not complete:
        reasons = {r.reason for rows in records.values() for r in rows if r.reason}
        return Verdict(
            [Row(m, METHODS[m].words, reason=_reason(records[m])) for m in records],
            "",
            (),
            [f"No method could be measured on all folds: {'; '.join(sorted(reasons))}."],
        )
    best = min(complete, key=lambda method: complete[method].mean())
    rows = [_row(m, records[m], shares[m], complete[best], m == best, comparison) for m in records]
    rows.sort(key=lambda row: (row.error is None, row.error or 0.0))
    rows += [Row(m, METHODS[m].words, reason=why) for m, why in comparison.left_out.items()]
    as_good = [r.method for r in rows if r.behind is not None and r.behind.low <= 0]
    return Verdict(rows, best, as_good, _sentences(best, as_good, rows, complete, comparison))


def _shares(records: Sequence[Record], comparison: Comparison) -> Array:
    """Return errors, one row a repeat and one column a fold; NaN where there is none."""
    found = np.full((comparison.n_repeats, comparison.n_folds), np.nan)
    if comparison.protocol == "paper":
        chosen = {v.seed: v for v in best_by_seed([r for r in records if r.metric == "error"])}
        records = [
            r
            for r in records
            if (v := chosen.get(r.seed))
            and tuple(sorted(r.params.items())) == v.params
            and r.dimension == v.dimension
        ]
    for r in records:
        if r.metric == "error" and r.value is not None:
            found[r.seed, r.fold] = r.value
    return found


def _row(
    method: str,
    records: Sequence[Record],
    shares: Array,
    best: Array,
    is_best: bool,
    comparison: Comparison,
) -> Row:
    words = METHODS[method].words
    if np.isnan(shares).any():
        return Row(method, words, reason=_reason(records))
    percent = PERCENT * shares
    by_repeat = percent.mean(axis=1) if len(percent) > 1 else percent[0]
    dimensions = [r.dimension for r in records if r.metric == "error" and r.dimension is not None]
    seconds = {r.task: r.seconds for r in records}
    behind = None if is_best else _interval(percent - PERCENT * best, comparison)
    return Row(
        method,
        words,
        float(percent.mean()),
        float(by_repeat.std(ddof=1)),
        float(np.median(dimensions)) if dimensions and comparison.protocol == "nested" else None,
        float(np.mean(list(seconds.values()))),
        behind,
    )


def _interval(differences: Array, comparison: Comparison) -> Interval:
    n = len(comparison.source.read().labels)
    n_test = n // comparison.n_folds
    return paired_interval(differences, n_train=n - n_test, n_test=n_test)


def _reason(records: Sequence[Record]) -> str:
    reasons = sorted({r.reason for r in records if r.reason})
    return reasons[0] if reasons else "not measured on all folds"


def _sentences(
    best: str,
    as_good: Sequence[str],
    rows: Sequence[Row],
    complete: dict[str, Array],
    comparison: Comparison,
) -> list[str]:
    row = next(r for r in rows if r.method == best)
    n_runs = comparison.n_repeats * comparison.n_folds
    said = [
        f"Least error: {best} ({row.words}), {row.error:.1f} % (standard deviation "
        f"{row.spread:.1f} points, {n_runs} fits)."
    ]
    if as_good:
        others = ", ".join(as_good)
        simplest = min([best, *as_good], key=list(METHODS).index)
        said.append(f"Not told apart from it (95 % interval of the difference): {others}.")
        if simplest != best:
            said.append(f"The plainest of these is {simplest}: start there.")
    else:
        said.append("Every other method is worse (95 % interval of the difference).")
    said += _about_the_graph(complete, comparison)
    if comparison.protocol == "paper":
        said.append(
            "Parameters were chosen on the test rows, as the papers do: these errors are too low. "
            "Use --protocol nested for an honest answer."
        )
    elif len(complete) > 1:
        said.append("The best of many is flattered a little: expect slightly more on new rows.")
    return said


def _about_the_graph(complete: dict[str, Array], comparison: Comparison) -> list[str]:
    if not set(CONTROL) <= complete.keys():
        return []
    gap = _interval(PERCENT * (complete[CONTROL[0]] - complete[CONTROL[1]]), comparison)
    numbers = f"{gap.mean:+.1f} points, 95 % interval {gap.low:+.1f} to {gap.high:+.1f}"
    if gap.high < 0:
        return [f"The neighbor graph helps LSVA: error minus that with a permuted graph {numbers}."]
    if gap.low > 0:
        return [f"The neighbor graph hurts LSVA: error minus that with a permuted graph {numbers}."]
    return [
        "No evidence that the neighborhoods matter: LSVA's error minus that with the graph on "
        f"permuted rows is {numbers}."
    ]


def pictures(comparison: Comparison, store: RecordStore) -> list[Figure]:
    """Return the error by dimension and the two-dimensional maps, as far as there are records."""
    evidence = Evidence(store, comparison.tasks())
    made = [_curves(comparison, evidence), _maps(comparison, evidence)]
    return [figure for figure in made if figure.panels and figure.panels[0].series]


def _curves(comparison: Comparison, evidence: Evidence) -> Figure:
    series = []
    for method in CURVE_METHODS:
        values: dict[int, list[float]] = defaultdict(list)
        for r in evidence.records(method=method, metric="error by dimension"):
            if r.value is not None and r.dimension is not None:
                values[r.dimension].append(PERCENT * r.value)
        depth = max((len(v) for v in values.values()), default=0)
        x = np.array(sorted(k for k, v in values.items() if len(v) == depth))
        if len(x):
            y = np.array([np.mean(values[k]) for k in x])
            kind = "line" if len(x) > 1 else "points"
            series.append(Series(method, x.astype(float), y, kind=kind))
    panel = Panel("", series, "components", "error %, 1-NN")
    return Figure(
        STUDY,
        "1",
        "Error by dimension",
        "Nearest neighbor on the first components, held-out rows, mean over folds; the graph "
        "weight is the one chosen inside the training rows.",
        [panel],
        n_columns=1,
        source={"study": STUDY, "metric": "error by dimension"},
    )


def _maps(comparison: Comparison, evidence: Evidence) -> Figure:
    panels = []
    for method in PICTURES:
        points: dict[int, dict[int, float]] = defaultdict(dict)
        labels: dict[int, str] = {}
        for r in evidence.records(method=method, protocol="picture", metric="coordinate"):
            points[r.params["row"]][r.dimension or 0] = float(r.value or 0.0)
            labels[r.params["row"]] = r.params["label"]
        series = [
            Series(
                label,
                np.array([points[i][1] for i in points if labels[i] == label]),
                np.array([points[i][2] for i in points if labels[i] == label]),
                kind="points",
            )
            for label in sorted(set(labels.values()))
        ]
        if series:
            panels.append(Panel(method, series, "component 1", "component 2"))
    return Figure(
        STUDY,
        "2",
        "Two dimensions",
        "Rows that were not used to find the map (one fold), untuned parameters.",
        panels,
        n_columns=3,
        source={"study": STUDY, "protocol": "picture"},
    )
