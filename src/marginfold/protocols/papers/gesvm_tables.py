"""Tables of paper 002 from records and printed numbers, and what the graphs change."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from marginfold.protocols.choices import PERCENT, Evidence, cell, mean_by_seed
from marginfold.protocols.papers.data import size
from marginfold.protocols.papers.gesvm_runs import (
    CONTROL_ROWS,
    DATASETS,
    KERNELS,
    N_FOLDS,
    PLAIN,
    QUICK_ROWS,
    STUDY,
    columns,
    inner_folds,
    plan,
    weights,
)
from marginfold.protocols.printed import printed
from marginfold.protocols.records import RecordStore
from marginfold.protocols.results import Cell, Figure, Table
from marginfold.protocols.scales import Scale
from marginfold.protocols.statistics import paired_interval
from marginfold.rows import Array

TITLES = {
    "4": "Accuracy with the linear kernel (Q0)",
    "5": "Accuracy with the rbf kernel (Q1)",
}

REMARKS = {
    "4": "The paper's hepatitis has the same 76.18 in all six columns, below the share of its "
    "larger class (79.35), which no treatment of the missing values that we tried explains.",
    "5": "With gamma = 1 the kernel of german is nearly the identity, so that every SVM is close "
    "to the larger class (70): a printed 60 for four of its graphs needs a wrong intercept or "
    "test rows that were scaled in another way.",
}
"""Why cells differ, one sentence a table."""

ERRATA = {"4": ("E25", "E28", "E29"), "5": ("E22", "E25", "E28")}

DIFFERENCE_REMARKS = {
    "4": "With the linear kernel hardly any graph can be told from the plain SVM on any set.",
    "5": "On australian, where gamma = 1 is far too narrow a kernel, the neighbors of Q_E gain "
    "several points, and next to nothing once its nodes are permuted.",
}


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
        for method in columns(scale):
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
        REMARKS[number],
        ERRATA[number],
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
        "C = 100, equal costs; 10 neighbors and heat width 2 as in 000, the paper has none. "
    )
    if rbf:
        text += (
            "rbf kernel with gamma = 1, as printed, solved by libsvm; the graphs at C = 50, which "
            "is the printed Q1 at 100 (E22). "
        )
        if scale.name == "quick":
            text += f"At this scale only sets of at most {QUICK_ROWS} rows. "
        elif scale.name != "full":
            text += f"Permuted graphs only on sets of at most {CONTROL_ROWS} rows. "
    if scale.controls:
        text += "'permuted': the same graph with its nodes given to other rows, lambda chosen anew."
    return text.strip()


def _differences(number: str, evidence: Evidence, scale: Scale) -> Table:
    cells = [
        _difference(dataset, method, KERNELS[number], evidence)
        for dataset in DATASETS
        for method in columns(scale)
        if method != PLAIN
    ]
    told = sum("apart" in c.note for c in cells)
    return Table(
        STUDY,
        f"{number}, differences",
        "Accuracy with a graph minus that of the plain SVM, in points",
        "points",
        cells,
        f"Paired by fold: mean over {scale.n_seeds} partitions of {N_FOLDS} folds, with the 95 % "
        "interval of the corrected resampled t test in the note. 'apart': the interval excludes 0, "
        f"here in {told} of {sum(c.value is not None for c in cells)} cells; of cells without any "
        "effect 5 % would.",
        DIFFERENCE_REMARKS[number],
    )


def _difference(dataset: str, method: str, kernel: str, evidence: Evidence) -> Cell:
    """Return the mean of the paired differences, with its interval as the note."""
    column = f"{method} - {PLAIN}"
    differences = _paired(dataset, method, kernel, evidence)
    if not differences.size:
        return Cell(dataset, column, note="not computed")
    n_rows = size(dataset)[0]
    n_test = n_rows / N_FOLDS
    interval = paired_interval(PERCENT * differences, n_rows - n_test, n_test)
    note = f"95 % interval {interval.low:+.2f} to {interval.high:+.2f}"
    if interval.low > 0 or interval.high < 0:
        note += ", apart"
    source = {"study": STUDY, "dataset": dataset, "method": f"{PLAIN}|{method}", "protocol": kernel}
    source["metric"] = "error"
    return Cell(dataset, column, interval.mean, n_seeds=len(differences), note=note, source=source)


def _paired(dataset: str, method: str, kernel: str, evidence: Evidence) -> Array:
    """Return errors of the plain SVM minus those of a method, (seeds, folds), whole seeds only."""
    plain, other = (
        {
            (r.seed, r.fold): r.value
            for r in evidence.records(dataset=dataset, method=name, protocol=kernel)
            if r.value is not None
        }
        for name in (PLAIN, method)
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
