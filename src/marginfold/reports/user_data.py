"""The report of a comparison on a user's table, and in it the parts that look at one method."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from marginfold.compare.comparison import Verdict
from marginfold.compare.importance import IMPORTANCE, REPEATS, Importance, read_importance
from marginfold.compare.measures import BY_DIMENSION
from marginfold.compare.methods import METHODS, NEIGHBORS
from marginfold.compare.mistakes import Mistakes, find_mistakes, held_out_answers
from marginfold.compare.pictures import RowMap, error_curves, row_maps
from marginfold.compare.race import counted_records
from marginfold.compare.rows import Row
from marginfold.compare.runs import PROTOCOLS, STUDY, Comparison
from marginfold.compare.table import LabelledTable
from marginfold.compare.words import choices
from marginfold.protocols.cells import Evidence
from marginfold.protocols.records import Record, RecordStore
from marginfold.protocols.results import Series
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

MOST_CLASSES = 20
"""Classes up to which all confusions are shown; of more, the most frequent ones."""

LONGEST = 30
"""Letters of the name of a class in a table."""

NONE = "·"
"""Where nothing was confused."""

MOST_PAIRS = 20
"""Confusions that are listed where there are many classes."""

MOST_COLUMNS = 15
"""Columns of the table that the importance shows."""


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


def mistakes_section(mistakes: Mistakes) -> Section:
    """Return which classes are confused, and which rows are always wrong."""
    few = len(mistakes.classes) <= MOST_CLASSES
    blocks = [_confusion(mistakes)] if few else [_by_class(mistakes), _pairs(mistakes)]
    if mistakes.always:
        blocks.append(_always_wrong(mistakes))
    return Section(
        f"Where {mistakes.method} is wrong", [_about_the_rows(mistakes)], blocks, "mistakes"
    )


def _about_the_rows(mistakes: Mistakes) -> str:
    if not mistakes.n_always:
        return "No row was answered wrongly every time it was held out."
    rows = "1 row was" if mistakes.n_always == 1 else f"{mistakes.n_always:,} rows were"
    often = "the one time" if max(w.times for w in mistakes.always) == 1 else "every time"
    return (
        f"{rows} answered wrongly {often} they were held out: look whether the labels are right, "
        "or whether the columns can tell at all."
    )


def _confusion(mistakes: Mistakes) -> Grid:
    names = [str(label) for label in mistakes.classes]
    columns = [
        Column("class", numeric=False),
        *(Column(_short(name)) for name in names),
        Column("error %", help="share of wrong answers to rows of this class"),
    ]
    rows = []
    for k, name in enumerate(names):
        counts = mistakes.counts[k]
        cells = [
            Entry(
                f"{n:,}" if n else NONE, float(n), title=f"{name}, answered {names[j]}", bold=j == k
            )
            for j, n in enumerate(counts)
        ]
        rows.append([_named(name), *cells, _percent(mistakes.errors[k])])
    return Grid(
        "Confusion matrix: classes in rows, answers in columns",
        columns,
        rows,
        "Numbers of held-out rows, all repeats together; right answers are bold.",
    )


def _named(name: str) -> Entry:
    """Return a class for a cell; a very long name is cut, and whole when it is pointed at."""
    return Entry(_short(name), sort=name, title="" if name == _short(name) else name)


def _short(name: str) -> str:
    return name if len(name) <= LONGEST else f"{name[: LONGEST - 1]}…"


def _by_class(mistakes: Mistakes) -> Grid:
    columns = [
        Column("class", numeric=False),
        Column("answers", help="to held-out rows of this class, all repeats together"),
        Column("error %"),
    ]
    totals = mistakes.counts.sum(axis=1)
    order = np.argsort(-np.nan_to_num(mistakes.errors), kind="stable")
    rows = [
        [
            _named(str(mistakes.classes[k])),
            Entry(f"{totals[k]:,}", float(totals[k])),
            _percent(mistakes.errors[k]),
        ]
        for k in order
    ]
    return Grid("Errors by class", columns, rows)


def _pairs(mistakes: Mistakes) -> Grid:
    counts = mistakes.counts - np.diag(np.diag(mistakes.counts))
    order = np.argsort(-counts, axis=None, kind="stable")[:MOST_PAIRS]
    columns = [Column("class", numeric=False), Column("answered", numeric=False), Column("times")]
    rows = [
        [
            _named(str(mistakes.classes[k])),
            _named(str(mistakes.classes[j])),
            Entry(f"{counts[k, j]:,}", float(counts[k, j])),
        ]
        for k, j in zip(*np.unravel_index(order, counts.shape), strict=True)
        if counts[k, j]
    ]
    return Grid("The most frequent confusions", columns, rows)


def _percent(share: float) -> Entry:
    return Entry(NOTHING) if np.isnan(share) else Entry(f"{100 * share:.1f}", float(100 * share))


def _always_wrong(mistakes: Mistakes) -> Grid:
    columns = [
        Column("row", help="its number in the file: 1 is the first below the heading"),
        Column("class", numeric=False),
        Column("answered", numeric=False, help="the answer given most often"),
        Column("held out", help="how many times"),
    ]
    rows = [
        [Entry(str(w.row), w.row), _named(w.label), _named(w.answer), Entry(str(w.times), w.times)]
        for w in mistakes.always
    ]
    more = mistakes.n_always - len(rows)
    legend = f"The first {len(rows)} of {mistakes.n_always:,}." if more else ""
    return Grid("Rows that are always wrong", columns, rows, legend)


def importance_section(importance: Importance) -> Section:
    """Return which columns matter most to the method, or why that is not known."""
    title = f"What {importance.method} looks at"
    if not importance.columns:
        why = importance.reason or "it was not computed"
        return Section(title, [f"Which columns matter most is not shown: {why}."], [], "columns")
    return Section(title, [], [_importance(importance)], "columns")


def _importance(importance: Importance) -> Chart:
    shown = importance.columns[:MOST_COLUMNS]
    dots = [
        Dot(c.column, c.mean, c.mean - c.spread, c.mean + c.spread, f"{c.mean:+.1f}", "equal")
        for c in shown
    ]
    low = min(0.0, *(d.low for d in dots))
    high = max(1.0, *(d.high for d in dots))
    pad = 0.04 * (high - low)
    more = len(importance.columns) - len(shown)
    return dot_plot(
        dots,
        title="Columns that matter most",
        caption=(
            "How many more of 100 held-out rows (of one fold) are answered wrongly when the values "
            f"of a column are shuffled among them: mean of {REPEATS} shuffles, the bar is one "
            "standard deviation to each side. Columns that say the same stand in for each other "
            "and look less important than they are."
            + (f" {more} more columns matter less." if more > 0 else "")
        ),
        axis="points of error added by shuffling the column",
        limits=(low - pad, high + pad),
    )
