"""Planes of 003 (GEPSVM, MRGEPSVM) and of the twin SVM, written literally, for the tests.

As in ``literal.py``: explicit matrices, no whitening, nothing from the library. "E31" and so on
are the numbers of the errata of 003.

Conventions
-----------
* A function is f(x) = F(x) c + b. Linear: F = the centred rows, c = w. Kernel: F = rows of the
  centred kernel matrix Kc = HKH, c = u of 003 eq. (32), |w|^2 = u'Kc u.
* Copies of a row stand for its sample weight, so nothing here has a sample weight. ``factors``
  are class weights: they multiply the squares and hinges of rows, not the mean, not the graph.
* ``multiclass="one_vs_rest"``: one plane for each class against all other rows; classes in the
  order of ``np.unique(y)``. "one_vs_one": two planes for each pair of classes, on the rows of the
  pair; the space, its mean, unit and rank are those of all rows.
* ``normalize`` divides the values of F by the root of their mean square (in coefficients in which
  T = I) and gives the strengths their units: delta_T = ridge tr(P) / (rank + 1) and
  delta_M = graph_weight tr(target) / tr(M), both traces in coefficients in which T = I. The
  target is the block of w in the matrix that M is added to.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.linalg import block_diag, cholesky, eig, eigh, orth, solve_triangular
from scipy.optimize import lsq_linear

NULL = 1e-10  # relative eigenvalue of Kc below which there is no feature, as in the library
EPS = np.finfo(float).eps
GAP_LIMIT = 1e-9  # a reference twin SVM with a larger relative duality gap raises


# --------------------------------------------------------------------------------------------
# Spaces of functions
# --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Space:
    """Functions F c + b: values on rows, the Tikhonov form c'Tc and the norm |w|^2 = c'Nc."""

    F: np.ndarray
    F_new: np.ndarray
    T: np.ndarray
    N: np.ndarray
    rank: int

    def trace(self, form):
        """Trace of a form in coefficients in which T is the identity."""
        return np.trace(np.linalg.solve(self.T, form))

    def in_units(self, factors=None):
        """Functions F c / unit + b, unit^2 = the mean square of the rows where T = I."""
        s = np.ones(len(self.F)) if factors is None else factors
        square = self.trace(self.F.T @ np.diag(s) @ self.F) / s.sum()
        unit = np.sqrt(square)
        return Space(self.F / unit, self.F_new / unit, self.T, self.N / square, self.rank)


def linear_space(X, X_new):
    """c = w, T = N = I (003 eq. 3 and 25), rows centred at the mean of all rows."""
    mean, eye = X.mean(axis=0), np.eye(X.shape[1])
    return Space(X - mean, X_new - mean, eye, eye, np.linalg.matrix_rank(X - mean))


def kernel_space(K, K_new, tikhonov):
    """c = u (003 eq. 32); T = Kc ("rkhs", E43) or T = I ("dual", as printed).

    Kc is singular. A part of u in its null space changes no value and no norm; for T = I it only
    costs, for T = Kc it is undetermined. So u is restricted to the range of Kc for T = Kc and not
    restricted for T = I.
    """
    Kc, Kc_new = centred_kernel(K, K_new)
    B = orth(Kc, rcond=NULL)
    rank = B.shape[1]
    if tikhonov == "dual":
        return Space(Kc, Kc_new, np.eye(len(K)), Kc, rank)
    form = B.T @ Kc @ B
    return Space(Kc @ B, Kc_new @ B, form, form, rank)


def centred_kernel(K, K_new):
    """Kc = HKH, and the same centring for new rows: k - mean(k) - column means + mean."""
    n = len(K)
    H = np.eye(n) - np.full((n, n), 1 / n)
    return H @ K @ H, (K_new - np.full((len(K_new), n), 1 / n) @ K) @ H


# --------------------------------------------------------------------------------------------
# Graphs within a class
# --------------------------------------------------------------------------------------------


def class_laplacians(X, y, n_neighbors, width="auto", unlabeled=None):
    """L^(c) of the mutual neighbour graph of every class (003 section 3), as a dict.

    S_ij = exp(-d^2 / width) if i and j are each other's neighbours. Copies are one node when
    neighbours are searched, and every pair of copies is joined. "auto" is the mean squared
    distance over the pairs (row, neighbour) of the class: its graph is one on its rows alone, or
    on these and all rows without a label, in their order.
    """
    laplacians = {}
    for c in np.unique(y[y != unlabeled]):
        d2, N = _search(X[(y == c) | (y == unlabeled)], n_neighbors)
        t = width
        if width == "auto":
            t = d2[N].mean() if N.any() else 1.0  # a single point has no pair
        S = np.where(N & N.T, np.exp(-d2 / t), 0.0)
        laplacians[c] = np.diag(S.sum(axis=1)) - S  # 003 eq. (17)
    return laplacians


def _search(A, n_neighbors):
    """Squared distances, and N[i, j] = the point of row j is a nearest one to that of row i."""
    n = len(A)
    d2 = np.array([[((a - b) ** 2).sum() for b in A] for a in A])
    points, node = np.unique(A, axis=0, return_inverse=True)
    node = node.ravel()
    near = np.zeros((len(points), len(points)), dtype=bool)
    for i, p in enumerate(points):
        to = ((points - p) ** 2).sum(axis=1)
        to[i] = np.inf
        near[i, np.argsort(to, kind="stable")[: min(n_neighbors, len(points) - 1)]] = True
    return d2, near[np.ix_(node, node)].reshape(n, n)


# --------------------------------------------------------------------------------------------
# Planes
# --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Plane:
    """Coefficients (c, b), the distances of all and of new rows, and what was optimised.

    ``forms`` are the two matrices of the quotient (GEPSVM); ``value`` is the quotient or, for the
    twin SVM, the objective.
    """

    c: np.ndarray
    b: float
    norm: float
    distances: np.ndarray
    distances_new: np.ndarray
    value: float
    forms: tuple[np.ndarray, np.ndarray] | None = None


def sides(y, multiclass="one_vs_rest", unlabeled=None):
    """Return for each plane its class, which rows belong to it, and which it is to be far from."""
    classes = np.unique(y[y != unlabeled])
    if multiclass == "one_vs_rest" or len(classes) == 2:
        return [(c, y == c, (y != c) & (y != unlabeled)) for c in classes]
    found = []
    for i in range(len(classes)):
        for j in range(i + 1, len(classes)):
            a, b = classes[i], classes[j]
            found += [(a, y == a, y == b), (b, y == b, y == a)]
    return found


def votes(distances, n_classes):
    """Return the class that wins most pairs, by the distances to the planes of `sides`.

    The class whose plane is nearer wins a pair; half a vote each if both are equally near. Equal
    votes: the sums of the differences of distances decide.
    """
    won, sums = np.zeros((2, len(distances), n_classes))
    pairs = [(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]
    for row, d in enumerate(distances):
        for k, (i, j) in enumerate(pairs):
            to_i, to_j = d[2 * k], d[2 * k + 1]
            won[row, i] += 1.0 if to_i < to_j else 0.5 if to_i == to_j else 0.0
            won[row, j] += 1.0 if to_j < to_i else 0.5 if to_i == to_j else 0.0
            sums[row, i] += to_j - to_i
            sums[row, j] += to_i - to_j
    order = [
        max(range(n_classes), key=lambda c: (w[c], s[c])) for w, s in zip(won, sums, strict=True)
    ]
    return np.array(order)


def gepsvm(space, y, *, ridge, normalize, factors=None, multiclass="one_vs_rest"):
    """GEPSVM, 003 eq. (4) and (5) with E31, E32 and E33."""
    nothing = {c: np.zeros((np.sum(y == c),) * 2) for c in np.unique(y)}
    options = {"graph_weight": 0.0, "manifold": "denominator", "multiclass": multiclass}
    return mrgepsvm(space, y, nothing, ridge=ridge, normalize=normalize, factors=factors, **options)


def mrgepsvm(
    space,
    y,
    laplacians,
    *,
    graph_weight,
    ridge,
    manifold,
    normalize,
    factors=None,
    multiclass="one_vs_rest",
    solver="eigh",
    unlabeled=None,
):
    """MRGEPSVM, 003 eq. (25)-(28), kernel: (33)-(37), with E37 and E39-E41; planes of `sides`.

    ``manifold="denominator"`` is printed, "numerator" preserves local distances (E35). The
    ``solver`` "eig" takes 003 eq. (26) as it stands, smallest eigenvalue of an unsymmetric
    problem; "eigh" its reciprocal with the definite matrix on the right.
    """
    planes = []
    space = space.in_units(factors) if normalize else space
    for c, own, rest in sides(y, multiclass, unlabeled):
        P, Q = _moments(space, own, factors), _moments(space, rest, factors)
        A = space.F[own | (y == unlabeled)]
        M = A.T @ laplacians[c] @ A  # 003 eq. (24) and (34)
        target = Q if manifold == "denominator" else P
        delta_T, delta_M = ridge, graph_weight
        if normalize:
            delta_T *= _unit_ridge(space, P)
            delta_M *= _ratio(space.trace(target[:-1, :-1]), space.trace(M))
        near = P + delta_T * block_diag(space.T, 1.0)
        far, M = Q, delta_M * block_diag(M, 0.0)
        near, far = (near, far + M) if manifold == "denominator" else (near + M, far)
        value, z = (_largest if solver == "eigh" else _printed)(near, far)
        planes.append(_plane(space, z, value, (near, far)))
    return planes


def _moments(space, rows, factors):
    """[F e]'[F e] over the given rows (003 eq. 4 and 34 with E39)."""
    H = np.column_stack([space.F[rows], np.ones(np.sum(rows))])
    S = np.eye(len(H)) if factors is None else np.diag(factors[rows])
    return H.T @ S @ H


def _unit_ridge(space, P):
    return (space.trace(P[:-1, :-1]) + P[-1, -1]) / (space.rank + 1)


def _ratio(a, b):
    return a / b if b > 0 else 0.0


def _largest(near, far):
    """max z'(far)z / z'(near)z."""
    values, vectors = eigh(far, near)
    return values[-1], vectors[:, -1]


def _printed(near, far):
    """003 eq. (26): near z = lambda far z, smallest lambda; returns 1 / lambda."""
    values, vectors = eig(near, far)
    values = np.where(np.isfinite(values), values.real, np.inf)
    values[values <= 0] = np.inf
    i = int(np.argmin(values))
    return 1 / values[i], vectors[:, i].real


def _plane(space, z, value, forms=None):
    c, b = z[:-1], z[-1]
    norm = np.sqrt(c @ space.N @ c)  # E38: |w|, not |w|^2
    distances, new = (np.abs(F @ c + b) / norm for F in (space.F, space.F_new))
    return Plane(c, b, norm, distances, new, value, forms)


# --------------------------------------------------------------------------------------------
# Twin SVM
# --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TwinProblem:
    """1/2 v'Av + sum_i C_i loss(1 + h_i'v) over the rows h_i of the other classes."""

    A: np.ndarray
    H: np.ndarray
    C: np.ndarray
    loss: str

    def objective(self, v):
        slack = 1 + self.H @ v
        if self.loss == "least_squares":
            return v @ self.A @ v / 2 + self.C @ slack**2 / 2
        return v @ self.A @ v / 2 + self.C @ np.maximum(0, slack)


def twin_problems(
    space,
    y,
    costs,
    *,
    ridge,
    normalize,
    loss="hinge",
    factors=None,
    multiclass="one_vs_rest",
    laplacians=None,
    graph_weight=0.0,
    unlabeled=None,
):
    """The problem of every plane; ``costs`` has one entry for each class.

    The graph is added to the form of the own class, as in ``mrgepsvm(manifold="numerator")``.
    """
    factors = np.ones(len(y)) if factors is None else factors
    space = space.in_units(factors) if normalize else space
    cost_of = dict(zip(np.unique(y[y != unlabeled]), costs, strict=True))
    problems = []
    for c, own, rest in sides(y, multiclass, unlabeled):
        P = _moments(space, own, factors)
        delta = _twin_ridge(space, P, ridge, normalize)
        A = P + delta * block_diag(space.T, 1.0)
        if laplacians is not None:
            joined = space.F[own | (y == unlabeled)]
            M = joined.T @ laplacians[c] @ joined
            unit = _ratio(space.trace(P[:-1, :-1]), space.trace(M)) if normalize else 1.0
            A = A + graph_weight * unit * block_diag(M, 0.0)
        H = np.column_stack([space.F[rest], np.ones(np.sum(rest))])
        problems.append(TwinProblem(A, H, cost_of[c] * factors[rest], loss))
    return problems


def _twin_ridge(space, P, ridge, normalize):
    """delta_T; "auto" is a share of the trace of P where T = I."""
    if ridge == "auto":
        return 5e-4 * (space.trace(P[:-1, :-1]) + P[-1, -1])
    return ridge * (_unit_ridge(space, P) if normalize else 1.0)


def twin_svm(space, y, costs, **options):
    """The planes of `sides`: the dual box problem (hinge) or the normal equations."""
    planes = []
    problems = twin_problems(space, y, costs, **options)
    space = space.in_units(options.get("factors")) if options["normalize"] else space
    for problem in problems:
        if problem.loss == "least_squares":
            v = _normal_equations(problem)
        else:
            v = _dual_box(problem)
        planes.append(_plane(space, v, problem.objective(v)))
    return planes


def _normal_equations(problem):
    weighted = problem.H.T * problem.C
    return -np.linalg.solve(problem.A + weighted @ problem.H, weighted.sum(axis=1))


def _dual_box(problem):
    """v = -A^-1 H'a with max e'a - 1/2 a'H A^-1 H'a, 0 <= a <= C.

    The last column of H is e. So with A = RR' the dual is -1/2 |R^-1 H'a - R'(0, ..., 0, 1)|^2 plus
    a constant, a least-squares problem in a box, which an active-set method solves to rounding.
    Raises if the duality gap is not closed.
    """
    R = cholesky(problem.A, lower=True)
    design = solve_triangular(R, problem.H.T, lower=True)
    found = lsq_linear(
        design, R[-1], bounds=(0, problem.C), method="bvls", tol=1e-15, max_iter=5000
    )
    a = np.clip(found.x, 0, problem.C)
    v = -solve_triangular(R, design @ a, lower=True, trans="T")
    primal, dual = problem.objective(v), a.sum() - v @ problem.A @ v / 2
    limit = GAP_LIMIT * primal + EPS * np.sum(problem.C)  # slacks are rounded in units of 1
    assert primal - dual < limit, f"duality gap {primal - dual:.1e} of {primal:.1e}"
    return v
