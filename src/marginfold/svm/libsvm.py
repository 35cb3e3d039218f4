"""scikit-learn's SVC behind the same interface: an oracle for tests and an option for users.

libsvm stops on a violation of the optimality conditions, not on a duality gap, and its number of
iterations grows with the costs.  Its active set is made exact and the solution is certified like
any other, so ``converged`` tells the truth about it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn import config_context
from sklearn.svm import SVC

from marginfold.errors import SolverError
from marginfold.svm.active_set import crossover, sets_of
from marginfold.svm.certificate import certify
from marginfold.svm.interior_point import NUMPY
from marginfold.svm.problem import (
    TOLERANCES,
    BlockRows,
    SVMBatch,
    SVMProblem,
    SVMSolution,
    check_batch,
    gap_of,
    single,
)
from marginfold.validation.parameters import (
    TOLERANCE,
    Count,
    Number,
    check_parameters,
)


@dataclass(frozen=True)
class LibSVM:
    """Solve support vector problems one by one with libsvm.

    Parameters
    ----------
    tol : float, default=1e-8
        Relative duality gap at which a solution counts as converged.
    kkt_tol : float, default=1e-6
        libsvm's own stopping tolerance.
    max_iter : int, default=1_000_000
        Largest number of libsvm iterations, -1 for no limit (it may then run for hours).

    Examples
    --------
    >>> from marginfold.svm import LibSVM
    >>> solution = LibSVM().solve([[0.0], [1.0], [2.0], [3.0]], [-1, -1, 1, 1], C=10.0)
    >>> round(float(solution.coef[0]), 5)
    2.0
    """

    tol: float = 1e-8
    kkt_tol: float = 1e-6
    max_iter: int = 1_000_000

    def __post_init__(self) -> None:
        check_parameters(
            self, {"tol": TOLERANCE, "kkt_tol": Number(0.0, inclusive=False), "max_iter": Count(-1)}
        )

    def solve(self, U: ArrayLike, y: ArrayLike, C: ArrayLike) -> SVMSolution:
        """Solve one problem with features U, labels +1/-1 and costs C (scalar or per row)."""
        return self.solve_batch(single(U, y, C))[0]

    def solve_batch(self, batch: SVMBatch) -> list[SVMSolution]:
        """Solve every problem of the batch."""
        if isinstance(batch.rows, BlockRows):
            raise SolverError(
                "libsvm needs all rows in the memory of one process, and got rows in blocks; use "
                "solver='interior_point'."
            )
        check_batch(batch)
        problems = [batch.problem(b) for b in range(len(batch))]
        return [problem.uncentred(self._solve_problem(problem)) for problem in problems]

    def _solve_problem(self, problem: SVMProblem) -> SVMSolution:
        svc = SVC(
            kernel="linear",
            C=1.0,
            tol=self.kkt_tol,
            max_iter=self.max_iter,
            shrinking=False,
            random_state=0,  # else it draws from the global generator, to no purpose
        )
        with config_context(assume_finite=True, skip_parameter_validation=True):
            svc.fit(problem.whitened(), problem.signs, sample_weight=problem.costs)
        dual = np.zeros(len(problem.costs))
        dual[svc.support_] = np.abs(svc.dual_coef_[0])
        point = certify(problem, np.asarray(svc.coef_[0], dtype=np.float64), dual, NUMPY)
        exact = crossover(problem, *sets_of(dual, problem.costs), dual, NUMPY)
        if exact is not None and gap_of(exact) < max(gap_of(point), TOLERANCES.exact):
            point = exact
        return SVMSolution.of(point, n_iter=int(np.max(svc.n_iter_)), tol=self.tol)
