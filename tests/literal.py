"""The papers' corrected equations, written literally, as a reference for the tests.

Every function here forms the explicit n x n (or d x d) matrices of the paper it quotes. Nothing
is whitened, factored once or shared between methods: it is a second derivation, for small data,
and must not import anything from the library. Papers: 000 = LSVA, 001 = WSVDA, 002 = GESVM;
"E1" and so on are the numbers of the errata.

Conventions
-----------
* Data and kernels are *uncentred*, as in the papers. The library centres its coordinates. Both
  have the same optimum as long as L1 = 0: the bias is free and sum(gamma * y) = 0, so w lies in
  the centred span. Only the raw projections differ, by one constant per component. So
  ``projections`` are given centred on the training rows (new rows are shifted by the *training*
  mean), and ``decisions`` hold f_k(x) = w_k'x + b_k, which no shift can change.
* Signs: f = w'x + b everywhere. 001's Lagrangian and 002 use -b (E11).
* Tasks: for two classes one task, ``classes[1]`` against ``classes[0]``. For c > 2 classes one
  task per class against the rest, in the order of ``np.unique(y)``. Component k uses task
  (k - 1) mod c. No task is ever dropped: a component with a relative gain under ``GAIN_FLOOR``
  has no direction (w = 0 is optimal) and raises.
* Costs: ``C`` is a scalar or one cost per row. With ``balanced`` the cost of row i is multiplied
  by n / (2 n_side(i)), n_side = number of rows on its side of the current task. Rows are counted,
  never weighted by ``C``.
* ``labelled`` is a boolean mask; only these rows enter the hinge loss, all rows enter L. Counts
  (n, n_side) are then over labelled rows. The values of y elsewhere are ignored.
* A new kernel block ``K_new`` has one row per new point: K_new[i, j] = k(x_new_i, x_j).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from itertools import islice

import numpy as np
from scipy.linalg import eigh, null_space
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

GAIN_FLOOR = 1e-4  # a smaller relative gain means w = 0 up to rounding
KKT_LIMIT = 1e-8  # a reference SVM that is worse than this raises
GAP_LIMIT = 1e-9  # the same for the duality gap, relative to the objective
ROUNDING = 1e-12  # of a margin; times its cost this is what the hinge of a row may be off by
KKT_TARGET = 1e-12  # the active-set polish goes on while a bound row is wrong by more than this
LIBSVM_TOL = 1e-9  # start of the polish, not its result
LIBSVM_ITERATIONS = 1_000_000
POLISH_STEPS = 2_000
SINGULAR = 1e-13  # relative eigenvalue below which a KKT matrix counts as singular
LLE_REG = 1e-3
KERNEL_RANK_TOL = 1e-14  # relative eigenvalue below which K has no feature


# --------------------------------------------------------------------------------------------
# Graphs: dense Laplacians L = D - W from their definitions
# --------------------------------------------------------------------------------------------


def laplacian(W):
    """L = D - W with D_ii = sum_j W_ij (000 section II-A)."""
    return np.diag(W.sum(axis=1)) - W


def squared_distances(X):
    """All squared Euclidean distances, from differences (no cancellation)."""
    return ((X[:, None, :] - X[None, :, :]) ** 2).sum(axis=2)


def neighbors(X, n_neighbors):
    """Boolean N with N[i, j] true if j is one of the nearest neighbours of i; i itself excluded.

    Equal distances are resolved in favour of the smaller index.
    """
    d2 = squared_distances(X)
    np.fill_diagonal(d2, np.inf)
    N = np.zeros(d2.shape, dtype=bool)
    for i, row in enumerate(np.argsort(d2, axis=1, kind="stable")):
        N[i, row[:n_neighbors]] = True
    return N


def knn_graph(X, n_neighbors=5, *, mutual=False, width="auto"):
    """Laplacian of the neighbour graph (002 eq. 12).

    ``width`` is t in exp(-d^2 / t), "auto" for the mean squared distance over the directed
    neighbour pairs, or None for binary weights. ``mutual`` asks for i in N(j) *and* j in N(i).
    """
    N, d2 = neighbors(X, n_neighbors), squared_distances(X)
    edges = (N & N.T) if mutual else (N | N.T)
    if width is None:
        return laplacian(np.where(edges, 1.0, 0.0))
    t = d2[N].mean() if width == "auto" else width
    return laplacian(np.where(edges, np.exp(-d2 / t), 0.0))  # 002 eq. (12); 000 has t = 2 sigma^2


def total_graph(n):
    """W_ij = 1/n, so X'LX = S_T (002 Table 1, E30)."""
    return laplacian(np.full((n, n), 1.0 / n))


def within_graph(y, labelled=None):
    """W_ij = [y_i = y_j] / n_{y_i}, so X'LX = S_W (002 Table 1). Unlabelled rows are isolated."""
    labelled = _mask(labelled, y)
    W = np.zeros((len(y), len(y)))
    for c in np.unique(y[labelled]):
        e = (labelled & (y == c)).astype(float)
        W += np.outer(e, e) / e.sum()
    return laplacian(W)


def between_graph(y, labelled=None):
    """L_B = sum_k e^k e^k' / n_k - e e' / n, so X'LX = S_B (002 eq. 11, E20).

    With unlabelled rows e is the indicator of the labelled ones.
    """
    labelled = _mask(labelled, y)
    e = labelled.astype(float)
    return np.diag(e) - np.outer(e, e) / e.sum() - within_graph(y, labelled)


def lle_graph(X, n_neighbors=5, *, reg=LLE_REG):
    """L = (I - M)'(I - M), i.e. W = M + M' - M'M with D = I (002 section 2.3 with E25)."""
    IM = np.eye(len(X)) - lle_weights(X, n_neighbors, reg=reg)
    return IM.T @ IM


def lle_weights(X, n_neighbors=5, *, reg=LLE_REG):
    """Reconstruction weights M, each row summing to one."""
    N = neighbors(X, n_neighbors)
    M = np.zeros(N.shape)
    for i in range(len(X)):
        js = np.flatnonzero(N[i])
        D = X[js] - X[i]
        gram = D @ D.T
        trace = np.trace(gram)
        gram += (reg * trace if trace > 0 else reg) * np.eye(len(js))
        m = np.linalg.solve(gram, np.ones(len(js)))
        M[i, js] = m / m.sum()
    return M


def gesvm_graph(name, X, y, *, n_neighbors=5, width="auto", reg=LLE_REG):
    """The five graphs of 002 Table 2 by their letter: W, B, C, L, E."""
    return {
        "W": lambda: within_graph(y),
        "B": lambda: between_graph(y),
        "C": lambda: total_graph(len(y)),
        "L": lambda: lle_graph(X, n_neighbors, reg=reg),
        "E": lambda: knn_graph(X, n_neighbors, width=width),
    }[name]()


# --------------------------------------------------------------------------------------------
# The SVM on a Gram matrix
# --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LiteralSVM:
    """Optimum of 1/2 w'w + sum_i c_i max(0, 1 - y_i f_i) for a given Gram matrix."""

    signed_dual: np.ndarray  # gamma * y
    intercept: float  # b of f = w'x + b; the middle of its interval if it is not unique
    objective: float  # primal value
    gain: float  # 1 - objective / (objective of w = 0)
    residual: float  # largest violation of the KKT conditions, in units of the margin


def svm(G, y, costs):
    """Solve the dual (000 eq. 4) for signs y and 0 <= gamma_i <= costs_i, to rounding.

    libsvm gives the start, an active-set method the end. Raises if the KKT conditions do not
    hold to ``KKT_LIMIT`` or the duality gap is not closed, so that a bad reference never passes
    as the truth.
    """
    G, y = (G + G.T) / 2, np.asarray(y, dtype=float)
    costs = np.broadcast_to(np.asarray(costs, dtype=float), y.shape)
    assert np.all(costs > 0)
    assert set(y) == {-1.0, 1.0}
    scale = np.trace(G) / len(y)  # kernel sG at cost C is kernel G at cost sC (E14)
    scaled, box = G / scale, costs * scale
    gamma = _polish(scaled, y, box, _libsvm(scaled, y, box))
    gamma = np.where(gamma == box, costs, gamma / scale)  # rows at the bound stay exactly there
    f = G @ (gamma * y)
    b, residual = _intercept(f, y, costs, gamma)
    residual = max(residual, abs(gamma @ y) / costs.max(), *(-gamma), *(gamma - costs))
    assert residual < KKT_LIMIT, f"reference SVM not solved: KKT residual {residual:.1e}"
    objective = gamma * y @ f / 2 + costs @ np.maximum(0, 1 - y * (f + b))
    gap = objective - (gamma.sum() - gamma * y @ f / 2)
    limit = GAP_LIMIT * objective + ROUNDING * costs.sum()
    assert gap < limit, f"reference SVM not solved: duality gap {gap:.1e}"
    at_zero = 2 * min(costs[y > 0].sum(), costs[y < 0].sum())
    return LiteralSVM(gamma * y, b, objective, 1 - objective / at_zero, residual)


def _libsvm(G, y, costs):
    model = SVC(
        kernel="precomputed",
        C=1.0,
        tol=LIBSVM_TOL,
        shrinking=False,
        cache_size=50,
        max_iter=LIBSVM_ITERATIONS,
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model.fit(G, y, sample_weight=costs)
    gamma = np.zeros(len(y))
    gamma[model.support_] = np.abs(model.dual_coef_[0])
    return np.minimum(gamma, costs)


def _polish(G, y, costs, gamma):
    """Active-set method: solve the KKT equalities on the free rows until all rows are right.

    The system is solved for the *correction* of gamma, so that a dual which is not unique
    (duplicate rows, rank(G) < number of free rows) stays inside the box.
    """
    Q = y[:, None] * G * y
    free = (gamma > 0) & (gamma < costs)
    for _ in range(POLISH_STEPS):
        step = _newton_step(Q, y, costs, gamma, free)
        gamma, blocking = _move(gamma, step, costs)
        if blocking is not None:
            free[blocking] = False
            continue
        wrong = _worst_bound_row(Q, y, costs, gamma, free)
        if wrong is None:
            break
        free[wrong] = True
    return gamma


def _newton_step(Q, y, costs, gamma, free):
    """Correction d with y_i f_i = 1 on the free rows and sum(gamma * y) = 0."""
    F = np.flatnonzero(free)
    M = np.block([[Q[np.ix_(F, F)], y[F, None]], [y[None, F], np.zeros((1, 1))]])
    rhs = np.append(1 - Q[F] @ gamma, -(y @ gamma))
    solution = np.linalg.lstsq(M, rhs, rcond=SINGULAR)[0]
    solution += np.linalg.lstsq(M, rhs - M @ solution, rcond=SINGULAR)[0]
    rest = (rhs - M @ solution)[:-1]
    step = np.zeros(len(y))
    if np.abs(rest).max(initial=0) > KKT_LIMIT:
        # Contradictory equalities: M is symmetric, so the rest lies in its null space, and the
        # dual grows along it linearly until a row meets its bound. Twice the box is far enough.
        step[F] = rest * 2 * costs.max() / np.abs(rest).max()
    else:
        step[F] = solution[:-1]
    return step


def _move(gamma, step, costs):
    """gamma + t * step with the largest t <= 1 inside the box, and the row that stops it."""
    room = np.full(len(gamma), np.inf)
    down, up = step < 0, step > 0
    room[down] = gamma[down] / -step[down]
    room[up] = (costs[up] - gamma[up]) / step[up]
    i = int(np.argmin(room))
    if room[i] >= 1:
        return gamma + step, None
    moved = np.clip(gamma + room[i] * step, 0, costs)
    moved[i] = 0.0 if down[i] else costs[i]
    return moved, i


def _worst_bound_row(Q, y, costs, gamma, free):
    """The row at a bound that violates its inequality most, or None."""
    f = y * (Q @ gamma)
    if free.any():
        b = np.mean((y - f)[free])
    else:
        b = _intercept(f, y, costs, gamma)[0]
    slack = y * (f + b) - 1
    violation = np.where(gamma >= costs, slack, -slack)
    violation[free] = -np.inf
    i = int(np.argmax(violation))
    return i if violation[i] > KKT_TARGET else None


def _intercept(f, y, costs, gamma):
    """Middle of the interval of b that the KKT conditions allow, and by how much it is empty.

    y_i (f_i + b) >= 1 where gamma_i < c_i, <= 1 where gamma_i > 0 (000 eq. 3); both on free rows.
    """
    at = y - f  # the b that puts row i on its margin
    not_full, not_zero = gamma < (1 - 1e-9) * costs, gamma > 1e-9 * costs  # beyond rounding
    below = np.where(y > 0, not_full, not_zero)  # these rows ask b >= at
    above = np.where(y > 0, not_zero, not_full)  # these rows ask b <= at
    low, high = at[below].max(), at[above].min()
    return (low + high) / 2, max(0.0, (low - high) / 2)


# --------------------------------------------------------------------------------------------
# Tasks and costs
# --------------------------------------------------------------------------------------------


def tasks(y, labelled=None):
    """Signs (+1/-1, one row per task) of the one-vs-rest tasks; a single row for two classes."""
    classes = np.unique(y[_mask(labelled, y)])
    positive = classes[1:] if len(classes) == 2 else classes
    return np.array([np.where(y == c, 1.0, -1.0) for c in positive])


def task_costs(signs, C, balanced):
    """Cost of every row: C_i, or C_i * n / (2 n_side(i))."""
    C = np.broadcast_to(np.asarray(C, dtype=float), signs.shape)
    if not balanced:
        return C.copy()
    sides = np.where(signs > 0, np.sum(signs > 0), np.sum(signs < 0))
    return C * len(signs) / (2 * sides)


def _mask(labelled, y):
    return np.ones(len(y), dtype=bool) if labelled is None else np.asarray(labelled, dtype=bool)


def _task_svms(y, C, balanced, labelled):
    """Round robin, for ever: a function that trains the next task on a full n x n Gram matrix.

    The function returns the LiteralSVM with its dual filled up by zeros on unlabelled rows.
    """
    rows = np.flatnonzero(_mask(labelled, y))
    C = np.broadcast_to(np.asarray(C, dtype=float), y.shape)[rows]
    while True:
        for signs in tasks(y, labelled):

            def train(gram, signs=signs[rows]):
                part = svm(gram[np.ix_(rows, rows)], signs, task_costs(signs, C, balanced))
                dual = np.zeros(len(y))
                dual[rows] = part.signed_dual
                return LiteralSVM(dual, part.intercept, part.objective, part.gain, part.residual)

            yield train


# --------------------------------------------------------------------------------------------
# Results
# --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LiteralSubspace:
    """Successive directions; arrays have one column (or entry) per component."""

    directions: np.ndarray | None  # d x k, orthonormal (linear methods)
    coefficients: np.ndarray | None  # n x k, w_k = sum_i coefficients[i, k] phi(x_i) (kernels)
    norms: np.ndarray  # ||w_k|| before normalisation
    intercepts: np.ndarray  # b_k for uncentred data
    intercepts_centred: np.ndarray  # f_k = norms * projections + intercepts_centred
    projections: np.ndarray  # n x k, on unit directions, minus the training mean
    projections_new: np.ndarray | None  # m x k, minus the *training* mean
    decisions: np.ndarray  # n x k
    decisions_new: np.ndarray | None  # m x k
    gains: np.ndarray
    residuals: np.ndarray  # KKT residual of every SVM


@dataclass(frozen=True)
class LiteralClassifier:
    """One SVM per task; ``decisions`` has one column for two classes, else one per class."""

    norms: np.ndarray
    intercepts: np.ndarray
    decisions: np.ndarray
    decisions_new: np.ndarray | None
    gains: np.ndarray
    residuals: np.ndarray


def _subspace(basis, raw, raw_new, norms, fits, *, kernel=False):
    """Collect the components; ``raw`` are the uncentred projections on unit directions."""
    norms, intercepts = np.array(norms), np.array([fit.intercept for fit in fits])
    shift = raw.mean(axis=0)
    return LiteralSubspace(
        directions=None if kernel else basis,
        coefficients=basis if kernel else None,
        norms=norms,
        intercepts=intercepts,
        intercepts_centred=intercepts + norms * shift,
        projections=raw - shift,
        projections_new=None if raw_new is None else raw_new - shift,
        decisions=raw * norms + intercepts,
        decisions_new=None if raw_new is None else raw_new * norms + intercepts,
        gains=np.array([fit.gain for fit in fits]),
        residuals=np.array([fit.residual for fit in fits]),
    )


def _check_gain(fit):
    assert fit.gain >= GAIN_FLOOR, f"degenerate component: relative gain {fit.gain:.1e}"


def _unit_orthogonal(w, W):
    """w / ||w|| after two passes against the earlier directions (E7b), and the norm of w."""
    for _ in range(2):
        w = w - W @ (W.T @ w)
    norm = np.linalg.norm(w)
    return w / norm, norm


# --------------------------------------------------------------------------------------------
# Subspace methods
# --------------------------------------------------------------------------------------------


def llsva(X, y, L, lam, C, n_components, *, balanced=True, labelled=None, X_new=None):
    """Linear LSVA: 000 Algorithm 1."""
    eye, W, norms, fits = np.eye(X.shape[1]), np.zeros((X.shape[1], 0)), [], []
    for train in islice(_task_svms(y, C, balanced, labelled), n_components):
        P = eye - W @ W.T  # 000 section II-B, last formula (P_k)
        A = eye + lam * P @ X.T @ L @ X @ P  # 000 eq. (2)
        gram = X @ P @ np.linalg.solve(A, P @ X.T)  # 000 eq. (7)
        fit = train(gram)
        _check_gain(fit)
        w = np.linalg.solve(A, P @ X.T @ fit.signed_dual)  # 000 eq. (5)
        w, norm = _unit_orthogonal(w, W)
        W = np.column_stack([W, w])
        norms.append(norm)
        fits.append(fit)
    return _subspace(W, X @ W, None if X_new is None else X_new @ W, norms, fits)


def uncorrelated(X, y, A, C, n_components, *, balanced=True, labelled=None, X_new=None):
    """min 1/2 w'Aw + hinge over all w with w'S w_j = 0, in an explicit basis of these w.

    S is the scatter of all rows about their mean. Nothing is deflated in place: every component is
    a problem of its own, with the metric A restricted to the null space of (S W)'.
    """
    S = (X - X.mean(axis=0)).T @ (X - X.mean(axis=0))
    W, norms, fits = np.zeros((X.shape[1], 0)), [], []
    for train in islice(_task_svms(y, C, balanced, labelled), n_components):
        V = null_space((S @ W).T) if W.shape[1] else np.eye(X.shape[1])
        restricted = V.T @ A @ V
        fit = train(X @ V @ np.linalg.solve(restricted, V.T @ X.T))
        _check_gain(fit)
        w = V @ np.linalg.solve(restricted, V.T @ X.T @ fit.signed_dual)
        norms.append(np.linalg.norm(w))
        W = np.column_stack([W, w / norms[-1]])
        fits.append(fit)
    return _subspace(W, X @ W, None if X_new is None else X_new @ W, norms, fits)


def new_gain(scores, k, y, square, costs):
    """Gain of the task y if w may only be a multiple of the part of component k that is new.

    The part is the residual of its scores on the training rows after a least-squares fit by the
    scores before it; ``square(c)`` is w'Aw of the mixture c of the components.
    """
    before = scores[:, :k]
    slopes = np.linalg.lstsq(before, scores[:, k], rcond=None)[0]
    part = scores[:, k] - before @ slopes
    mixture = np.append(-slopes, 1.0)
    return svm(np.outer(part, part) / square(mixture), y, costs).gain


def klsva(K, y, L, lam, C, n_components, *, balanced=True, labelled=None, K_new=None):
    """Kernel LSVA: 000 Algorithm 2 with E1, E2, E3 and E5.

    Stability: the bare recursion loses orthogonality (E7b), and so does Gram-Schmidt on the
    coefficients alpha in the K inner product: a short w = Phi' alpha has a long alpha, mostly in
    the null space of K, whose rounding error swamps w. So the kernels K_k and the multipliers
    follow the paper, but w~_k = P_{k-1} Phi' alpha~_k is formed as an explicit vector, with
    Phi Phi' = K, and re-orthogonalised twice there. E w~_k are its canonical coefficients.
    """
    Phi, E = explicit_features(K)
    eye, W, norms, fits = np.eye(len(y)), np.zeros((Phi.shape[1], 0)), [], []
    K_k = K
    for train in islice(_task_svms(y, C, balanced, labelled), n_components):
        inner = eye + lam * L @ K_k  # B_{k-1} = K_{k-1} inner, 000 eq. (15)
        gram = np.linalg.solve(inner.T, K_k).T  # 000 eq. (20) with E3: K (I + lam L K)^-1
        fit = train(gram)
        _check_gain(fit)
        alpha = np.linalg.solve(inner, fit.signed_dual)  # 000 eq. (18) with E3
        w, norm = _unit_orthogonal(Phi.T @ alpha, W)  # 000 eq. (10), (11): P_{k-1} Phi' alpha~
        g = Phi @ w  # 000 Algorithm 2 step 12 with E2: K_{k-1} alpha~_k
        K_k = K_k - np.outer(g, g)  # 000 eq. (9) with E1
        W = np.column_stack([W, w])
        norms.append(norm)
        fits.append(fit)
    # 000 eq. (19) with E5 takes the deflated row k_x - sum_j g_j (w~_j'phi(x)) times alpha~_k. On
    # canonical coefficients the sum vanishes, since g_j' E w~_k = w~_j'w~_k = 0.
    new = None if K_new is None else K_new @ (E @ W)
    return _subspace(E @ W, Phi @ W, new, norms, fits, kernel=True)


def explicit_features(K):
    """Phi (n x r) with Phi Phi' = K, and E with phi(x) = k_x E for any kernel row k_x."""
    s, U = eigh(K)
    keep = s > KERNEL_RANK_TOL * s[-1]
    root = np.sqrt(s[keep])
    return U[:, keep] * root, U[:, keep] / root


def klsva_printed(K, y, L, lam, C, n_components, *, balanced=True, index_fixed=False):
    """The recursion of 000 eq. (9) as printed, which is wrong (E1). Returns Phi w~_k, n x k.

    ``index_fixed`` lets the sum run to k instead of k - 1. That is not enough either.
    """
    K_k, alphas, projections = K, [], []
    for train in islice(_task_svms(y, C, balanced, None), n_components):
        inner = np.eye(len(y)) + lam * L @ K_k
        fit = train(np.linalg.solve(inner.T, K_k).T)
        alpha = np.linalg.solve(inner, fit.signed_dual)
        alpha = alpha / np.sqrt(alpha @ K_k @ alpha)  # 000 eq. (11)
        projections.append(K_k @ alpha)
        alphas.append(alpha)
        used = alphas if index_fixed else alphas[:-1]
        total = sum((np.outer(a, a) for a in used), np.zeros_like(K))
        K_k = K - K_k @ total @ K_k  # 000 eq. (9) as printed
    return np.column_stack(projections)


def mmda(X, y, C, n_components, *, balanced=True, labelled=None, X_new=None):
    """MMDA: the SVM of 001 eq. (3) on data that are deflated row by row."""
    W, norms, fits = np.zeros((X.shape[1], 0)), [], []
    X_k = X
    for train in islice(_task_svms(y, C, balanced, labelled), n_components):
        fit = train(X_k @ X_k.T)
        _check_gain(fit)
        w, norm = _unit_orthogonal(X_k.T @ fit.signed_dual, W)  # 002 eq. (3)
        W = np.column_stack([W, w])
        X_k = X_k - np.outer(X_k @ w, w)  # 001 section 1.3: x' = x - (w'x) w
        norms.append(norm)
        fits.append(fit)
    return _subspace(W, X @ W, None if X_new is None else X_new @ W, norms, fits)


def kmmda(K, y, C, n_components, *, balanced=True, labelled=None, K_new=None):
    """Kernel MMDA: MMDA on explicit feature vectors Phi with Phi Phi' = K.

    This is another route than 000's recursion with lam = 0, on purpose: the two are compared.
    """
    Phi, E = explicit_features(K)
    Phi_new = None if K_new is None else K_new @ E
    linear = mmda(Phi, y, C, n_components, balanced=balanced, labelled=labelled, X_new=Phi_new)
    parts = {**vars(linear), "directions": None, "coefficients": E @ linear.directions}
    return LiteralSubspace(**parts)


def wsvda(X, y, eps, C, n_components, *, balanced=True, X_new=None, printed=False):
    """WSVDA: 001 Table 2 with the ridge of E15, in the complement V of the earlier directions.

    Minimises 1/2 w'(S_W + eps I)w + C sum xi. With ``printed`` it is 001 eq. (15) instead, which
    has no 1/2: w'(S_W + eps I)w + C sum xi (E14). S_W is that of all classes for every task.
    """
    S_W = within_scatter(X, y)
    half = 0.5 if printed else 1.0  # the 1/2 of 001 eq. (11) and of H_ij in eq. (13)
    W, norms, fits = np.zeros((X.shape[1], 0)), [], []
    for train in islice(_task_svms(y, C, balanced, None), n_components):
        V = null_space(W.T) if W.shape[1] else np.eye(len(S_W))
        A_V = V.T @ S_W @ V + eps * np.eye(V.shape[1])  # E15: V (V'S_W V + eps I)^-1 V'
        gram = half * X @ V @ np.linalg.solve(A_V, V.T @ X.T)  # 001 eq. (19), Table 2 step 6
        fit = train(gram)
        _check_gain(fit)
        w = half * V @ np.linalg.solve(A_V, V.T @ X.T @ fit.signed_dual)  # 001 eq. (11)
        w, norm = _unit_orthogonal(w, W)
        W = np.column_stack([W, w])
        norms.append(norm)
        fits.append(fit)
    return _subspace(W, X @ W, None if X_new is None else X_new @ W, norms, fits)


def within_scatter(X, y):
    """S_W = sum over classes of (x - mu_c)(x - mu_c)' (001 eq. 1, for any number of classes)."""
    S_W = np.zeros((X.shape[1], X.shape[1]))
    for c in np.unique(y):
        D = X[y == c] - X[y == c].mean(axis=0)
        S_W += D.T @ D
    return S_W


# --------------------------------------------------------------------------------------------
# Classifiers
# --------------------------------------------------------------------------------------------


def gesvm_q0(X, y, L, lam, C, *, balanced=False, X_new=None):
    """Linear GESVM: the SVM with the kernel Q_0 of 002 eq. (17), one task after the other."""
    A = np.eye(X.shape[1]) + lam * X.T @ L @ X  # 002, below eq. (16)
    Q0 = X @ np.linalg.solve(A, X.T)  # 002 eq. (17)
    fits = _fit_all_tasks(Q0, y, C, balanced, None)
    W = np.linalg.solve(A, X.T @ np.column_stack([fit.signed_dual for fit in fits]))
    return _classifier(X @ W, None if X_new is None else X_new @ W, W.T @ W, fits)


def gesvm_q1(K, y, L, lam, C, *, balanced=False, K_new=None, printed=False):
    """Kernel GESVM: the SVM with the kernel Q_1 of 002 eq. (27), one task after the other.

    The objective has its 1/2 (E22), so Q_1 = K (I + lam L K)^-1. ``printed`` keeps the 2 of
    002 eq. (25)-(27): Q_1 = K (2 I + 2 lam L K)^-1, which is the same thing at cost C / 2.
    """
    two = 2.0 if printed else 1.0
    B = two * (np.eye(len(y)) + lam * L @ K)  # 002, below eq. (26)
    Q1 = np.linalg.solve(B.T, K).T  # 002 eq. (27)
    fits = _fit_all_tasks(Q1, y, C, balanced, None)
    alpha = np.linalg.solve(B, np.column_stack([fit.signed_dual for fit in fits]))  # 002 eq. (25)
    return _kernel_classifier(K, K_new, alpha, fits)


def lapsvm_belkin(K, y, L, gamma_A, gamma_I, labelled, *, balanced=False, K_new=None):
    """LapSVM in the form of Belkin, Niyogi and Sindhwani (2006), section 4.3.

    min (1/l) sum_labelled max(0, 1 - y f) + gamma_A ||f||_K^2 + gamma_I / n^2 f'Lf, n = l + u.
    ``balanced`` multiplies the 1/l of a row as it multiplies C elsewhere.
    """
    n, rows = len(y), np.flatnonzero(labelled)
    J = np.eye(n)[rows]  # l x n, picks the labelled rows
    inner = 2 * gamma_A * np.eye(n) + 2 * gamma_I / n**2 * L @ K
    Q = J @ K @ np.linalg.solve(inner, J.T)  # Belkin: Q = Y J K (...)^-1 J' Y, Y left to svm
    fits, alphas = [], []
    for signs in tasks(y, labelled):
        fit = svm(Q, signs[rows], task_costs(signs[rows], 1 / len(rows), balanced))
        alphas.append(np.linalg.solve(inner, J.T @ fit.signed_dual))  # alpha = (...)^-1 J' Y beta
        fits.append(fit)
    alpha = np.column_stack(alphas)
    return _kernel_classifier(K, K_new, alpha, fits)


def lapsvm(K, y, L, lam, C, labelled, *, balanced=False, K_new=None):
    """LapSVM in the convention of all other methods: Q_1 with the hinge on labelled rows only.

    Belkin's problem is this one with C and lam from ``lapsvm_parameters``.
    """
    inner = np.eye(len(y)) + lam * L @ K
    fits = _fit_all_tasks(np.linalg.solve(inner.T, K).T, y, C, balanced, labelled)
    alpha = np.linalg.solve(inner, np.column_stack([fit.signed_dual for fit in fits]))
    return _kernel_classifier(K, K_new, alpha, fits)


def lapsvm_parameters(gamma_A, gamma_I, n_labelled, n):
    """(C, lam) = (1 / (2 l gamma_A), gamma_I / (gamma_A n^2))."""
    return 1 / (2 * n_labelled * gamma_A), gamma_I / (gamma_A * n**2)


def _fit_all_tasks(gram, y, C, balanced, labelled):
    trainers = _task_svms(y, C, balanced, labelled)
    return [train(gram) for train in islice(trainers, len(tasks(y, labelled)))]


def _kernel_classifier(K, K_new, alpha, fits):
    new = None if K_new is None else K_new @ alpha
    return _classifier(K @ alpha, new, alpha.T @ K @ alpha, fits)


def _classifier(raw, raw_new, inner_products, fits):
    intercepts = np.array([fit.intercept for fit in fits])
    return LiteralClassifier(
        norms=np.sqrt(np.maximum(0, np.diag(inner_products))),
        intercepts=intercepts,
        decisions=raw + intercepts,
        decisions_new=None if raw_new is None else raw_new + intercepts,
        gains=np.array([fit.gain for fit in fits]),
        residuals=np.array([fit.residual for fit in fits]),
    )
