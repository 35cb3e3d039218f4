"""GESVC: support vector classification with a graph in the regulariser (paper 002)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from marginfold.errors import ExhaustedWarning, UncertifiedWarning
from marginfold.estimators.inputs import Prepared, prepare, resolve_solver, uncertified_note
from marginfold.estimators.paths import Note, finish
from marginfold.feature_maps import is_linear, is_pairwise
from marginfold.geometry.directions import batch_of, gain_of
from marginfold.geometry.metric import Penalty
from marginfold.geometry.one_vs_rest import Task, one_vs_rest_tasks, task_name
from marginfold.graphs import resolve_graph
from marginfold.linalg.tall import Array, one_blas_thread
from marginfold.runtime.progress import report
from marginfold.svm import BlockBatch, SVMBatch, SVMSolution
from marginfold.validation.fitted_state import atomic_fit
from marginfold.validation.parameters import Constraint, Flag, Number, check_parameters
from marginfold.validation.rows import read_new_rows, row_by_row

CONSTRAINTS: dict[str, Constraint] = {
    "C": Number(0.0, inclusive=False),
    "graph_weight": Number(0.0),
    "normalize_graph": Flag(),
    "tol": Number(0.0, inclusive=False),
}


class GESVC(ClassifierMixin, BaseEstimator):
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
        See `MMDA`.
    graph : str or graph rule, default="knn"
        "knn", "within", "between", "total", "lle", "anchors", or a rule; see `LSVA`.
    graph_weight : float, default=1.0
        Weight lam of the graph; 0 is the plain support vector machine.
    normalize_graph : bool, default=True
        Whether lam is in units of the data, see `LSVA`; False is the paper's raw lam.
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
    classes_ : array
    gap_ : array
        Certified relative duality gap of each one-vs-rest problem.
    gain_ : array
        Relative gain of each problem over a constant.
    n_iter_ : int
    feature_map_ : object
    directions_ : array of shape (n_coordinates, n_classes or 1)

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
        kernel: Any = "linear",
        graph: Any = "knn",
        graph_weight: float = 1.0,
        normalize_graph: bool = True,
        class_weight: Any = None,
        unlabeled: Any = None,
        solver: Any = "auto",
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

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit one problem per class (one for two classes).

        Parameters
        ----------
        X : array, sparse matrix, data frame, dask array or dask data frame
            Rows and features, (n_samples, n_features).  A dask collection is fitted on the current
            client of ``distributed``, without gathering it.
        y : array of shape (n_samples,)
            Class labels of any type; rows equal to ``unlabeled`` have none.
        sample_weight : array of shape (n_samples,), optional
            Weight 2 is the row twice, weight 0 the row absent.

        Returns
        -------
        self
        """
        with atomic_fit(self):
            self._fit_all([self], X, y, sample_weight)
        return self

    def _fit_all(self, members: Sequence[Self], X: Any, y: Any, sample_weight: Any) -> None:
        """Fit estimators that differ in C and in the weight of the graph only, side by side."""
        for member in members:
            check_parameters(member, CONSTRAINTS)
        solver = resolve_solver(self.solver, self.tol)
        prepared = prepare(self, X, y, sample_weight, self._penalty())
        scales = [member._penalty().scale(prepared.metric) for member in members]
        with one_blas_thread(prepared.rows.n_columns):
            batch = _batch(prepared, scales, [float(member.C) for member in members])
            report("classes", 0, len(batch.signs))
            solutions = solver.solve_batch(batch)
            report("classes", len(batch.signs), len(batch.signs))
        gains = [gain_of(batch, b, solution) for b, solution in enumerate(solutions)]
        notes: list[Note] = []
        per_member = len(solutions) // len(members)
        for m, member in enumerate(members):
            own = slice(m * per_member, (m + 1) * per_member)
            notes += member._store(prepared, scales[m], solutions[own], gains[own])
        finish(members, self, notes)

    def _penalty(self) -> Penalty:
        graph = resolve_graph(self.graph)
        return Penalty(graph, float(self.graph_weight), bool(self.normalize_graph))

    def _store(
        self,
        prepared: Prepared,
        scale: Array,
        solutions: Sequence[SVMSolution],
        gains: Sequence[tuple[float, bool]],
    ) -> list[Note]:
        """Set the fitted attributes; return what the user should be warned of."""
        tasks = one_vs_rest_tasks(len(prepared.classes))
        self.classes_ = prepared.classes
        self.feature_map_ = prepared.feature_map
        self.directions_ = prepared.metric.rotate_back(
            scale[:, None] * np.column_stack([solution.coef for solution in solutions])
        )
        self.intercepts_ = np.array([solution.intercept for solution in solutions])
        self.gap_ = np.array([solution.gap for solution in solutions])
        self.gain_ = np.array([gain for gain, _ in gains])
        self.n_iter_ = max(solution.n_iter for solution in solutions)
        if is_linear(self.kernel):
            self.coef_ = self.feature_map_.in_input_units(self.directions_).T.copy()
            self.intercept_ = self.intercepts_ - self.coef_ @ self.feature_map_.mean_
        notes = self._degenerate([tasks[b] for b, (_, enough) in enumerate(gains) if not enough])
        if not all(solution.converged for solution in solutions):
            notes.append((uncertified_note(self, self.gap_.max()), UncertifiedWarning))
        return notes

    def _degenerate(self, tasks: list[Task]) -> list[Note]:
        """Say which classes are separated no better than by a constant."""
        if not tasks:
            return []
        advice = "a kernel" if self.class_weight else "class_weight='balanced' or a kernel"
        if len(tasks) == len(one_vs_rest_tasks(len(self.classes_))):
            what = "no class is separated better than by a constant; the prediction is the same "
            what += "for every row"
        else:
            names = ", ".join(repr(task_name(task, self.classes_)) for task in tasks)
            what = f"not separated from the rest better than by a constant: {names}. Such a class "
            what += "is hardly ever predicted"
        return [(f"{type(self).__name__}: {what}. Try {advice}.", ExhaustedWarning)]

    @row_by_row
    def decision_function(self, X: Any) -> Any:
        """Return margins: shape (n_samples,) for two classes, else (n_samples, n_classes)."""
        X = read_new_rows(self, X)
        scores = self.feature_map_.images(X, self.directions_) + self.intercepts_
        return scores[:, 0] if scores.shape[1] == 1 else scores

    @row_by_row
    def predict(self, X: Any) -> Any:
        """Return the class with the largest margin."""
        scores = self.decision_function(X)
        codes = (scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)
        return np.asarray(self.classes_[codes])

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = is_pairwise(self.kernel)
        return tags


def _batch(
    prepared: Prepared, scales: Sequence[Array], costs: Sequence[float]
) -> SVMBatch | BlockBatch:
    """Stack the tasks of every metric and cost; the tasks of one follow each other."""
    tasks = one_vs_rest_tasks(len(prepared.classes))
    return batch_of(
        prepared.rows,
        prepared.labelled,
        tasks * len(costs),
        [C for C in costs for _ in tasks],
        np.repeat(np.stack(scales), len(tasks), axis=0),
        np.zeros((len(costs) * len(tasks), len(scales[0]), 0)),
    )
