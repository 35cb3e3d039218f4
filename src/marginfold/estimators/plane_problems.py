"""The problems of nonparallel planes: moments of rows, and the hinge problem of the twin SVM.

A plane ``w'z + b = 0`` is a vector ``v = (w, b)`` on rows ``h = (z, 1)``.  The eigenvalue and the
least-squares planes need the moments ``sum h h'`` of `PlaneRows` only.  The hinge planes solve a
quadratic program with a box and no equality constraint (`solve_box_qp`)::

    min_s 1/2 |s|^2 + sum_i c_i max(0, 1 - u_i's)      (primal)
    max_a sum_i a_i - 1/2 |U'a|^2,    0 <= a <= c      (dual)

With the moments of the own class factored, ``P + dT T = F F'``, the rows are ``u = -F^-1 h`` of all
other classes.  It is a support vector machine without a bias.  Give each row u_i with label +1 its
mirror image -u_i with label -1, and half of the cost to each: the objective is then even and convex
in the bias, so that 0 is an optimal bias and the weights are those of the box problem.  The
certified solver of the package needs no second version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Self, TypeVar

import numpy as np
import scipy.linalg

from marginfold.estimators.inputs import Coordinates
from marginfold.geometry.moments import class_sums
from marginfold.geometry.tikhonov import TikhonovBasis, tikhonov_basis
from marginfold.linalg.blocks import Block, RowBlocks, total
from marginfold.linalg.tall import Array, gram
from marginfold.svm import BlockRows, InteriorPoint, SVMBatch, SVMSolution, SVMSolver

T = TypeVar("T")


@dataclass(frozen=True)
class Heights:
    """Where the rows lie above planes.

    Attributes
    ----------
    low, high : arrays of shape (n_planes,)
        Smallest and largest height.
    sums, sizes : arrays of shape (n_classes, n_planes)
        Weighted sums of the heights of the rows of a class, and of their absolute values.
    """

    low: Array
    high: Array
    sums: Array
    sizes: Array

    @property
    def largest(self) -> Array:
        """The largest absolute height above each plane."""
        return np.maximum(np.abs(self.low), np.abs(self.high))

    def of_rest(self, code: int) -> tuple[float, float]:
        """Return the sum over all other classes for the plane of a class, and that of the sizes."""
        rest = np.arange(len(self.sums)) != code
        return float(self.sums[rest, code].sum()), float(self.sizes[rest, code].sum())


@dataclass(frozen=True, eq=False)
class PlaneRows:
    """Rows ``h = (V'z, 1)`` with weights and classes, in coordinates in which T is the identity.

    Attributes
    ----------
    coordinates : Coordinates
        The rows z.
    factors : array of shape (n_classes,)
        What the weights of the rows of a class are multiplied by.
    basis : TikhonovBasis
        V and the unit of the rows.
    """

    coordinates: Coordinates
    factors: Array
    basis: TikhonovBasis

    @classmethod
    def of(cls, c: Coordinates, factors: Array, tikhonov: str, *, normalize: bool) -> Self:
        """Choose the coordinates for a Tikhonov term (see `tikhonov_basis`)."""
        weighted = total(c.blocks.map(weighted_scatter, factors))
        size = float(_sizes(c, factors).sum())
        return cls(c, factors, tikhonov_basis(weighted, size, tikhonov, normalize))

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.factors)

    @property
    def rank(self) -> int:
        """Dimensions in which the rows vary, and one for the offset."""
        return self.basis.rank + 1

    @property
    def sizes(self) -> Array:
        """The total weight of each class."""
        return _sizes(self.coordinates, self.factors)

    def own(self, code: int) -> Array:
        """Return P: the moments of the rows of a class."""
        blocks = self.coordinates.blocks
        return float(self.factors[code]) * total(blocks.map(class_moments, code, self.basis))

    def own_and_rest(self, code: int) -> tuple[Array, Array]:
        """Return P and Q of 003 eq. (4): the moments of a class and those of all other rows."""
        P = self.own(code)
        return P, np.asarray(self.moments - P)

    @cached_property
    def moments(self) -> Array:
        """The moments of all rows."""
        return total(self.coordinates.blocks.map(all_moments, self.factors, self.basis))

    def graph_moments(self, graph: Any, code: int) -> Array:
        """Return M of 003 eq. (24): the scatter of the graph on the rows of a class."""
        S = self.coordinates.class_scatter(graph, code, float(self.factors[code]))
        S = self.basis.rows(self.basis.rows(S).T)
        M = np.zeros((len(S) + 1, len(S) + 1))
        M[:-1, :-1] = (S + S.T) / 2
        return M

    def heights(self, planes: Array) -> Heights:
        """Return where the rows lie above planes (columns, offset last)."""
        parts = self.coordinates.blocks.map(plane_heights, planes, self.factors, self.basis)
        return Heights(
            low=np.min(np.stack([part.low for part in parts]), axis=0),
            high=np.max(np.stack([part.high for part in parts]), axis=0),
            sums=total([part.sums for part in parts]),
            sizes=total([part.sizes for part in parts]),
        )

    def ridge(self, P: Array, ridge: float, normalize: bool) -> float:
        """Return the Tikhonov weight, in units of the mean eigenvalue of P if normalised."""
        return ridge * float(np.trace(P)) / self.rank if normalize else ridge


def weighted_scatter(block: Block, factors: Array) -> Array:
    """Return Z'Z of a block with the weights of the classes."""
    return gram(block.Z, block.weights * factors[block.codes])


def class_moments(block: Block, code: int, basis: TikhonovBasis) -> Array:
    """Return the moments h h' of the rows of a class in a block."""
    members = np.flatnonzero(block.codes == code)
    return gram(extended(block.Z[members], basis), block.weights[members])


def all_moments(block: Block, factors: Array, basis: TikhonovBasis) -> Array:
    """Return the moments h h' of all rows of a block, with the weights of the classes."""
    return gram(extended(block.Z, basis), block.weights * factors[block.codes])


def plane_heights(block: Block, planes: Array, factors: Array, basis: TikhonovBasis) -> Heights:
    """Return where the rows of a block lie above planes."""
    heights = basis.rows(block.Z) @ planes[:-1] + planes[-1]
    weights = block.weights * factors[block.codes]
    sums, sizes = (
        class_sums(Block(values, block.codes, weights), len(factors))[:, :-1]
        for values in (heights, np.abs(heights))
    )
    return Heights(heights.min(axis=0), heights.max(axis=0), sums, sizes)


def extended(Z: Array, basis: TikhonovBasis) -> Array:
    """Return the rows h of rows z."""
    return np.column_stack([basis.rows(Z), np.ones(len(Z))])


def _sizes(c: Coordinates, factors: Array) -> Array:
    counted = c.weights > 0
    codes = np.asarray(c.codes)[counted]
    return np.bincount(codes, c.weights[counted] * factors[codes], minlength=len(factors))


@dataclass(frozen=True)
class BoxSolution:
    """The weights of a box problem with their certificate.

    Attributes
    ----------
    coef : array of shape (r,)
        The minimiser s.
    dual : array of shape (n,)
        Multipliers, ``0 <= dual <= costs``.
    gap : float
        Relative duality gap, a bound of the relative error of the objective.
    n_iter : int
    converged : bool
        Whether the gap is within the tolerance of the solver.
    """

    coef: Array
    dual: Array
    gap: float
    n_iter: int
    converged: bool


def solve_box_qp(U: Array, costs: Array, solver: SVMSolver) -> BoxSolution:
    """Minimise ``1/2 |s|^2 + sum_i costs_i max(0, 1 - u_i's)`` over s.

    Parameters
    ----------
    U : array of shape (n, r)
    costs : array of shape (n,)
        Not negative.
    solver : SVMSolver

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.svm import InteriorPoint
    >>> from marginfold.estimators.plane_problems import solve_box_qp
    >>> solution = solve_box_qp(np.array([[2.0], [4.0]]), np.array([1.0, 1.0]), InteriorPoint())
    >>> bool(abs(solution.coef[0] - 0.5) < 1e-8)
    True
    """
    n = len(U)
    doubled = solver.solve(
        np.concatenate([U, -U]), np.repeat([1.0, -1.0], n), np.tile(costs / 2, 2)
    )
    return BoxSolution(
        coef=doubled.coef,
        dual=doubled.dual[:n] + doubled.dual[n:],
        gap=doubled.gap,
        n_iter=doubled.n_iter,
        converged=doubled.converged,
    )


@dataclass(frozen=True, eq=False)
class Rest:
    """The rows of all other classes as the problem of one class sees them."""

    code: int
    factors: Array
    basis: TikhonovBasis
    F: Array

    def rows(self, block: Block) -> tuple[Array, Array]:
        """Return the rows u of a block and their weights."""
        others = np.flatnonzero(block.codes != self.code)
        H = extended(block.Z[others], self.basis)
        U = -scipy.linalg.solve_triangular(self.F, H.T, lower=True, check_finite=False).T
        return U, block.weights[others] * self.factors[block.codes[others]]

    def mirrored(self, block: Block) -> Block:
        """Return the rows u of a block as class 0, and -u as class 1, with half of the weight."""
        U, weights = self.rows(block)
        codes = np.repeat([0, 1], len(U))
        return Block(np.concatenate([U, -U]), codes, np.tile(weights / 2, 2), 2 * block.start)


@dataclass(frozen=True, eq=False)
class MirroredBlocks:
    """Blocks of rows u and -u, made of the given blocks in each pass."""

    blocks: RowBlocks
    rest: Rest
    n_rows: int

    @property
    def n_columns(self) -> int:
        """Number of coordinates of u."""
        return len(self.rest.F)

    def map(self, work: Callable[..., T], *args: Any) -> list[T]:
        """Return ``work(block, *args)`` for every block."""
        return self.blocks.map(partial(on_mirrored, work, self.rest), *args)


def on_mirrored(work: Callable[..., T], rest: Rest, block: Block, *args: Any) -> T:
    """Return what some work gives for the mirrored rows of a block."""
    return work(rest.mirrored(block), *args)


def solve_hinge(
    rows: PlaneRows, code: int, F: Array, cost: float, solver: InteriorPoint
) -> BoxSolution | SVMSolution:
    """Solve the problem of a class, in coordinates in which ``P + dT T`` is the identity."""
    rest = Rest(code, rows.factors, rows.basis, F)
    c = rows.coordinates
    if c.Z is not None:
        (block,) = c.blocks.map(_itself)
        U, weights = rest.rows(block)
        return solve_box_qp(U, cost * weights, solver)
    n_others = int(np.count_nonzero(np.asarray(c.codes) != code))
    mirrored = MirroredBlocks(c.blocks, rest, 2 * n_others)
    batch = SVMBatch(
        rows=BlockRows.of(mirrored, None, 2),
        signs=np.array([[1.0, -1.0]]),
        costs=np.full((1, 2), cost),
        scale=np.ones((1, len(F))),
        deflated=np.zeros((1, len(F), 0)),
    )
    return solver.solve_batch(batch)[0]


def _itself(block: Block) -> Block:
    return block
