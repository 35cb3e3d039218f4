"""What a comparison says: a table, a recommendation with its uncertainty, and its figures."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginfold.compare.kept import Keeping, how_to_keep
from marginfold.compare.measures import BY_DIMENSION, INSIDE
from marginfold.compare.methods import LARGEST_CLASS, METHODS, plainness
from marginfold.compare.race import (
    CONTROL,
    LEAST_FOLDS,
    Standing,
    behind,
    counted_records,
    difference,
    final_standings,
    leader,
)
from marginfold.compare.runs import PICTURES, STUDY, Comparison
from marginfold.protocols.cells import PERCENT, Evidence
from marginfold.protocols.records import RecordStore
from marginfold.protocols.results import Figure, Panel, Series, scatter_series
from marginfold.protocols.statistics import Interval

ALONE = "a control, and no method to judge by it"
"""Why a control has no row when all methods failed."""

TOLERANCE = 2.0
"""Points: a plainer method that is worse by no more than this will do."""

SHOWN = 5
"""Methods that a sentence names; the table has all."""

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


@dataclass(frozen=True)
class Verdict:
    """The conclusion: rows by error, sentences, and how the best method is kept.

    ``procedure`` is what was measured of the best method, unfitted; ``command`` and ``snippet`` (in
    Python) fit it to all rows.  All three are empty if nothing was learnt.
    """

    rows: Sequence[Row]
    best: str
    as_good: Sequence[str]
    sentences: Sequence[str]
    command: str = ""
    snippet: str = ""
    procedure: Any = None


def conclude(
    comparison: Comparison, store: RecordStore, *, stopped: float | None = None
) -> Verdict:
    """Return the methods by error, the best, and all that cannot be told from it.

    ``stopped`` are the seconds after which the clock stopped it; by default nothing did.
    """
    known = final_standings(comparison, store)
    left_out = [Row(m, METHODS[m].words, reason=why) for m, why in comparison.left_out.items()]
    best = leader(known)
    if not best:
        rows = [Row(m, METHODS[m].words, reason=_why_not(known[m])) for m in known]
        said = "No method could be measured on all folds."
        if stopped is not None:
            said = (
                f"STOPPED BY THE CLOCK after {stopped:.0f} s, before any method was measured. The "
                "same command goes on from here; --methods lda,pca would be quick."
            )
        return Verdict([*rows, *left_out], "", (), [said])
    rows = [_row(method, known, best, comparison) for method in known]
    rows.sort(key=lambda row: (row.error is None, row.error or 0.0))
    as_good = [
        r.method
        for r in rows
        if r.behind is not None and r.behind.low <= 0 and not METHODS[r.method].control
    ]
    sentences = _sentences(best, as_good, rows, known, comparison)
    sentences += _about_the_cuts(rows, comparison, stopped)
    learnt = not _about_guessing(best, known, comparison)
    kept = how_to_keep(best, comparison) if learnt else Keeping()
    return Verdict(
        *([*rows, *left_out], best, as_good, sentences),
        command=kept.command,
        snippet=kept.snippet,
        procedure=kept.procedure,
    )


def _row(method: str, known: Mapping[str, Standing], best: str, comparison: Comparison) -> Row:
    standing = known[method]
    if standing.reason or not standing.n_measured:
        return Row(method, METHODS[method].words, reason=_why_not(standing))
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
    )


def _why_not(standing: Standing) -> str:
    return standing.reason or (ALONE if standing.n_measured else "not measured on all folds")


def _sentences(
    best: str,
    as_good: Sequence[str],
    rows: Sequence[Row],
    known: Mapping[str, Standing],
    comparison: Comparison,
) -> list[str]:
    by_name = {row.method: row for row in rows}
    candidates = [r.method for r in rows if r.error is not None and not METHODS[r.method].control]
    row = by_name[best]
    spread = (
        "" if row.spread is None else f" (standard deviation over folds {row.spread:.1f} points)"
    )
    said = [f"Least error: {best} ({row.words}), {row.error:.1f} %{spread}."]
    if row.n_folds < LEAST_FOLDS:
        few = "1 fold is" if row.n_folds == 1 else f"{row.n_folds} folds are"
        said.append(
            f"{few} too few to tell methods apart: at least {LEAST_FOLDS} are needed (--folds, "
            "--repeats)."
        )
    else:
        said += _about_the_others(best, as_good, candidates, by_name)
        said += _about_guessing(best, known, comparison)
        said += _about_the_graph(known, comparison)
    said += _about_the_choice(len(candidates), comparison)
    return said


def about_the_sample(comparison: Comparison) -> list[str]:
    """Return the line that says on how many rows is compared, if these are not all."""
    rows = comparison.source.read()
    if len(rows.labels) == rows.n_read:
        return []
    return [
        f"Compared on a sample of {len(rows.labels):,} of the {rows.n_read:,} rows, drawn in the "
        "proportions of the classes, to answer within the budget: with all rows errors are mostly "
        "lower and the order may change (--thorough takes all, --budget more)."
    ]


def _about_the_cuts(
    rows: Sequence[Row], comparison: Comparison, stopped: float | None
) -> list[str]:
    """Say what was not measured, and how to have it measured."""
    said = about_the_sample(comparison)
    whole = comparison.n_measurements
    early = [row for row in rows if 0 < row.n_folds < whole]
    if stopped is not None:
        said.append(
            f"STOPPED BY THE CLOCK after {stopped:.0f} s, before all planned folds were measured: "
            f"this answer rests on {max(row.n_folds for row in rows)} of {whole} folds and depends "
            "on the speed of this machine. The same command goes on from here."
        )
    elif early:
        said.append(
            f"{len(early)} of {len(rows)} methods were clearly behind (their 95 % intervals) after "
            f"{_span([row.n_folds for row in early])} of {whole} folds and were not measured on "
            "the others (--thorough measures all)."
        )
    return said


def _span(numbers: Sequence[int]) -> str:
    low, high = min(numbers), max(numbers)
    return f"{low}" if low == high else f"{low} to {high}"


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
        f"{len(as_good)} of the {n_others} other methods may be as good, the folds do not tell "
        f"(95 % intervals): {shown}."
    ]
    plainest = min([best, *as_good], key=plainness)
    gap = rows[plainest].behind
    if gap is None:
        return [*said, "It is also the plainest of these."]
    if gap.high <= TOLERANCE:
        said.append(
            f"The plainest of these, {plainest}, will do: at most {max(gap.high, 0.0):.1f} "
            "points worse (95 % interval)."
        )
    elif np.isfinite(gap.high):
        said.append(
            f"The plainest of these is {plainest}, {gap.low:+.1f} to {gap.high:+.1f} points "
            "from the best (95 % interval): more rows or --repeats would tell more."
        )
    return said


def _about_guessing(best: str, known: Mapping[str, Standing], comparison: Comparison) -> list[str]:
    if LARGEST_CLASS not in known or not known[LARGEST_CLASS].n_measured:
        return []
    guessing = known[LARGEST_CLASS].shares
    gap = difference(known[best].shares, guessing, comparison)
    if gap.high < 0:
        return []
    return [
        f"No evidence that anything was learnt: always answering the largest class has "
        f"{PERCENT * np.nanmean(guessing):.1f} %, and {best}'s error minus that is "
        f"{_numbers(gap)}."
    ]


def _numbers(gap: Interval) -> str:
    return f"{gap.mean:+.1f} points, 95 % interval {gap.low:+.1f} to {gap.high:+.1f}"


def _about_the_graph(known: Mapping[str, Standing], comparison: Comparison) -> list[str]:
    pair = [known[name] for name in CONTROL if name in known and not known[name].reason]
    if len(pair) < len(CONTROL):
        return []
    gap = difference(pair[0].shares, pair[1].shares, comparison)
    if not np.isfinite(gap.low):
        return []
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
    made = [_curves(comparison, store), _maps(comparison, store)]
    return [figure for figure in made if figure.panels and figure.panels[0].series]


def _curves(comparison: Comparison, store: RecordStore) -> Figure:
    series: list[Series] = []
    records = counted_records(comparison, store, metric=[BY_DIMENSION, INSIDE])
    for method in CURVE_METHODS:
        values: dict[int, list[float]] = defaultdict(list)
        for r in records:
            by_dimension = r.method == method and r.metric == BY_DIMENSION
            if by_dimension and r.value is not None and r.dimension is not None:
                values[r.dimension].append(PERCENT * r.value)
        depth = max((len(v) for v in values.values()), default=0)
        x = np.array(sorted(k for k, v in values.items() if len(v) == depth))
        if len(x):
            y = np.array([np.mean(values[k]) for k in x])
            kind = "line" if len(x) > 1 else "points"
            series.append(Series(method, x.astype(float), y, kind=kind))
    whole = [r.value for r in records if r.method == WHOLE and r.value is not None]
    if series and whole:
        ends = np.array([min(s.x[0] for s in series), max(s.x[-1] for s in series)])
        series.append(Series(WHOLE, ends, np.full(2, PERCENT * float(np.mean(whole)))))
    panel = Panel("", series, "components", "error %, nearest neighbors")
    return Figure(
        STUDY,
        "1",
        "Error by dimension",
        "Nearest neighbors on the first components: rows held out inside the training rows, by "
        "which all was chosen, mean over folds. The level is that of all features.",
        [panel],
        n_columns=1,
        source={"study": STUDY, "metric": BY_DIMENSION},
    )


def _maps(comparison: Comparison, store: RecordStore) -> Figure:
    evidence = Evidence(store, comparison.picture_tasks())
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
