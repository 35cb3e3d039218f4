"""Block Lanczos: the leading eigenpairs of a symmetric matrix, or a definite pencil, alone."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from marginfold.errors import InvalidParameterError
from marginfold.linalg.decompositions import eigh, factorise, solve_lower
from marginfold.linalg.tall import Array

SMALL = 500
"""Matrices up to this size are decomposed at once."""

LARGE_SHARE = 0.03
"""With blocks wider than this share of the rows, a dense decomposition is as fast."""

OVERSAMPLING = 2
"""Columns that a block has at least beyond the pairs asked for: they speed up the last ones."""

WIDTH_MULTIPLE = 8
"""The width of a block is a multiple of this: products of such blocks are the fastest."""

BASIS_SHARE = 1 / 3
"""The basis grows to this share of the rows; what has not converged then is decomposed at once."""

HOPELESS = 1e-3
"""A relative residual that is not going to converge if half of that basis did not reduce it."""

NEGLIGIBLE = 1e-14
"""Relative to the norm of the matrix: a residual that is converged, a direction that is noise."""

RESIDUAL = 1e-12
"""Relative to the norm of the matrix: the residual that every returned pair is verified to have."""

FIRST_BLOCKS = 8
"""Blocks that there is space for at first."""

CHECK_GROWTH = 1.15
"""Convergence is looked at again when the basis has grown by this factor."""

SAFE_RANGE = (1e-100, 1e100)
"""Sizes of a product whose squares neither vanish nor overflow; beyond them LAPACK is asked."""

START = 20240229
"""Seed of the block to start with: the same matrix gives the same pairs."""


class SymmetricMap(Protocol):
    """What can be multiplied like a symmetric matrix and written out as one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def __matmul__(self, V: Array, /) -> Any:
        """Return the product with a block of columns."""

    def __array__(self, dtype: Any = None, copy: Any = None) -> Array:
        """Return all entries."""


def leading_pairs(A: Array | SymmetricMap, k: int) -> tuple[Array, Array]:
    """Return the k largest eigenvalues, largest first, and orthonormal eigenvectors.

    Parameters
    ----------
    A : array of shape (n, n), or an object with ``shape``, ``@`` and ``__array__``
        Symmetric.  An object is written out only if the dense decomposition is needed.
    k : int
        At most n pairs are returned.

    Notes
    -----
    A large matrix of which few pairs are wanted is multiplied with blocks of k columns and a few
    more (block Lanczos with full orthogonalisation).  A block as wide as k finds an eigenvalue as
    often as it occurs.  Every pair is verified: ``|A v - mu v| <= 1e-12 |A|``.  If that is not
    reached with a basis of a third of the rows, as for a spectrum without decay, and for small
    matrices, many pairs or entries whose squares vanish, LAPACK decomposes the matrix.  The
    results agree to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.linalg import leading_pairs
    >>> values, vectors = leading_pairs(np.diag([1.0, 5.0, 3.0]), 2)
    >>> values
    array([5., 3.])
    """
    n = A.shape[0]
    k = min(k, n)
    if k == 0:  # SciPy before 1.14 decomposes no empty matrix
        return np.zeros(0), np.zeros((n, 0))
    width = -(-(k + OVERSAMPLING) // WIDTH_MULTIPLE) * WIDTH_MULTIPLE
    if n > SMALL and width <= LARGE_SHARE * n:
        found = _block_lanczos(A, k, width)
        if found is not None:
            return found
    return _dense_pairs(np.asarray(A), k)


def _dense_pairs(A: Array, k: int) -> tuple[Array, Array]:
    n = len(A)
    values, vectors = eigh(A, (n - k, n - 1))
    return values[::-1], vectors[:, ::-1]


def _block_lanczos(A: Array | SymmetricMap, k: int, width: int) -> tuple[Array, Array] | None:
    """Return the pairs found in a growing Krylov space, None if they do not converge in time."""
    n = A.shape[0]
    start = np.random.default_rng(START).standard_normal((n, width))
    low, high = SAFE_RANGE
    if not low < np.abs(_times(A, start[:, :1])).max() < high:
        return None
    basis = _Krylov(np.linalg.qr(start)[0])
    while basis.size < BASIS_SHARE * n:
        basis.grow(A, to=int(CHECK_GROWTH * basis.size) + 1)
        values, mixture, residuals = basis.ritz_pairs(k)
        if residuals.max() <= NEGLIGIBLE * basis.scale:
            vectors = basis.combine(mixture)
            errors = np.linalg.norm(_times(A, vectors) - vectors * values, axis=0)
            return (values, vectors) if errors.max() <= RESIDUAL * basis.scale else None
        if basis.size > BASIS_SHARE / 2 * n and residuals.max() > HOPELESS * basis.scale:
            return None
    return None


def _times(A: Array | SymmetricMap, V: Array) -> Array:
    """Return ``A V``, as ``(V'A)'`` if A is an array: rows times a matrix are faster."""
    return np.asarray((V.T @ A).T if isinstance(A, np.ndarray) else A @ V)


class _Krylov:
    """Orthonormal columns V and the projection T = V'AV, block tridiagonal.

    With the newest block Q of V, ``A V = V T + N B E'``: N is the next block, B its coupling and E
    picks the columns of Q.  ``scale`` is the largest norm met so far, a lower bound of that of A.
    """

    def __init__(self, block: Array) -> None:
        n, width = block.shape
        self._columns = np.empty((n, FIRST_BLOCKS * width), order="F")
        self._projection = np.zeros((FIRST_BLOCKS * width, FIRST_BLOCKS * width))
        self._newest = slice(0, 0)
        self._next = block
        self._coupling = np.zeros((width, 0))
        self.size = 0
        self.scale = 0.0

    def grow(self, A: Array | SymmetricMap, to: int) -> None:
        """Add blocks up to a size, fewer if the space is mapped into itself before."""
        while self.size < to and self._next.shape[1]:
            self._multiply(A)

    def _multiply(self, A: Array | SymmetricMap) -> None:
        """Append the next block, multiply it and orthogonalise what comes out."""
        before, B = self._newest, self._coupling
        new = self._append(self._next)
        Q = self._columns[:, new]
        product = _times(A, Q)
        T = Q.T @ product
        self.scale = max(self.scale, float(np.linalg.norm(T, 2)))
        self._projection[new, before] = B
        self._projection[new, new] = 0.5 * (T + T.T)
        product -= Q @ T + self._columns[:, before] @ B.T
        self._couple(product)

    def _append(self, block: Array) -> slice:
        """Store a block, in twice the space if there is none left."""
        start, end = self.size, self.size + block.shape[1]
        if end > len(self._projection):
            columns, projection = self._columns, self._projection
            self._columns = np.empty((len(columns), 2 * end), order="F")
            self._columns[:, :start] = columns[:, :start]
            self._projection = np.zeros((2 * end, 2 * end))
            self._projection[:start, :start] = projection[:start, :start]
        self._columns[:, start:end] = block
        self._newest, self.size = slice(start, end), end
        return self._newest

    def _couple(self, product: Array) -> None:
        """Make the next block of a product from which the last two blocks are removed.

        What is left is orthogonal to all blocks up to the rounding of A.  That can be much of a
        direction that is small, so the orthogonalisation follows the normalisation.
        """
        U, R = np.linalg.qr(product)
        left, sizes, right = np.linalg.svd(R)
        kept = sizes > NEGLIGIBLE * self.scale
        fresh, V = U @ left[:, kept], self._columns[:, : self.size]
        fresh -= V @ (V.T @ fresh)
        self._next, change = np.linalg.qr(fresh)
        self._coupling = change @ (sizes[kept, None] * right[kept])

    def ritz_pairs(self, k: int) -> tuple[Array, Array, Array]:
        """Return the k largest values of the projection, their mixtures and residual norms."""
        projection = self._projection[: self.size, : self.size]
        values, mixture = _dense_pairs(projection, k)  # reads the lower triangle only
        residuals = np.linalg.norm(self._coupling @ mixture[self._newest], axis=0)
        return values, mixture, residuals

    def combine(self, mixture: Array) -> Array:
        """Return mixtures of the basis, stored by columns."""
        V = self._columns[:, : self.size]
        return np.asarray((mixture.T @ V.T).T)


def pencil_pairs(A: Array, B: Array, k: int) -> tuple[Array, Array]:
    """Return the k largest pairs of ``A v = mu B v``, with ``v'Bv = 1``, largest first.

    Both are symmetric, and B is positive definite: it stands on the right, so that a singular A is
    harmless.  At most as many pairs are returned as there are rows.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.linalg import pencil_pairs
    >>> values, vectors = pencil_pairs(np.diag([1.0, 6.0]), np.diag([1.0, 2.0]), 1)
    >>> values
    array([3.])
    """
    r = len(A)
    k = min(k, r)
    if k == 0:  # SciPy before 1.14 decomposes no empty matrix
        return np.zeros(0), np.zeros((r, 0))
    F = definite_factor(B)
    C = solve_lower(F, solve_lower(F, A).T)
    values, vectors = leading_pairs(0.5 * (C + C.T), k)  # F^-1 A F^-T, with v = F^-T u
    return values, solve_lower(F, vectors, transposed=True)


def definite_factor(B: Array) -> Array:
    """Return the lower Cholesky factor of a matrix that a ridge should have made definite."""
    factor = B.copy()
    if not factorise(factor, "factorisation"):
        raise InvalidParameterError(
            "The ridge (or shrinkage) is too small: the problem is not definite beyond rounding. "
            "Raise it, 1e-8 is a safe relative value."
        )
    return factor
