"""Figure 5 of paper 003 from records; Figure 6 is a record of why it cannot be drawn."""

from __future__ import annotations

import numpy as np

from marginfold.linalg.tall import Array
from marginfold.papers.mrgepsvm import planes
from marginfold.papers.mrgepsvm.methods import STUDY
from marginfold.papers.mrgepsvm.runs import plan
from marginfold.protocols.cells import PERCENT, Evidence
from marginfold.protocols.records import Record, RecordStore
from marginfold.protocols.results import Figure, Panel, Series
from marginfold.protocols.scatter_points import points_by_label
from marginfold.protocols.study_size import Scale

EDGE = 1.3
"""Planes are drawn inside the square of this half width."""


def figures(store: RecordStore, scale: Scale) -> list[Figure]:
    """Return Figure 5, if there are records."""
    evidence = Evidence(store, plan(scale, "figure 5"))
    panels = [panel for method in planes.METHODS if (panel := _panel(method, evidence))]
    if not panels:
        return []
    weights = ", ".join(f"{name} {value:g}" for name, value in planes.PARAMS.items())
    return [
        Figure(
            STUDY,
            "5",
            "Crossing planes",
            "Two classes around crossing lines, with the plane that each method learns for each, "
            f"and the accuracy on these training rows. Rows are ours and {weights}: the paper "
            "gives neither.",
            panels,
            source={"study": STUDY, "dataset": planes.DATASET, "protocol": planes.PICTURE},
        )
    ]


def _panel(method: str, evidence: Evidence) -> Panel | None:
    records = evidence.records(dataset=planes.DATASET, method=method, status="done")
    if not records:
        return None
    wrong = next(r.value for r in records if r.metric == "error")
    points = [
        Series(f"class {label + 1}", x, y, kind="points")
        for label, (x, y) in points_by_label(records).items()
    ]
    labels = sorted({r.params["label"] for r in records if r.metric == "plane"})
    lines = [_line(records, label) for label in labels]
    title = f"{method}: {PERCENT * (1 - (wrong or 0.0)):.1f} % correct"
    return Panel(title, [*points, *lines], "x1", "x2", equal_axes=True)


def _line(records: list[Record], label: int) -> Series:
    values = {
        r.dimension: float(r.value or 0.0)
        for r in records
        if r.metric == "plane" and r.params["label"] == label
    }
    ends = line_ends(np.array([values[1], values[2]]), values[3], EDGE)
    return Series(f"plane of class {label + 1}", ends[:, 0], ends[:, 1])


def line_ends(normal: Array, offset: float, edge: float) -> Array:
    """Return the two ends of the line ``x'normal + offset = 0`` on the border of a square.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.papers.mrgepsvm.figures import line_ends
    >>> line_ends(np.array([0.0, 2.0]), -1.0, edge=1.0)
    array([[-1. ,  0.5],
           [ 1. ,  0.5]])
    """
    steep = int(np.argmax(np.abs(normal)))  # the coordinate that the line is solved for
    along = np.array([-edge, edge])
    ends = np.empty((2, 2))
    ends[:, 1 - steep] = along
    ends[:, steep] = -(offset + normal[1 - steep] * along) / normal[steep]
    return ends
