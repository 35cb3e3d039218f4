"""Figures 2, 4 and 5 of paper 004, from records."""

from __future__ import annotations

import numpy as np

from marginfold.linalg.tall import Array
from marginfold.papers.svmpca.runs import (
    CLOUD,
    COMPONENTS,
    FIGURE_WIDTH,
    SINE,
    STUDY,
    plan,
)
from marginfold.protocols.cells import Evidence
from marginfold.protocols.records import RecordStore
from marginfold.protocols.results import Figure, Panel, Series
from marginfold.protocols.scatter_points import points_by_label
from marginfold.protocols.study_size import Scale


def figures(store: RecordStore, scale: Scale) -> list[Figure]:
    """Return Figures 2, 4 and 5, as far as there are records."""
    evidence = Evidence(store, plan(scale))
    made = [_linear(evidence), _kernel(evidence), _spectrum(evidence, scale)]
    return [figure for figure in made if figure.panels]


def _linear(evidence: Evidence) -> Figure:
    return Figure(
        STUDY,
        "2",
        "Components with a bias term",
        "A normal cloud off the origin (the paper's data are not printed): rows, what eq. (28) "
        "rebuilds from one score and from both, and the scores, which are not correlated. Scores "
        "belong to directions of unit length.",
        _panels(CLOUD, evidence),
        source={"study": STUDY, "dataset": CLOUD, "protocol": "picture"},
    )


def _kernel(evidence: Evidence) -> Figure:
    return Figure(
        STUDY,
        "4",
        "Kernel components of a noisy sine",
        f"sigma^2 = {FIGURE_WIDTH:g}; the paper prints neither its width nor its data, and "
        "rebuilds by a neural network where we use kernel ridge regression. The paper rebuilds "
        "from its second score; here it is the first that runs along the curve, and the second "
        "cannot tell one end from the other.",
        _panels(SINE, evidence),
        source={"study": STUDY, "dataset": SINE, "protocol": "picture"},
    )


def _panels(dataset: str, evidence: Evidence) -> list[Panel]:
    records = evidence.records(dataset=dataset, protocol="picture")
    points = points_by_label(records)
    if not points:
        return []
    data = points["data"]
    panels = [
        Panel(
            f"from {name}",
            [_scatter("rows", data, "points"), _scatter("rebuilt", points[name], "crosses")],
            "x1",
            "x2",
        )
        for name in COMPONENTS
    ]
    return [*panels, Panel("scores", [_scatter("", points["scores"], "points")], "z1", "z2")]


def _scatter(name: str, points: tuple[Array, Array], kind: str) -> Series:
    return Series(name, *points, kind=kind)


def _spectrum(evidence: Evidence, scale: Scale) -> Figure:
    records = evidence.records(dataset=SINE, protocol="spectrum", metric="eigenvalue")
    by_seed: dict[int, list[float]] = {}
    for r in records:
        by_seed.setdefault(r.seed, []).append(float(r.value or 0.0))
    panels = []
    if by_seed:
        depth = min(len(values) for values in by_seed.values())
        values = np.array([values[:depth] for values in by_seed.values()])
        spread = values.std(axis=0, ddof=1) if len(values) > 1 else None
        series = Series("", np.arange(1, depth + 1), values.mean(axis=0), spread, "bars")
        panels = [Panel("", [series], "component", "eigenvalue")]
    return Figure(
        STUDY,
        "5",
        "Eigenvalues of the centred kernel matrix",
        f"Of the noisy sine, sigma^2 = {FIGURE_WIDTH:g}; mean and standard deviation over "
        f"{scale.n_seeds} draws of the noise.",
        panels,
        n_columns=1,
        source={"study": STUDY, "dataset": SINE, "protocol": "spectrum"},
    )
