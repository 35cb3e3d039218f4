"""What a comparison says: a table, a recommendation with its uncertainty, and its figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from shlex import quote

import numpy as np

from marginfold.compare.methods import LARGEST_CLASS, METHODS, PERMUTED_GRAPH
from marginfold.compare.runs import PICTURES, STUDY, Comparison
from marginfold.linalg.tall import Array
from marginfold.protocols.cells import PERCENT, Evidence, best_by_seed
from marginfold.protocols.records import Record, RecordStore
from marginfold.protocols.results import Figure, Panel, Series, scatter_series
from marginfold.protocols.statistics import Interval, paired_interval

CONTROL = ("LSVA", PERMUTED_GRAPH)
"""The pair that tells whether the neighborhoods matter."""

ALONE = "a control, and no method to judge by it"
"""Why a control has no row when all methods failed."""

LEAST_FOLDS = 5
"""Fewer differences than this give no interval."""

TOLERANCE = 2.0
"""Points: a plainer method that is worse by no more than this will do."""

SHOWN = 5
"""Methods that a sentence names; the table has all."""

DIGITS = 9
"""Digits by which errors differ; less is rounding, and the plainer method comes first."""

WHOLE = "all features"
"""The method without dimensions: a level in the error by dimension."""

CURVE_METHODS = ("PCA", "LDA", "MMDA", "LSVA", "WSVDA", "KDA", "KLSVA")
"""Lines of the error by dimension."""


@dataclass(frozen=True)
class Row:
    """One method of the comparison.

    Attributes
    ----------
    method, words : str
    error, spread : float or None
        Mean and standard deviation over all folds of all repeats, in percent.
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
    """The conclusion: rows by error, sentences, and the command that fits the best method."""

    rows: Sequence[Row]
    best: str
    as_good: Sequence[str]
    sentences: Sequence[str]
    command: str = ""


def conclude(comparison: Comparison, store: RecordStore) -> Verdict:
    """Return the methods by error, the best, and all that cannot be told from it."""
    evidence = Evidence(store, comparison.tasks())
    left_out = [Row(m, METHODS[m].words, reason=why) for m, why in comparison.left_out.items()]
    records = {
        method: evidence.records(method=method, protocol=comparison.protocol)
        for method in comparison.methods
    }
    chosen = {method: _chosen(rows, comparison.protocol) for method, rows in records.items()}
    shares = {method: _shares(rows, comparison) for method, rows in chosen.items()}
    complete = {method: share for method, share in shares.items() if not np.isnan(share).any()}
    candidates = [method for method in complete if not METHODS[method].control]
    if not candidates:
        why_not = {m: ALONE if m in complete else _reason(records[m]) for m in records}
        rows = [Row(m, METHODS[m].words, reason=why) for m, why in why_not.items()]
        return Verdict([*rows, *left_out], "", (), ["No method could be measured on all folds."])
    best = min(candidates, key=lambda method: round(complete[method].mean(), DIGITS))
    rows = [
        _row(m, chosen[m], shares[m], complete[best], m == best, comparison)
        if m in complete
        else Row(m, METHODS[m].words, reason=_reason(records[m]))
        for m in records
    ]
    rows.sort(key=lambda row: (row.error is None, row.error or 0.0))
    as_good = [
        r.method
        for r in rows
        if r.behind is not None and r.behind.low <= 0 and not METHODS[r.method].control
    ]
    sentences = _sentences(best, as_good, rows, complete, comparison)
    command = _how_to_keep(best, comparison)
    return Verdict([*rows, *left_out], best, as_good, sentences, command)


def _chosen(records: Sequence[Record], protocol: str) -> list[Record]:
    """Return the errors that count: one for each fold, the papers choose it by the test rows."""
    errors = [r for r in records if r.metric == "error" and r.value is not None]
    if protocol != "paper":
        return errors
    best = {v.seed: (v.params, v.dimension) for v in best_by_seed(records)}
    return [r for r in errors if best.get(r.seed) == (tuple(sorted(r.params.items())), r.dimension)]


def _shares(records: Sequence[Record], comparison: Comparison) -> Array:
    """Return errors, one row a repeat and one column a fold; NaN where there is none."""
    found = np.full((comparison.n_repeats, comparison.n_folds), np.nan)
    for r in records:
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
    percent = PERCENT * shares
    dimensions = [r.dimension for r in records if r.dimension is not None]
    seconds = {r.task: r.seconds for r in records}
    behind = None if is_best else _interval(percent - PERCENT * best, comparison)
    return Row(
        method,
        METHODS[method].words,
        float(percent.mean()),
        float(percent.std(ddof=1)),
        float(np.median(dimensions)) if dimensions else None,
        float(np.mean(list(seconds.values()))),
        behind,
    )


def _interval(differences: Array, comparison: Comparison) -> Interval:
    """Return the interval of a mean difference; without bounds if there are too few folds."""
    if differences.size < LEAST_FOLDS:
        return Interval(float(differences.mean()), -np.inf, np.inf, 1.0)
    n = len(comparison.source.read().labels)
    n_test = n // comparison.n_folds
    half_a_row = PERCENT / n_test / 2
    found = paired_interval(differences, n - n_test, n_test, least_deviation=half_a_row)
    low, high = max(found.low, -PERCENT), min(found.high, PERCENT)
    return Interval(found.mean, low, high, found.p_value)


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
    by_name = {row.method: row for row in rows}
    candidates = [method for method in complete if not METHODS[method].control]
    said = [
        f"Least error: {best} ({by_name[best].words}), {by_name[best].error:.1f} % (standard "
        f"deviation over folds {by_name[best].spread:.1f} points)."
    ]
    if complete[best].size < LEAST_FOLDS:
        said.append(
            f"{complete[best].size} folds are too few to tell methods apart: at least "
            f"{LEAST_FOLDS} are needed (--folds, --repeats)."
        )
    else:
        said += _about_the_others(best, as_good, candidates, by_name)
        said += _about_guessing(best, complete, comparison)
        said += _about_the_graph(complete, comparison)
    said += _about_the_choice(len(candidates), comparison)
    return said


def _about_the_choice(n_candidates: int, comparison: Comparison) -> list[str]:
    if comparison.protocol == "paper":
        return [
            "Parameters were chosen on the test rows, as the papers do: these errors are too low. "
            "Use --protocol nested for an honest answer."
        ]
    if n_candidates > 1:
        return [
            f"The winner was picked from {n_candidates} methods by these same folds, so its error "
            "is a little too low: expect more on new rows."
        ]
    return []


def _how_to_keep(best: str, comparison: Comparison) -> str:
    """Return the command that fits the method; what was chosen in folds is left to its user."""
    options = METHODS[best].fit
    if not options or comparison.source.bundled:
        return ""
    source = comparison.source
    words = ["marginfold fit", quote(source.path), "--target", quote(source.target)]
    words += [f"--drop {quote(name)}" for name in source.drop]
    words += [f"--categorical {quote(name)}" for name in source.categorical]
    words += ["--drop-missing-target"] * source.drop_missing
    return f"{' '.join(words)} --method {options} --save model.skops"


def _about_the_others(
    best: str, as_good: Sequence[str], candidates: Sequence[str], rows: Mapping[str, Row]
) -> list[str]:
    n_others = len(candidates) - 1
    if not as_good:
        return [
            "The other is worse (95 % interval)."
            if n_others == 1
            else f"Each of the {n_others} others is worse by its own 95 % interval (not corrected "
            "for their number)."
        ][: min(n_others, 1)]
    more = len(as_good) - SHOWN
    shown = ", ".join(as_good[:SHOWN]) + (f" and {more} more" if more > 0 else "")
    said = [
        f"Not told apart from it (the 95 % interval of the difference holds 0) "
        f"{'is' if len(as_good) == 1 else 'are'} {len(as_good)} of {n_others}: {shown}."
    ]
    plainest = min([best, *as_good], key=list(METHODS).index)
    behind = rows[plainest].behind
    if behind is None:
        return [*said, "It is also the plainest of these."]
    if behind.high <= TOLERANCE:
        said.append(
            f"The plainest of these, {plainest}, will do: at most {max(behind.high, 0.0):.1f} "
            "points worse (95 % interval)."
        )
    else:
        said.append(
            f"The plainest of these is {plainest}, {behind.low:+.1f} to {behind.high:+.1f} points "
            "from the best (95 % interval): more rows or --repeats would tell more."
        )
    return said


def _about_guessing(best: str, complete: dict[str, Array], comparison: Comparison) -> list[str]:
    if LARGEST_CLASS not in complete:
        return []
    gap = _interval(PERCENT * (complete[best] - complete[LARGEST_CLASS]), comparison)
    if gap.high < 0:
        return []
    return [
        f"No evidence that anything was learnt: always answering the largest class has "
        f"{PERCENT * complete[LARGEST_CLASS].mean():.1f} %, and {best}'s error minus that is "
        f"{_numbers(gap)}."
    ]


def _numbers(gap: Interval) -> str:
    return f"{gap.mean:+.1f} points, 95 % interval {gap.low:+.1f} to {gap.high:+.1f}"


def _about_the_graph(complete: dict[str, Array], comparison: Comparison) -> list[str]:
    if not set(CONTROL) <= complete.keys():
        return []
    gap = _interval(PERCENT * (complete[CONTROL[0]] - complete[CONTROL[1]]), comparison)
    numbers = _numbers(gap)
    if gap.high < 0:
        return [f"The neighbor graph helps LSVA: error minus that with permuted graphs {numbers}."]
    if gap.low > 0:
        return [f"The neighbor graph hurts LSVA: error minus that with permuted graphs {numbers}."]
    return [
        "No evidence that the neighborhoods matter: LSVA's error minus that with the graph on "
        f"permuted rows (another permutation in each fold) is {numbers}."
    ]


def pictures(comparison: Comparison, store: RecordStore) -> list[Figure]:
    """Return the error by dimension and the two-dimensional maps, as far as there are records."""
    evidence = Evidence(store, comparison.tasks())
    made = [_curves(evidence), _maps(evidence)]
    return [figure for figure in made if figure.panels and figure.panels[0].series]


def _curves(evidence: Evidence) -> Figure:
    series: list[Series] = []
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
    whole = evidence.records(method=WHOLE, protocol="nested", metric="error")
    if series and whole:
        ends = np.array([min(s.x[0] for s in series), max(s.x[-1] for s in series)])
        level = PERCENT * float(np.mean([r.value for r in whole if r.value is not None]))
        series.append(Series(WHOLE, ends, np.full(2, level)))
    panel = Panel("", series, "components", "error %, nearest neighbors")
    return Figure(
        STUDY,
        "1",
        "Error by dimension",
        "Nearest neighbors on the first components, held-out rows, mean over folds; the graph "
        "weight is the one chosen inside the training rows. The level is that of all features.",
        [panel],
        n_columns=1,
        source={"study": STUDY, "metric": "error by dimension"},
    )


def _maps(evidence: Evidence) -> Figure:
    panels = []
    for method in PICTURES:
        records = evidence.records(method=method, protocol="picture", metric="coordinate")
        series = scatter_series(records)
        if series:
            panels.append(Panel(method, series, "component 1", "component 2"))
    return Figure(
        STUDY,
        "2",
        "Two dimensions",
        "Rows that were not used to find the map (one fold), untuned parameters.",
        panels,
        n_columns=2,
        source={"study": STUDY, "protocol": "picture"},
    )
