"""The hinge problem of a plane: the quadratic program of the twin SVM, with a box and no bias.

A plane is a vector v on rows h (see `plane_rows`).  With the form of the own class factored,
``P + dM M + dT T = F F'``, and the rows ``u = -F^-1 h`` of the rest it solves (`solve_box_qp`)::

    min_s 1/2 |s|^2 + sum_i c_i max(0, 1 - u_i's)      (primal)
    max_a sum_i a_i - 1/2 |U'a|^2,    0 <= a <= c      (dual)

It is a support vector machine without a bias.  Give each row u_i with label +1 its mirror image
-u_i with label -1, and half of the cost to each: the objective is then even and convex in the bias,
so that 0 is an optimal bias and the weights are those of the box problem.  The certified solver of
the package needs no second version.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

import numpy as np
import scipy.linalg

from marginfold.estimators.plane_rows import PlaneProblem, PlaneTask, rest_rows
from marginfold.geometry.tikhonov import TikhonovBasis
from marginfold.linalg.blocks import Block, RowBlocks
from marginfold.linalg.decompositions import qr
from marginfold.linalg.tall import Array
from marginfold.svm import BlockRows, SVMBatch, SVMSolution, SVMSolver

T = TypeVar("T")


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
    if n < U.shape[1]:  # s is in the span of the rows: U = R'Q'
        Q, R = qr(U.T)
        found = solve_box_qp(R.T, costs, solver)
        return replace(found, coef=Q @ found.coef)
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
    """The rows that a plane is to be far from, as its problem sees them."""

    task: PlaneTask
    factors: Array
    basis: TikhonovBasis
    F: Array

    def mirrored(self, block: Block) -> Block:
        """Return the rows u of a block as class 0, and -u as class 1, with half of the weight."""
        H, weights = rest_rows(block, self.task, self.factors, self.basis)
        U = whitened(H, self.F)
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
    problem: PlaneProblem, F: Array, cost: float, solver: SVMSolver
) -> BoxSolution | SVMSolution:
    """Solve the problem of a plane, in coordinates in which ``F F'`` is the identity."""
    rows, task = problem.rows, problem.task
    c = rows.coordinates
    if c.Z is not None:
        H, weights = problem.space.rest_rows(task)
        return solve_box_qp(whitened(H, F), cost * weights, solver)
    n_others = int(np.count_nonzero(task.is_against(np.asarray(c.codes))))
    mirrored = MirroredBlocks(c.blocks, Rest(task, rows.factors, rows.basis, F), 2 * n_others)
    batch = SVMBatch(
        rows=BlockRows.of(mirrored, None, 2),
        signs=np.array([[1.0, -1.0]]),
        costs=np.full((1, 2), cost),
        scale=np.ones((1, len(F))),
        deflated=np.zeros((1, len(F), 0)),
    )
    return solver.solve_batch(batch)[0]


def whitened(H: Array, F: Array) -> Array:
    """Return the rows ``u = -F^-1 h``."""
    return np.asarray(-scipy.linalg.solve_triangular(F, H.T, lower=True, check_finite=False).T)
