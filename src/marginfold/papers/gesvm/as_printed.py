"""Paper 002 to the letter: explicit matrices, the printed LLE graph, and slips in prediction.

The library has neither an indefinite graph nor a kernel that differs between training and
prediction.  Printed numbers may come of them, so that they are measured here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.svm import SVC

from marginfold.graphs import resolve_graph
from marginfold.linalg.tall import Array
from marginfold.papers.gesvm.settings import COST, GAMMA, GRAPHS, NEIGHBORS
from marginfold.protocols.splits import Fold

MOST_ITERATIONS = 100_000
"""Steps of libsvm: with an indefinite kernel it need not end."""


@dataclass(frozen=True)
class Letter:
    """What is taken to the letter, or taken for a slip.

    Attributes
    ----------
    graph : str
        A graph by its name in 002 Table 2.
    plus : bool
        The LLE graph as printed, W = M + M' + M'M (E25).
    plain : bool
        New rows meet the kernel K instead of Q1, with the multipliers of Q1.
    intercept : bool
        Whether the decision function has one.
    kernels : sequence of str
        The kernels for which it is measured.
    """

    graph: str
    plus: bool = False
    plain: bool = False
    intercept: bool = True
    kernels: tuple[str, ...] = ("rbf",)


LETTERS = {
    "Q_L printed graph": Letter("Q_L", plus=True, kernels=("linear", "rbf")),
    "Q_W plain kernel": Letter("Q_W", plain=True),
    "Q_W no intercept": Letter("Q_W", intercept=False),
}
"""Columns by their names."""


def letter_error(letter: Letter, kernel: str, fold: Fold) -> Callable[[float], float]:
    """Return the test error as a function of lambda, by 002 eqs. (17) and (27)."""
    rows, new = fold.X, fold.X_test
    L = printed_lle_laplacian(rows, NEIGHBORS) if letter.plus else dense_laplacian(letter, fold)
    linear = kernel == "linear"
    K = linear_kernel(rows) if linear else rbf_kernel(rows, gamma=GAMMA)
    K_new = linear_kernel(new, rows) if linear else rbf_kernel(new, rows, gamma=GAMMA)
    factor = 1.0 if linear else 2.0  # Q1 has a factor 1/2 that Q0 lacks (E22)

    def error(weight: float) -> float:
        inverse = np.linalg.inv(factor * (np.eye(len(K)) + weight * L @ K))
        Q = K @ inverse  # of the linear kernel this is Q0 = X (I + weight X'LX)^-1 X'
        svc = SVC(C=COST, kernel="precomputed", max_iter=MOST_ITERATIONS)
        svc.fit((Q + Q.T) / 2, fold.y)
        values = svc.decision_function(K_new if letter.plain else K_new @ inverse)
        if not letter.intercept:
            values = values - svc.intercept_[0]
        return float(np.mean((values > 0) != (fold.y_test == svc.classes_[1])))

    return error


def dense_laplacian(letter: Letter, fold: Fold) -> Array:
    """Return L itself: the scatter of the identity."""
    laplacian = resolve_graph(GRAPHS[letter.graph]).build(fold.X, fold.y)
    return np.asarray(laplacian.scatter(np.eye(len(fold.X))))


def printed_lle_laplacian(X: Array, n_neighbors: int, reg: float = 1e-3) -> Array:
    """Return D - W with W = M + M' + M'M, as 002 Table 1 prints it; it can be indefinite.

    Row i of M holds the weights, of sum 1, that rebuild row i best of its neighbors.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.papers.gesvm.as_printed import printed_lle_laplacian
    >>> X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])
    >>> L = printed_lle_laplacian(X, 2)
    >>> bool(np.allclose(L.sum(axis=0), 0) and np.allclose(L, L.T))
    True
    """
    n = len(X)
    M = np.zeros((n, n))
    squares = ((X[:, None] - X) ** 2).sum(axis=2)
    np.fill_diagonal(squares, np.inf)
    for i, nearest in enumerate(np.argsort(squares, axis=1, kind="stable")[:, :n_neighbors]):
        steps = X[nearest] - X[i]
        gram = steps @ steps.T
        gram[np.diag_indices_from(gram)] += reg * (np.trace(gram) or 1.0)
        weights = np.linalg.solve(gram, np.ones(len(gram)))
        M[i, nearest] = weights / weights.sum()
    W = M + M.T + M.T @ M
    return np.asarray(np.diag(W.sum(axis=1)) - W)
