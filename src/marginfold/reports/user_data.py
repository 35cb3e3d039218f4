"""The report of a comparison on a user's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from marginfold.compare.comparison import Verdict
from marginfold.compare.importance import Importance
from marginfold.compare.methods import METHODS
from marginfold.compare.mistakes import Mistakes
from marginfold.compare.pictures import RowMap
from marginfold.compare.rows import Row
from marginfold.compare.runs import HEADS, PROTOCOLS, STUDY, Comparison, LabelledTable
from marginfold.compare.words import choices
from marginfold.protocols.records import Record
from marginfold.protocols.results import Series
from marginfold.reports.best_method import importance_section, mistakes_section
from marginfold.reports.charts import Dot, dot_plot, line_plot, map_plot
from marginfold.reports.document import Chart, Code, Column, Entry, Grid, Report, Section
from marginfold.reports.tables import NOTHING

SHOWN = 12
"""Classes that the report counts."""

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
    records: Sequence[Record],
    *,
    mistakes: Mistakes | None = None,
    importance: Importance | None = None,
    maps: Sequence[RowMap] = (),
    curves: Sequence[Series] = (),
    facts: Mapping[str, Any],
) -> Report:
    """Return the report: the answer, the methods, the best of them, pictures and the evidence.

    The records are the errors of all folds; ``facts`` say how it came about.
    """
    rows = comparison.source.read()
    target = comparison.source.target
    sections = [
        Section("All methods", [], [_grid(verdict.rows, comparison, rows)], "methods"),
        *([] if mistakes is None else [mistakes_section(mistakes)]),
        *([] if importance is None else [importance_section(importance)]),
        Section(
            "Pictures",
            [],
            [*_maps(maps, verdict), *_curves(curves)],
            "pictures",
            n_open=OPEN_MAPS,
        ),
        Section("The table", [_about(rows), *comparison.notes], [], "data"),
        Section(
            "How the numbers were made",
            [_how(comparison), _what_an_error_is(comparison)],
            [_evidence(records)],
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
        front=_ranking(verdict, comparison, rows),
    )


def _code(verdict: Verdict) -> list[Code]:
    """Return what keeps the best method."""
    return [Code("To keep it, on the command line", verdict.command)] if verdict.command else []


def _ranking(verdict: Verdict, comparison: Comparison, rows: LabelledTable) -> Chart | None:
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
        source=_source(None, comparison, rows),
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


def _maps(maps: Sequence[RowMap], verdict: Verdict) -> list[Chart]:
    """Return the maps: that of the best method first, then those with anchors, then by error."""
    places = {row.method: place for place, row in enumerate(verdict.rows)}
    ordered = sorted(
        maps, key=lambda m: (m.method != verdict.best, not m.anchors, places.get(m.method, 0))
    )
    return [
        map_plot(
            one.points,
            anchors=one.anchors,
            title=f"{one.method}: {METHODS[one.method].words}",
            caption="Rows that were not used to find the map (one fold, untuned parameters). "
            "Point at a row for its number in the file and its class.",
            source={"study": STUDY, "method": one.method, "protocol": "picture"},
        )
        for one in ordered
    ]


def _curves(curves: Sequence[Series]) -> list[Chart]:
    if not curves:
        return []
    return [
        line_plot(
            curves,
            title="Error by dimension",
            caption="Nearest neighbors on the first components, held-out rows, mean over folds. "
            "The level is that of all features.",
            xlabel="components",
            ylabel="error %",
            source={"study": STUDY, "metric": "error by dimension"},
        )
    ]


def _how(comparison: Comparison) -> str:
    return (
        f"The rows were dealt into {comparison.n_folds} parts, {comparison.n_repeats} times anew. "
        "Each part in turn is held out, and a method is trained on the others and judged by the "
        "part held out. Medians, scales and levels are those of the training rows; "
        f"{PROTOCOLS[comparison.protocol]}. What is a map and no classifier is followed by the "
        f"nearest neighbors ({', '.join(h.removesuffix('-nn') for h in HEADS)} of them, chosen in "
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


def _grid(methods: Sequence[Row], comparison: Comparison, rows: LabelledTable) -> Grid:
    columns = [
        Column("method", numeric=False),
        Column(
            "error %",
            help="wrong answers to held-out rows, mean over folds; below, its 95 % interval",
        ),
        Column(
            "more than best",
            help="points of error more on the same rows; below, the 95 % interval of this",
        ),
        Column(
            "folds",
            help="parts it was judged by: fewer if it made clearly more errors than the best",
        ),
        Column("components", help="median of the numbers of components chosen"),
        Column("seconds", help="CPU time of one fold with all its choices"),
        Column("what it is", numeric=False),
    ]
    shown = [
        [Entry(row.method), *_numbers(row, _source(row.method, comparison, rows)), Entry(row.words)]
        for row in methods
    ]
    return Grid("Every method with its numbers", columns, shown)


def _source(method: str | None, comparison: Comparison, rows: LabelledTable) -> dict[str, Any]:
    """Return the columns of the records of errors, of one method or of all."""
    return {
        "study": STUDY,
        "dataset": rows.name,
        **({} if method is None else {"method": method}),
        "protocol": comparison.protocol,
        "metric": "error",
        "seed": list(range(comparison.n_repeats)),
        "options": comparison.options,
    }


def _numbers(row: Row, source: Mapping[str, Any]) -> list[Entry]:
    if row.error is None:
        return [Entry(NOTHING, title=row.reason, below=row.reason), *[Entry(NOTHING)] * 4]
    below = "" if row.interval is None else f"{row.interval.low:.1f} to {row.interval.high:.1f}"
    error = Entry(f"{row.error:.2f}", row.error, source=source, below=below)
    behind = Entry("best", 0.0)
    if row.behind is not None:
        mean = round(row.behind.mean, 2) + 0.0  # no -0.00
        interval = f"{row.behind.low:+.1f} to {row.behind.high:+.1f}"
        few = not isfinite(row.behind.low)
        behind = Entry(f"{mean:+.2f}", mean, below="too few folds" if few else interval)
    dimension = Entry(NOTHING if row.dimension is None else f"{row.dimension:g}", row.dimension)
    folds = Entry(str(row.n_folds), row.n_folds)
    return [error, behind, folds, dimension, Entry(f"{row.seconds:.2f}", row.seconds)]


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
