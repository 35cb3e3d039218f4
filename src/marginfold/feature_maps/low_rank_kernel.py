"""Low-rank kernel coordinates for many rows: Z Z' is the centred kernel, up to a known error.

The rows that the coordinates are made of are the pivots of a randomly pivoted Cholesky
decomposition.

Chen, Epperly, Tropp, Webber: Randomly pivoted Cholesky: Practical approximation of a kernel matrix
with few entry evaluations (arXiv 2207.06503, 2022), algorithm 2.1.
Epperly, Tropp, Webber: Embrace rejection: Kernel matrix approximation by accelerated randomly
pivoted Cholesky (arXiv 2410.03969, 2024): the same pivots, found and used in blocks.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np
from scipy.linalg import solve_triangular
from sklearn.utils.validation import check_is_fitted

from marginfold.errors import InvalidInputError, MarginfoldWarning, warn
from marginfold.feature_maps.exact_kernel import RANK_RESOLUTION
from marginfold.feature_maps.factor_rows import (
    BlockFactor,
    FactorRows,
    GivenColumns,
    KernelColumns,
    LocalFactor,
    RowColumns,
    RowMoments,
)
from marginfold.feature_maps.feature_map import KernelFunction, KernelName
from marginfold.feature_maps.kernel_map import PARAMETERS, KernelMap
from marginfold.feature_maps.kernel_values import (
    TRANSLATION_FREE,
    check_kernel,
    finite_peak,
    known_gamma,
    resolve_gamma,
    square_kernel,
)
from marginfold.linalg.decompositions import eigh
from marginfold.linalg.tall import Array, RowBlocks, column_signs, gram, rotated
from marginfold.runtime.progress import report
from marginfold.validation.parameters import Constraint, Count, Number, atomic_fit, check_parameters

FIRST_COLUMNS = 64
"""Columns that there is space for at first when the rank is not given."""

LOW_RANK_PARAMETERS: dict[str, Constraint] = {
    **PARAMETERS,
    "tol": Number(0.0, 1.0),
    "max_rank": Count(1),
    "random_state": Count(0),
}

PROPOSALS = 128
"""Pivots that are proposed at a time; those that have become redundant are rejected."""

RESOLUTION = 1e-13
"""A residual below this share of the largest diagonal entry is rounding error."""

INDEFINITE = 1e-6
"""A residual below minus this share of the largest diagonal entry: the kernel is indefinite."""


class LowRankKernel(KernelMap):
    """Coordinates of a kernel on many rows, computed from a few of them, with a known error.

    A randomly pivoted Cholesky decomposition ``K ~ F F'`` of the kernel of the training rows picks
    some of them as pivots and evaluates only their columns: time grows with ``n rank^2``, memory
    with ``n rank``, and no matrix of rows by rows is formed.  The fitted map keeps the pivots and
    small matrices only.  Out of sample ``F`` continues as ``f(x) = k(x, pivots) L^-T``, with L the
    Cholesky factor of the kernel among the pivots.  The coordinates are f, centred at its
    (weighted) mean over the training rows and rotated to principal axes: the scores of kernel PCA
    of the approximate kernel, and those of `ExactKernel` if nothing is lost, up to signs: here the
    largest score among the pivots is positive.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        See `ExactKernel`.  It must be positive semi-definite.
    gamma : "scale", "auto" or float, default="scale"
        Kernel coefficient: "scale" is 1 / (n_features * variance of X), "auto" 1 / n_features.
    degree : int, default=3
        Degree of the polynomial kernel.
    coef0 : float, default=1.0
        Constant of the polynomial and sigmoid kernels.
    rank : int or None, default=None
        Number of pivots, fewer if these already give the kernel exactly.  None: as many as `tol`
        needs.
    tol : float, default=0.01
        Share of the variance in feature space (the trace of the centred kernel) that may be lost.
        Not used if `rank` is given.
    max_rank : int, default=1000
        Largest number of pivots that `tol` may ask for; a warning says if they do not suffice.
    center : bool, default=True
        Whether the kernel is centred.
    random_state : int, default=0
        Seed of the draw of pivots.  The same rows give the same coordinates, up to rounding, also
        in another order, or with a row twice instead of one with sample weight 2.

    Attributes
    ----------
    relative_error_ : float
        Trace of the residual ``K - F F'`` as a share of `trace_`; it is exact because the diagonal
        of the residual is known.  ``1 - eigenvalues_.sum() / trace_`` is the same, up to
        eigenvalues that are rounding errors.
    trace_ : float
        Trace of the kernel (with sample weights: n times the weighted mean of its diagonal); with
        centring, less n times the squared norm of the mean of f.  That mean is what the pivots see
        of the true one, so that `trace_` is at least the trace of the centred kernel, and
        `relative_error_` at least the share of it that is lost.
    gamma_ : float
        The coefficient used.
    eigenvalues_ : array of shape (n_coordinates,)
        Eigenvalues of the approximate kernel, centred and weighted: ``Z'Z`` is their diagonal.
    training_rows_ : array of shape (n_pivots, n_features)
        The pivots (their indices if the kernel is precomputed), less `origin_`.
    pivots_ : array of shape (n_pivots,)
        Numbers of the pivots among the training rows, in the order of their choice.
    dual_basis_ : array of shape (n_pivots, n_coordinates)
        Coordinates are kernel values with the pivots, less `column_means_`, times this.
    column_means_ : array of shape (n_pivots,)
        Weighted means of the columns of the pivots, zeros without centring.
    share_ : array of shape (n_pivots,)
        The mean of all images, as far as the pivots span it, as a mixture of theirs.
    origin_ : array or 0
        What is subtracted from all rows first, for kernels that a shift of all rows does not
        change.

    Notes
    -----
    On average over the draw, the error is close to that of the best approximation of a slightly
    lower rank, whatever the kernel [1]_; rows that are far from all others are found because the
    columns so far say nothing about them.  Pivots are proposed in blocks, and redundant ones
    rejected, which gives the same distribution as one draw after the other [2]_.

    References
    ----------
    .. [1] Chen, Epperly, Tropp, Webber: Randomly pivoted Cholesky: Practical approximation of a
       kernel matrix with few entry evaluations.  arXiv 2207.06503, 2022.
    .. [2] Epperly, Tropp, Webber: Embrace rejection: Kernel matrix approximation by accelerated
       randomly pivoted Cholesky.  arXiv 2410.03969, 2024.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold import LowRankKernel
    >>> X = np.random.default_rng(0).normal(size=(2000, 2))
    >>> few = LowRankKernel("rbf", gamma=0.5, tol=0.01).fit(X)
    >>> bool(few.relative_error_ <= 0.01), len(few.pivots_) < 50
    (True, True)
    >>> Z = few.transform(X)
    >>> gap = Z[0] - Z[1]  # its squared norm is close to the squared distance in feature space
    >>> bool(abs(gap @ gap - (2 - 2 * np.exp(-0.5 * ((X[0] - X[1]) ** 2).sum()))) < 0.05)
    True
    """

    def __init__(
        self,
        kernel: KernelName | KernelFunction = "rbf",
        *,
        gamma: float | Literal["scale", "auto"] = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        rank: int | None = None,
        tol: float = 1e-2,
        max_rank: int = 1000,
        center: bool = True,
        random_state: int = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.rank = rank
        self.tol = tol
        self.max_rank = max_rank
        self.center = center
        self.random_state = random_state

    def fitted_scatter(self, weights: Array) -> Array:
        """Return Z'WZ of the rows and weights of the fit, which principal axes make diagonal."""
        check_is_fitted(self)
        return np.diag(self.eigenvalues_ * (weights.sum() / np.count_nonzero(weights)))

    def fit_blocks(self, blocks: RowBlocks) -> Self:
        """Fit rows in blocks, wherever they are, as `fit` does with an array of these rows.

        The rows are read again for every few dozen pivots.  During the fit a few numbers are kept
        for each row, and afterwards none.

        Parameters
        ----------
        blocks : RowBlocks
            Finite input rows with positive weights.
        """
        with atomic_fit(self):
            self._check()
            if self._precomputed:
                raise InvalidInputError(
                    "LowRankKernel('precomputed') needs the kernel matrix in the memory of this "
                    "process; give rows of features and name their kernel, for example 'rbf'."
                )
            self.n_features_in_ = blocks.n_columns
            moments = RowMoments.of(blocks)
            self.gamma_ = known_gamma(
                self.gamma, self.kernel, blocks.n_columns, lambda: moments.variance
            )
            self.origin_ = moments.mean if self.kernel in TRANSLATION_FREE else 0.0
            weight = float(moments.weights.sum())
            share = moments.weights / weight
            factor = BlockFactor(blocks, self._function, self.origin_, weight)
            pivots = self._choose(factor, share)
            r = len(pivots.rows)
            self.pivots_, self.training_rows_ = pivots.rows, factor.pivot_rows[:r]
            mean = pivots.mean if self.center else np.zeros(r)
            G = len(share) * factor.scatter(r, mean)
            self._store(pivots, factor.triangle[:r, :r], G)
        return self

    def fit_factor(
        self, X: Any, *, sample_weight: Array | None = None
    ) -> tuple[Array, Array | None]:
        """Fit valid rows; return rows and orthonormal axes, whose product is the coordinates.

        A caller that multiplies the rows by a matrix anyway saves a product; None stands for the
        identity.
        """
        weights = np.ones(X.shape[0]) if sample_weight is None else sample_weight
        with atomic_fit(self):
            self.n_features_in_ = X.shape[1]
            factor = self._factorise(X, weights)
        return (self.coordinates(X), None) if factor is None else factor

    def _fit(self, X: Any, weights: Array) -> Array | None:
        """Fit and return the coordinates of the rows, None if some of them have no weight."""
        factor = self._factorise(X, weights)
        return None if factor is None else rotated(*factor)

    def _factorise(self, X: Any, weights: Array) -> tuple[Array, Array] | None:
        """Fit and return the rows of F with their axes, None if some rows have no weight."""
        self._check()
        kept = np.flatnonzero(weights)
        share = weights[kept] / weights.sum()
        self.gamma_ = resolve_gamma(self.gamma, self.kernel, X, weights)
        columns = self._columns(X, kept)
        first = FIRST_COLUMNS if self.rank is None else self._most(len(share))
        factor = LocalFactor(columns, share, first, self._most(len(share)))
        pivots = self._choose(factor, share)
        self.pivots_ = kept[pivots.rows]
        rows = columns.X if isinstance(columns, RowColumns) else kept
        self.training_rows_ = rows[pivots.rows]
        Z = factor.first_columns(len(pivots.rows))
        L = np.tril(Z[pivots.rows])
        if self.center:
            Z -= pivots.mean
        axes = self._store(pivots, L, gram(Z, len(Z) * share))
        return (Z, axes) if len(Z) == X.shape[0] else None

    def _check(self) -> None:
        check_kernel(self)
        check_parameters(self, LOW_RANK_PARAMETERS)

    def _columns(self, X: Any, kept: Array) -> KernelColumns:
        """Return the kernel of the rows that count."""
        whole = len(kept) == X.shape[0]
        if self._precomputed:
            K = square_kernel(X)
            return GivenColumns(K if whole else K[np.ix_(kept, kept)])
        rows = X if whole else X[kept]
        self.origin_ = self._choose_origin(rows)
        moved = self._moved(rows)
        self._glance(moved)
        return RowColumns(self._function, moved)

    def _most(self, n: int) -> int:
        """Return the largest number of pivots."""
        return min(int(self.max_rank if self.rank is None else self.rank), n)

    def _choose(self, factor: FactorRows, share: Array) -> Pivots:
        """Return the pivots: the given number, or as few as the tolerance allows."""
        pivots = choose_pivots(
            factor,
            share,
            rank=self._most(len(share)),
            tol=float(self.tol) if self.rank is None else None,
            center=self.center,
            rng=np.random.default_rng(int(self.random_state)),
        )
        if self.rank is None and pivots.relative_error > self.tol:
            warn(
                f"LowRankKernel reached max_rank={self.max_rank} with a relative error of "
                f"{pivots.relative_error:.3g}, above tol={self.tol:g}. Raise max_rank, or give "
                "the rank if this error is small enough.",
                MarginfoldWarning,
            )
        return pivots

    def _store(self, pivots: Pivots, L: Array, G: Array) -> Array:
        """Store the map and return the principal axes of F.

        L is the Cholesky factor of the kernel among the pivots, which are its rows of F; G the
        scatter of all rows of F.
        """
        mean = pivots.mean if self.center else np.zeros_like(pivots.mean)
        self.relative_error_, self.trace_ = pivots.relative_error, pivots.trace
        self.eigenvalues_, axes = _principal_axes(G, pivots.rounding)
        if len(L):
            axes *= np.where(column_signs((L - mean) @ axes) < 0, -1.0, 1.0)
        self._glance(self.training_rows_)
        self.column_means_ = L @ mean
        self.share_, self.dual_basis_ = _mixtures(L, mean), _mixtures(L, axes)
        return axes


def _principal_axes(G: Array, rounding: float) -> tuple[Array, Array]:
    """Return the eigenvalues that are not rounding errors, largest first, and eigenvectors."""
    S, V = eigh(G) if len(G) else (np.zeros(0), G)
    least = max(RANK_RESOLUTION * float(S.max(initial=0.0)), rounding)
    order = np.flatnonzero(S > least)[::-1]
    return S[order], np.asarray(V[:, order])


def _mixtures(L: Array, directions: Array) -> Array:
    """Return directions in the coordinates f as mixtures of the images of the pivots."""
    if not len(L):
        return directions
    return np.asarray(solve_triangular(L, directions, trans="T", lower=True))


@dataclass(frozen=True)
class Pivots:
    """The rows that a factor F of the kernel K is made of, and what it leaves.

    Attributes
    ----------
    rows : array of shape (r,)
        Different rows: ``F F'`` is equal to K in their rows and columns.
    mean : array of shape (r,)
        Weighted mean of the rows of F.
    residual : float
        Trace of ``K - F F'``; with weights, n times the weighted mean of its diagonal.
    trace : float
        The same of K; with centring, less ``n |mean|^2``.
    rounding : float
        The size of eigenvalues of F'F that are only rounding errors of the kernel.
    """

    rows: Array
    mean: Array
    residual: float
    trace: float
    rounding: float

    @property
    def relative_error(self) -> float:
        """The residual as a share of the trace."""
        return self.residual / max(self.trace, self.residual) if self.residual > 0.0 else 0.0


def choose_pivots(
    factor: FactorRows,
    share: Array,
    *,
    rank: int,
    tol: float | None,
    center: bool,
    rng: np.random.Generator,
) -> Pivots:
    """Decompose a positive semi-definite kernel, and return the pivots.

    A row is the next pivot with a probability proportional to its weight times its residual, the
    diagonal entry of ``K - F F'``.  The draw depends on the rows, not on their places: with the
    same generator, rows in another order, or a row twice instead of one of weight 2, give the same
    pivots (up to rounding).

    Parameters
    ----------
    factor : FactorRows
        Without columns; they are appended.  A few more than needed may be there in the end.
    share : array of shape (n,)
        Positive weights with sum 1.
    rank : int
        Largest number of pivots.  There are fewer if the residual vanishes.
    tol : float or None
        The first pivot after which the residual is at most this share of the trace is the last.
    center : bool
        Whether that is the trace of the centred kernel.
    rng : numpy Generator
    """
    work = _Decomposition(factor, share, rank, center)
    order = np.argsort(factor.keys(), kind="stable")
    report("kernel columns", 0, rank)
    while work.used < rank and work.left.any() and not work.within(tol).any():
        work.extend(order, rng)
        report("kernel columns", work.used, rank)
    return work.result(tol)


class _Decomposition:
    """The pivots so far, and what is left of the diagonal."""

    def __init__(self, factor: FactorRows, share: Array, rank: int, center: bool) -> None:
        self.factor, self.share, self.rank, self.center = factor, share, rank, center
        self.left = factor.diagonal()
        self.peak = finite_peak(self.left)
        self.trace = len(share) * float(share @ self.left)
        self.pivots = np.zeros(0, dtype=int)
        self.means, self.squares = np.zeros(0), np.zeros(0)
        self._settle()

    @property
    def used(self) -> int:
        """Number of pivots so far."""
        return len(self.pivots)

    def extend(self, order: Array, rng: np.random.Generator) -> None:
        """Find some more pivots and append their columns."""
        proposals, chances = self._propose(order, rng)
        pivots, triangle = self._accept(proposals, chances)
        if not len(pivots):
            self.left[proposals] = 0.0  # nothing but rounding errors
            return
        new = self.factor.append(pivots, triangle)
        self.left -= new.row_squares
        self.means = np.append(self.means, new.means)
        self.squares = np.append(self.squares, new.squares)
        self.pivots = np.append(self.pivots, pivots)
        self._settle()

    def within(self, tol: float | None) -> Array:
        """Return, for the first 0, 1, ... pivots, whether the error is within the tolerance."""
        if tol is None:
            return np.zeros(0, dtype=bool)
        return np.asarray(self._residuals() <= tol * self._traces())

    def result(self, tol: float | None) -> Pivots:
        """Return the pivots, without those that the tolerance does not need."""
        enough = np.flatnonzero(self.within(tol))
        r = int(enough[0]) if len(enough) else self.used
        residual, trace = float(self._residuals()[r]), float(self._traces()[r])
        rounding = len(self.share) * float(np.finfo(float).eps) * self.peak
        return Pivots(self.pivots[:r], self.means[:r], residual, trace, rounding)

    def _propose(self, order: Array, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return rows drawn by their residuals, with repetition, and uniform numbers for them."""
        draws, chances = rng.random((2, PROPOSALS))
        steps = np.cumsum((self.left * self.share)[order])
        places = np.searchsorted(steps, draws * steps[-1], side="right")
        return order[np.minimum(places, len(order) - 1)], chances

    def _accept(self, proposals: Array, chances: Array) -> tuple[Array, Array]:
        """Return the rows that draws one after the other would have given, and their triangle.

        A proposal was drawn by the residuals at the start of the block; it stays with the share of
        its residual that the pivots before it have left.
        """
        rest = self.factor.residual_among(proposals)
        needed = np.maximum(chances * self.left[proposals], RESOLUTION * self.peak)
        triangle = np.zeros_like(rest)
        kept: list[int] = []
        for i in range(len(proposals)):
            if rest[i, i] > needed[i] and self.used + len(kept) < self.rank:
                column = rest[:, i] / np.sqrt(rest[i, i])
                rest -= np.outer(column, column)
                triangle[:, len(kept)] = column
                kept.append(i)
        return proposals[kept], np.tril(triangle[kept, : len(kept)])

    def _settle(self) -> None:
        """Set residuals that are rounding errors to zero, and refuse an indefinite kernel."""
        lowest = float(self.left.min())
        if lowest < -INDEFINITE * self.peak:
            raise InvalidInputError(
                f"The kernel is not positive semi-definite: the residual of a row is {lowest:.3g} "
                f"beside entries of {self.peak:.3g}, so that the error of a low rank is unknown. "
                "Use ExactKernel, which drops the negative part, or another kernel. Rounding "
                "alone can do this if some rows are very far from all others: scale or clip them."
            )
        self.left[self.left <= RESOLUTION * self.peak] = 0.0
        self.left[self.pivots] = 0.0

    def _residuals(self) -> Array:
        """Return the trace of the residual after 0, 1, ... columns."""
        later = np.append(np.cumsum(self.squares[::-1])[::-1], 0.0)
        return np.asarray(len(self.share) * (float(self.share @ self.left) + later))

    def _traces(self) -> Array:
        """Return the trace that residuals are compared with, after 0, 1, ... columns."""
        if not self.center:
            return np.full(self.used + 1, self.trace)
        common = len(self.share) * np.cumsum(np.append(0.0, self.means**2))
        return np.maximum(self.trace - common, 0.0)
