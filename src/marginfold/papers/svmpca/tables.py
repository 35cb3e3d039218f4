"""What the figures of paper 004 show, in numbers over several seeds; the paper prints none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from marginfold.papers.svmpca.runs import (
    CLOUD,
    CLOUD_ROWS,
    COMPONENTS,
    SINE,
    SINE_ROWS,
    STUDY,
    WIDTHS,
    plan,
    width_protocol,
)
from marginfold.protocols.cells import NOT_COMPUTED, Evidence
from marginfold.protocols.records import Record, RecordStore
from marginfold.protocols.results import Cell, Table
from marginfold.protocols.study_size import Scale

LINEAR_REMARK = "The paper prints neither the rows of its Figure 2 nor a number to compare with."

KERNEL_REMARK = (
    "The rows of Figure 4 and the width of its kernel are not printed; the second score alone, "
    "from which the paper rebuilds the curve, comes nearer to it than the noisy rows are at {n} of "
    "{n_widths} widths."
)

FROM_CURVE = "{} from curve"
"""The column of a distance to the sine without noise."""

SECOND = "score 2"
"""What the paper rebuilds the curve from, by its name in `COMPONENTS`."""


def tables(store: RecordStore, scale: Scale) -> list[Table]:
    """Return the numbers of Figures 2 and 4, as far as there are records."""
    evidence = Evidence(store, plan(scale))
    made = [_linear(evidence, scale), _kernel(evidence, scale)]
    return [table for table in made if any(c.value is not None for c in table.cells)]


def _linear(evidence: Evidence, scale: Scale) -> Table:
    records = evidence.records(dataset=CLOUD, protocol="measure")
    cells = [_cell(CLOUD, "correlation of scores", records, "correlation")]
    cells += [
        _cell(CLOUD, f"rows from {name}", records, "reconstruction_error", name)
        for name in COMPONENTS
    ]
    return Table(
        STUDY,
        "figure 2, in numbers",
        "Scores and reconstructions with a bias term",
        "mean squared distance",
        cells,
        f"A normal cloud of {CLOUD_ROWS} rows off the origin, {scale.n_seeds} seeds; mean squared "
        "distance between rows and what is rebuilt of them, and the absolute correlation of the "
        "scores.",
        LINEAR_REMARK,
    )


def _kernel(evidence: Evidence, scale: Scale) -> Table:
    cells = []
    for width in WIDTHS:
        records = evidence.records(dataset=SINE, protocol=width_protocol(width))
        row = f"sigma^2 = {width:g}"
        cells.append(_cell(row, FROM_CURVE.format("rows"), records, "curve_error", "data"))
        for name in COMPONENTS:
            cells.append(_cell(row, FROM_CURVE.format(name), records, "curve_error", name))
        for name in COMPONENTS:
            cells.append(_cell(row, f"{name} from rows", records, "reconstruction_error", name))
    return Table(
        STUDY,
        "figure 4, in numbers",
        "How far rows rebuilt from kernel scores are from the sine, and from the noisy rows",
        "mean squared distance",
        cells,
        f"Noisy sine of {SINE_ROWS} rows, {scale.n_seeds} draws of the noise; rbf kernel of width "
        "sigma^2, rebuilt by kernel ridge regression on the scores. 'from curve': distance to the "
        "nearest point of the sine without noise, less than that of the rows if something was "
        "denoised; 'from rows': distance to the row itself, large if the curve was not followed.",
        _about_the_second(cells),
        ("E48", "E51", "E52"),
    )


def _about_the_second(cells: Sequence[Cell]) -> str:
    """Say at how many of the measured widths the second score denoises."""
    noisy, second = (
        {
            c.row: c.value
            for c in cells
            if c.column == FROM_CURVE.format(name) and c.value is not None
        }
        for name in ("rows", SECOND)
    )
    nearer = [second[row] < noisy[row] for row in noisy if row in second]
    return KERNEL_REMARK.format(n=sum(nearer), n_widths=len(nearer))


def _cell(
    row: str, column: str, records: list[Record], metric: str, name: str | None = None
) -> Cell:
    found = [r for r in records if r.metric == metric and r.params.get("from") == name]
    values = [r.value for r in found if r.value is not None]
    reasons = {r.reason for r in records if r.status != "done"}
    if not values:
        return Cell(row, column, note="; ".join(sorted(reasons)) or NOT_COMPUTED)
    first = found[0]
    source: dict[str, Any] = {"study": STUDY, "dataset": first.dataset, "protocol": first.protocol}
    if name is not None:
        source["params"] = {"from": name}
    return Cell(
        row,
        column,
        float(np.mean(values)),
        float(np.std(values, ddof=1)) if len(values) > 1 else None,
        len(values),
        note="; ".join(sorted(reasons)),
        source=source | {"metric": metric, "records": len(found)},
    )
