"""Tables of paper 002 from records and printed numbers, and what the graphs change."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from marginfold.data import catalogue
from marginfold.linalg.tall import Array
from marginfold.papers.gesvm.runs import (
    CONTROL_ROWS,
    COST,
    DATASETS,
    GAMMA,
    KERNELS,
    N_FOLDS,
    NEIGHBORS,
    PERMUTED,
    PLAIN,
    PLAIN_COSTS,
    Q1_COST,
    QUICK_ROWS,
    STUDY,
    WIDTH,
    columns,
    graph_cost,
    inner_folds,
    plan,
    reference,
    weights,
)
from marginfold.papers.paper_data import size
from marginfold.protocols.cells import NOT_COMPUTED, PERCENT, Evidence, cell, mean_by_seed
from marginfold.protocols.published_numbers import printed
from marginfold.protocols.records import RecordStore
from marginfold.protocols.results import Cell, Figure, Table
from marginfold.protocols.statistics import paired_interval
from marginfold.protocols.study_size import Scale

TITLES = {
    "4": "Accuracy with the linear kernel (Q0)",
    "5": "Accuracy with the rbf kernel (Q1)",
}

REMARKS = {
    "4": "Of hepatitis the paper prints as little as {least:.2f}, below the share of its larger "
    "class ({largest:.2f}), and does not say how it treats the missing values, of which this set "
    "has most.",
    "5": "Of german the paper prints as little as {least:.2f}, below the share of its larger class "
    "({largest:.2f}), to which an SVM tends under so narrow a kernel as gamma = 1: this needs a "
    "wrong intercept, or test rows that were scaled in another way.",
}
"""Why cells differ, one sentence a table, about the least printed number of one set."""

REMARKED = {"4": "hepatitis", "5": "german"}
"""The sets of these sentences."""

ERRATA = {"4": ("E25", "E28", "E29"), "5": ("E22", "E25", "E28")}

APART = "apart"
"""In the note of a difference whose interval excludes 0."""


def tables(store: RecordStore, scale: Scale) -> list[Table]:
    """Return Tables 4 and 5 and the differences to the plain SVM, as far as there are records."""
    evidence = Evidence(store, plan(scale))
    made = [
        make(number, evidence, scale) for number in KERNELS for make in (_accuracies, _differences)
    ]
    return [table for table in made if any(c.value is not None for c in table.cells)]


def figures(store: RecordStore, scale: Scale) -> list[Figure]:
    """Return no figure: those of the paper show no result."""
    return []


def _accuracies(number: str, evidence: Evidence, scale: Scale) -> Table:
    numbers = printed(STUDY, number)
    cells = []
    for dataset in DATASETS:
        for method in columns(KERNELS[number], scale):
            records = evidence.records(dataset=dataset, method=method, protocol=KERNELS[number])
            cells.append(
                cell(
                    dataset,
                    method,
                    records,
                    mean_by_seed(records),
                    n_rows=size(dataset)[0],
                    printed=numbers.get((dataset, method)),
                    accuracy=True,
                )
            )
    return Table(
        STUDY,
        number,
        TITLES[number],
        "accuracy %",
        cells,
        _protocol(number, scale),
        _remark(number),
        ERRATA[number],
    )


def _remark(number: str) -> str:
    """Return the sentence of a table, with the printed number and the catalogue's share."""
    dataset = REMARKED[number]
    values = [p.value for (row, _), p in printed(STUDY, number).items() if row == dataset]
    counts = catalogue()[dataset].class_counts.values()
    return REMARKS[number].format(
        least=min(value for value in values if value is not None),
        largest=PERCENT * max(counts) / sum(counts),
    )


def _protocol(number: str, scale: Scale) -> str:
    rbf = KERNELS[number] == "rbf"
    n_weights = len(weights(KERNELS[number], scale))
    inner = inner_folds(KERNELS[number], scale)
    text = (
        "Features scaled to [-1, 1] on all rows (the paper does not say on which), missing values "
        f"by the mean; {N_FOLDS} stratified folds, mean and standard deviation over "
        f"{scale.n_seeds} partitions (the printed spread is over the folds of one); raw lambda "
        f"chosen by {inner} inner folds of the training rows from {n_weights} values evenly spread "
        "over the logarithm from 0.1 to 10 (the paper: 5 inner folds, 100 values in even steps); "
        f"C = {COST:g}, equal costs; {NEIGHBORS} neighbors and heat width {WIDTH:g} as in 000, "
        "the paper has none. "
    )
    if rbf:
        text += (
            f"rbf kernel with gamma = {GAMMA:g}, as printed, solved by libsvm; the graphs at C = "
            f"{Q1_COST:g}, which is the printed Q1 at {COST:g} (E22), and beside the printed SVM "
            "one at that cost, to tell what the graph does from what the cost does. "
        )
        if scale.name == "quick":
            text += f"At this scale only sets of at most {QUICK_ROWS} rows. "
        elif scale.name != "full":
            text += f"Permuted graphs only on sets of at most {CONTROL_ROWS} rows. "
    if scale.controls:
        text += "'permuted': the same graph with its nodes given to other rows, lambda chosen anew."
    return text.strip()


def _differences(number: str, evidence: Evidence, scale: Scale) -> Table:
    kernel = KERNELS[number]
    found = {
        (dataset, method): _difference(dataset, method, kernel, evidence)
        for dataset in DATASETS
        for method in columns(kernel, scale)
        if method not in PLAIN_COSTS
    }
    text = (
        f"Paired by fold: mean over {scale.n_seeds} partitions of {N_FOLDS} folds, with the 95 % "
        f"interval of the corrected resampled t test in the note. '{APART}': the interval excludes "
        "0; of cells without any effect 5 % would."
    )
    if reference(kernel) != PLAIN:
        text += (
            f" Against the SVM at C = {graph_cost(kernel):g}, the cost of the graphs (E22): the "
            f"printed SVM has C = {COST:g}, and against it a change of C would count for the graph."
        )
    return Table(
        STUDY,
        f"{number}, differences",
        "Accuracy with a graph minus that of the plain SVM of the same cost, in points",
        "points",
        list(found.values()),
        text,
        _told(found),
        () if reference(kernel) == PLAIN else ("E22",),
    )


def _told(found: Mapping[tuple[str, str], Cell]) -> str:
    """Say how many graphs can be told from the plain SVM, and how many permuted ones."""
    own, permuted = (
        [c for (_, m), c in found.items() if (m in PERMUTED) == control and c.value is not None]
        for control in (False, True)
    )
    text = f"A graph can be told from the SVM without one in {_apart(own)} of {len(own)} cells"
    if permuted:
        text += f", one with its nodes permuted in {_apart(permuted)} of {len(permuted)}"
    return f"{text}."


def _apart(cells: Sequence[Cell]) -> int:
    return sum(c.note.endswith(APART) for c in cells)


def _difference(dataset: str, method: str, kernel: str, evidence: Evidence) -> Cell:
    """Return the mean of the paired differences, with its interval as the note."""
    plain = reference(kernel)
    column = f"{method} - {plain}"
    differences = _paired(dataset, method, kernel, evidence)
    if not differences.size:
        return Cell(dataset, column, note=NOT_COMPUTED)
    n_rows = size(dataset)[0]
    n_test = n_rows / N_FOLDS
    interval = paired_interval(PERCENT * differences, n_rows - n_test, n_test)
    note = f"95 % interval {interval.low:+.2f} to {interval.high:+.2f}"
    if interval.low > 0 or interval.high < 0:
        note += f", {APART}"
    source = {"study": STUDY, "dataset": dataset, "method": [plain, method], "protocol": kernel}
    source |= {"metric": "error"}
    return Cell(dataset, column, interval.mean, n_seeds=len(differences), note=note, source=source)


def _paired(dataset: str, method: str, kernel: str, evidence: Evidence) -> Array:
    """Return errors of the plain SVM minus those of a method, (seeds, folds), whole seeds only."""
    plain, other = (
        {
            (r.seed, r.fold): r.value
            for r in evidence.records(dataset=dataset, method=name, protocol=kernel)
            if r.value is not None
        }
        for name in (reference(kernel), method)
    )
    common = plain.keys() & other.keys()
    rows = [
        [plain[seed, fold] - other[seed, fold] for fold in range(N_FOLDS)]
        for seed in _whole(common)
    ]
    return np.array(rows).reshape(-1, N_FOLDS)


def _whole(keys: Iterable[tuple[int, int]]) -> list[int]:
    found = [seed for seed, _ in keys]
    return sorted({seed for seed in found if found.count(seed) == N_FOLDS})
