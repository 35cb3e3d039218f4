"""The leading pairs of a symmetric matrix, without the others."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
import scipy.linalg

from marginfold.rows import Array

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

CHECK_GROWTH = 1.1
"""Convergence is looked at again when the basis has grown by this factor."""

START = 20240229
"""Seed of the block to start with: the same matrix gives the same pairs."""


class SymmetricMap(Protocol):
    """A symmetric matrix, or what can be multiplied like one and written out as one."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    def __matmul__(self, V: Array, /) -> Any:
        """Return the product with a block of columns."""

    def __array__(self, dtype: Any = None, copy: Any = None, /) -> Array:
        """Return all entries."""


def leading_pairs(A: SymmetricMap, k: int) -> tuple[Array, Array]:
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
    matrices or many pairs, LAPACK decomposes the matrix.  The results agree to rounding.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.eigen import leading_pairs
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
    values, vectors = scipy.linalg.eigh(A, subset_by_index=(n - k, n - 1), check_finite=False)
    return values[::-1], vectors[:, ::-1]


def _block_lanczos(A: SymmetricMap, k: int, width: int) -> tuple[Array, Array] | None:
    """Return the pairs found in a growing Krylov space, None if they do not converge in time."""
    n = A.shape[0]
    start = np.random.default_rng(START).standard_normal((n, width))
    basis = _Krylov(scipy.linalg.qr(start, mode="economic", check_finite=False)[0])
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


def _times(A: SymmetricMap, V: Array) -> Array:
    """Return ``A V``, as ``(V'A)'`` if A is an array: rows times a matrix are faster."""
    return np.asarray((V.T @ A).T if isinstance(A, np.ndarray) else A @ V)


class _Krylov:
    """Orthonormal blocks Q_1, Q_2, ... with ``A Q_j = Q_(j-1) B_(j-1)' + Q_j T_j + Q_(j+1) B_j``.

    ``scale`` is the largest norm met so far, a lower bound of that of A.
    """

    def __init__(self, block: Array) -> None:
        self.blocks: list[Array] = []
        self.diagonal: list[Array] = []
        self.couplings: list[Array] = []
        self.next = block
        self.scale = 0.0

    @property
    def size(self) -> int:
        """Number of columns whose products are known."""
        return sum(len(T) for T in self.diagonal)

    def grow(self, A: SymmetricMap, to: int) -> None:
        """Add blocks up to a size, fewer if the space is mapped into itself before."""
        while self.size < to and self.next.shape[1]:
            self._multiply(A)

    def _multiply(self, A: SymmetricMap) -> None:
        """Multiply the next block and orthogonalise what comes out."""
        Q = self.next
        product = _times(A, Q)
        T = Q.T @ product
        self.scale = max(self.scale, float(np.linalg.norm(T, 2)))
        product -= Q @ T
        if self.blocks:
            product -= self.blocks[-1] @ self.couplings[-1].T
        self.blocks.append(Q)
        self.diagonal.append(0.5 * (T + T.T))
        self._couple(product)

    def _couple(self, product: Array) -> None:
        """Make the next block of a product from which the last two blocks are removed.

        What is left is orthogonal to all blocks up to the rounding of A.  That can be much of a
        direction that is small, so the orthogonalisation follows the normalisation.
        """
        U, R = scipy.linalg.qr(product, mode="economic", check_finite=False)
        left, sizes, right = scipy.linalg.svd(R, check_finite=False)
        kept = sizes > NEGLIGIBLE * self.scale
        self.next, change = U[:, :0], R[:0, :0]
        if kept.any():
            fresh = U @ left[:, kept]
            for Q in self.blocks:
                fresh -= Q @ (Q.T @ fresh)
            self.next, change = scipy.linalg.qr(fresh, mode="economic", check_finite=False)
        self.couplings.append(change @ (sizes[kept, None] * right[kept]))

    def ritz_pairs(self, k: int) -> tuple[Array, Array, Array]:
        """Return the k largest values of the projection, their mixtures and residual norms."""
        projection = scipy.linalg.block_diag(*self.diagonal)
        start = 0
        for T, B in zip(self.diagonal, self.couplings[:-1], strict=False):
            end = start + len(T)
            projection[end : end + len(B), start:end] = B
            start = end
        values, mixture = _dense_pairs(projection, k)  # reads the lower triangle only
        last = self.couplings[-1]
        residuals = np.linalg.norm(last @ mixture[-last.shape[1] :], axis=0)
        return values, mixture, residuals

    def combine(self, mixture: Array) -> Array:
        """Return the mixtures of the basis."""
        parts = np.split(mixture, np.cumsum([len(T) for T in self.diagonal])[:-1])
        total = np.zeros((len(self.blocks[0]), mixture.shape[1]), order="F")
        for Q, part in zip(self.blocks, parts, strict=True):
            total += Q @ part
        return total
