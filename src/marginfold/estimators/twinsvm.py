"""TwinSVC: the twin support vector machine and its least-squares form (a baseline of paper 003)."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import scipy.linalg

from marginfold.errors import UncertifiedWarning, warn
from marginfold.estimators.inputs import uncertified_note
from marginfold.estimators.nearest_plane import NearestPlane
from marginfold.estimators.plane_problems import PlaneRows, solve_hinge
from marginfold.feature_maps import KernelLike
from marginfold.linalg import definite_factor
from marginfold.linalg.tall import Array
from marginfold.svm import InteriorPoint
from marginfold.validation.parameters import Choice, Constraint, Either, Number

POSITIVE = Number(0.0, inclusive=False)


class TwinSVC(NearestPlane):
    """Twin support vector classifier: a plane near each class, at distance from the rest.

    With ``h = (z, 1)``, ``v = (w, b)``, P the moments ``h h'`` of the rows of a class and T the
    Tikhonov term, the plane of the class minimises

    ``1/2 v'(P + dT T)v + C sum_{i in rest} max(0, 1 + h_i'v)``          (loss="hinge")

    ``1/2 v'(P + dT T)v + C/2 sum_{i in rest} (1 + h_i'v)^2``            (loss="least_squares")

    The first is a quadratic program with a box, solved exactly; the second a linear system.

    Parameters
    ----------
    C1 : float, default=1.0
        Cost of rows of the rest that are closer than 1: of the plane of ``classes_[0]``, and with
        several classes of every plane.
    C2 : float, default=None
        The cost of the plane of ``classes_[1]`` of two classes; None is C1.
    ridge : float, default=1e-2
        Weight of the Tikhonov term T, which makes the problem definite.
    loss : {"hinge", "least_squares"}, default="hinge"
        Loss of the rows of the rest, see the two problems above.
    tikhonov : {"rkhs", "dual"}, default="rkhs"
        T is ``|w|^2 + b^2`` in feature space, or the printed ``|u|^2 + b^2`` with
        ``w = sum_i u_i z_i`` (the least norm).
    normalize : bool, default=True
        Whether the weights are free of units: rows are scaled to the mean square 1 and the ridge
        is in units of the mean eigenvalue of P.  False takes it as the paper's raw delta_T.
    kernel : str, callable, feature map or transformer, default="linear"
        "linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "precomputed", a function of two
        matrices, an `ExactKernel` with its own parameters, or any scikit-learn transformer such as
        ``Nystroem``.  The systems have the rank of the kernel, not n + 1 unknowns: give
        ``ExactKernel("rbf", rank=300)`` or ``Nystroem`` for many rows.
    class_weight : None, "balanced" or dict, default=None
        Weights of the classes; "balanced" gives all the same total.
    tol : float, default=1e-8
        Relative duality gap of the hinge problems.

    Attributes
    ----------
    planes_ : list of Plane
        The planes with ``label``, ``normal`` and ``offset``; ``str(plane)`` is the equation.
    normals_ : array of shape (n_classes, n_coordinates)
        Unit normals in the coordinates of the feature map; the rest of the rows lies on the
        negative side on average.
    offsets_ : array of shape (n_classes,)
        ``|z @ normal + offset|`` is the distance.
    coef_ : array of shape (n_classes, n_features)
        Unit normals in input units (linear kernel only).
    intercept_ : array of shape (n_classes,)
        Offsets in input units (linear kernel only).
    classes_ : array of shape (n_classes,)
        Class labels, sorted.
    feature_map_ : object
        The fitted feature map of the kernel.
    gap_ : array of shape (n_classes,)
        Certified relative duality gaps; 0 for least squares.
    n_iter_ : int
        Iterations of the longest of the hinge problems.

    Notes
    -----
    Several classes have one plane each, against the rest.  One against one, often better with many
    classes, is ``sklearn.multiclass.OneVsOneClassifier(TwinSVC(...))``.

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
        "C1": POSITIVE,
        "C2": Either(Choice(None), POSITIVE),
        "loss": Choice("hinge", "least_squares"),
        "tol": POSITIVE,
    }

    def __init__(
        self,
        *,
        C1: float = 1.0,
        C2: float | None = None,
        ridge: float = 1e-2,
        loss: str = "hinge",
        tikhonov: str = "rkhs",
        normalize: bool = True,
        kernel: KernelLike = "linear",
        class_weight: Any = None,
        tol: float = 1e-8,
    ) -> None:
        self.C1 = C1
        self.C2 = C2
        self.ridge = ridge
        self.loss = loss
        self.tikhonov = tikhonov
        self.normalize = normalize
        self.kernel = kernel
        self.class_weight = class_weight
        self.tol = tol

    def _planes(self, rows: PlaneRows) -> Array:
        self.gap_ = np.zeros(rows.n_classes)
        self.n_iter_ = 1
        solve = self._hinge if self.loss == "hinge" else self._least_squares
        planes = np.column_stack([solve(rows, code) for code in range(rows.n_classes)])
        if self.gap_.max() > self.tol:
            warn(uncertified_note(self, self.gap_.max()), UncertifiedWarning)
        return planes

    def _cost(self, rows: PlaneRows, code: int) -> float:
        second = code == 1 and rows.n_classes == 2 and self.C2 is not None
        return float(self.C2 if second else self.C1)  # type: ignore[arg-type]

    def _hinge(self, rows: PlaneRows, code: int) -> Array:
        """Whiten by P + dT I = F F': the rest is then a support vector problem without bias."""
        P = rows.own(code)
        ridge = rows.ridge(P, float(self.ridge), self.normalize)
        F = definite_factor(P + ridge * np.eye(len(P)))
        solver = InteriorPoint(tol=self.tol)
        solution = solve_hinge(rows, code, F, self._cost(rows, code), solver)
        self.gap_[code] = solution.gap
        self.n_iter_ = max(self.n_iter_, solution.n_iter)
        v = scipy.linalg.solve_triangular(F, solution.coef, lower=True, trans=1, check_finite=False)
        return np.asarray(v)

    def _least_squares(self, rows: PlaneRows, code: int) -> Array:
        """Solve (P + dT I + C Q) v = -C sum_rest h."""
        C = self._cost(rows, code)
        P, Q = rows.own_and_rest(code)
        A = P + rows.ridge(P, float(self.ridge), self.normalize) * np.eye(len(P)) + C * Q
        target = -C * Q[:, -1]  # the last entry of h is 1: its column is the sum of the rows
        return np.asarray(scipy.linalg.cho_solve((definite_factor(A), True), target))
