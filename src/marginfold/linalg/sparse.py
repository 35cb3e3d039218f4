"""The smallest eigenpairs of a sparse Laplacian, beyond the constant vector."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee
from scipy.sparse.linalg import ArpackError, ArpackNoConvergence, LinearOperator, eigsh, splu

from marginfold.errors import SolverError
from marginfold.linalg.decompositions import eigh
from marginfold.linalg.tall import Array

DENSE_NODES = 500
"""Parts up to this size are decomposed at once."""

DENSE_MULTIPLE = 4
"""Parts with fewer nodes than this many times the pairs asked for are decomposed at once too."""

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

EPS = float(np.finfo(np.float64).eps)

_BROKEN = (
    f"{ATTEMPTS} Lanczos iterations on a graph of {{n}} nodes did not settle: its edge weights "
    "are too regular or span too many orders of magnitude. Use heat weights, more even sample "
    "weights or a larger width."
)

Apply = Callable[[Array], Array]


@dataclass(frozen=True, eq=False)
class SparsePairs:
    """Pairs of ``L v = lambda D v``, smallest first, without the constant vector.

    Attributes
    ----------
    values : array of shape (k,)
    vectors : array of shape (n, k)
        With ``v'Dv = 1`` and ``v'D1 = 0``.
    residual : float
        The largest ``|D^-1/2 (L v - lambda D v)|``, relative to the norm of ``D^-1/2 L D^-1/2``.
    n_parts : int
        Connected parts of L.  The first ``n_parts - 1`` values are 0 and their vectors are
        constant on every part.
    """

    values: Array
    vectors: Array
    residual: float
    n_parts: int


def smallest_pairs(
    L: sp.csr_array, degrees: Array, k: int, *, squared: bool = False
) -> SparsePairs:
    """Return the k smallest pairs of ``L v = lambda D v`` beyond the constant vector.

    Parameters
    ----------
    L : sparse matrix of shape (n, n)
        Symmetric, positive semi-definite, with row sums 0.
    degrees : array of shape (n,)
        The diagonal of D, positive.
    k : int
        At most n - 1 pairs are returned.
    squared : bool, default=False
        Whether L is the square of a Laplacian, as in locally linear embedding.  Its small
        eigenvalues are squares, too, and lie so close together that more is spent on
        factorisations.

    Notes
    -----
    Connected parts are solved one by one, so that the multiple eigenvalue 0 is exact: it belongs
    to the vectors that are constant on each part.  They are chosen to set the heaviest part
    against the rest, the second heaviest against what is lighter, and so on.  Entries of
    ``S = D^-1/2 L D^-1/2`` below the rounding of the diagonal join nothing.

    A part is decomposed in one of four ways, and only its pattern decides which:

    - up to 500 nodes (or up to ``4 k``): LAPACK;
    - a front of up to 1000: Lanczos on the inverse of S, from a sparse factorisation.  The front
      is the mean width of the envelope of S in reverse Cuthill-McKee order; the time of a
      factorisation grows like its third power.  Graphs of curves and surfaces have a narrow one;
    - squared: the same from a dense factorisation up to 10,000 nodes, beyond that from a sparse
      one for a front of up to 2600;
    - otherwise: Lanczos on S itself, without a factorisation.  Graphs of noisy data in many
      dimensions have a wide front, but well separated eigenvalues, too.

    Lanczos is repeated on the complement of what it found, until nothing smaller appears: then an
    eigenvalue is found as often as it occurs.  Every pair is verified to have a residual of at
    most 1e-12 of the norm of S; what cannot be reached in 20,000 products is a `SolverError`,
    never an unconverged vector.

    Examples
    --------
    >>> import numpy as np
    >>> import scipy.sparse as sp
    >>> from marginfold.linalg import smallest_pairs
    >>> L = sp.csr_array([[1.0, -1.0, 0.0], [-1.0, 2.0, -1.0], [0.0, -1.0, 1.0]])
    >>> smallest_pairs(L, np.ones(3), 2).values
    array([1., 3.])
    """
    n = len(degrees)
    k = min(k, n - 1)
    roots = np.sqrt(degrees)
    S = _normalized(L, roots)
    n_parts, part = connected_components(S, directed=False)
    vectors = _contrasts(part, degrees, k)
    values = np.zeros(vectors.shape[1])
    if len(values) < k:
        found = [
            _pairs_of_part(S, roots, np.flatnonzero(part == p), k - len(values), squared)
            for p in range(n_parts)
        ]
        beyond = np.concatenate([pair[0] for pair in found])
        chosen = np.argsort(beyond, kind="stable")[: k - len(values)]
        rotated = np.hstack([pair[1] for pair in found])[:, chosen]
        vectors = np.column_stack([vectors, rotated / roots[:, None]])
        values = np.append(values, beyond[chosen])
    return SparsePairs(values, vectors, _verified(S, values, vectors * roots[:, None]), n_parts)


def _normalized(L: sp.csr_array, roots: Array) -> sp.csr_array:
    """``D^-1/2 L D^-1/2``, exactly symmetric, without entries that have no effect."""
    scale = sp.diags_array(1.0 / roots)
    S = scale @ L @ scale
    S = sp.coo_array((S + S.T) / 2)
    kept = _is_felt(S) | (S.row == S.col)
    return sp.csr_array((S.data[kept], (S.row[kept], S.col[kept])), shape=S.shape)


def felt_nodes(L: sp.csr_array) -> Array:
    """Return the nodes with an edge above the rounding of the diagonal.

    A row so far from all others that its weights are nothing beside those of its neighbors has
    none: it is no part of the graph.
    """
    L = sp.coo_array(L)
    return np.unique(L.row[_is_felt(L) & (L.row != L.col)])


def _is_felt(S: sp.coo_array) -> Array:
    diagonal = np.sqrt(np.maximum(S.diagonal(), 0.0))
    return np.asarray(np.abs(S.data) > EPS * diagonal[S.row] * diagonal[S.col])


def _contrasts(part: Array, degrees: Array, k: int) -> Array:
    """Columns constant on parts: the j-th heaviest against all lighter ones; ``v'Dv = 1``."""
    mass = np.bincount(part, weights=degrees)
    order = np.argsort(-mass, kind="stable")
    columns = np.zeros((len(mass), min(k, len(mass) - 1)))
    for j in range(columns.shape[1]):
        one, rest = mass[order[j]], mass[order[j + 1 :]].sum()
        columns[order[j], j] = np.sqrt(rest / (one + rest) / one)
        columns[order[j + 1 :], j] = -np.sqrt(one / (one + rest) / rest)
    return np.asarray(columns[part])


def _pairs_of_part(
    S: sp.csr_array, roots: Array, nodes: Array, k: int, squared: bool
) -> tuple[Array, Array]:
    """Return the pairs of one connected part with positive eigenvalues, as vectors on all nodes."""
    m, k = len(nodes), min(k, len(nodes) - 1)
    vectors = np.zeros((S.shape[0], k))
    if k == 0:
        return np.zeros(0), vectors
    S = S if m == S.shape[0] else sp.csr_array(S[nodes][:, nodes])
    constant = roots[nodes] / np.linalg.norm(roots[nodes])
    if m <= max(DENSE_NODES, DENSE_MULTIPLE * k):
        values, vectors[nodes] = _dense_pairs(S, constant, k)
    else:
        values, vectors[nodes] = _lanczos_pairs(S, constant, k, squared)
    return values, vectors


def _dense_pairs(S: sp.csr_array, constant: Array, k: int) -> tuple[Array, Array]:
    A = S.toarray()
    A += 2 * _row_norm(S) * np.outer(constant, constant)  # moves the trivial pair to the other end
    values, vectors = eigh(A, (0, k - 1))
    return np.maximum(values, 0.0), vectors


def _verified(S: sp.csr_array, values: Array, vectors: Array) -> float:
    """Return the largest relative residual; an error if one is above the tolerance."""
    if not len(values):
        return 0.0
    residuals = np.linalg.norm(S @ vectors - vectors * values, axis=0)
    residual = float(residuals.max() / (_row_norm(S) or 1.0))
    if not residual <= RESIDUAL:
        raise SolverError(
            f"An eigenvector of a graph on {S.shape[0]} nodes has a relative residual of "
            f"{residual:.1e}; {RESIDUAL:g} is needed. The edge weights span too many orders of "
            "magnitude: use NeighborGraph(weights='binary') or a larger width."
        )
    return residual


def _lanczos_pairs(S: sp.csr_array, constant: Array, k: int, squared: bool) -> tuple[Array, Array]:
    """Return the k smallest pairs of S beside the constant vector, with orthonormal vectors.

    S is symmetric, positive semi-definite and connected, so that 0 is a simple eigenvalue, whose
    vector of norm 1 is ``constant``; ``squared`` says that it is the square of a Laplacian.

    One vector alone may find an eigenvalue less often than it occurs.  So Lanczos is repeated
    beside what was found until nothing smaller is left.  A vector that is not exact, as the last
    ones may be if an eigenvalue occurs often, is searched for anew: nothing beside it could ever
    supply what it lacks.
    """
    apply, basis = _operator(S, squared)
    trivial, norm = constant[:, None], _row_norm(S)
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
    norm = _row_norm(S)
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
    shifted = S + SHIFT * _row_norm(S) * sp.eye_array(S.shape[0])
    factor = splu(
        sp.csc_array(shifted),
        permc_spec="MMD_AT_PLUS_A",  # definite: pivots from the diagonal, few new entries
        diag_pivot_thresh=0.0,
        options={"SymmetricMode": True},
    )
    return lambda x: np.asarray(factor.solve(x))


def _dense_inverse(S: sp.csr_array) -> Apply:
    A = S.toarray(order="F")
    A[np.diag_indices_from(A)] += SHIFT * _row_norm(S)
    factor = scipy.linalg.cho_factor(A, lower=True, overwrite_a=True, check_finite=False)
    return lambda x: np.asarray(scipy.linalg.cho_solve(factor, x, check_finite=False))


def _row_norm(S: sp.csr_array) -> float:
    """Return the largest row sum of ``|S|``, which bounds its eigenvalues."""
    return float(abs(S).sum(axis=1).max())
