"""The parts of a report that look at one method: where it is wrong, and what it looks at."""

from __future__ import annotations

import numpy as np

from marginfold.compare.importance import REPEATS, Importance
from marginfold.compare.mistakes import Mistakes
from marginfold.reports.charts import Dot, dot_plot
from marginfold.reports.document import Chart, Column, Entry, Grid, Section
from marginfold.reports.tables import NOTHING

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
