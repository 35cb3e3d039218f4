"""MRGEPSVC: manifold regularised planes by generalised eigenvalues (paper 003), and GEPSVC."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

from marginfold.estimators.nearest_plane import NearestPlane
from marginfold.estimators.plane_problem import PlaneProblem
from marginfold.estimators.plane_rows import PlaneRows
from marginfold.feature_maps import KernelLike
from marginfold.graphs import NeighborGraph, resolve_graph
from marginfold.graphs.rule import GraphLike, GraphName
from marginfold.linalg import pencil_pairs
from marginfold.linalg.tall import Array
from marginfold.validation.parameters import (
    FACTOR,
    Choice,
    Constraint,
)
from marginfold.validation.types import ClassWeight, Multiclass


class MRGEPSVC(NearestPlane):
    """Manifold regularised proximal support vector classifier by generalised eigenvalues.

    The plane ``w'z + b = 0`` of a class is close to its rows and far from those of another class
    (or of all others).  With ``h = (z, 1)``, ``P`` the moments ``h h'`` summed over the rows of the
    class, ``Q`` over the rest, and ``M`` the scatter ``Z'LZ`` of a graph on the rows of the class
    (003 eqs. (4) and (24)), it maximises over ``v = (w, b)`` (eq. (25))

    ``v'(Q + dM M)v / v'(P + dT T)v``              (manifold="denominator", as printed)

    ``v'Qv / v'(P + dM M + dT T)v``                (manifold="numerator")

    and a row belongs to the class of the nearest plane, of several classes to the one that wins
    most pairs.

    Parameters
    ----------
    graph_weight : float, default=1.0
        Weight of the graph; 0 is `GEPSVC`.
    ridge : float, default=1e-2
        Weight of the Tikhonov term T.
    graph : graph rule or str, default=None
        The graph on the rows of each class, built class by class; None is the paper's,
        ``NeighborGraph(mode="mutual", within_class=True)``.
    manifold : {"denominator", "numerator"}, default="denominator"
        The paper puts the graph into the denominator of its minimum, which rewards neighbors that
        differ along the normal, so that they come together on the plane; "numerator" penalises
        that instead.  Which of them keeps more of the local distances depends on the data.
    tikhonov : {"rkhs", "dual"}, default="rkhs"
        T is ``|w|^2 + b^2`` in feature space, or the printed ``|u|^2 + b^2`` with
        ``w = sum_i u_i z_i`` (the least norm).
    normalize : bool, default=True
        Whether the weights are independent of the units of the data: rows are scaled to the mean
        square 1, the ridge is in units of the mean eigenvalue of P, and a graph weight of 1 gives M
        the trace of the matrix it is added to (without the offset).  False takes them as the
        paper's raw delta_T and delta_M.
    kernel : str, callable, feature map or transformer, default="linear"
        "linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "precomputed", a function of two
        matrices, an `ExactKernel` with its own parameters, or any scikit-learn transformer such as
        ``Nystroem``.  For more than 5000 rows "rbf", "poly", "cosine" and "laplacian" stand
        for a `LowRankKernel` (see `kernel_error_`); an `ExactKernel` is always exact.
    class_weight : None, "balanced" or dict, default=None
        Weights of the classes; "balanced" gives all the same total.
    multiclass : {"one_vs_one", "one_vs_rest"}, default="one_vs_one"
        With three or more classes: two planes for each pair of classes, and the pairs vote; or
        one plane for each class against all others (the papers' reading).
    unlabeled : object, default=None
        Rows whose label equals this have none and act through the graph, that of each class being
        built on its rows and on all of these, and through the mean.  With labels for a tenth of
        the rows (six tables, five partitions) that changes the error by 0.8 +- 0.7 points (linear
        kernel) and 0.6 +- 0.4 (rbf), and with ``manifold="numerator"`` by -2.1 +- 1.6 and
        9.2 +- 2.6: it is of use without a kernel only.

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
    coef_ : array of shape (n_planes, n_features)
        Unit normals in input units (linear kernel only).
    intercept_ : array of shape (n_planes,)
        Offsets in input units (linear kernel only).  ``X @ coef_.T + intercept_`` loses digits
        if the rows are far from 0; ``distances`` subtracts the mean first and does not.
    eigenvalues_ : array of shape (n_planes,)
        The ratio that each plane attains; larger is better.
    classes_ : array of shape (n_classes,)
        Class labels, sorted.
    feature_map_ : object
        The fitted feature map of the kernel.
    kernel_error_ : float
        Share of the kernel's variance that a `LowRankKernel` loses; 0 for all other kernels.

    Notes
    -----
    What differs from the printed paper: the second problem (5), (27) and (36) has its matrices in
    the right places; the definite matrix ``P + dT T`` stands on the right of the pencil, so that a
    singular Q is harmless; distances are divided by the norm, not by its square.  Rows are centred
    first, so that the Tikhonov term penalises the offset from the mean.

    References
    ----------
    Liang, Zhang, Xiong, Chen, Chen, Lan: Manifold Regularized Proximal Support Vector Machine via
    Generalized Eigenvalue.

    Examples
    --------
    Two crossing lines, which no single line can part (003 Fig. 5):

    >>> import numpy as np
    >>> from marginfold import MRGEPSVC
    >>> t = np.linspace(-1, 1, 50)
    >>> X = np.vstack([np.column_stack([t, t]), np.column_stack([t, -t])])
    >>> y = np.repeat(["up", "down"], 50)
    >>> model = MRGEPSVC().fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True

    Rows without a label act through the graphs:

    >>> y[::2] = "?"
    >>> MRGEPSVC(unlabeled="?").fit(X, y).classes_.tolist()
    ['down', 'up']
    """

    CONSTRAINTS: ClassVar[dict[str, Constraint]] = NearestPlane.CONSTRAINTS | {
        "graph_weight": FACTOR,
        "manifold": Choice("denominator", "numerator"),
    }

    def __init__(
        self,
        *,
        graph_weight: float = 1.0,
        ridge: float = 1e-2,
        graph: GraphName | GraphLike | None = None,
        manifold: Literal["denominator", "numerator"] = "denominator",
        tikhonov: Literal["rkhs", "dual"] = "rkhs",
        normalize: bool = True,
        kernel: KernelLike = "linear",
        class_weight: ClassWeight = None,
        multiclass: Multiclass = "one_vs_one",
        unlabeled: object = None,
    ) -> None:
        self.graph_weight = graph_weight
        self.ridge = ridge
        self.graph = graph
        self.manifold = manifold
        self.tikhonov = tikhonov
        self.normalize = normalize
        self.kernel = kernel
        self.class_weight = class_weight
        self.multiclass = multiclass
        self.unlabeled = unlabeled

    @property
    def _class_graph(self) -> Any:
        if not self.graph_weight > 0:
            return None
        return resolve_graph(self._default_graph() if self.graph is None else self.graph)

    def _planes(self, rows: PlaneRows) -> tuple[Array, Array]:
        normals, offsets, self.eigenvalues_ = rows.solve(self._plane)
        return normals, offsets

    def _plane(self, problem: PlaneProblem) -> tuple[Array, float]:
        """Solve 003 eq. (26) for one plane, with the definite matrix on the right."""
        near, far = problem.near(self.ridge, self.normalize), problem.rest
        weight = float(self.graph_weight)
        if self.manifold == "denominator":
            far = far + problem.graph_term(far, weight, self.normalize)
        else:
            near = near + problem.graph_term(problem.own, weight, self.normalize)
        values, vectors = pencil_pairs(far, near, 1)
        return vectors[:, 0], float(values[0])

    @staticmethod
    def _default_graph() -> NeighborGraph:
        return NeighborGraph(mode="mutual", within_class=True)


class GEPSVC(MRGEPSVC):
    """Proximal support vector classifier by generalised eigenvalues: `MRGEPSVC` without a graph.

    The plane of a class maximises ``v'Qv / v'(P + dT T)v`` over ``v = (w, b)``: far from all other
    rows (Q), close to its own (P) (003 eqs. (4) and (5), the second one corrected).

    Parameters
    ----------
    ridge : float, default=1e-2
        Weight of the Tikhonov term T.
    tikhonov : {"rkhs", "dual"}, default="rkhs"
        T is ``|w|^2 + b^2`` in feature space, or the printed ``|u|^2 + b^2`` with
        ``w = sum_i u_i z_i`` (the least norm).
    normalize : bool, default=True
        Whether the weights are independent of the units of the data: rows are scaled to the mean
        square 1 and the ridge is in units of the mean eigenvalue of P.  False takes it as the
        paper's raw delta_T.
    kernel : str, callable, feature map or transformer, default="linear"
        "linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "precomputed", a function of two
        matrices, an `ExactKernel` with its own parameters, or any scikit-learn transformer such as
        ``Nystroem``.  For more than 5000 rows "rbf", "poly", "cosine" and "laplacian" stand
        for a `LowRankKernel` (see `kernel_error_`); an `ExactKernel` is always exact.
    class_weight : None, "balanced" or dict, default=None
        Weights of the classes; "balanced" gives all the same total.
    multiclass : {"one_vs_one", "one_vs_rest"}, default="one_vs_one"
        With three or more classes: two planes for each pair of classes, and the pairs vote; or
        one plane for each class against all others (the papers' reading).

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
    coef_ : array of shape (n_planes, n_features)
        Unit normals in input units (linear kernel only).
    intercept_ : array of shape (n_planes,)
        Offsets in input units (linear kernel only).  ``X @ coef_.T + intercept_`` loses digits
        if the rows are far from 0; ``distances`` subtracts the mean first and does not.
    eigenvalues_ : array of shape (n_planes,)
        The ratio that each plane attains; larger is better.
    classes_ : array of shape (n_classes,)
        Class labels, sorted.
    feature_map_ : object
        The fitted feature map of the kernel.
    kernel_error_ : float
        Share of the kernel's variance that a `LowRankKernel` loses; 0 for all other kernels.

    References
    ----------
    Mangasarian, Wild: Multisurface Proximal Support Vector Machine Classification via Generalized
    Eigenvalues, IEEE Transactions on Pattern Analysis and Machine Intelligence 28.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold import GEPSVC
    >>> t = np.linspace(-1, 1, 50)
    >>> X = np.vstack([np.column_stack([1 + t, t]), np.column_stack([1 + t, -t])])
    >>> y = np.repeat(["up", "down"], 50)
    >>> for plane in GEPSVC().fit(X, y).planes_:
    ...     print(plane)
    'down': +0.707 x0 +0.707 x1 -0.707 = 0
    'up': +0.707 x0 -0.707 x1 -0.707 = 0
    """

    CONSTRAINTS: ClassVar[dict[str, Constraint]] = NearestPlane.CONSTRAINTS

    graph_weight = 0.0
    graph = None
    manifold = "denominator"
    unlabeled = None

    def __init__(
        self,
        *,
        ridge: float = 1e-2,
        tikhonov: Literal["rkhs", "dual"] = "rkhs",
        normalize: bool = True,
        kernel: KernelLike = "linear",
        class_weight: ClassWeight = None,
        multiclass: Multiclass = "one_vs_one",
    ) -> None:
        self.ridge = ridge
        self.tikhonov = tikhonov
        self.normalize = normalize
        self.kernel = kernel
        self.class_weight = class_weight
        self.multiclass = multiclass
