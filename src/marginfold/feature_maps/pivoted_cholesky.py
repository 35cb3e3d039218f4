"""Randomly pivoted Cholesky decomposition of a kernel matrix: few columns, a known error.

Chen, Epperly, Tropp, Webber: Randomly pivoted Cholesky: Practical approximation of a kernel matrix
with few entry evaluations (arXiv 2207.06503, 2022), algorithm 2.1.
Epperly, Tropp, Webber: Embrace rejection: Kernel matrix approximation by accelerated randomly
pivoted Cholesky (arXiv 2410.03969, 2024): the same pivots, found and used in blocks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginfold.errors import InvalidInputError
from marginfold.feature_maps.factor_rows import FactorRows
from marginfold.feature_maps.kernel_values import finite_peak
from marginfold.linalg.tall import Array
from marginfold.runtime.progress import report

PROPOSALS = 128
"""Pivots that are proposed at a time; those that have become redundant are rejected."""

RESOLUTION = 1e-13
"""A residual below this share of the largest diagonal entry is rounding error."""

INDEFINITE = 1e-6
"""A residual below minus this share of the largest diagonal entry: the kernel is indefinite."""


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
