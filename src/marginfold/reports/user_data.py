"""The report of a comparison on a user's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any

import numpy as np

from marginfold.compare.comparison import Row, Verdict
from marginfold.compare.methods import NEIGHBORS
from marginfold.compare.runs import PROTOCOLS, STUDY, Comparison, LabelledTable
from marginfold.plotting import svg
from marginfold.protocols.records import Record
from marginfold.protocols.results import Figure
from marginfold.reports.document import Column, Entry, Grid, Picture, Report, Section
from marginfold.reports.tables import NOTHING

SHOWN = 12
"""Classes that the report counts."""


def comparison_report(
    comparison: Comparison,
    verdict: Verdict,
    figures: Sequence[Figure],
    records: Sequence[Record],
    *,
    facts: Mapping[str, Any],
) -> Report:
    """Return the report: the recommendation, the methods, the pictures and all the evidence.

    The records are the errors of all folds; ``facts`` say how it came about.
    """
    rows = comparison.source.read()
    protocol = (
        f"{comparison.n_folds} folds, {comparison.n_repeats} of such partitions; medians, scales "
        f"and levels of the training rows; {PROTOCOLS[comparison.protocol]}. Embeddings are "
        f"followed by the nearest neighbors ({', '.join(map(str, NEIGHBORS))} of them, chosen in "
        "the same way)."
    )
    pictures = [Picture(f.title, f.caption, svg(f), f.source) for f in figures]
    sections = [
        Section("Methods", [protocol], [_grid(verdict.rows, comparison, rows)], "methods"),
        Section("Pictures", [], pictures, "pictures"),
        Section("The data", [_about(rows), *comparison.notes], [], "data"),
        Section("Evidence", [], [_evidence(records)], "evidence"),
    ]
    return Report(
        f"{rows.name}: {comparison.source.target}",
        [*verdict.sentences, *([f"To keep it: {verdict.command}"] if verdict.command else [])],
        [section for section in sections if section.paragraphs or section.blocks],
        facts,
        "Every row of the last table is a record of the run. " + _what_an_error_is(comparison),
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
        Column("error %", help="mean ± standard deviation over the folds it was measured on"),
        Column("behind", help="points behind the best on the same folds, 95 % interval"),
        Column("folds", help="a method that is clearly behind is not measured on all"),
        Column("dimension", help="median of those chosen"),
        Column("seconds", help="CPU time of one fold with all its choices"),
        Column("what it is", numeric=False),
    ]
    shown = []
    for row in methods:
        source = {
            "study": STUDY,
            "dataset": rows.name,
            "method": row.method,
            "protocol": comparison.protocol,
            "metric": "error",
            "seed": list(range(comparison.n_repeats)),
            "options": comparison.options,
        }
        shown.append([Entry(row.method), *_numbers(row, source), Entry(row.words)])
    return Grid("Errors of all methods", columns, shown, legend="Click a heading to sort.")


def _numbers(row: Row, source: Mapping[str, Any]) -> list[Entry]:
    if row.error is None:
        return [Entry(NOTHING, title=row.reason, below=row.reason), *[Entry(NOTHING)] * 4]
    spread = "" if row.spread is None else f" ± {row.spread:.2f}"
    error = Entry(f"{row.error:.2f}{spread}", row.error, source=source)
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
            Entry(", ".join(f"{k} {v}" for k, v in r.params.items())),
            Entry(f"{r.seconds:.2f}", r.seconds),
        ]
        for r in records
    ]
    return Grid("All folds", columns, rows)
