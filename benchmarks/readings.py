"""Readings of what the papers leave open, each tried on the cells that differ from print.

Every reading is measured as the table measures, over five partitions of the rows (001's wine has
one, its windows), and judged by the rule of the page: agrees, near, differs.  Those of ties, small
classes, LDA's ridge and missing values were written down before they were measured.  The others
were found by a search for what comes near to print, and only the hits are repeated here: the remark
of each table says among how many.  A reading is worth something if it explains several cells at
once, and its price is what it does to cells that agree: those stand here too.

``python benchmarks/readings.py`` prints all of them, ``--only ties,splice`` some groups.  Sets
that are not bundled are read from the folder MARGINFOLD_DATA; without it their groups end early.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.svm import SVC
from threadpoolctl import threadpool_limits

from marginfold import LDA, LPP, ExactKernel, NeighborGraph
from marginfold.estimators.gesvm import GESVC
from marginfold.linalg.tall import Array
from marginfold.papers import gesvm, lsva, wsvda
from marginfold.papers.gesvm.settings import COST, GRAPHS
from marginfold.papers.lsva import runs as lsva_runs
from marginfold.papers.mrgepsvm import methods as planes
from marginfold.papers.paper_data import rows_and_labels, scaled_fold
from marginfold.papers.wsvda import runs as wsvda_runs
from marginfold.protocols.embeddings import EmbeddingMethod, best_selection
from marginfold.protocols.held_out import errors_by_dimension
from marginfold.protocols.published_numbers import printed
from marginfold.protocols.results import mark
from marginfold.protocols.splits import Fold, folds
from marginfold.protocols.studies import Skip, Task, study_size

SEEDS, N_FOLDS = range(5), 5
"""Partitions, and folds of each (000, 002 and 003)."""

SIZE = study_size("standard")
"""Graph weights and components of the page."""

SAME = 1e-9
"""Distances that differ by less than this share of the largest are ties."""

NO_RIDGE, SMALL_RIDGE = 1e-8, 1e-5
"""Relative ridges of LE below that of the page, 1e-3."""

AS_ZERO_ONE = 1.0 / 8.0
"""gamma on -1 and 1 that is the paper's 1/2 on 0 and 1, whose squared distances are a quarter."""

ORDERS = {"A C G T": (1, 2, 3, 4), "A T C G": (1, 3, 4, 2), "G C A T": (3, 2, 1, 4)}
"""Letters of splice in the order in which they are 1, 2, 3, 4; the numbers are those of A C G T."""

SOME_FOLDS = 3
"""Folds of a partition of splice that are trained on."""

SPLICE_COMPONENTS = 5
"""Components on splice, at most: the best of MMDA and WSVDA have one to three."""

Errors = Callable[[Array, Array, Array, Array], Array]
Embedded = Iterable[tuple[Any, Array, Array]]


@dataclass(frozen=True)
class Tried:
    """One reading of one cell, in percent by partition."""

    table: tuple[str, str]
    row: str
    column: str
    reading: str
    values: Array
    n_rows: int

    def __str__(self) -> str:
        beside = printed(*self.table)[self.row, self.column].value
        spread = float(self.values.std(ddof=1)) if len(self.values) > 1 else None
        shown = f"{self.values.mean():6.2f}" + (
            f" ± {spread:4.2f}" if spread is not None else " " * 7
        )
        found = mark(float(self.values.mean()), spread, beside, self.n_rows)
        cell = f"{' '.join(self.table):11} {self.row:12} {self.column:10} {beside:6.2f}"
        return f"{cell} {shown} {found:8} {self.reading}"


def main() -> None:
    """Print the readings of all groups, or of some."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default=",".join(GROUPS), help="names of groups, with commas")
    names = parser.parse_args().only.split(",")
    warnings.simplefilter("ignore")
    sys.stdout.write("table       row          column    printed  ours          mark     reading\n")
    with threadpool_limits(1):
        for name in names:
            start = time.process_time()
            try:
                for tried in GROUPS[name]():
                    sys.stdout.write(f"{tried}\n")
                    sys.stdout.flush()
            except Skip as skip:
                sys.stdout.write(f"{skip}\n")
            sys.stdout.write(f"-- {name}: {time.process_time() - start:.0f} s CPU\n")


def nearest(rows: Array, labels: Array, new: Array, new_labels: Array) -> Array:
    """Return the errors of 1-NN by dimension; of ties the first training row decides."""
    head = lsva_runs.HEAD
    return errors_by_dimension([head], rows, labels, new, new_labels)[head]


def voted(rows: Array, labels: Array, new: Array, new_labels: Array) -> Array:
    """Return the errors of 1-NN by dimension if all training rows that are nearest vote."""
    counts = np.bincount(labels)
    errors = []
    for k in range(1, rows.shape[1] + 1):
        distances = cdist(new[:, :k], rows[:, :k])
        tied = distances <= distances.min(axis=1, keepdims=True) + SAME * distances.max()
        votes = np.stack([tied[:, labels == label].sum(axis=1) for label in range(len(counts))], 1)
        predicted = (votes + counts / (2.0 * counts.sum())).argmax(axis=1)
        errors.append(float(np.mean(predicted != new_labels)))
    return np.array(errors)


def last_dimension(errors: Errors) -> Errors:
    """Return the errors of all columns together only: those of the rows as they are."""
    return lambda *fold: errors(*fold)[-1:]


def partitions(X: Array, y: Array, scaling: str = "whole") -> Iterator[list[Fold]]:
    """Yield the scaled folds of each partition."""
    for seed in SEEDS:
        yield [scaled_fold(X, y, *split, scaling) for split in folds(y, N_FOLDS, seed)]


def least_errors(
    parts: Iterable[Sequence[Fold]], embed: Callable[[Fold], Embedded], errors: Errors = nearest
) -> Array:
    """Return, for each partition, the error in percent of the best weight and dimension."""
    found = []
    for part in parts:
        curves: list[dict[tuple[str, float | None], Array]] = [
            {
                ("", weight): errors(rows, fold.y, new, fold.y_test)
                for weight, rows, new in embed(fold)
            }
            for fold in part
        ]
        choice = best_selection(curves, "")
        found.append(np.nan if choice is None else 100.0 * choice.error)
    return np.array(found)


def fitted(method: EmbeddingMethod) -> Callable[[Fold], Embedded]:
    """Return the scores of a method, for each of its graph weights."""

    def embed(fold: Fold) -> Embedded:
        for weight, model in method.fits(fold.X, fold.y):
            yield (
                (weight, fold.X, fold.X_test)
                if model is None
                else (weight, model.transform(fold.X), model.transform(fold.X_test))
            )

    return embed


def of_the_page(number: str, dataset: str, column: str, **options: Any) -> EmbeddingMethod:
    """Return a method of 000 as the page has it, but for some options."""
    task = next(
        task
        for task in lsva.study_tasks(SIZE, number)
        if (task.dataset, task.method, task.protocol) == (dataset, column, "paper")
    )
    task = replace(task, options={**task.options, **options})
    return lsva_runs.embedding(task, SIZE, rows_and_labels(dataset)[0].shape[1])


def laplacian_eigenmaps(dataset: str, gamma: float, ridge: float, width: float) -> EmbeddingMethod:
    """Return LE as kernel LPP of neighbors of the same class."""
    graph = NeighborGraph(lsva_runs.NEIGHBORS, width=width, within_class=True)
    kernel = ExactKernel("rbf", gamma=gamma)
    n_columns = rows_and_labels(dataset)[0].shape[1]
    return EmbeddingMethod(LPP(n_columns, graph=graph, kernel=kernel, ridge=ridge))


def ties() -> Iterator[Tried]:
    """000, transfusion: 246 of its 748 rows equal another one, often of the other class."""
    X, y = rows_and_labels("transfusion")
    distinct = np.sort(np.unique(X, axis=0, return_index=True)[1])
    columns = {"I": ("1-NN", "PCA", "LDA", "LPP", "MMDA", "LLSVA"), "II": ("KPCA", "KDA", "LE")}
    for number, names in columns.items():
        for column in names:
            embed = fitted(of_the_page(number, "transfusion", column))
            whole = last_dimension if column == "1-NN" else lambda errors: errors
            for reading, (rows, labels, errors) in {
                "of equally near rows the first decides (page)": (X, y, nearest),
                "all equally near rows vote": (X, y, voted),
                "of equal rows the first is kept": (X[distinct], y[distinct], nearest),
            }.items():
                values = least_errors(partitions(rows, labels), embed, whole(errors))
                yield Tried(("lsva", number), "transfusion", column, reading, values, len(y))


def signs() -> Iterator[Tried]:
    """000, KLSVA on transfusion: the sign of an SVM, on new rows and on those of its training."""
    X, y = rows_and_labels("transfusion")
    for gamma in (1 / 4, 1 / 2, 1.0):
        errors = np.array(
            [
                np.mean([_svm_errors(fold, gamma) for fold in part], axis=0)
                for part in partitions(X, y)
            ]
        )
        for reading, values in zip(("new rows", "training rows"), errors.T, strict=True):
            reading = f"sign of an SVM with gamma {gamma:g}, {reading}"
            yield Tried(("lsva", "II"), "transfusion", "KLSVA", reading, values, len(y))


def _svm_errors(fold: Fold, gamma: float) -> tuple[float, float]:
    model = SVC(C=lsva_runs.COST, gamma=gamma).fit(fold.X, fold.y)
    scores = model.score(fold.X_test, fold.y_test), model.score(fold.X, fold.y)
    return 100.0 * (1.0 - scores[0]), 100.0 * (1.0 - scores[1])


def small_classes() -> Iterator[Tried]:
    """000, ecoli: two of its eight classes have two rows, fewer than there are folds."""
    X, y = rows_and_labels("ecoli")
    large = np.bincount(y)[y] >= N_FOLDS
    kept = np.unique(y[large], return_inverse=True)[1]
    for number, columns in {"III": ("1-NN", "PCA", "LDA", "LPP", "LLSVA"), "IV": ("KDA",)}.items():
        for column in columns:
            embed = fitted(of_the_page(number, "ecoli", column))
            errors = last_dimension(nearest) if column == "1-NN" else nearest
            for reading, parts in {
                "all classes (page)": partitions(X, y),
                "without the classes of 2 rows": partitions(X[large], kept),
                "the classes of 2 rows are learnt from, not tested": _never_tested(X, y, ~large),
            }.items():
                values = least_errors(parts, embed, errors)
                yield Tried(("lsva", number), "ecoli", column, reading, values, len(y))


def _never_tested(X: Array, y: Array, always: Array) -> Iterator[list[Fold]]:
    others, fixed = np.flatnonzero(~always), np.flatnonzero(always)
    for seed in SEEDS:
        yield [
            scaled_fold(X, y, np.concatenate([others[train], fixed]), others[test], "whole")
            for train, test in folds(y[others], N_FOLDS, seed)
        ]


def lda() -> Iterator[Tried]:
    """000, LDA: its ridge, principal components before it, and the scatter of the class means."""
    readings: dict[str, Callable[[Fold], Embedded]] = {
        "shrinkage 1e-8 (page)": fitted(EmbeddingMethod(LDA())),
        "shrinkage 0.1": fitted(EmbeddingMethod(LDA(shrinkage=0.1))),
        "shrinkage 0.5": fitted(EmbeddingMethod(LDA(shrinkage=0.5))),
        "after PCA to 95 % of the variance": after_pca(0.95),
        "the class means only (shrinkage 0.999)": fitted(EmbeddingMethod(LDA(shrinkage=0.999))),
    }
    tables = {"ionosphere": "I", "ecoli": "III", "transfusion": "I", "vehicle": "III"}
    for dataset, number in tables.items():
        X, y = rows_and_labels(dataset)
        for reading, embed in readings.items():
            values = least_errors(partitions(X, y), embed)
            yield Tried(("lsva", number), dataset, "LDA", reading, values, len(y))


def after_pca(share: float) -> Callable[[Fold], Embedded]:
    """Return LDA of the first principal components, which have a share of the variance."""

    def embed(fold: Fold) -> Embedded:
        mean = fold.X.mean(axis=0)
        _, values, directions = np.linalg.svd(fold.X - mean, full_matrices=False)
        shares = np.cumsum(values**2) / np.sum(values**2)
        kept = directions[: int(np.searchsorted(shares, share)) + 1].T
        rows, new = (fold.X - mean) @ kept, (fold.X_test - mean) @ kept
        model = LDA().fit(rows, fold.y)
        yield None, model.transform(rows), model.transform(new)

    return embed


def widths() -> Iterator[Tried]:
    """000, KPCA and KDA: widths of the kernel, the ridge, soy as 0 and 1, a slip of centring."""
    gammas = {"1/d": "auto", "1/8": 1 / 8, "1/4": 1 / 4, "1/2 (page)": 1 / 2, "1": 1.0, "4": 4.0}
    cells = {"heart": ("II", "KPCA"), "sonar": ("II", "KDA")}
    cells |= {"tae": ("IV", "KPCA"), "soy3": ("IV", "KPCA")}
    for dataset, (number, column) in cells.items():
        for name, gamma in gammas.items():
            yield _kernel_cell(number, dataset, column, f"gamma {name}", gamma=gamma)
    for dataset in ("soy3", "tae"):
        for shrinkage in (1e-6, 0.1, 0.5):
            for gamma in (AS_ZERO_ONE, 1 / 2):
                reading = f"gamma {gamma:g}, shrinkage {shrinkage:g}"
                reading += " (page)" if (gamma, shrinkage) == (1 / 2, 0.1) else ""
                options = {"gamma": gamma, "shrinkage": shrinkage}
                yield _kernel_cell("IV", dataset, "KDA", reading, **options)
    for dataset in ("tae", "glass", "thyroid"):
        X, y = rows_and_labels(dataset)
        gamma = 1.0 / X.shape[1]
        for column in ("KPCA", "KDA"):
            method = of_the_page("IV", dataset, column, gamma=gamma)
            values = least_errors(partitions(X, y), new_rows_not_centred(method, gamma))
            reading = "gamma 1/d, the kernel of new rows is not centred"
            yield Tried(("lsva", "IV"), dataset, column, reading, values, len(y))


def _kernel_cell(number: str, dataset: str, column: str, reading: str, **options: Any) -> Tried:
    X, y = rows_and_labels(dataset)
    embed = fitted(of_the_page(number, dataset, column, **options))
    values = least_errors(partitions(X, y), embed)
    return Tried(("lsva", number), dataset, column, reading, values, len(y))


def new_rows_not_centred(method: EmbeddingMethod, gamma: float) -> Callable[[Fold], Embedded]:
    """Return scores of a centred kernel, where the kernel of new rows is left as it is.

    Coefficients A of the scores have the sum 0, so that all new rows move by ``A'K1 / n``.
    """

    def embed(fold: Fold) -> Embedded:
        K = rbf_kernel(fold.X, gamma=gamma)
        mean = K.mean(axis=0)
        centred = K - mean - mean[:, None] + mean.mean()
        for weight, rows, new in fitted(method)(fold):
            A = np.linalg.lstsq(centred, rows - rows.mean(axis=0), rcond=SAME)[0]
            yield weight, rows, new + mean @ A

    return embed


def eigenmaps() -> Iterator[Tried]:
    """000, LE: kernel LPP within the classes at other widths and ridges."""
    sets = {
        "II": ("diabetes", "sonar", "ionosphere"),
        "IV": ("balance", "soy3", "tae", "thyroid", "vowel"),
    }
    for number, names in sets.items():
        for dataset in names:
            X, y = rows_and_labels(dataset)
            half, inverse = lsva_runs.GAMMA, 1.0 / X.shape[1]
            readings = {
                "gamma 1/2, ridge 1e-3 (page)": (half, 1e-3, lsva_runs.WIDTH),
                "gamma 1/d, ridge 1e-3": (inverse, 1e-3, lsva_runs.WIDTH),
                "gamma 1/2, ridge 1e-8": (half, NO_RIDGE, lsva_runs.WIDTH),
                "gamma 1/d, ridge 1e-5": (inverse, SMALL_RIDGE, lsva_runs.WIDTH),
            }
            if dataset == "soy3":
                readings["0 and 1 instead of -1 and 1"] = (AS_ZERO_ONE, 1e-3, 4 * lsva_runs.WIDTH)
            for reading, settings in readings.items():
                embed = fitted(laplacian_eigenmaps(dataset, *settings))
                values = least_errors(partitions(X, y), embed)
                yield Tried(("lsva", number), dataset, "LE", reading, values, len(y))


def wine() -> Iterator[Tried]:
    """001, wine 2v3: windows of other sizes, cost and ridge, which the paper sets for each line."""
    X, y = wsvda_runs.rows_of("wine 2v3")
    problem = wsvda_runs.PROBLEMS["wine 2v3"]
    for (first, second), cost, ridge in (
        ((8, 5), 1.0, 1e-8),
        ((8, 5), 1.0, 1e-2),
        ((5, 8), 1.0, 1e-8),
        ((5, 8), 10.0, 1e-2),
    ):
        splits = wsvda_runs.windows(y, problem.n_folds, (first, second))
        parts = [[scaled_fold(X, y, *split, problem.scaling) for split in splits]]
        reading = f"{first} and {second} rows to train, C = {cost:g}, ridge {ridge:g}"
        reading += " (page)" if (first, cost, ridge) == (8, 1.0, 1e-8) else ""
        yield from _line("wine 2v3", reading, parts, {"C": cost, "ridge": ridge}, X.shape[1])


def splice() -> Iterator[Tried]:
    """001, splice: the order of the letters, the number of folds, one column for each letter."""
    X, classes = rows_and_labels("splice")
    certain = np.isin(X, ORDERS["A C G T"]).all(axis=1)
    letters, y = X[certain].astype(int), (classes[certain] == classes.max()).astype(int)
    for order, n_folds in (("A C G T", 10), ("A C G T", 5), ("G C A T", 15), ("A T C G", 15)):
        coded = np.array([0, *ORDERS[order]], dtype=float)[letters]
        reading = f"letters in the order {order}, {n_folds} folds, at most 5 components"
        reading += " (page: all)" if n_folds == 10 else ""
        parts = _inverted(coded, y, n_folds)
        yield from _line("splice", reading, parts, {}, SPLICE_COMPONENTS)
    binary = np.concatenate([letters == letter for letter in ORDERS["A C G T"]], axis=1)
    parts = _inverted(binary.astype(float), y, 10)
    yield from _line("splice", "a column for each letter, 10 folds", parts, {}, 0)
    for pair in ((0, 1), (0, 2), (1, 2)):
        kept = np.isin(classes, pair)
        parts = _inverted(X[kept], (classes[kept] == pair[1]).astype(int), 10)
        yield from _line(
            "splice", f"classes {pair[0] + 1} and {pair[1] + 1}, 10 folds", parts, {}, 0
        )


def _inverted(X: Array, y: Array, n_folds: int) -> list[list[Fold]]:
    """Return some folds of each partition, to train on; each is tested on all other rows."""
    return [
        [
            scaled_fold(X, y, *s, "whole")
            for s in folds(y, n_folds, seed, inverted=True)[:SOME_FOLDS]
        ]
        for seed in SEEDS
    ]


def _line(
    row: str, reading: str, parts: list[list[Fold]], settings: dict[str, Any], n_components: int
) -> Iterator[Tried]:
    """Yield the columns of a line of 001's Table 3; without components only the first ones."""
    options = {**wsvda_runs.SETTINGS, "shrinkage": wsvda_runs.LDA_SHRINKAGE, **settings}
    heads, accuracies = wsvda_runs.HEADS, {"SVM": _svm_accuracy(parts, options["C"])}
    for name in ("", "PCA", "LDA", "MMDA", "WSVDA") if n_components else ("",):
        method = wsvda_runs.embedding(name, n_components, options)
        curves = [[method.curves(fold, [*heads.values()]) for fold in part] for part in parts]
        for head, neighbors in heads.items():
            best = [best_selection(part, neighbors) for part in curves]
            column = f"{name}+{head}" if name else head
            accuracies[column] = np.array([100.0 - 100.0 * b.error if b else np.nan for b in best])
    for column, values in accuracies.items():
        yield Tried(
            *(("wsvda", wsvda.NUMBER), row, column, reading, values), wsvda_runs.size_of(row)
        )


def _svm_accuracy(parts: list[list[Fold]], cost: float) -> Array:
    model = GESVC(C=cost, graph_weight=0.0, multiclass="one_vs_rest")
    return np.array(
        [
            100.0 * np.mean([model.fit(f.X, f.y).score(f.X_test, f.y_test) for f in part])
            for part in parts
        ]
    )


def hepatitis() -> Iterator[Tried]:
    """002, hepatitis: what stands for its missing values."""
    X, y = rows_and_labels("hepatitis")
    tasks = {task.method: task for task in gesvm.study_tasks(SIZE, "4")}
    for column in (gesvm.PLAIN, "Q_W", "Q_E"):
        for reading, (rows, labels) in without_missing(X, y).items():
            values = [
                100.0 * np.mean([_graph_accuracy(fold, tasks[column], seed) for fold in part])
                for seed, part in zip(SEEDS, partitions(rows, labels), strict=True)
            ]
            yield Tried(("gesvm", "4"), "hepatitis", column, reading, np.array(values), len(y))


def without_missing(X: Array, y: Array) -> dict[str, tuple[Array, Array]]:
    """Return the rows with something else for each missing value, or without them."""
    missing = np.isnan(X)
    filled = {
        "the mean (page)": np.nanmean(X, axis=0),
        "the median": np.nanmedian(X, axis=0),
        "0": np.zeros(X.shape[1]),
        "-1": -np.ones(X.shape[1]),
    }
    found = {name: (np.where(missing, value, X), y) for name, value in filled.items()}
    whole = ~missing.any(axis=1)
    found["no row with one"] = (X[whole], y[whole])
    found["no column with one"] = (X[:, ~missing.any(axis=0)], y)
    return {f"missing values: {name}": rows for name, rows in found.items()}


def _graph_accuracy(fold: Fold, task: Task, seed: int) -> float:
    """Return the accuracy of a method of 002 whose graph weight is chosen inside the fold."""
    if task.method == gesvm.PLAIN:
        model = gesvm.plain_svm("linear", COST)
    else:
        graph = GRAPHS[task.method]
        weight = gesvm.chosen_weight(fold, graph, replace(task, seed=seed))
        model = gesvm.graph_svm("linear", graph, weight)
    return float(model.fit(fold.X, fold.y).score(fold.X_test, fold.y_test))


def ridges() -> Iterator[Tried]:
    """003, Table 1: one ridge for all sets, choice on test rows, votes as three values."""
    powers = {"2^-9": 2.0**-9, "2^-2": 2.0**-2, "2^-1": 2.0**-1, "2^6": 2.0**6}
    for dataset in ("hepatitis", "ionosphere", "sonar", "votes", "heart", "diabetes"):
        X, y = rows_and_labels(dataset)
        for name, ridge in powers.items():
            values = _plane_accuracies("GEPSVM", X, y, [{"ridge": ridge}]).max(axis=1)
            yield Tried(("mrgepsvm", "1"), dataset, "GEPSVM", f"ridge {name}", values, len(y))
    X, y = rows_and_labels("votes")
    values = _plane_accuracies("GEPSVM", np.where(np.isnan(X), 2.0, X), y, [{"ridge": 0.25}])
    reading = "ridge 2^-2, votes 0, 1, missing 2"
    yield Tried(("mrgepsvm", "1"), "votes", "GEPSVM", reading, values.max(axis=1), len(y))
    grid = {"ridge": (-9, -6, -3, -1, 1, 3, 6, 9), "graph_weight": (-9, -4, 0, 4, 9)}
    for dataset in ("hepatitis", "ionosphere"):
        X, y = rows_and_labels(dataset)
        values = _plane_accuracies("MRGEPSVM", X, y, planes.candidates("MRGEPSVM", grid))
        reading = "ridge and graph weight best on the test folds"
        yield Tried(("mrgepsvm", "1"), dataset, "MRGEPSVM", reading, values.max(axis=1), len(y))


def rbf_planes() -> Iterator[Tried]:
    """003, Table 2: parameters chosen on test rows, and not chosen at all."""
    grid = {"ridge": (-6, -3, 0, 3), "graph_weight": (-9, 0), "gamma": (-6, -3, 0)}
    for dataset, columns in {"liver": ("GEPSVM", "MRGEPSVM"), "wpbc": ("GEPSVM",)}.items():
        X, y = rows_and_labels(dataset)
        for column in columns:
            tried = planes.candidates(column, grid)
            found = _plane_accuracies(column, X, y, tried)
            readings = {"parameters best on the test folds": found.max(axis=1)}
            if column == "GEPSVM":
                fixed = tried.index({"ridge": 1.0, "gamma": 2.0**-6})
                readings["ridge 1, gamma 2^-6"] = found[:, fixed]
            for reading, values in readings.items():
                yield Tried(("mrgepsvm", "2"), dataset, column, reading, values, len(y))


def _plane_accuracies(method: str, X: Array, y: Array, tried: Sequence[planes.Params]) -> Array:
    """Return accuracies by partition and parameters."""
    return np.array(
        [
            [
                100.0 - 100.0 * np.mean([planes.error(method, params, f) for f in part])
                for params in tried
            ]
            for part in partitions(X, y)
        ]
    )


GROUPS: dict[str, Callable[[], Iterator[Tried]]] = {
    "ties": ties,
    "signs": signs,
    "small classes": small_classes,
    "lda": lda,
    "widths": widths,
    "eigenmaps": eigenmaps,
    "wine": wine,
    "splice": splice,
    "hepatitis": hepatitis,
    "ridges": ridges,
    "rbf planes": rbf_planes,
}
"""The groups of cells by name."""


if __name__ == "__main__":
    main()
