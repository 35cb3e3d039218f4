"""What is computed for paper 002: Tables 4 (linear) and 5 (rbf), and the permuted graphs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from marginfold.estimators.gesvm import GESVC
from marginfold.estimators.lsva import LSVA
from marginfold.feature_maps import ExactKernel
from marginfold.graphs import NeighborGraph, PermutedGraph, ReconstructionGraph
from marginfold.linalg.tall import Array
from marginfold.papers import check_table
from marginfold.papers.paper_data import rows_and_labels, size
from marginfold.protocols.feature_scaling import split_scaled
from marginfold.protocols.records import Result
from marginfold.protocols.splits import folds
from marginfold.protocols.study_size import Scale
from marginfold.protocols.study_tasks import Task

STUDY = "gesvm"

DATASETS = (
    *("australian", "breast", "diabetes", "german", "heart"),
    *("hepatitis", "ionosphere", "liver", "sonar", "transfusion"),
)
"""002 Table 3."""

KERNELS = {"4": "linear", "5": "rbf"}
"""The kernel of each table."""

COST, GAMMA = 100.0, 1.0
"""C and the width of the rbf kernel, 002 section 4."""

Q1_COST = COST / 2
"""The printed Q1 has a factor 1/2 (E22): at C it is the consistent kernel at C / 2."""

NEIGHBORS, WIDTH = 10, 2.0
"""Neighbors and heat width; the paper names neither, and these are those of 000."""

WEIGHTS = (0.1, 10.0)
"""The range of lambda, 002 section 4, which has 100 values in even steps."""

MOST_RBF_WEIGHTS = 5
"""The most values of lambda with the rbf kernel."""

N_FOLDS = 5
"""Outer folds, and inner ones, 002 section 4."""

FEWER_INNER_FOLDS = 3
"""Inner folds with the rbf kernel below the full scale, where they are most of the work."""

QUICK_ROWS = 400
"""The most rows of a set in the rbf table at the quick scale."""

CONTROL_ROWS = 700
"""The most rows of a set whose permuted graphs are measured with the rbf kernel, unless full."""

PLAIN, PLAIN_Q1 = "SVM", f"SVM, C = {Q1_COST:g}"
"""The method without a graph: as printed, and at the cost that Q1 has with a graph."""

PLAIN_COSTS = {PLAIN: COST, PLAIN_Q1: Q1_COST}
"""C of the methods without a graph."""

GRAPHS: dict[str, Any] = {
    "Q_W": "within",
    "Q_B": "between",
    "Q_C": "total",
    "Q_L": ReconstructionGraph(NEIGHBORS),
    "Q_E": NeighborGraph(NEIGHBORS, width=WIDTH),
}
"""002 Table 2: the graphs by their names there."""

PERMUTED = {f"{name} permuted": name for name in ("Q_L", "Q_E")}
"""Controls: the same graph on other rows."""


def plan(scale: Scale, table: str | None = None) -> list[Task]:
    """Return the tasks of both tables, or of one ("4", "5").

    Examples
    --------
    >>> from marginfold.papers import gesvm
    >>> from marginfold.protocols.study_size import SCALES
    >>> tasks = gesvm.plan(SCALES["quick"], "4")
    >>> len(tasks), str(tasks[0])
    (600, 'gesvm australian SVM linear seed 0 fold 0')
    """
    check_table(STUDY, table, [*KERNELS])
    wanted = [*KERNELS] if table is None else [table]
    return [task for number in wanted for task in _tasks(number, scale)]


def _tasks(number: str, scale: Scale) -> Iterable[Task]:
    kernel = KERNELS[number]
    rbf = kernel == "rbf"
    choice = {"weights": weights(kernel, scale), "inner_folds": inner_folds(kernel, scale)}
    for dataset in DATASETS:
        for method in columns(kernel, scale):
            if rbf and size(dataset)[0] > _most_rows(method, scale):
                continue
            options = {"folds": N_FOLDS} | ({} if method in PLAIN_COSTS else choice)
            for seed in scale.seeds:
                for fold in range(N_FOLDS):
                    yield Task(STUDY, dataset, method, kernel, seed, fold, options, work=evaluate)


def weights(kernel: str, scale: Scale) -> list[float]:
    """Return the values of lambda that are tried."""
    if kernel == "linear":
        return scale.weights(*WEIGHTS)
    fewer = replace(scale, n_kernel_weights=min(scale.n_kernel_weights, MOST_RBF_WEIGHTS))
    return fewer.weights(*WEIGHTS, kernel=True)


def inner_folds(kernel: str, scale: Scale) -> int:
    """Return the number of folds that choose lambda."""
    return FEWER_INNER_FOLDS if kernel == "rbf" and scale.name != "full" else N_FOLDS


def _most_rows(method: str, scale: Scale) -> float:
    """Return the most rows of a set for which a method is run with the rbf kernel."""
    if scale.name == "full":
        return np.inf
    if scale.name == "quick":
        return QUICK_ROWS
    return CONTROL_ROWS if method in PERMUTED else np.inf


def columns(kernel: str, scale: Scale) -> list[str]:
    """Return the methods: the printed ones, their reference, and the controls of the scale."""
    plain = dict.fromkeys((PLAIN, reference(kernel)))
    return [*plain, *GRAPHS, *(PERMUTED if scale.controls else ())]


def reference(kernel: str) -> str:
    """Return the method without a graph that has the cost of those with one.

    Examples
    --------
    >>> from marginfold.papers.gesvm.runs import reference
    >>> reference("linear"), reference("rbf")
    ('SVM', 'SVM, C = 50')
    """
    return next(name for name, cost in PLAIN_COSTS.items() if cost == graph_cost(kernel))


def graph_cost(kernel: str) -> float:
    """Return C of the methods with a graph."""
    return Q1_COST if kernel == "rbf" else COST


def evaluate(task: Task) -> list[Result]:
    """Choose the graph weight by inner folds of the training rows; return the test error."""
    X, y = rows_and_labels(task.dataset)
    train, test = folds(y, task.options["folds"], task.seed)[task.fold]
    rows, new = split_scaled(X, train, test, "whole")
    if task.method in PLAIN_COSTS:
        model, params = plain_svm(task.protocol, PLAIN_COSTS[task.method]), {}
    else:
        graph = graph_of(task)
        weight = chosen_weight(rows, y[train], graph, task)
        model = graph_svm(task.protocol, graph, weight)
        params = {"graph_weight": weight}
    predicted = model.fit(rows, y[train]).predict(new)
    return [Result("error", float(np.mean(predicted != y[test])), params)]


def graph_of(task: Task) -> Any:
    """Return the graph of a method; of a control with its nodes permuted, by seed and fold."""
    if task.method not in PERMUTED:
        return GRAPHS[task.method]
    state = task.seed * int(task.options["folds"]) + task.fold
    return PermutedGraph(GRAPHS[PERMUTED[task.method]], random_state=state)


def plain_svm(kernel: str, cost: float) -> GESVC:
    """Return the support vector machine without a graph."""
    return GESVC(C=cost, graph_weight=0.0, **_kernel(kernel))


def graph_svm(kernel: str, graph: Any, weight: float) -> GESVC:
    """Return the graph embedded SVM as the paper has it: raw lambda, equal costs."""
    return GESVC(
        C=graph_cost(kernel),
        graph=graph,
        graph_weight=weight,
        normalize_graph=False,
        **_kernel(kernel),
    )


def chosen_weight(rows: Array, y: Array, graph: Any, task: Task) -> float:
    """Return the weight with the least mean error over inner folds, the smallest of equal ones."""
    tried = task.options["weights"]
    errors = [
        path_errors(task.protocol, graph, tried, rows[train], y[train], rows[test], y[test])
        for train, test in folds(y, task.options["inner_folds"], task.seed)
    ]
    return float(tried[int(np.mean(errors, axis=0).argmin())])


def path_errors(
    kernel: str,
    graph: Any,
    tried: Sequence[float],
    rows: Array,
    y: Array,
    new: Array,
    y_new: Array,
) -> list[float]:
    """Return the test error of each weight; labels are 0 and 1.

    For two classes GESVC is the first component of LSVA, which shares the work of all weights;
    where LSVA finds no direction, the SVM is the larger class.
    """
    lsva = LSVA(
        1,
        C=graph_cost(kernel),
        graph=graph,
        normalize_graph=False,
        class_weight=None,
        on_exhausted="pca",
        **_kernel(kernel),
    )
    errors = []
    for fitted in lsva.fit_path(rows, y, tried):
        if fitted.tasks_[0] is None:
            predicted = np.full(len(new), np.bincount(y).argmax())
        else:
            predicted = (fitted.decision_function(new)[:, 0] > 0).astype(int)
        errors.append(float(np.mean(predicted != y_new)))
    return errors


def _kernel(kernel: str) -> dict[str, Any]:
    if kernel == "linear":
        return {}
    return {"kernel": ExactKernel("rbf", gamma=GAMMA), "solver": "libsvm"}
