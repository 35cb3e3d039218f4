"""Shift-invert Lanczos: the smallest eigenpairs of one connected sparse matrix."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh, splu

from marginfold.errors import SolverError
from marginfold.linalg.tall import Array

NARROW_FRONT = 1000
"""Front up to which a sparse factorisation is made: about three seconds and 200 MB."""

WIDE_FRONT = 2600
"""The same for the square of a Laplacian: about 45 seconds and 2 GB."""

FACTORED_NODES = 10_000
"""Squares up to this size are factorised with any front: about ten seconds and 900 MB."""

SHIFT = 1e-10
"""Relative to the norm: what is added to the diagonal before it is factorised."""

BASIS = 60
"""Vectors that a Lanczos iteration without factorisation keeps, at least."""

FACTORED_BASIS = 20
"""Vectors that a Lanczos iteration with a factorisation keeps, at least."""

MAX_PRODUCTS = 20_000
"""Products with the matrix after which the iteration is given up."""

SPARE_PAIRS = 2
"""Pairs that Lanczos is asked for beyond those returned: they secure the last ones."""

LOOSE = 1e-6
"""Relative accuracy at which it is seen that no smaller eigenvalue was missed."""

ROUNDING = 1e-14
"""Relative to the norm: eigenvalues that differ by less are equal."""

ATTEMPTS = 5
"""Vectors to start with, one after the other, if Lanczos breaks down."""

RESIDUAL = 1e-12
"""Relative to the norm: the residual that every returned pair is verified to have."""

START = 20240229
"""Seed of the vector to start with: the same matrix gives the same pairs."""

_BROKEN = (
    f"{ATTEMPTS} Lanczos iterations on a graph of {{n}} nodes did not settle: its edge weights "
    "are too regular or span too many orders of magnitude. Use heat weights, more even sample "
    "weights or a larger width."
)

Apply = Callable[[Array], Array]


def lanczos_pairs(S: sp.csr_array, constant: Array, k: int, squared: bool) -> tuple[Array, Array]:
    """Return the k smallest pairs of S beside the constant vector, with orthonormal vectors.

    Parameters
    ----------
    S : sparse matrix of shape (n, n)
        Symmetric and positive semi-definite; connected, so that 0 is a simple eigenvalue.
    constant : array of shape (n,)
        The vector of that eigenvalue, of norm 1.
    k : int
    squared : bool
        Whether S is the square of a Laplacian.

    Notes
    -----
    One vector alone may find an eigenvalue less often than it occurs.  So Lanczos is repeated
    beside what was found until nothing smaller is left.  A vector that is not exact, as the last
    ones may be if an eigenvalue occurs often, is searched for anew: nothing beside it could ever
    supply what it lacks.
    """
    apply, basis = _operator(S, squared)
    trivial, norm = constant[:, None], row_norm(S)
    V = _leading(apply, trivial, k + SPARE_PAIRS, basis)
    for _ in range(ATTEMPTS):
        V = np.linalg.qr(V - trivial @ (trivial.T @ V))[0]
        image = S @ V
        values, mixture = np.linalg.eigh(V.T @ image)
        V, image = V @ mixture, image @ mixture
        residuals = np.linalg.norm(image - V * values, axis=0)
        exact = residuals <= RESIDUAL * norm
        found = np.column_stack([trivial, V[:, exact]])
        other = _leading(apply, found, 1, basis, tol=LOOSE)
        bound = values[k - 1] - max(LOOSE * values[k - 1], ROUNDING * norm)
        if exact[:k].all() and (other.T @ (S @ other)).item() >= bound:
            return np.maximum(values[:k], 0.0), V[:, :k]
        V = np.column_stack([V[:, exact], _leading(apply, found, k, basis)])
    raise SolverError(_BROKEN.format(n=len(constant)))


def _operator(S: sp.csr_array, squared: bool) -> tuple[Apply, int]:
    """Return a map whose largest pairs are the smallest of S, and the vectors Lanczos needs."""
    n, front = S.shape[0], _front(S)
    if squared and front > NARROW_FRONT and n <= FACTORED_NODES:
        return _dense_inverse(S), FACTORED_BASIS
    if front <= (WIDE_FRONT if squared else NARROW_FRONT):
        return _sparse_inverse(S), FACTORED_BASIS
    norm = row_norm(S)
    return lambda x: norm * x - S @ x, BASIS


def _leading(apply: Apply, found: Array, k: int, basis: int, tol: float = 0.0) -> Array:
    """Return the leading vectors of a map on the orthogonal complement of those that are known."""
    n = len(found)
    basis = min(n - 1, max(basis, 2 * k + 1))

    def beside(x: Array) -> Array:
        return x - found @ (found.T @ x)

    operator = LinearOperator((n, n), matvec=lambda x: beside(apply(beside(x))), dtype=np.float64)
    restarts = max(1, MAX_PRODUCTS // (basis - k))
    for attempt in range(ATTEMPTS):
        start = beside(np.random.default_rng(START + attempt).standard_normal(n))
        try:
            vectors: Array = eigsh(
                operator, k=k, which="LA", v0=start, ncv=basis, maxiter=restarts, tol=tol
            )[1]
            return vectors
        except ArpackNoConvergence as error:
            raise SolverError(
                f"{len(error.eigenvalues)} of {k} pairs of a graph on {n} nodes were found in "
                f"{MAX_PRODUCTS} products: its smallest eigenvalues lie too close together, and "
                "it is too large to be factorised. Use a larger reg (0.1) or more neighbors, which "
                f"move them apart, or take fewer rows: up to {FACTORED_NODES} nodes of a "
                "ReconstructionGraph are always factorised."
            ) from error
        except ArpackError:  # a start in an invariant subspace: rare, another one will do
            continue
    raise SolverError(_BROKEN.format(n=n))


def _front(S: sp.csr_array) -> float:
    """Return the mean width of the envelope of S in reverse Cuthill-McKee order."""
    place = np.empty(S.shape[0], dtype=np.intp)
    place[reverse_cuthill_mckee(S, symmetric_mode=True)] = np.arange(S.shape[0])
    first = np.minimum.reduceat(place[S.indices], S.indptr[:-1])  # every row has its diagonal
    return float((place - first).mean())


def _sparse_inverse(S: sp.csr_array) -> Apply:
    shifted = S + SHIFT * row_norm(S) * sp.eye_array(S.shape[0])
    factor = splu(
        sp.csc_array(shifted),
        permc_spec="MMD_AT_PLUS_A",  # definite: pivots from the diagonal, few new entries
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return lambda x: np.asarray(factor.solve(x))


def _dense_inverse(S: sp.csr_array) -> Apply:
    A = S.toarray(order="F")
    A[np.diag_indices_from(A)] += SHIFT * row_norm(S)
    factor = scipy.linalg.cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
    return lambda x: np.asarray(scipy.linalg.cho_solve(factor, x, check_finite=False))


def row_norm(S: sp.csr_array) -> float:
    """Return the largest row sum of ``|S|``, which bounds its eigenvalues."""
    return float(abs(S).sum(axis=1).max())
