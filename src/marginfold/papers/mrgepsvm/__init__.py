"""Paper 003, manifold regularised proximal planes: Tables 1-5, Figure 5 and their controls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from marginfold.data import catalogue
from marginfold.linalg.tall import Array
from marginfold.papers.mrgepsvm import methods, runs
from marginfold.papers.mrgepsvm.methods import STUDY
from marginfold.papers.mrgepsvm.runs import study_tasks
from marginfold.papers.paper_data import row_count
from marginfold.protocols.cells import PERCENT, Evidence, accuracy_cell, cell, nested_means
from marginfold.protocols.published_numbers import Printed, printed
from marginfold.protocols.records import Record, RecordStore
from marginfold.protocols.results import (
    DIFFERS,
    Cell,
    Figure,
    Panel,
    Series,
    Table,
    scatter_series,
)
from marginfold.protocols.studies import StudySize

TITLES = {
    "1": "Accuracy with the linear kernel",
    "2": "Accuracy with the rbf kernel",
    "3": "Time of fitting with the rbf kernel, as a ratio to GEPSVM",
    "4": "Time of fitting with the linear kernel, as a ratio to GEPSVM",
    "5": "Accuracy on USPS digits by the number of training images of each digit",
}

LINEAR_REMARK = (
    "The paper does not say on which rows it measures, and a tenth of a small set is too few rows "
    "to tell parameters apart: chosen on the test folds, over 5 partitions, MRGEPSVM agrees with "
    "print on hepatitis (83.0) and is near to it on ionosphere (84.8); on sonar this was not tried"
)

RIDGE_REMARK = (
    "as if its ridge had not been chosen ('2^-9' has the smallest of the grid): with 2^-2 on all "
    "sets, of 19 exponents the nearest to print, it agrees with print on ionosphere (77.2) and is "
    "near on hepatitis (53.0) and sonar (70.5), and on votes (93.7) if a missing vote is a third "
    "value, 2 beside 0 and 1, of 6 codings"
)

RBF_REMARK = (
    "The printed SVM on {row} ({value:.2f}) is next to the share of its larger class "
    "({largest:.2f}), which is what LIBSVM returns if nothing is chosen ('defaults'). With "
    "parameters chosen on the test folds, over 5 partitions, GEPSVM on {row} agrees with print "
    "(61.5) and MRGEPSVM is near (62.0). GEPSVM on wpbc agrees at a fixed ridge of 1 and gamma = "
    "2^-6 (61.9), chosen by print among 40 settings, at which that on {row} does not (50.4). The "
    "paper gives no kernel width, and its ridge on coefficients weighs directions of little "
    "variance most (E43). MRGEPSVM on wpbc was not looked into."
)

TIMES_REMARK = (
    "On the printed side of {reference} are {same} of {n} ratios; MRGEPSVM solves the eigenproblem "
    "of GEPSVM and builds a graph on top, so that it cannot be the faster of the two in one "
    "implementation (E44)."
)

DIGITS_REMARK = (
    "The printed SVM is that of LIBSVM's defaults on grey values from 0 to 1 ('defaults'), not one "
    "whose cost was chosen, as the text has it; planes come near to print if there are two for "
    "each pair of digits, and not if there is one for each digit ('one against rest'). In print "
    "the graph gains {least:.1f} to {most:.1f} points; no reading that was tried gains any of "
    "them. With ridge and graph weight chosen on the test images, over 5 draws, MRGEPSVM comes to "
    "88.8 at l = 30 and 91.8 at l = 50, as GEPSVM so chosen does (88.8 and 91.8), and with the "
    "graph on the other side of the quotient (E35) to 88.9 and 91.9; beyond GEPSVM, 3 or 15 "
    "neighbors and kernels of half or twice the width gain at most 0.2 points (2 draws), the test "
    "images as unlabelled rows of the graph 0.6 (one draw). Twin planes by least squares, another "
    "method, come to 95.0 at l = 50 so chosen (2 draws). Why TSVM is above print at l = 10 was "
    "not looked into. The paper's images are not to be had "
    "in full, and it states neither the kernel nor the scaling."
)

FITTED = {
    "1": "Nothing in the counted columns. The column '2^-9' was found by the printed GEPSVM.",
    "2": "Nothing in the counted columns. The column 'defaults' was found by the printed SVM.",
    "3": "Nothing.",
    "4": "Nothing.",
    "5": "That planes and SVMs are one against one, the Tikhonov term in feature space, the kernel "
    "of LPP and its neighbors of the same digit: the paper says nothing of ten classes nor of "
    "these. The column 'defaults', its grey values from 0 to 1 included, was found by the printed "
    "SVM.",
}
"""What was chosen by the printed numbers."""

HONEST = (
    "With scaling and parameters from the training rows alone, mean accuracy over the data sets "
    "(instead of that with a tuning set whose rows are tested too)"
)

DIGITS_HONEST = (
    "The parameters of all columns but 'defaults', which has none, are chosen by folds of the "
    "training images: these are honest numbers, but for the readings above."
)

GUESSED = "liver"
"""The set whose printed SVM is next to guessing."""

SAME_SIDE, OTHER_SIDE = "same side", "other side"
"""In the note of a ratio: slower or faster than the reference as printed, or not."""

ERRATA = {
    "1": ("E33", "E35", "E37", "E38"),
    "2": ("E35", "E38", "E39", "E40", "E43"),
    "3": ("E44",),
    "4": ("E44",),
    "5": ("E35", "E38"),
}

REFERENCE = "GEPSVM"
"""The method whose time is 1."""

EDGE = 1.3
"""Planes are drawn inside the square of this half width."""


def tables(store: RecordStore, size: StudySize) -> list[Table]:
    """Return Tables 1 to 5, as far as there are records."""
    evidence = Evidence(store, study_tasks(size))
    made = [_accuracies(number, evidence, size) for number in runs.KERNELS]
    made += [_times("3", "rbf", evidence, size), _times("4", "linear", evidence, size)]
    made += [_digits(evidence, size)]
    return [table for table in made if any(c.source for c in table.cells)]


def _accuracies(number: str, evidence: Evidence, size: StudySize) -> Table:
    kernel, numbers, cells = runs.KERNELS[number], printed(STUDY, number), []
    for dataset in runs.DATASETS[number]:
        n_rows = row_count(dataset)
        for method in methods.PRINTED:
            records = evidence.records(dataset=dataset, method=method, protocol=runs.tuned(kernel))
            beside = numbers[dataset, method]
            cells.append(accuracy_cell(dataset, method, records, n_rows=n_rows, printed=beside))
        for method in methods.UNTUNED[kernel]:
            records = evidence.records(dataset=dataset, method=method, protocol=runs.tuned(kernel))
            beside = numbers[dataset, method.split()[0]]
            made = accuracy_cell(dataset, method, records, n_rows=n_rows, printed=beside)
            cells.append(replace(made, counted=False))
        for method in methods.CONTROLS[kernel] if size.controls else ():
            records = evidence.records(dataset=dataset, method=method, protocol=runs.nested(kernel))
            cells.append(accuracy_cell(dataset, f"{method} (nested)", records, n_rows=n_rows))
    remark = _below(cells) if kernel == "linear" else _guessed(numbers)
    table = _table(number, "accuracy %", cells, _accuracy_protocol(kernel, size), remark)
    nested = nested_means(cells)
    return replace(table, honest=f"{HONEST}: {nested}." if nested else "")


def _below(cells: Sequence[Cell]) -> str:
    """Say on which sets the printed reference is below ours by more than chance."""
    rows = [
        c.row
        for c in cells
        if c.column == REFERENCE and c.mark == DIFFERS and (c.value or 0.0) > (c.printed or 0.0)
    ]
    if not rows:
        return f"{LINEAR_REMARK}."
    return f"{LINEAR_REMARK}; its {REFERENCE} is below ours on {', '.join(rows)}, {RIDGE_REMARK}."


def _guessed(numbers: Mapping[tuple[str, str], Printed]) -> str:
    counts = catalogue()[GUESSED].class_counts.values()
    largest = PERCENT * max(counts) / sum(counts)
    return RBF_REMARK.format(row=GUESSED, value=numbers[GUESSED, "SVM"].value, largest=largest)


def _accuracy_protocol(kernel: str, size: StudySize) -> str:
    shown = {name: _listed(tried) for name, tried in methods.grid(kernel, size.name).items()}
    text = (
        "Features scaled to [-1, 1] on all rows, missing values by the mean; parameters chosen on "
        "a tuning set of 10 % of all rows, as printed (we train on the other 90 %, and of equal "
        f"ones take the nearest to 1), then measured on {runs.N_FOLDS} stratified folds of all "
        "rows, tuning set included; the paper does not say how it measured. Mean and standard "
        f"deviation over {size.n_seeds} partitions. Ridges and costs 2^i with i in {shown['C']}, "
        f"weights of the graph with i in {shown['graph_weight']} (the paper: all from -9 to 9), in "
        f"raw units; {methods.NEIGHBORS} mutual neighbors (the paper: 3 to 20), heat width 2; "
        "TSVM with equal costs and a ridge of 2^-9. "
    )
    if kernel == "rbf":
        text += f"Kernel width gamma 2^i with i in {shown['gamma']}, chosen with the rest. "
    text += {
        "linear": "'2^-9': GEPSVM with this ridge, the smallest of the grid, without a choice. ",
        "rbf": "'defaults': an SVM with C = 1 and gamma = 1/d, without a choice. ",
    }[kernel]
    if size.controls:
        text += (
            "'nested': scaled on the training rows, parameters chosen by "
            f"{runs.INNER_FOLDS} folds inside them. "
        )
        text += {
            "linear": "'numerator': the graph on the other side of the quotient (E35).",
            "rbf": "'rkhs': the ridge on the normal in feature space, not on coefficients (E43).",
        }[kernel]
    return text.strip()


def _listed(exponents: Sequence[int]) -> str:
    return "{" + ", ".join(map(str, exponents)) + "}"


def _times(number: str, kernel: str, evidence: Evidence, size: StudySize) -> Table:
    numbers, cells = printed(STUDY, number), []
    for dataset in runs.TIMED_DATASETS:
        records = evidence.records(dataset=dataset, protocol=f"{kernel}, times")
        seconds = {r.params["method"]: r.value for r in records if r.value is not None}
        for method in methods.PRINTED:
            if method != REFERENCE:
                ratio = _printed_ratio(numbers, dataset, method)
                cells.append(_ratio(dataset, method, records, seconds, ratio))
    sides = [c.note.split(":")[0] for c in cells]
    same, other = sides.count(SAME_SIDE), sides.count(OTHER_SIDE)
    remark = TIMES_REMARK.format(reference=REFERENCE, same=same, n=same + other)
    protocol = (
        f"Median CPU time of {runs.repeats(size)} fits on all rows scaled to "
        "[-1, 1], all weights and costs 1, in turns within one process with one thread, divided by "
        "that of GEPSVM; the printed column is the ratio of the printed seconds. SVM is compiled "
        "code (libsvm), the others are NumPy and SciPy. Not marked by the rule of the other "
        "tables: the note says whether the method is on the same side of GEPSVM, slower or faster, "
        "as printed. "
    )
    if kernel == "rbf":
        protocol += f"gamma = 1/d; sets above {runs.KERNEL_ROWS} rows are subsampled to that."
    return _table(number, "ratio", cells, protocol.strip(), remark)


def _printed_ratio(
    numbers: Mapping[tuple[str, str], Printed], dataset: str, method: str
) -> float | None:
    own, reference = numbers[dataset, method].value, numbers[dataset, REFERENCE].value
    return own / reference if own and reference else None


def _ratio(
    dataset: str,
    method: str,
    records: list[Record],
    seconds: Mapping[str, float],
    beside: float | None,
) -> Cell:
    column = f"{method} / {REFERENCE}"
    empty = replace(cell(dataset, column, records, [], n_rows=0), printed=beside)
    if method not in seconds or REFERENCE not in seconds:
        return empty
    own, reference = seconds[method], seconds[REFERENCE]
    ratio = own / reference
    note = f"{1000 * own:.3g} ms, {REFERENCE} {1000 * reference:.3g} ms"
    if beside is not None:
        note = f"{SAME_SIDE if (ratio > 1) == (beside > 1) else OTHER_SIDE}: {note}"
    return replace(empty, value=ratio, n_seeds=1, note=note)


def _digits(evidence: Evidence, size: StudySize) -> Table:
    numbers, cells = printed(STUDY, "5"), []
    for n_labelled in runs.LABELLED:
        row = runs.row_name(n_labelled)
        for dataset in runs.renderings(size):
            same = dataset == runs.DIGITS
            for method in (*runs.DIGIT_METHODS, *runs.DIGIT_VARIANTS):
                records = evidence.records(dataset=dataset, method=method, protocol=row)
                column = method if same else f"{method} ({runs.RENDERING})"
                beside = numbers[row, method.split()[0]] if same else None
                n_tested = (10 if same else 8) * (runs.PER_CLASS - n_labelled)
                made = accuracy_cell(row, column, records, n_rows=n_tested, printed=beside)
                cells.append(replace(made, counted=method in runs.DIGIT_METHODS))
    gains = [_gain(numbers, runs.row_name(n_labelled)) for n_labelled in runs.LABELLED]
    remark = DIGITS_REMARK.format(least=min(gains), most=max(gains))
    table = _table("5", "accuracy %", cells, _digits_protocol(size), remark)
    return replace(table, honest=DIGITS_HONEST)


def _gain(numbers: Mapping[tuple[str, str], Printed], row: str) -> float:
    """Return what the graph gains in print, in points."""
    own, reference = (numbers[row, method].value for method in ("MRGEPSVM", REFERENCE))
    return (own or 0.0) - (reference or 0.0)


def _digits_protocol(size: StudySize) -> str:
    shown = {name: _listed(tried) for name, tried in runs.digit_grid(size).items()}
    text = (
        f"{runs.PER_CLASS} images of each digit drawn at random, l of each for training and the "
        "others for testing, grey values scaled to [-1, 1] by one factor; mean and standard "
        f"deviation over {size.n_seeds} draws; rbf kernel with gamma = 1/d for all (the paper "
        "states none, and names kernel LPP); Tikhonov term in feature space; parameters chosen by "
        f"{runs.INNER_FOLDS} folds of the training images: costs 2^i with i in {shown['C']}, "
        f"ridges {shown['ridge']}, graph weights {shown['graph_weight']} (the paper: all from -9 "
        f"to 9), {methods.NEIGHBORS} neighbors; SVM, TSVM and planes one against one; LPP on the "
        "neighbors of the same digit, at most "
        f"{runs.LPP_COMPONENTS} components, and 1-NN."
    )
    if runs.RENDERING in runs.renderings(size):
        text += f" '{runs.RENDERING}': the paper's images without the digits 6 and 7."
    return text


def _table(number: str, unit: str, cells: list[Cell], protocol: str, remark: str) -> Table:
    errata, fitted = ERRATA[number], FITTED[number]
    return Table(
        STUDY, number, TITLES[number], unit, cells, protocol, remark, errata, fitted=fitted
    )


def figures(store: RecordStore, size: StudySize) -> list[Figure]:
    """Return Figure 5, if there are records."""
    evidence = Evidence(store, study_tasks(size, "figure 5"))
    panels = [panel for method in runs.PLANE_METHODS if (panel := _panel(method, evidence))]
    if not panels:
        return []
    weights = ", ".join(f"{name} {value:g}" for name, value in runs.PLANE_PARAMS.items())
    return [
        Figure(
            STUDY,
            "5",
            "Crossing planes",
            "Two classes around crossing lines, with the plane that each method learns for each, "
            f"and the accuracy on these training rows. Rows are ours and {weights}: the paper "
            "gives neither.",
            panels,
            source={"study": STUDY, "dataset": runs.PLANES, "protocol": "picture"},
        )
    ]


def _panel(method: str, evidence: Evidence) -> Panel | None:
    records = evidence.records(dataset=runs.PLANES, method=method, status="done")
    if not records:
        return None
    wrong = next(r.value for r in records if r.metric == "error")
    points = scatter_series(records, name=lambda label: f"class {label + 1}")
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
    >>> from marginfold.papers.mrgepsvm import line_ends
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
