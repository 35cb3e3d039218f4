"""GESVC: support vector classification with a graph in the regulariser (paper 002), and LapSVC."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from marginfold.errors import ExhaustedWarning, UncertifiedWarning
from marginfold.estimators.inputs import (
    Prepared,
    RemoteRows,
    SolverLike,
    WithFeatureMap,
    prepare_rows,
    read_classes,
    uncertified_note,
)
from marginfold.estimators.kernel_machines import (
    KernelPrepared,
    prepare_kernel,
    solve_kernel_machines,
)
from marginfold.estimators.machines import CLEAR_RATIO, Machines, solve_machines
from marginfold.estimators.multiclass import (
    OneVsRestClassifier,
    class_pairs,
    one_vs_one_values,
)
from marginfold.estimators.paths import MarginEstimator, Note
from marginfold.feature_maps import (
    ExactKernel,
    KernelLike,
    affordable_kernel,
    is_linear,
    rank_of_ours,
)
from marginfold.geometry.metric import Penalty
from marginfold.graphs import resolve_graph
from marginfold.graphs.rule import GraphLike, GraphName
from marginfold.linalg.tall import Array
from marginfold.svm import SVMSolver
from marginfold.validation.parameters import (
    FACTOR,
    POSITIVE_FACTOR,
    TOLERANCE,
    Choice,
    Constraint,
    Flag,
)
from marginfold.validation.types import ClassWeight, Multiclass

DECISION_BYTES = 64 << 20
"""Margins of pairs that are computed at a time."""

NAMED = 3
"""Classes or pairs without a gain that a warning names."""


class GESVC(WithFeatureMap, MarginEstimator[Machines], OneVsRestClassifier):
    """Graph embedded support vector classifier.

    Solves (002 eqs. (15) and (21), in coordinates Z of the rows)

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
        ``Nystroem``.  With a graph on more than 5000 rows, "rbf", "poly", "cosine" and "laplacian"
        stand for a `LowRankKernel` (see `kernel_error_`); an `ExactKernel` is always exact.
    graph : str or graph rule, default="knn"
        "knn", "within", "between", "total", "lle", "anchors" (for very many rows), a rule such as
        ``NeighborGraph(5)`` or a sum like ``0.3 * NeighborGraph() + WithinClassGraph()``.  The
        graph is built on the input rows (on the kernel's coordinates if it is precomputed).
    graph_weight : float, default=0.1
        Weight lam of the graph; 0 is the plain support vector machine.
    normalize_graph : bool, default=True
        Whether lam is in units of the data: 1 then gives the graph and ``|w|^2`` the same mean
        weight, ``lam = graph_weight tr(ZZ') / tr(Z (Z'LZ) Z')``.  False is the paper's raw lam.
    penalty_graph : None, str or graph rule, default=None
        A second graph, whose scatter ``B = Z'L^pZ`` (with a ridge of 0.02 of its mean eigenvalue)
        should stay large: ``Z'LZ`` becomes ``B^(-1/2) Z'LZ B^(-1/2)``, whose eigenvalues are the
        quotients of graph embedding (002 eqs. (5) and (6), which has no classifier for them).
        None is B = I.  At a graph weight of 1 it changes the error by 0.5 +- 0.6 points ("knn"
        against "between", linear), -0.4 +- 0.6 (rbf), 0.3 +- 0.5 and 0.6 +- 0.6 ("within" against
        "between"; six tables, five partitions): no gain at weights up to 1.
    class_weight : None, "balanced" or dict, default=None
        Cost factors; "balanced" gives both sides of each problem the same total cost.
    multiclass : {"one_vs_one", "one_vs_rest"}, default="one_vs_one"
        With more than two classes: one machine for each pair of classes, and the machines vote; or
        one machine for each class against all others.
    unlabeled : object, default=None
        Rows with this label count as unlabelled and take part in the graph only.
    solver : {"auto", "interior_point", "libsvm"} or object, default="auto"
        "auto" chooses the fastest method for the shape of the problem; every solution is certified
        by its duality gap.
    tol : float, default=1e-8
        Relative duality gap.

    Attributes
    ----------
    coef_ : array of shape (n_machines, n_features)
        Weights in input units (linear kernel only).  There is one machine for two classes; for
        more, one for each pair of them or, one against the rest, for each class.
    intercept_ : array of shape (n_machines,)
        Intercepts in input units (linear kernel only).  ``X @ coef_.T + intercept_`` loses digits
        if the rows are far from 0, which ``gap_`` does not take into account: with means of 1e6 it
        can be a few per cent worse than certified at large costs.  ``decision_function`` subtracts
        the mean first and has the certificate.
    intercepts_ : array of shape (n_machines,)
        Intercepts in the coordinates of the feature map.
    classes_ : array of shape (n_classes,)
        Class labels, sorted.
    pairs_ : array of shape (n_machines, 2) or None
        The two classes of each machine, whose decision value is positive for the second one.  None
        with "one_vs_rest".
    gap_ : array of shape (n_machines,)
        Certified relative duality gap of each problem.
    gain_ : array of shape (n_machines,)
        How much better each machine is than a constant answer, between 0 and 1.  A pair without any
        gain has weights and intercept 0: each of its classes gets half a vote, unless the costs of
        one are more than 19 times those of the other.
    n_iter_ : int
        Iterations of the solver for the slowest of the problems.
    feature_map_ : object
        The fitted feature map of the kernel.
    directions_ : array of shape (n_coordinates, n_machines)
        Weights in the coordinates of the feature map; for an exact kernel these are kernel values
        with the training rows (`KernelExpansion`).
    kernel_error_ : float
        Share of the kernel's variance that a `LowRankKernel` loses; 0 for all other kernels.

    Notes
    -----
    ``decision_function`` has one column per class: the votes of the pairs, ties broken by the sums
    of their margins, each cut at 1, or the values of the machines against the rest.
    ``SVC(decision_function_shape="ovr")`` sums margins of any size: a pair that has never seen the
    class of a row may be large, and decide (2.8 points on 26 classes, where a row in eight is a
    tie).  For probabilities use ``CalibratedClassifierCV``.

    All machines share one graph, one feature map and one factorisation; each is solved in the span
    of its own rows.  An exact kernel K is not decomposed: with a Cholesky factor ``Z Z' = K`` (to
    1e-11 of its mean diagonal, which ``gap_`` accounts for) the machines have the kernel
    ``Z (I + lam Z'LZ)^-1 Z'``, and without a graph K itself.

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

    The scatter within classes in units of that between them:

    >>> relative = GESVC(graph="within", penalty_graph="between")
    >>> bool(make_pipeline(StandardScaler(), relative).fit(X, y).score(X, y) > 0.97)
    True
    """

    def __init__(
        self,
        *,
        C: float = 1.0,
        kernel: KernelLike = "linear",
        graph: GraphName | GraphLike = "knn",
        graph_weight: float = 0.1,
        normalize_graph: bool = True,
        penalty_graph: GraphName | GraphLike | None = None,
        class_weight: ClassWeight = None,
        multiclass: Multiclass = "one_vs_one",
        unlabeled: object = None,
        solver: SolverLike = "auto",
        tol: float = 1e-8,
    ) -> None:
        self.C = C
        self.kernel = kernel
        self.graph = graph
        self.graph_weight = graph_weight
        self.normalize_graph = normalize_graph
        self.penalty_graph = penalty_graph
        self.class_weight = class_weight
        self.multiclass = multiclass
        self.unlabeled = unlabeled
        self.solver = solver
        self.tol = tol

    def _penalty(self) -> Penalty:
        graph, against = resolve_graph(self.graph), None
        if self.penalty_graph is not None:
            against = resolve_graph(self.penalty_graph, "penalty_graph")
        weight, normalize = float(self.graph_weight), bool(self.normalize_graph)
        return Penalty(graph, weight, normalize, against=against)

    def _constraints(self) -> dict[str, Constraint]:
        return {
            "C": POSITIVE_FACTOR,
            "graph_weight": FACTOR,
            "normalize_graph": Flag(),
            "multiclass": Choice("one_vs_one", "one_vs_rest"),
            "tol": TOLERANCE,
        }

    def _prepare(
        self, X: Any, y: Any, sample_weight: Any, penalties: Sequence[Penalty]
    ) -> Prepared | KernelPrepared:
        """Read the rows; exact kernels are prepared as Gram matrices, others as coordinates."""
        penalty = penalties[0]
        read = read_classes(self, X, y, sample_weight, penalty)
        graph = any(own.weight > 0 for own in penalties)
        kernel = affordable_kernel(self.kernel, read.X.shape[0], graph=graph)
        relative = graph and penalty.against is not None  # needs the coordinates
        if isinstance(kernel, ExactKernel) and not relative and not isinstance(read.X, RemoteRows):
            prepared = prepare_kernel(self, read, penalty, kernel, graph=graph)
            if prepared is not None:
                return prepared
        with nullcontext() if kernel is self.kernel else rank_of_ours():
            return prepare_rows(self, read, penalty if graph else Penalty(None), kernel)

    def _solve(
        self,
        prepared: Prepared | KernelPrepared,
        scales: Sequence[Any],
        costs: Sequence[float],
        solver: SVMSolver,
    ) -> list[Machines]:
        one_vs_one = self.multiclass == "one_vs_one"
        if isinstance(prepared, KernelPrepared):
            return solve_kernel_machines(prepared, scales, costs, solver, one_vs_one=one_vs_one)
        return solve_machines(prepared, scales, costs, solver, one_vs_one=one_vs_one)

    def _store(self, prepared: Prepared | KernelPrepared, found: Machines) -> list[Note]:
        self.classes_ = prepared.classes
        self.feature_map_ = prepared.feature_map
        self.directions_ = found.directions
        self.intercepts_ = found.intercepts
        self.gap_, self.gain_ = found.gaps, found.gains
        self.n_iter_ = found.n_iter
        self.pairs_ = None
        if self.multiclass == "one_vs_one":
            self.pairs_ = self.classes_[np.array(class_pairs(len(self.classes_)))]
        if is_linear(self.kernel):
            self.coef_ = self.feature_map_.in_input_units(self.directions_).T.copy()
            self.intercept_ = self.intercepts_ - self.coef_ @ self.feature_map_.mean_
        notes = self._degenerate(np.flatnonzero(~found.separates & found.converged))
        if not found.converged.all():
            notes.append((uncertified_note(self, self.gap_.max()), UncertifiedWarning))
        return notes

    def _degenerate(self, columns: Array) -> list[Note]:
        """Say which classes are separated no better than by a constant."""
        if not len(columns):
            return []
        advice = f"{'a' if is_linear(self.kernel) else 'another'} kernel"
        if not self.class_weight:
            advice = f"class_weight='balanced' or {advice}"
        shown = [self._name(column) for column in columns[:NAMED].tolist()]
        more = f" and {len(columns) - NAMED} more" if len(columns) > NAMED else ""
        names = ", ".join(shown) + more
        if len(columns) == len(self.intercepts_):
            what = "no class is separated better than by a constant; the prediction is the same "
            what += "for every row"
        elif self.pairs_ is None:
            what = f"not separated from the rest better than by a constant: {names}. Such a class "
            what += "is hardly ever predicted"
        else:
            what = f"pairs of classes not separated better than by a constant: {names}. "
            what += _votes(self.intercepts_[columns])
        return [(f"{type(self).__name__}: {what}. Try {advice}.", ExhaustedWarning)]

    def _name(self, column: int) -> str:
        """Return the class, or the pair of classes, of a machine."""
        if self.pairs_ is None:
            return repr(self.classes_.tolist()[column])
        first, second = self.pairs_[column].tolist()
        return f"{first!r} and {second!r}"

    def _decision_values(self, X: Any) -> Array:
        n_machines = len(self.intercepts_)
        if self.pairs_ is None or n_machines == 1:
            values = self._margins(X)
            return values[:, 0] if n_machines == 1 else values
        size = max(1, DECISION_BYTES // (8 * n_machines))
        blocks = (slice(start, start + size) for start in range(0, X.shape[0], size))
        n_classes = len(self.classes_)
        parts = [
            one_vs_one_values(self._margins(X[block]).clip(-1.0, 1.0), n_classes)
            for block in blocks
        ]
        return np.concatenate(parts)

    def _margins(self, X: Any) -> Array:
        """Return the values of all machines."""
        return np.asarray(self.feature_map_.images(X, self.directions_) + self.intercepts_)


def _votes(intercepts: Array) -> str:
    """Say who has the vote of pairs whose machines are constants, 0 if neither class has it."""
    if not intercepts.any():
        return "Both classes have half a vote"
    dearer = f"the class whose costs are more than {CLEAR_RATIO:.0f} times those of the other"
    if intercepts.all():
        return f"The vote goes to {dearer}"
    return f"Both classes have half a vote, or {dearer} has it"


class LapSVC(GESVC):
    """Laplacian support vector machine: unlabelled rows act through a neighbor graph.

    The same problem as `GESVC`; rows whose label equals ``unlabeled`` have no hinge loss.  With
    Belkin's parameters, ``C = 1 / (2 n_labelled gamma_A)`` and, for the raw graph weight
    (``normalize_graph=False``), ``graph_weight = gamma_I / (gamma_A n_samples^2)``.

    Unlabelled rows help on some data and hurt on other data: compare with `GESVC` on the labelled
    rows.

    Parameters
    ----------
    C : float, default=1.0
        Cost of a margin violation.
    kernel : str, callable, feature map or transformer, default="linear"
        "linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "precomputed", a function of two
        matrices, an `ExactKernel` with its own parameters, or any scikit-learn transformer such as
        ``Nystroem``.  With a graph on more than 5000 rows, "rbf", "poly", "cosine" and "laplacian"
        stand for a `LowRankKernel` (see `kernel_error_`); an `ExactKernel` is always exact.
    graph : str or graph rule, default="knn"
        "knn", "within", "between", "total", "lle", "anchors" (for very many rows), a rule such as
        ``NeighborGraph(5)`` or a sum like ``0.3 * NeighborGraph() + WithinClassGraph()``.  The
        graph is built on the input rows (on the kernel's coordinates if it is precomputed).
    graph_weight : float, default=1.0
        Weight lam of the graph; 0 is the plain support vector machine.
    normalize_graph : bool, default=True
        Whether lam is in units of the data: 1 then gives the graph and ``|w|^2`` the same mean
        weight, ``lam = graph_weight tr(ZZ') / tr(Z (Z'LZ) Z')``.  False is the paper's raw lam.
    penalty_graph : None, str or graph rule, default=None
        A second graph, whose scatter ``B = Z'L^pZ`` (with a ridge of 0.02 of its mean eigenvalue)
        should stay large: ``Z'LZ`` becomes ``B^(-1/2) Z'LZ B^(-1/2)``, whose eigenvalues are the
        quotients of graph embedding (002 eqs. (5) and (6), which has no classifier for them).
        None is B = I.  At a graph weight of 1 it changes the error by 0.5 +- 0.6 points ("knn"
        against "between", linear), -0.4 +- 0.6 (rbf), 0.3 +- 0.5 and 0.6 +- 0.6 ("within" against
        "between"; six tables, five partitions): no gain at weights up to 1.
    class_weight : None, "balanced" or dict, default=None
        Cost factors; "balanced" gives both sides of each problem the same total cost.
    multiclass : {"one_vs_one", "one_vs_rest"}, default="one_vs_one"
        With more than two classes: one machine for each pair of classes, and the machines vote; or
        one machine for each class against all others.
    unlabeled : object, default=-1
        The label that marks unlabelled rows.  It is recognised among text labels, too, as "-1".
        Leave such rows out when you score predictions: the marker is not a class.
    solver : {"auto", "interior_point", "libsvm"} or object, default="auto"
        "auto" chooses the fastest method for the shape of the problem; every solution is certified
        by its duality gap.
    tol : float, default=1e-8
        Relative duality gap.

    Attributes
    ----------
    coef_ : array of shape (n_machines, n_features)
        Weights in input units (linear kernel only).  There is one machine for two classes; for
        more, one for each pair of them or, one against the rest, for each class.
    intercept_ : array of shape (n_machines,)
        Intercepts in input units (linear kernel only).  ``X @ coef_.T + intercept_`` loses digits
        if the rows are far from 0, which ``gap_`` does not take into account: with means of 1e6 it
        can be a few per cent worse than certified at large costs.  ``decision_function`` subtracts
        the mean first and has the certificate.
    intercepts_ : array of shape (n_machines,)
        Intercepts in the coordinates of the feature map.
    classes_ : array of shape (n_classes,)
        Class labels, sorted.
    pairs_ : array of shape (n_machines, 2) or None
        The two classes of each machine, whose decision value is positive for the second one.  None
        with "one_vs_rest".
    gap_ : array of shape (n_machines,)
        Certified relative duality gap of each problem.
    gain_ : array of shape (n_machines,)
        How much better each machine is than a constant answer, between 0 and 1.  A pair without any
        gain has weights and intercept 0: each of its classes gets half a vote, unless the costs of
        one are more than 19 times those of the other.
    n_iter_ : int
        Iterations of the solver for the slowest of the problems.
    feature_map_ : object
        The fitted feature map of the kernel.
    directions_ : array of shape (n_coordinates, n_machines)
        Weights in the coordinates of the feature map; for an exact kernel these are kernel values
        with the training rows (`KernelExpansion`).
    kernel_error_ : float
        Share of the kernel's variance that a `LowRankKernel` loses; 0 for all other kernels.

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
        graph: GraphName | GraphLike = "knn",
        graph_weight: float = 1.0,
        normalize_graph: bool = True,
        penalty_graph: GraphName | GraphLike | None = None,
        class_weight: ClassWeight = None,
        multiclass: Multiclass = "one_vs_one",
        unlabeled: object = -1,
        solver: SolverLike = "auto",
        tol: float = 1e-8,
    ) -> None:
        super().__init__(
            C=C,
            kernel=kernel,
            graph=graph,
            graph_weight=graph_weight,
            normalize_graph=normalize_graph,
            penalty_graph=penalty_graph,
            class_weight=class_weight,
            multiclass=multiclass,
            unlabeled=unlabeled,
            solver=solver,
            tol=tol,
        )
