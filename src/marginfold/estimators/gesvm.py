"""GESVC: support vector classification with a graph in the regulariser (paper 002), and LapSVC."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginfold.errors import ExhaustedWarning, UncertifiedWarning
from marginfold.estimators.inputs import Prepared, uncertified_note
from marginfold.estimators.multiclass import OneVsRestClassifier
from marginfold.estimators.paths import MarginEstimator, Note
from marginfold.feature_maps import KernelLike, is_linear
from marginfold.geometry.directions import batch_of, gain_of
from marginfold.geometry.metric import Penalty
from marginfold.geometry.one_vs_rest import Task, one_vs_rest_tasks, task_name
from marginfold.graphs import resolve_graph
from marginfold.graphs.rule import GraphRule
from marginfold.linalg.tall import Array
from marginfold.runtime.progress import report
from marginfold.svm import SVMBatch, SVMSolution, SVMSolver
from marginfold.validation.parameters import Constraint, Flag, Number


@dataclass(frozen=True)
class ClassMachine:
    """The support vector machine of one task: its weights in the coordinates of the metric.

    Attributes
    ----------
    w : array of shape (r,)
    gain : float
        Relative gain over a constant.
    separates : bool
        Whether the gain is more than nothing.
    """

    task: Task
    w: Array
    gain: float
    separates: bool
    solution: SVMSolution


class GESVC(MarginEstimator[Sequence[ClassMachine]], OneVsRestClassifier):
    """Graph embedded support vector classifier.

    Solves (002 eqs. (13) and (21), in coordinates Z of the rows)

    ``min 1/2 w'(I + lam Z'LZ)w + sum_i C_i max(0, 1 - y_i (w'z_i + b))``

    with L the Laplacian of a graph: "total" gives the paper's PCA regulariser (C), "within" (W)
    and "between" (B) those of LDA, "lle" (L) and "knn" (E) those of locally linear embedding and
    Laplacian eigenmaps.  Linear, this is the kernel Q0; with a kernel, Q1.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a margin violation.
    kernel : str, callable, feature map or transformer, default="linear"
        "linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "precomputed", a function of two
        matrices, an `ExactKernel` with its own parameters, or any scikit-learn transformer such as
        ``Nystroem``.
    graph : str or graph rule, default="knn"
        "knn", "within", "between", "total", "lle", "anchors" (for very many rows), a rule such as
        ``NeighborGraph(5)`` or a sum like ``0.3 * NeighborGraph() + WithinClassGraph()``.  The
        graph is built on the input rows (on the kernel's coordinates if it is precomputed).
    graph_weight : float, default=1.0
        Weight lam of the graph; 0 is the plain support vector machine.
    normalize_graph : bool, default=True
        Whether lam is in units of the data: 1 then gives the graph and ``|w|^2`` the same mean
        weight, ``lam = graph_weight tr(ZZ') / tr(Z (Z'LZ) Z')``.  False is the paper's raw lam.
    class_weight : None, "balanced" or dict, default=None
        Cost factors; "balanced" gives both sides of each one-vs-rest task the same total cost.
    unlabeled : object, default=None
        Rows whose label equals this have none and act through the graph only.
    solver : {"auto", "interior_point", "libsvm"} or object, default="auto"
        "auto" takes what is quickest for the shape of the problem; every solution is certified.
    tol : float, default=1e-8
        Relative duality gap.

    Attributes
    ----------
    coef_ : array of shape (n_classes or 1, n_features)
        Weights in input units (linear kernel only).
    intercept_ : array of shape (n_classes or 1,)
        Intercepts in input units (linear kernel only).
    intercepts_ : array of shape (n_classes or 1,)
        Intercepts in the coordinates of the feature map.
    classes_ : array of shape (n_classes,)
        Class labels, sorted.
    gap_ : array of shape (n_classes or 1,)
        Certified relative duality gap of each one-vs-rest problem.
    gain_ : array of shape (n_classes or 1,)
        Relative gain of each problem over a constant, between 0 and 1.
    n_iter_ : int
        Iterations of the solver for the slowest of the problems.
    feature_map_ : object
        The fitted feature map of the kernel.
    directions_ : array of shape (n_coordinates, n_classes or 1)
        Weights in the coordinates of the feature map.

    Notes
    -----
    Several classes are separated one against the rest (SVC: one against one).  For probabilities
    use ``CalibratedClassifierCV``.

    The printed (21) has a factor 2 that makes its lam = 0 a support vector machine with half the
    cost, and the printed LLE graph can be indefinite; both are corrected here.

    References
    ----------
    Arvanitidis, Tefas: Exploiting Graph Embedding in Support Vector Machines.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from marginfold import GESVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), GESVC(graph="within")).fit(X, y)
    >>> bool(model.score(X, y) > 0.97)
    True
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: KernelLike = "linear",
        graph: str | GraphRule = "knn",
        graph_weight: float = 1.0,
        normalize_graph: bool = True,
        class_weight: Any = None,
        unlabeled: Any = None,
        solver: str | SVMSolver = "auto",
        tol: float = 1e-8,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.graph = graph
        self.graph_weight = graph_weight
        self.normalize_graph = normalize_graph
        self.class_weight = class_weight
        self.unlabeled = unlabeled
        self.solver = solver
        self.tol = tol

    def _penalty(self) -> Penalty:
        graph = resolve_graph(self.graph)
        return Penalty(graph, float(self.graph_weight), bool(self.normalize_graph))

    def _constraints(self) -> dict[str, Constraint]:
        return {
            "C": Number(0.0, inclusive=False),
            "graph_weight": Number(0.0),
            "normalize_graph": Flag(),
            "tol": Number(0.0, inclusive=False),
        }

    def _solve(
        self, prepared: Prepared, scales: Sequence[Array], costs: Sequence[float], solver: SVMSolver
    ) -> list[list[ClassMachine]]:
        """Solve the tasks of all classes, for every metric and cost, in one batch."""
        tasks = one_vs_rest_tasks(len(prepared.classes))
        batch = _batch(prepared, tasks, scales, costs)
        report("classes", 0, len(batch.signs))
        solutions = solver.solve_batch(batch)
        report("classes", len(batch.signs), len(batch.signs))
        machines = [
            ClassMachine(
                tasks[b % len(tasks)],
                batch.scale[b] * solution.coef,
                *gain_of(batch, b, solution),
                solution,
            )
            for b, solution in enumerate(solutions)
        ]
        return [machines[m : m + len(tasks)] for m in range(0, len(machines), len(tasks))]

    def _store(self, prepared: Prepared, machines: Sequence[ClassMachine]) -> list[Note]:
        solutions = [machine.solution for machine in machines]
        self.classes_ = prepared.classes
        self.feature_map_ = prepared.feature_map
        self.directions_ = prepared.metric.rotate_back(
            np.column_stack([machine.w for machine in machines])
        )
        self.intercepts_ = np.array([solution.intercept for solution in solutions])
        self.gap_ = np.array([solution.gap for solution in solutions])
        self.gain_ = np.array([machine.gain for machine in machines])
        self.n_iter_ = max(solution.n_iter for solution in solutions)
        if is_linear(self.kernel):
            self.coef_ = self.feature_map_.in_input_units(self.directions_).T.copy()
            self.intercept_ = self.intercepts_ - self.coef_ @ self.feature_map_.mean_
        notes = self._degenerate(
            [machine.task for machine in machines if not machine.separates], len(machines)
        )
        if not all(solution.converged for solution in solutions):
            notes.append((uncertified_note(self, self.gap_.max()), UncertifiedWarning))
        return notes

    def _degenerate(self, tasks: list[Task], n_tasks: int) -> list[Note]:
        """Say which classes are separated no better than by a constant."""
        if not tasks:
            return []
        advice = "a kernel" if self.class_weight else "class_weight='balanced' or a kernel"
        if len(tasks) == n_tasks:
            what = "no class is separated better than by a constant; the prediction is the same "
            what += "for every row"
        else:
            names = ", ".join(repr(task_name(task, self.classes_)) for task in tasks)
            what = f"not separated from the rest better than by a constant: {names}. Such a class "
            what += "is hardly ever predicted"
        return [(f"{type(self).__name__}: {what}. Try {advice}.", ExhaustedWarning)]

    def _decision_values(self, X: Any) -> Array:
        values = np.asarray(self.feature_map_.images(X, self.directions_) + self.intercepts_)
        return values[:, 0] if values.shape[1] == 1 else values


class LapSVC(GESVC):
    """Laplacian support vector machine: unlabelled rows act through a neighbor graph.

    The same problem as `GESVC`; rows whose label equals ``unlabeled`` have no hinge loss.  With
    Belkin's parameters, ``C = 1 / (2 n_labelled gamma_A)`` and, for the raw graph weight
    (``normalize_graph=False``), ``graph_weight = gamma_I / (gamma_A n_samples^2)``.

    Unlabelled rows help on some data and hurt on other: compare with `GESVC` on the labelled rows.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a margin violation.
    kernel : str, callable, feature map or transformer, default="linear"
        "linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "precomputed", a function of two
        matrices, an `ExactKernel` with its own parameters, or any scikit-learn transformer such as
        ``Nystroem``.
    graph : str or graph rule, default="knn"
        "knn", "within", "between", "total", "lle", "anchors" (for very many rows), a rule such as
        ``NeighborGraph(5)`` or a sum like ``0.3 * NeighborGraph() + WithinClassGraph()``.  The
        graph is built on the input rows (on the kernel's coordinates if it is precomputed).
    graph_weight : float, default=1.0
        Weight lam of the graph; 0 is the plain support vector machine.
    normalize_graph : bool, default=True
        Whether lam is in units of the data: 1 then gives the graph and ``|w|^2`` the same mean
        weight, ``lam = graph_weight tr(ZZ') / tr(Z (Z'LZ) Z')``.  False is the paper's raw lam.
    class_weight : None, "balanced" or dict, default=None
        Cost factors; "balanced" gives both sides of each one-vs-rest task the same total cost.
    unlabeled : object, default=-1
        The label of rows without one.  It is found among text labels too, as "-1".  Leave such
        rows out when you score predictions: the marker is not a class.
    solver : {"auto", "interior_point", "libsvm"} or object, default="auto"
        "auto" takes what is quickest for the shape of the problem; every solution is certified.
    tol : float, default=1e-8
        Relative duality gap.

    Attributes
    ----------
    coef_ : array of shape (n_classes or 1, n_features)
        Weights in input units (linear kernel only).
    intercept_ : array of shape (n_classes or 1,)
        Intercepts in input units (linear kernel only).
    intercepts_ : array of shape (n_classes or 1,)
        Intercepts in the coordinates of the feature map.
    classes_ : array of shape (n_classes,)
        Class labels, sorted.
    gap_ : array of shape (n_classes or 1,)
        Certified relative duality gap of each one-vs-rest problem.
    gain_ : array of shape (n_classes or 1,)
        Relative gain of each problem over a constant, between 0 and 1.
    n_iter_ : int
        Iterations of the solver for the slowest of the problems.
    feature_map_ : object
        The fitted feature map of the kernel.
    directions_ : array of shape (n_coordinates, n_classes or 1)
        Weights in the coordinates of the feature map.

    References
    ----------
    Belkin, Niyogi, Sindhwani: Manifold Regularization, Journal of Machine Learning Research 7.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_moons
    >>> from marginfold import LapSVC
    >>> X, y = make_moons(200, noise=0.05, random_state=0)
    >>> few = np.full(200, -1)
    >>> few[:6] = y[:6]
    >>> model = LapSVC(kernel="rbf", C=10, graph_weight=10).fit(X, few)
    >>> model.classes_
    array([0, 1])
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: KernelLike = "linear",
        graph: str | GraphRule = "knn",
        graph_weight: float = 1.0,
        normalize_graph: bool = True,
        class_weight: Any = None,
        unlabeled: Any = -1,
        solver: str | SVMSolver = "auto",
        tol: float = 1e-8,
    ) -> None:
        super().__init__(
            C=C,
            kernel=kernel,
            graph=graph,
            graph_weight=graph_weight,
            normalize_graph=normalize_graph,
            class_weight=class_weight,
            unlabeled=unlabeled,
            solver=solver,
            tol=tol,
        )


def _batch(
    prepared: Prepared, tasks: Sequence[Task], scales: Sequence[Array], costs: Sequence[float]
) -> SVMBatch:
    """Stack the tasks of every metric and cost; the tasks of one follow each other."""
    return batch_of(
        prepared.rows,
        prepared.labelled,
        [task for _ in costs for task in tasks],
        [C for C in costs for _ in tasks],
        np.repeat(np.stack(scales), len(tasks), axis=0),
        np.zeros((len(costs) * len(tasks), len(scales[0]), 0)),
    )
