"""Tables of paper 001 from records and printed numbers, and what its open choices change."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from marginfold.protocols.choices import Evidence, best_by_seed, cell, mean_by_seed
from marginfold.protocols.papers.wsvda_problems import OTHER, PROBLEMS, size_of
from marginfold.protocols.papers.wsvda_runs import (
    HEADS,
    HONEST,
    IN_ORDER,
    INNER_FOLDS,
    NESTED,
    PAIR_VARIANTS,
    PAIRS,
    PICTURE_DATA,
    PICTURE_METHODS,
    ROWS,
    SHUFFLED,
    STUDY,
    VARIANTS,
    paper_kind,
    plan,
    protocol,
)
from marginfold.protocols.printed import printed
from marginfold.protocols.records import Record, RecordStore
from marginfold.protocols.results import Cell, Table
from marginfold.protocols.scales import Scale

NUMBER = "3"

REMARK = (
    "How the rows of wine 2v3 were split and the letters of splice were coded we did not find "
    "(another order of the four letters moves NC on splice by up to 15 points), WSVDA depends on a "
    "ridge that is not printed, and where a task has nothing left to part the paper goes on with "
    "whatever its solver returns, while we stop."
)

SHUFFLED_REMARK = (
    "Sonar gains about ten points over the paper's folds, which are runs of the file, and there "
    "MMDA does as well as WSVDA; the lead of WSVDA on wine stays, and is one of scaling."
)

SCALING_REMARK = (
    "With each feature scaled for itself KNN, NC, SVM, PCA and MMDA part wine 1v3 as well as WSVDA "
    "does, whose lead on wine came from one factor for all features, which lets proline rule all "
    "methods that depend on units."
)

VARIANT_REMARK = (
    "Under one factor for all features the ridge decides over WSVDA on wine, because it is all "
    "that ties the method to their units."
)

PAIRS_REMARK = (
    "With more features than rows one component is enough to part a training fold, of MMDA as of "
    "WSVDA; that WSVDA goes on to part the second pair, as the paper says, needs a large C, and "
    "the third it parts in few folds at any."
)


def tables(store: RecordStore, scale: Scale) -> list[Table]:
    """Return Table 3, then with random folds, other scaling and settings, and Figure 2."""
    evidence = Evidence(store, plan(scale))
    makers = (_as_printed, _shuffled, _other_scaling, _variants, _pairs)
    made = [make(evidence, scale) for make in makers]
    return [table for table in made if any(c.value is not None for c in table.cells)]


def _as_printed(evidence: Evidence, scale: Scale) -> Table:
    cells = [
        _best(
            row, column, _records(evidence, row, column, paper_kind(row), problem.scaling), column
        )
        for row, problem in PROBLEMS.items()
        for column in _columns()
    ]
    text = (
        "The paper's folds, in the order of the file (a window of rows of each class, with which "
        "KNN and NC come out as printed in all rows but wine 2v3); there is one such partition, so "
        f"no spread. Splice: random folds, {scale.n_seeds} partitions."
    )
    title = "Classification results"
    errata = ("E14", "E15", "E18")
    return _table("", title, cells, f"{text} {_settings()} {_readings()}", REMARK, errata)


def _shuffled(evidence: Evidence, scale: Scale) -> Table:
    cells = []
    for row, problem in PROBLEMS.items():
        for column in _columns():
            found = _records(evidence, row, column, SHUFFLED, problem.scaling)
            cells.append(_best(row, column, found))
        for column in _nested_columns() if scale.controls else ():
            found = _records(evidence, row, column, HONEST, problem.scaling)
            values, name = mean_by_seed(found), f"{column} (nested)"
            cells.append(cell(row, name, found, values, n_rows=size_of(row), accuracy=True))
    text = f"Random stratified folds; mean and standard deviation over {scale.n_seeds} partitions."
    nested = (
        f"Columns 'nested': the dimension is chosen by {INNER_FOLDS} folds inside the training "
        "fold, not on the test rows."
    )
    return _table(
        "random folds",
        "Classification results with random folds",
        cells,
        f"{text} {_settings()} {_readings()} {nested if scale.controls else ''}".strip(),
        SHUFFLED_REMARK,
    )


def _other_scaling(evidence: Evidence, scale: Scale) -> Table:
    cells = [
        _best(row, column, _records(evidence, row, column, IN_ORDER, OTHER[problem.scaling]))
        for row, problem in PROBLEMS.items()
        if not problem.one_unit
        for column in _columns()
    ]
    return _table(
        "other scaling",
        "Classification results under the other reading of 'scaled uniformly'",
        cells,
        "The paper's folds, one partition; one factor for sonar and heart, each feature for itself "
        "for wine. All features of splice have the same range, so it is left out. " + _settings(),
        SCALING_REMARK,
        ("E18",),
    )


def _variants(evidence: Evidence, scale: Scale) -> Table:
    cells = []
    for row, problem in PROBLEMS.items():
        for head in HEADS:
            column = f"WSVDA+{head}"
            found = _records(evidence, row, column, paper_kind(row), problem.scaling)
            cells.append(_best(row, column, found, column))
            for variant in VARIANTS:
                found = _records(evidence, row, column, variant, problem.scaling)
                cells.append(_best(row, f"{column}, {variant}", found))
    return _table(
        "open settings",
        "WSVDA with other values of what the paper does not print",
        cells,
        f"As in Table {NUMBER}; one setting differs from it in each column. 'C 1/2' is the cost 1 "
        "of the printed objective, which lacks a factor 1/2; 'balanced' gives both classes the "
        "same total cost.",
        VARIANT_REMARK,
        ("E14", "E15"),
    )


def _pairs(evidence: Evidence, scale: Scale) -> Table:
    cells = []
    for pair in (f"{i}, {j}" for i, j in PAIRS):
        for method in PICTURE_METHODS:
            for variant in PAIR_VARIANTS.get(method, ("",)):
                name = f"pairs {variant}".strip()
                found = evidence.records(dataset=PICTURE_DATA, method=method, protocol=name)
                found = [r for r in found if r.params.get("pair") in (pair, None)]
                column = f"{method}, {variant}" if variant else method
                values = mean_by_seed(found)
                cells.append(cell(pair, column, found, values, n_rows=size_of(PICTURE_DATA)))
    return Table(
        STUDY,
        "figure 2, in numbers",
        "Training folds of sonar whose classes a line parts in a pair of features or components",
        "% of folds",
        cells,
        f"Ten random stratified folds of sonar, {scale.n_seeds} partitions, each fold a training "
        "set as in Figure 2; a pair is parted if a linear program finds a line. The paper claims "
        "all pairs for WSVDA and for no other method, of one training set.",
        PAIRS_REMARK,
    )


def _table(
    suffix: str,
    title: str,
    cells: Sequence[Cell],
    text: str,
    remark: str,
    errata: Iterable[str] = (),
) -> Table:
    number = f"{NUMBER}, {suffix}" if suffix else NUMBER
    return Table(STUDY, number, title, "accuracy %", cells, text, remark, tuple(errata))


def _records(evidence: Evidence, row: str, column: str, kind: str, scaling: str) -> list[Record]:
    """Return the records of a column; those without a value have no head and belong to all."""
    method, _, head = column.rpartition("+")
    if column in HEADS:
        method, head = ROWS, column
    name = protocol(kind, scaling)
    found = evidence.records(dataset=row, method=method or column, protocol=name)
    return [r for r in found if r.params.get("head") in (HEADS.get(head), None)]


def _best(row: str, name: str, records: Sequence[Record], column: str | None = None) -> Cell:
    """Return the largest accuracy over dimensions of the mean over folds, as the paper has it.

    A column stands for the printed one of its name.
    """
    beside = printed(STUDY, NUMBER)[row, column] if column else None
    values = best_by_seed(records)
    return cell(row, name, records, values, n_rows=size_of(row), printed=beside, accuracy=True)


def _columns() -> list[str]:
    return list(dict.fromkeys(column for _, column in printed(STUDY, NUMBER)))


def _nested_columns() -> list[str]:
    return [f"{method}+{head}" for head in HEADS for method in NESTED]


def _readings() -> str:
    return (
        "Scaled to [-1, 1] on all rows before the split, wine by one factor for the whole matrix, "
        "the others each feature for itself: the paper has 'uniformly', and these are the readings "
        "that reproduce KNN and NC."
    )


def _settings() -> str:
    counts = ", ".join(f"{row} {problem.n_folds}" for row, problem in PROBLEMS.items())
    return (
        f"Trained on one fold, tested on the others, each in turn; folds: {counts} (splice is not "
        "printed: ours; junctions against none, letters coded 1 to 4). Mean over folds, then the "
        "best dimension *on the test rows*, as the paper does. KNN has 5 neighbors; C = 1, ridge "
        "1e-8 of the mean eigenvalue of the scatter, shrinkage 1e-12 in LDA, equal costs: none of "
        "these is printed, and they, the windows and the scaling were chosen among several by how "
        "near they come to the printed numbers. Components that separate nothing are not returned."
    )
