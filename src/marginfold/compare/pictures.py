"""The pictures of a comparison: error by dimension, and two-dimensional maps."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from marginfold.compare.runs import PICTURES, STUDY, Comparison
from marginfold.protocols.cells import PERCENT, Evidence
from marginfold.protocols.records import RecordStore
from marginfold.protocols.results import Figure, Panel, Series
from marginfold.protocols.scatter_points import points_by_label

WHOLE = "all features"
"""The method without dimensions: a level in the error by dimension."""

CURVE_METHODS = ("PCA", "LDA", "MMDA", "LSVA", "WSVDA", "KDA", "KLSVA")
"""Lines of the error by dimension."""


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
        series = [
            Series(label, x, y, kind="points") for label, (x, y) in points_by_label(records).items()
        ]
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
