"""Graph embedding (002 section 2.2) and SVM-PCA (004), written literally, for the tests.

As in ``literal.py``: explicit n x n matrices, nothing from the library. "E45" and so on are the
numbers of the errata.

Conventions
-----------
* Copies of a row stand for its sample weight.
* An embedding maximises v'A_pen v / v'(A_int + rho I)v with A = X'CX for n x n matrices C with
  C1 = 0, rho = ridge tr(A_int) / rank of the centred rows. Kernel: v = Phi'a with a in R^n, Phi
  the centred features: A = Kc C Kc, |v|^2 = a'Kc a, tr(Phi'C Phi) = tr(C Kc).
* ``projections`` are those of rows that are centred at the mean of the training rows.
* Scalings: v'A_pen v = n ("penalty"), v'(A_int + rho I)v = n ("intrinsic"), |v| = 1 ("unit").
"""

from __future__ import annotations

from dataclasses import dataclass

import literal as lit
import numpy as np
from scipy.linalg import eig, eigh, orth

NULL = 1e-10  # relative eigenvalue of Kc below which there is no feature, as in the library


# --------------------------------------------------------------------------------------------
# Constraint matrices C (002 eq. 5 and Table 1)
# --------------------------------------------------------------------------------------------


def total(n):
    """I - ee'/n."""
    return np.eye(n) - np.full((n, n), 1 / n)


def degrees(L):
    """D - Dee'D / e'De: D-weighted squares about the D-weighted mean, D = diag(L) without loops.

    This takes the constant function, the trivial solution of LE and LPP, out of the problem.
    """
    d = np.diag(L)
    return np.diag(d) - np.outer(d, d) / d.sum()


def knn(X, n_neighbors, *, mutual=False, width="auto"):
    """Laplacian of the heat graph (002 eq. 12) on rows that may have copies.

    Neighbours are searched among distinct points; all pairs of copies of joined points are
    joined. "auto" is the mean squared distance over pairs (row, neighbour).
    """
    points, node = np.unique(X, axis=0, return_inverse=True)
    node = node.ravel()
    N = lit.neighbors(points, n_neighbors)[np.ix_(node, node)]
    d2 = lit.squared_distances(X)
    t = d2[N].mean() if width == "auto" else width
    edges = N & N.T if mutual else N | N.T
    return lit.laplacian(np.where(edges, np.exp(-d2 / t), 0.0))


def lle(X, n_neighbors, *, reg=1e-3):
    """(I - M)'(I - M) with E25, on rows that may have copies: each copy is rebuilt.

    A copy is rebuilt from points, that is from the mean of the copies of each neighbour.
    """
    points, node = np.unique(X, axis=0, return_inverse=True)
    node = node.ravel()
    counts = np.bincount(node)
    M = lit.lle_weights(points, n_neighbors, reg=reg)[np.ix_(node, node)] / counts[node]
    IM = np.eye(len(X)) - M
    return IM.T @ IM


# --------------------------------------------------------------------------------------------
# Embeddings
# --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Embedding:
    """Ratios (largest first), coefficients (columns), and projections of all and of new rows."""

    ratios: np.ndarray
    coefficients: np.ndarray
    projections: np.ndarray
    projections_new: np.ndarray
    rho: float


def embedding(X, C_int, C_pen, k, X_new, *, ridge, scaling, size=None, solver="eigh"):
    """002 eq. (6) and (8) in R^d; C_int = None stands for the constraint w'w = c.

    ``size`` is what the penalty form of a direction is scaled to, None for the number of rows.
    """
    F, F_new = X - X.mean(axis=0), X_new - X.mean(axis=0)
    A_pen = X.T @ C_pen @ X
    A_int = np.zeros_like(A_pen) if C_int is None else X.T @ C_int @ X
    rho = 1.0 if C_int is None else ridge * np.trace(A_int) / np.linalg.matrix_rank(F)
    return _solve(F, F_new, A_int, A_pen, np.eye(X.shape[1]), rho, k, scaling, size, solver)


def kernel_embedding(K, C_int, C_pen, k, K_new, *, ridge, scaling, size=None, solver="eigh"):
    """002 eq. (7) and (8) with alpha in R^n, restricted to the range of Kc."""
    n = len(K)
    Kc = total(n) @ K @ total(n)
    Kc_new = (K_new - np.full((len(K_new), n), 1 / n) @ K) @ total(n)
    B = orth(Kc, rcond=NULL)
    A_pen = B.T @ Kc @ C_pen @ Kc @ B
    A_int = np.zeros_like(A_pen) if C_int is None else B.T @ Kc @ C_int @ Kc @ B
    rho = 1.0 if C_int is None else ridge * np.trace(C_int @ Kc) / B.shape[1]
    return _solve(Kc @ B, Kc_new @ B, A_int, A_pen, B.T @ Kc @ B, rho, k, scaling, size, solver)


def _solve(F, F_new, A_int, A_pen, N, rho, k, scaling, size, solver):
    A_int = A_int + rho * N
    if solver == "eigh":
        values, V = eigh(A_pen, A_int)
    else:  # the unsymmetric form (A_int + rho N)^-1 A_pen v = mu v
        values, V = eig(np.linalg.solve(A_int, A_pen))
        values, V = values.real, V.real
    order = np.argsort(values)[::-1][:k]
    values, V = values[order], V[:, order]
    n = len(F)
    forms = {"penalty": (A_pen, size or n), "intrinsic": (A_int, n), "unit": (N, 1.0)}
    form, size = forms[scaling]
    V = V * np.sqrt(size / np.einsum("ij,ik,kj->j", V, form, V))
    return Embedding(values, V, F @ V, F_new @ V, rho)


def lpp_with_constant(X, L, k, *, ridge):
    """LPP over affine functions Xw + b, with its trivial solution: a second route to LPP.

    min (w'(X'LX + rho I)w) / (f'Df), f = Xw + be. The constant function has the value 0; it is
    returned too, as the first one. Gives the smallest values and f, one column each.
    """
    D = np.diag(np.diag(L))
    F = X - X.mean(axis=0)
    rho = ridge * np.trace(X.T @ L @ X) / np.linalg.matrix_rank(F)
    H = np.column_stack([F, np.ones(len(X))])
    A = H.T @ L @ H
    A[:-1, :-1] += rho * np.eye(X.shape[1])
    values, Z = eigh(A, H.T @ D @ H)
    return values[: k + 1], H @ Z[:, : k + 1]


# --------------------------------------------------------------------------------------------
# SVM-PCA
# --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SVMPCALiteral:
    """004 in the paper's scale: |alpha| = 1, |w|^2 = lambda, sum e^2 = lambda^2 (E48)."""

    eigenvalues: np.ndarray
    alphas: np.ndarray  # N x k, orthonormal
    intercepts: np.ndarray  # b of eq. (18)
    scores: np.ndarray
    scores_new: np.ndarray


def svm_pca(K, k, K_new, *, bias=True):
    """004 eq. (9) or (19)-(20) and (34); scores (10) or (21) and (38). K is the Gram matrix."""
    N = len(K)
    omega = centred_gram(K) if bias else K
    values, vectors = eigh(omega)
    values, alphas = values[::-1][:k], vectors[:, ::-1][:, :k]
    intercepts = -(K @ alphas).sum(axis=0) / N if bias else np.zeros(k)  # 004 eq. (18)
    return SVMPCALiteral(
        values, alphas, intercepts, K @ alphas + intercepts, K_new @ alphas + intercepts
    )


def centred_gram(K):
    """004 eq. (37), entry by entry (E50: the running index is r)."""
    N = len(K)
    omega = np.empty((N, N))
    rows, everything = K.sum(axis=1), K.sum()
    for k in range(N):
        for l in range(N):
            omega[k, l] = K[k, l] - rows[k] / N - rows[l] / N + everything / N**2
    return omega


def kernel_scores(K, K_new, alphas):
    """004 eq. (38), term by term."""
    N = len(K)
    z = np.zeros((len(K_new), alphas.shape[1]))
    for i in range(len(K_new)):
        for l in range(N):
            centred = K_new[i, l] - K_new[i].sum() / N - K[:, l].sum() / N + K.sum() / N**2
            z[i] += alphas[l] * centred
    return z


def reconstruction(X, scores):
    """V (d x n_s) and delta of 004 eq. (26), or (28) for a single score."""
    Z1 = np.vstack([scores.T, np.ones(len(scores))])
    V_delta = X.T @ Z1.T @ np.linalg.inv(Z1 @ Z1.T)
    return V_delta[:, :-1], V_delta[:, -1]
