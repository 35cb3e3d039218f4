"""TwinSVC: the twin support vector machine and its least-squares form (a baseline of paper 003).

A plane is a vector v on rows h (see `plane_rows`).  With the form of the own class factored,
``P + dM M + dT T = F F'``, and the rows ``u = -F^-1 h`` of the rest the hinge problem is
(`solve_box_qp`)::

    min_s 1/2 |s|^2 + sum_i c_i max(0, 1 - u_i's)      (primal)
    max_a sum_i a_i - 1/2 |U'a|^2,    0 <= a <= c      (dual)

It is a support vector machine without a bias.  Give each row u_i with label +1 its mirror image
-u_i with label -1, and half of the cost to each: the objective is then even and convex in the bias,
so that 0 is an optimal bias and the weights are those of the box problem.  The certified solver of
the package needs no second version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
import scipy.linalg

from marginfold.errors import UncertifiedWarning, warn
from marginfold.estimators.inputs import uncertified_note
from marginfold.estimators.nearest_plane import NearestPlane
from marginfold.estimators.plane_problem import PlaneProblem, PlaneTask
from marginfold.estimators.plane_rows import PlaneRows, rest_rows
from marginfold.feature_maps import KernelLike, is_linear
from marginfold.geometry.metric import TikhonovBasis
from marginfold.graphs import resolve_graph
from marginfold.graphs.rule import GraphLike, GraphName
from marginfold.linalg import definite_factor
from marginfold.linalg.decompositions import qr
from marginfold.linalg.tall import Array, Block, RowBlocks
from marginfold.svm import Automatic, BlockRows, SVMBatch, SVMSolution, SVMSolver
from marginfold.validation.parameters import (
    FACTOR,
    POSITIVE_FACTOR,
    TOLERANCE,
    Choice,
    Constraint,
    Either,
)
from marginfold.validation.types import ClassWeight, Multiclass

T = TypeVar("T")


class TwinSVC(NearestPlane):
    """Twin support vector classifier: a plane near each class, at distance from the rest.

    With ``h = (z, 1)``, ``v = (w, b)``, P the moments ``h h'`` of the rows of a class, T the
    Tikhonov term and M the scatter ``Z'LZ`` of a graph on the rows of the class, if there is one,
    the plane of the class minimises with ``A = P + dM M + dT T``

    ``1/2 v'Av + C sum_{i in rest} max(0, 1 + h_i'v)``          (loss="hinge")

    ``1/2 v'Av + C/2 sum_{i in rest} (1 + h_i'v)^2``            (loss="least_squares")

    The first is a quadratic program with a box, solved exactly; the second a linear system.  The
    rest is one other class, for each pair of classes, or all others.  The hinge has one side: the
    rest should lie on one side of the plane of a class.  For classes that cross take `GEPSVC`.
    With least squares and C = 1 the two planes of two classes are nearly parallel: linear, this is
    linear discriminant analysis.

    Parameters
    ----------
    C1 : float, default=1.0
        Cost of rows of the other classes that are closer than 1, for the plane of ``classes_[0]``
        or, with more than two classes, for every plane.
    C2 : float, default=None
        The same for the plane of ``classes_[1]``, if there are two classes; None means C1.
    ridge : float or "auto", default="auto"
        Weight of the Tikhonov term T, which makes the problem definite; "auto" is 5e-4 of the trace
        of P, for any number of coordinates.
    loss : {"auto", "hinge", "least_squares"}, default="auto"
        Loss of the rows of the rest, see the two problems above.  "auto" is the hinge for the
        linear kernel and least squares for all others, where the hinge is no better and slower.
    measure : {"margin", "distance"}, default="margin"
        How near a row is to a plane: by its height ``|h'v|``, which should be 0 on the class and 1
        on the rest, or by its distance ``|h'v| / |w|`` (003).  Two planes of different lengths
        have different margins: the distance favours the class with the wider one.
    graph : graph rule or str, default=None
        The graph on the rows of each class, built class by class, such as
        ``NeighborGraph(mode="mutual")``: neighbors whose heights above the plane differ are
        penalised.  None is no graph.
    graph_weight : float, default=0.1
        Weight of the graph.  On 11 data sets (``benchmarks/twin_planes.py``) the graph had no
        measurable benefit: 0.1 changed the accuracy by 0.0 points on average with either kernel (95
        % interval -0.3 to 0.2); a weight of 1 cost 1.8 points with the linear one.
    tikhonov : {"rkhs", "dual"}, default="rkhs"
        T is ``|w|^2 + b^2`` in feature space, or the printed ``|u|^2 + b^2`` with
        ``w = sum_i u_i z_i`` (the least norm).
    normalize : bool, default=True
        Whether the weights are independent of the units of the data: rows are scaled to the mean
        square 1, the ridge is in units of the mean eigenvalue of P, and a graph weight of 1 gives M
        the trace of P (without the offset).  False takes them as raw delta_T and delta_M.
    kernel : str, callable, feature map or transformer, default="linear"
        "linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "precomputed", a function of two
        matrices, an `ExactKernel` with its own parameters, or any scikit-learn transformer such as
        ``Nystroem``.  The systems have the rank of the kernel, not n + 1 unknowns.  For more than
        5000 rows "rbf", "poly", "cosine" and "laplacian" stand for a `LowRankKernel` (see
        `kernel_error_`); an `ExactKernel` is always exact.
    class_weight : None, "balanced" or dict, default=None
        Weights of the classes; "balanced" gives all the same total.
    multiclass : {"one_vs_one", "one_vs_rest"}, default="one_vs_one"
        With three or more classes: two planes for each pair of classes, and the pairs vote; or
        one plane for each class against all others (the papers' reading).
    unlabeled : object, default=None
        Rows whose label equals this have none and act through the graph, if there is one: that of
        each class is built on its rows and on all of these.  (They count for the mean, too.)  With
        labels for a tenth of the rows (six tables, five partitions) that changes the error by
        -1.1 +- 1.1 points (linear kernel) and -0.3 +- 1.0 (rbf).
    tol : float, default=1e-8
        Relative duality gap of the hinge problems.

    Attributes
    ----------
    planes_ : list of Plane
        The planes with ``label``, ``opponent``, ``normal`` and ``offset``; ``str(plane)`` is the
        equation.  There is one for each class (n_planes = n_classes).  With three or more classes
        and "one_vs_one" there are two for each pair, n_planes = n_classes * (n_classes - 1), in the
        order of the pairs (0, 1), (0, 2), ..., (1, 2), ...: the plane of the first class, then that
        of the second.
    normals_ : array of shape (n_planes, n_coordinates)
        Unit normals in the coordinates of the feature map, in the order of ``planes_``; the rows
        that a plane should be far from lie on its negative side on average.
    offsets_ : array of shape (n_planes,)
        ``|z @ normal + offset|`` is the distance.
    margins_ : array of shape (n_planes,)
        Distance from each plane at which rows of the rest cost nothing, ``1 / |w|``.
    coef_ : array of shape (n_planes, n_features)
        Unit normals in input units (linear kernel only).
    intercept_ : array of shape (n_planes,)
        Offsets in input units (linear kernel only).  ``X @ coef_.T + intercept_`` loses digits
        if the rows are far from 0; ``distances`` subtracts the mean first and does not.
    classes_ : array of shape (n_classes,)
        Class labels, sorted.
    feature_map_ : object
        The fitted feature map of the kernel.
    kernel_error_ : float
        Share of the kernel's variance that a `LowRankKernel` loses; 0 for all other kernels.
    gap_ : array of shape (n_planes,)
        Certified relative duality gaps; 0 for least squares.
    n_iter_ : int
        Iterations of the longest of the hinge problems.

    References
    ----------
    Jayadeva, Khemchandani, Chandra: Twin Support Vector Machines for Pattern Classification, IEEE
    Transactions on Pattern Analysis and Machine Intelligence 29.
    Kumar, Gopal: Least Squares Twin Support Vector Machines for Pattern Classification, Expert
    Systems with Applications 36.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from marginfold import TwinSVC
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = make_pipeline(StandardScaler(), TwinSVC()).fit(X, y)
    >>> bool(model.score(X, y) > 0.95)
    True
    """

    CONSTRAINTS: ClassVar[dict[str, Constraint]] = NearestPlane.CONSTRAINTS | {
        "C1": POSITIVE_FACTOR,
        "C2": Either(Choice(None), POSITIVE_FACTOR),
        "ridge": Either(Choice("auto"), POSITIVE_FACTOR),
        "loss": Choice("auto", "hinge", "least_squares"),
        "measure": Choice("margin", "distance"),
        "graph_weight": FACTOR,
        "tol": TOLERANCE,
    }

    def __init__(
        self,
        *,
        C1: float = 1.0,
        C2: float | None = None,
        ridge: float | Literal["auto"] = "auto",
        loss: Literal["auto", "hinge", "least_squares"] = "auto",
        measure: Literal["margin", "distance"] = "margin",
        graph: GraphName | GraphLike | None = None,
        graph_weight: float = 0.1,
        tikhonov: Literal["rkhs", "dual"] = "rkhs",
        normalize: bool = True,
        kernel: KernelLike = "linear",
        class_weight: ClassWeight = None,
        multiclass: Multiclass = "one_vs_one",
        unlabeled: object = None,
        tol: float = 1e-8,
    ) -> None:
        self.C1 = C1
        self.C2 = C2
        self.ridge = ridge
        self.loss = loss
        self.measure = measure
        self.graph = graph
        self.graph_weight = graph_weight
        self.tikhonov = tikhonov
        self.normalize = normalize
        self.kernel = kernel
        self.class_weight = class_weight
        self.multiclass = multiclass
        self.unlabeled = unlabeled
        self.tol = tol

    @property
    def _class_graph(self) -> Any:
        if self.graph is None or not self.graph_weight > 0:
            return None
        return resolve_graph(self.graph)

    def _planes(self, rows: PlaneRows) -> tuple[Array, Array]:
        self.n_iter_ = 1
        hinge = self.loss == "hinge" or (self.loss == "auto" and is_linear(self.kernel))
        normals, offsets, self.gap_ = rows.solve(self._hinge if hinge else self._least_squares)
        if self.gap_.max() > self.tol:
            warn(uncertified_note(self, self.gap_.max()), UncertifiedWarning)
        return normals, offsets

    def _keep_lengths(self, lengths: Array, placed: Array) -> None:
        """Keep the margins; a plane that is nowhere has the least, and so the largest heights."""
        self.margins_ = 1.0 / lengths
        if placed.any():
            self.margins_[~placed] = self.margins_[placed].min()

    def _heights(self, X: Any) -> Array:
        distances = self._distances(X)
        return distances / self.margins_ if self.measure == "margin" else distances

    def _form(self, problem: PlaneProblem) -> Array:
        """Return A = P + dM M + dT T."""
        term = problem.graph_term(problem.own, float(self.graph_weight), self.normalize)
        return problem.near(self.ridge, self.normalize) + term

    def _cost(self, problem: PlaneProblem) -> float:
        second = problem.task.own == 1 and len(self.classes_) == 2 and self.C2 is not None
        return float(self.C2 if second else self.C1)  # type: ignore[arg-type]

    def _hinge(self, problem: PlaneProblem) -> tuple[Array, float]:
        """Whiten by A = F F': the rest is then a support vector problem without bias."""
        F = definite_factor(self._form(problem))
        solution = solve_hinge(problem, F, self._cost(problem), Automatic(tol=self.tol))
        self.n_iter_ = max(self.n_iter_, solution.n_iter)
        v = scipy.linalg.solve_triangular(F, solution.coef, lower=True, trans=1, check_finite=False)
        return np.asarray(v), solution.gap

    def _least_squares(self, problem: PlaneProblem) -> tuple[Array, float]:
        """Solve (A + C Q) v = -C sum_rest h."""
        C = self._cost(problem)
        F = definite_factor(self._form(problem) + C * problem.rest)
        return np.asarray(scipy.linalg.cho_solve((F, True), -C * problem.rest_sum)), 0.0


@dataclass(frozen=True)
class BoxSolution:
    """The weights of a box problem with their certificate.

    Attributes
    ----------
    coef : array of shape (r,)
        The minimiser s.
    dual : array of shape (n,)
        Multipliers, ``0 <= dual <= costs``.
    gap : float
        Relative duality gap, a bound of the relative error of the objective.
    n_iter : int
    converged : bool
        Whether the gap is within the tolerance of the solver.
    """

    coef: Array
    dual: Array
    gap: float
    n_iter: int
    converged: bool


def solve_box_qp(U: Array, costs: Array, solver: SVMSolver) -> BoxSolution:
    """Minimise ``1/2 |s|^2 + sum_i costs_i max(0, 1 - u_i's)`` over s.

    Parameters
    ----------
    U : array of shape (n, r)
    costs : array of shape (n,)
        Not negative.
    solver : SVMSolver

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.svm import InteriorPoint
    >>> from marginfold.estimators.twinsvm import solve_box_qp
    >>> solution = solve_box_qp(np.array([[2.0], [4.0]]), np.array([1.0, 1.0]), InteriorPoint())
    >>> bool(abs(solution.coef[0] - 0.5) < 1e-8)
    True
    """
    n = len(U)
    if n < U.shape[1]:  # s is in the span of the rows: U = R'Q'
        Q, R = qr(U.T)
        found = solve_box_qp(R.T, costs, solver)
        return replace(found, coef=Q @ found.coef)
    doubled = solver.solve(
        np.concatenate([U, -U]), np.repeat([1.0, -1.0], n), np.tile(costs / 2, 2)
    )
    return BoxSolution(
        coef=doubled.coef,
        dual=doubled.dual[:n] + doubled.dual[n:],
        gap=doubled.gap,
        n_iter=doubled.n_iter,
        converged=doubled.converged,
    )


@dataclass(frozen=True, eq=False)
class Rest:
    """The rows that a plane is to be far from, as its problem sees them."""

    task: PlaneTask
    factors: Array
    basis: TikhonovBasis
    F: Array

    def mirrored(self, block: Block) -> Block:
        """Return the rows u of a block as class 0, and -u as class 1, with half of the weight."""
        H, weights = rest_rows(block, self.task, self.factors, self.basis)
        U = whitened(H, self.F)
        codes = np.repeat([0, 1], len(U))
        return Block(np.concatenate([U, -U]), codes, np.tile(weights / 2, 2), 2 * block.start)


@dataclass(frozen=True, eq=False)
class MirroredBlocks:
    """Blocks of rows u and -u, made of the given blocks in each pass."""

    blocks: RowBlocks
    rest: Rest
    n_rows: int

    @property
    def n_columns(self) -> int:
        """Number of coordinates of u."""
        return len(self.rest.F)

    def map(self, work: Callable[..., T], *args: Any) -> list[T]:
        """Return ``work(block, *args)`` for every block."""
        return self.blocks.map(partial(on_mirrored, work, self.rest), *args)


def on_mirrored(work: Callable[..., T], rest: Rest, block: Block, *args: Any) -> T:
    """Return what some work gives for the mirrored rows of a block."""
    return work(rest.mirrored(block), *args)


def solve_hinge(
    problem: PlaneProblem, F: Array, cost: float, solver: SVMSolver
) -> BoxSolution | SVMSolution:
    """Solve the problem of a plane, in coordinates in which ``F F'`` is the identity."""
    rows, task = problem.rows, problem.task
    c = rows.coordinates
    if c.Z is not None:
        H, weights = problem.space.rest_rows(task)
        return solve_box_qp(whitened(H, F), cost * weights, solver)
    n_others = int(np.count_nonzero(task.is_against(np.asarray(c.codes))))
    mirrored = MirroredBlocks(c.blocks, Rest(task, rows.factors, rows.basis, F), 2 * n_others)
    batch = SVMBatch(
        rows=BlockRows.of(mirrored, None, 2),
        signs=np.array([[1.0, -1.0]]),
        costs=np.full((1, 2), cost),
        scale=np.ones((1, len(F))),
        deflated=np.zeros((1, len(F), 0)),
    )
    return solver.solve_batch(batch)[0]


def whitened(H: Array, F: Array) -> Array:
    """Return the rows ``u = -F^-1 h``."""
    return np.asarray(-scipy.linalg.solve_triangular(F, H.T, lower=True, check_finite=False).T)
