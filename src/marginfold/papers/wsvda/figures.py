"""Figures 2 to 4 of paper 001, from records."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from marginfold.linalg.tall import Array
from marginfold.papers.wsvda.problems import PROBLEMS
from marginfold.papers.wsvda.runs import (
    CURVES,
    EMBEDDINGS,
    HEADS,
    PAIRS,
    PICTURE_DATA,
    PICTURE_METHODS,
    SHUFFLED,
    STUDY,
    plan,
    protocol,
)
from marginfold.protocols.cells import PERCENT, Evidence
from marginfold.protocols.records import Record, RecordStore
from marginfold.protocols.results import Figure, Panel, Series
from marginfold.protocols.scatter_points import points_by_label
from marginfold.protocols.study_size import Scale

PANELS = {
    "figure 3": [(row, head) for row in CURVES["figure 3"] for head in HEADS],
    "figure 4": [("wine 1v2", "KNN"), ("wine 1v3", "NC"), ("wine 2v3", "KNN"), ("wine 2v3", "NC")],
}
"""Rows and classifiers, as in the captions."""

TITLES = {
    "figure 3": "Accuracy by dimension, sonar and heart",
    "figure 4": "Accuracy by dimension, pairs of classes of wine",
}

CLASSES = ("mines", "rocks")
"""The classes of sonar, M and R, in sorted order."""


def figures(store: RecordStore, scale: Scale) -> list[Figure]:
    """Return Figures 2, 3 and 4, as far as there are records."""
    evidence = Evidence(store, plan(scale))
    made = [_scatter(evidence)] + [_curves(name, evidence, scale) for name in PANELS]
    return [figure for figure in made if figure.panels]


def _scatter(evidence: Evidence) -> Figure:
    panels = []
    for method in PICTURE_METHODS:
        found = evidence.records(dataset=PICTURE_DATA, method=method, protocol="picture")
        panels += [panel for pair in PAIRS if (panel := _pair(method, pair, found))]
    return Figure(
        STUDY,
        "2",
        "Pairs of features and of components of sonar",
        "The training rows of the first of the paper's ten folds; its pairs are the first three: "
        "1 and 2, 3 and 4, 5 and 6. With 60 features for some 20 rows, classes that are parted "
        "here need not be parted in new rows.",
        panels,
        n_columns=len(PAIRS),
        source={"study": STUDY, "dataset": PICTURE_DATA, "protocol": "picture"},
    )


def _pair(method: str, pair: tuple[int, int], records: Sequence[Record]) -> Panel | None:
    """Return the panel of a pair, None if a method has too few components for it."""
    if max(pair) > max((r.dimension or 0 for r in records), default=0):
        return None
    series = [
        Series(CLASSES[label], x, y, kind="points")
        for label, (x, y) in points_by_label(records, pair).items()
    ]
    what = "feature" if method not in EMBEDDINGS else "component"
    return Panel(method, series, f"{what} {pair[0]}", f"{what} {pair[1]}")


def _curves(name: str, evidence: Evidence, scale: Scale) -> Figure:
    panels = [panel for row, head in PANELS[name] if (panel := _panel(row, head, evidence))]
    folds = ", ".join(f"{row} {PROBLEMS[row].n_folds}" for row in CURVES[name])
    protocols = list(dict.fromkeys(_protocol(row) for row in CURVES[name]))
    return Figure(
        STUDY,
        name.removeprefix("figure "),
        TITLES[name],
        f"Trained on one random fold, tested on the others (folds: {folds}); mean over folds, "
        f"band: standard deviation over {scale.n_seeds} partitions. Scaled as in Table 3. LDA has "
        "one component; a curve ends where some fold has nothing left to separate.",
        panels,
        source={"study": STUDY, "dataset": list(CURVES[name]), "protocol": protocols},
    )


def _panel(row: str, head: str, evidence: Evidence) -> Panel | None:
    series = []
    for method in EMBEDDINGS:
        found = evidence.records(dataset=row, method=method, protocol=_protocol(row))
        accuracies = curve([r for r in found if r.params.get("head") in (HEADS[head], None)])
        if accuracies.size:
            x = np.arange(1, accuracies.shape[1] + 1)
            spread = accuracies.std(axis=0, ddof=1) if len(accuracies) > 1 else None
            kind = "points" if len(x) == 1 else "line"
            series.append(Series(method, x, accuracies.mean(axis=0), spread, kind))
    return Panel(f"{row}, {head}", series, "dimension", "accuracy %") if series else None


def curve(records: Sequence[Record]) -> Array:
    """Return the accuracy in percent by seed and dimension, mean over folds.

    Dimensions that some fold of some seed lacks are left out; a fold without any leaves nothing.
    """
    errors: dict[tuple[int, int], dict[int, float]] = {}
    for r in records:
        fold = errors.setdefault((r.seed, r.fold), {})
        if r.value is not None and r.dimension is not None:
            fold[r.dimension] = r.value
    depth = min((len(fold) for fold in errors.values()), default=0)
    seeds = sorted({seed for seed, _ in errors})
    means = [
        np.mean(
            [
                [fold[k] for k in range(1, depth + 1)]
                for (own, _), fold in errors.items()
                if own == seed
            ],
            axis=0,
        )
        for seed in seeds
    ]
    return PERCENT * (1.0 - np.array(means)) if depth else np.zeros((0, 0))


def _protocol(row: str) -> str:
    return protocol(SHUFFLED, PROBLEMS[row].scaling)
