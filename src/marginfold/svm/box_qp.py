"""The quadratic program of the twin support vector machine: a box and no equality constraint.

::

    min_s 1/2 |s|^2 + sum_i c_i max(0, 1 - u_i's)      (primal)
    max_a sum_i a_i - 1/2 |U'a|^2,    0 <= a <= c      (dual)

It is a support vector machine without a bias.  Give each row u_i with label +1 its mirror image
-u_i with label -1, and half of the cost to each: the objective is then even and convex in the bias,
so that 0 is an optimal bias and the weights are those of the box problem.  The certified solver of
the package needs no second version.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginfold.linalg.tall import Array
from marginfold.svm.problem import SVMSolver


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
    >>> from marginfold.svm.box_qp import solve_box_qp
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
