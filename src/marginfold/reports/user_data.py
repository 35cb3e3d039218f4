"""The report of a comparison on a user's table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from marginfold.compare.comparison import Verdict
from marginfold.compare.importance import IMPORTANCE, read_importance
from marginfold.compare.measures import BY_DIMENSION
from marginfold.compare.methods import METHODS, NEIGHBORS
from marginfold.compare.mistakes import find_mistakes, held_out_answers
from marginfold.compare.pictures import RowMap, error_curves, row_maps
from marginfold.compare.race import counted_records
from marginfold.compare.rows import Row
from marginfold.compare.runs import PROTOCOLS, STUDY, Comparison, LabelledTable
from marginfold.compare.words import choices
from marginfold.protocols.cells import Evidence
from marginfold.protocols.records import Record, RecordStore
from marginfold.protocols.results import Series
from marginfold.reports.best_method import importance_section, mistakes_section
from marginfold.reports.charts import Dot, dot_plot, line_plot, map_plot
from marginfold.reports.document import Chart, Code, Column, Entry, Grid, Live, Report, Section
from marginfold.reports.tables import NOTHING

SHOWN = 12
"""Classes that the report counts."""

UNSEEN = "Rows that were not used to find the maps (one fold, untuned parameters)."
"""What the maps show."""

OPEN_MAPS = 2
"""Maps that are open; the others are a click away."""

LEAST_WIDTH = 1.0
"""Points that the axis of differences reaches to, at least."""

FURTHER = 1.3
"""How much further than the methods that may be the best the axis of differences reaches; those
beyond are arrows, or the few that matter would be one heap."""


def comparison_report(
    comparison: Comparison,
    verdict: Verdict,
    store: RecordStore,
    *,
    facts: Mapping[str, Any],
    live: Callable[[Sequence[RowMap]], Live | None] = lambda maps: None,
) -> Report:
    """Return the report: the answer, the methods, the best of them, pictures and the evidence.

    ``facts`` say how it came about; ``live`` makes pictures that answer to the pointer of maps.
    """
    rows, target = comparison.source.read(), comparison.source.target
    maps = _ordered(row_maps(comparison, store), verdict)
    sections = [
        Section("All methods", [], [_grid(verdict.rows, comparison, rows)], "methods"),
        *_about_the_best(verdict, comparison, store),
        Section(
            "Pictures",
            [UNSEEN] if maps else [],
            [_map(one) for one in maps],
            "pictures",
            n_open=OPEN_MAPS,
            live=live(maps) if maps else None,
        ),
        Section("Dimensions", [], _curves(error_curves(comparison, store)), "dimensions"),
        Section("The table", [_about(rows), *comparison.notes], [], "data"),
        Section(
            "How the numbers were made",
            [_how(comparison), _what_an_error_is(comparison)],
            [_evidence(counted_records(comparison, store, metric=["error", "none"]))],
            "evidence",
            folded=True,
        ),
    ]
    n = sum(row.error is not None and not METHODS[row.method].control for row in verdict.rows)
    return Report(
        f"Which method predicts {target} in {rows.name}?",
        verdict.sentences[len(verdict.answer) :],
        [section for section in sections if section.paragraphs or section.blocks],
        facts,
        "Every row of the table of folds is a record of the run; the queries find it there.",
        about=f"This page compares {n} ways to predict the column {target} of {rows.name} from its "
        "other columns, each judged only by rows that it was not trained on.",
        answer=verdict.answer,
        code=_code(verdict),
        front=_ranking(verdict),
    )


def _about_the_best(verdict: Verdict, comparison: Comparison, store: RecordStore) -> list[Section]:
    """Return where the best method is wrong and which columns matter to it, if it learnt any."""
    best = verdict.best
    if verdict.procedure is None:
        return []
    sections = []
    answers = held_out_answers(comparison, store, best)
    if len(answers.rows):
        numbers = comparison.source.read().row_numbers[answers.rows]
        found = find_mistakes(
            best, numbers.tolist(), answers.labels.tolist(), answers.said.tolist()
        )
        sections.append(mistakes_section(found))
    evidence = Evidence(store, comparison.importance_tasks(best))
    records = evidence.any_records(protocol=IMPORTANCE, method=best)
    return [*sections, importance_section(read_importance(best, records))]


def _code(verdict: Verdict) -> list[Code]:
    """Return what keeps the best method."""
    codes = [
        Code("To keep it, on the command line", verdict.command),
        Code("The same in Python", verdict.snippet),
    ]
    return [code for code in codes if code.text]


def _ranking(verdict: Verdict) -> Chart | None:
    """Return the methods as dots, by their difference to the best."""
    dots = [_dot(row, verdict) for row in verdict.rows if row.error is not None]
    if not dots:
        return None
    return dot_plot(
        dots,
        title="Errors of all methods, and how far from the best",
        caption=(
            f"The line at 0 is {verdict.best}. A bar is the 95 % interval of the difference in "
            "error on the same rows: a method whose bar reaches the line (blue) may be as good. "
            "Numbers at the right are errors on held-out rows; an arrow is further away than is "
            "drawn."
        ),
        axis=f"points of error more than {verdict.best}",
        limits=_limits(dots),
    )


def _dot(row: Row, verdict: Verdict) -> Dot:
    text = f"{row.error:.1f} %"
    if row.behind is None:
        return Dot(row.method, 0.0, 0.0, 0.0, text, "best")
    control = METHODS[row.method].control
    kind = "quiet" if control else "equal" if row.method in verdict.as_good else ""
    return Dot(row.method, row.behind.mean, row.behind.low, row.behind.high, text, kind)


def _limits(dots: Sequence[Dot]) -> tuple[float, float]:
    """Return what the axis shows: the methods that may be the best, the next, and some more."""
    decisive = [d for d in dots if d.kind in ("best", "equal")]
    decisive += [d for d in dots if d.kind == ""][:1]

    def ends(some: Sequence[Dot]) -> list[float]:
        return [end for d in some for end in (d.value, d.low, d.high) if isfinite(end)]

    high = min(max(*ends(decisive), LEAST_WIDTH) * FURTHER, max(*ends(dots), LEAST_WIDTH))
    low = max(min(*ends(dots), -LEAST_WIDTH / 2), -high)
    return low - 0.04 * (high - low), high + 0.04 * (high - low)


def _ordered(maps: Sequence[RowMap], verdict: Verdict) -> list[RowMap]:
    """Return the maps: that of the best method first, then those with anchors, then by error."""
    places = {row.method: place for place, row in enumerate(verdict.rows)}
    return sorted(
        maps, key=lambda m: (m.method != verdict.best, not m.anchors, places.get(m.method, 0))
    )


def _map(one: RowMap) -> Chart:
    return map_plot(
        one.points,
        anchors=one.anchors,
        labels=(one.xlabel, one.ylabel),
        title=f"{one.method}: {METHODS[one.method].words}",
        caption="Point at a row for its number in the file and its class.",
        source={"study": STUDY, "method": one.method, "protocol": "picture"},
    )


def _curves(curves: Sequence[Series]) -> list[Chart]:
    if not curves:
        return []
    return [
        line_plot(
            curves,
            title="Error by dimension",
            caption="Nearest neighbors on the first components: rows held out inside the training "
            "rows, by which all was chosen, mean over folds. The level is that of all features.",
            xlabel="components",
            ylabel="error %",
            source={"study": STUDY, "metric": BY_DIMENSION},
        )
    ]


def _how(comparison: Comparison) -> str:
    return (
        f"The rows were dealt into {comparison.n_folds} parts, {comparison.n_repeats} times anew. "
        "Each part in turn is held out, and a method is trained on the others and judged by the "
        "part held out. Medians, scales and levels are those of the training rows; "
        f"{PROTOCOLS[comparison.protocol]}. What is a map and no classifier is followed by the "
        f"nearest neighbors ({', '.join(map(str, NEIGHBORS))} of them, chosen in "
        "the same way). Intervals are t intervals over these parts, corrected for the rows that "
        "their training sets share (Nadeau and Bengio 2003)."
    )


def _about(rows: LabelledTable) -> str:
    """Say what was read."""
    classes, counts = np.unique(rows.labels, return_counts=True)
    shown = ", ".join(f"{c} ({n})" for c, n in zip(classes[:SHOWN], counts, strict=False))
    more = f" and {len(classes) - SHOWN} more" if len(classes) > SHOWN else ""
    sampled = "" if len(rows.labels) == rows.n_read else f", a sample of {rows.n_read}"
    return (
        f"{len(rows.labels)} rows{sampled}; {len(rows.columns.numbers)} columns of numbers, "
        f"{len(rows.columns.levels)} of categories; {len(classes)} classes: {shown}{more}."
    )


def _what_an_error_is(comparison: Comparison) -> str:
    if comparison.protocol == "nested":
        return "The error of a method is the mean of its rows."
    return (
        "The error of a method is the least mean over folds, of all its parameters and dimensions, "
        "averaged over repeats."
    )


COLUMNS = (
    Column("method", numeric=False),
    Column("error %", help="wrong answers to held-out rows, mean over folds; below, its interval"),
    Column("more than best", help="points of error more on the same rows; below, its interval"),
    Column("balanced accuracy %", help="share of right answers, every class counted alike"),
    Column("AUC", help="how often a row of a class scores higher for it than others: 1 is best"),
    Column("log loss", help="minus the mean logarithm of the true class's probability: 0 is best"),
    Column("components", help="median of the numbers of components chosen"),
    Column("chosen in most folds", numeric=False, help="by folds inside the training rows"),
    Column("folds", help="parts it was judged by: fewer if it made clearly more errors"),
    Column("seconds", help="CPU time of one fold with all its choices"),
    Column("what it is", numeric=False),
)
"""Columns of the table of methods; intervals are those of 95 %."""


def _grid(methods: Sequence[Row], comparison: Comparison, rows: LabelledTable) -> Grid:
    shown = [
        [Entry(row.method), *_numbers(row, _source(row.method, comparison, rows)), Entry(row.words)]
        for row in methods
    ]
    return Grid("Every method with its numbers", COLUMNS, shown)


def _source(method: str, comparison: Comparison, rows: LabelledTable) -> dict[str, Any]:
    """Return the columns of the records of a method's errors."""
    return {
        "study": STUDY,
        "dataset": rows.name,
        "method": method,
        "protocol": comparison.protocol,
        "metric": "error",
        "seed": list(range(comparison.n_repeats)),
        "options": comparison.options.get(method, {}),
    }


def _numbers(row: Row, source: Mapping[str, Any]) -> list[Entry]:
    if row.error is None:
        lacking = [Entry(NOTHING)] * (len(COLUMNS) - 3)
        return [Entry(NOTHING, title=row.reason, below=row.reason), *lacking]
    below = "" if row.interval is None else f"{row.interval.low:.1f} to {row.interval.high:.1f}"
    return [
        Entry(f"{row.error:.2f}", row.error, source=source, below=below),
        _difference(row),
        _number(row.balanced_accuracy, ".1f"),
        _number(row.auc, ".3f"),
        _number(row.log_loss, ".3f"),
        _number(row.dimension, "g"),
        Entry(choices(row.chosen) or NOTHING),
        Entry(str(row.n_folds), row.n_folds),
        _number(row.seconds, ".2f"),
    ]


def _difference(row: Row) -> Entry:
    if row.behind is None:
        return Entry("best", 0.0)
    mean = round(row.behind.mean, 2) + 0.0  # no -0.00
    interval = f"{row.behind.low:+.1f} to {row.behind.high:+.1f}"
    few = not isfinite(row.behind.low)
    return Entry(f"{mean:+.2f}", mean, below="too few folds" if few else interval)


def _number(value: float | None, shown: str) -> Entry:
    return Entry(NOTHING) if value is None else Entry(f"{value:{shown}}", value)


def _evidence(records: Sequence[Record]) -> Grid:
    columns = [
        Column("method", numeric=False),
        *(Column("repeat"), Column("fold"), Column("error %"), Column("dimension")),
        *(Column("chosen", numeric=False), Column("seconds")),
    ]
    rows = [
        [
            Entry(r.method),
            Entry(str(r.seed), r.seed),
            Entry(str(r.fold), r.fold),
            Entry(NOTHING if r.value is None else f"{100 * r.value:.2f}", title=r.reason),
            Entry(NOTHING if r.dimension is None else str(r.dimension)),
            Entry(choices(r.params)),
            Entry(f"{r.seconds:.2f}", r.seconds),
        ]
        for r in records
    ]
    return Grid("All folds", columns, rows)
