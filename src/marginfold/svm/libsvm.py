"""scikit-learn's SVC behind the same interface: an oracle for tests and an option for users.

libsvm stops on a violation of the optimality conditions, not on a duality gap, and its number of
iterations grows with the costs.  Its active set is made exact and the solution is certified like
any other, so ``converged`` tells the truth about it.
"""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import SVC

from marginfold.errors import SolverError
from marginfold.linalg.tall import Array
from marginfold.svm.active_set import face_of
from marginfold.svm.certificate import certify
from marginfold.svm.crossover import crossover
from marginfold.svm.problem import (
    EXACT,
    SVMBatch,
    SVMSolution,
    check_batch,
    single,
    uncentre,
)
from marginfold.validation.parameters import Count, Flag, Number, check_parameters


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
    quiet : bool, default=False
        Whether scikit-learn's warning of reaching that limit is held back.

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
    quiet: bool = False

    def __post_init__(self) -> None:
        positive = Number(0.0, inclusive=False)
        check_parameters(
            self, {"tol": positive, "kkt_tol": positive, "max_iter": Count(-1), "quiet": Flag()}
        )

    def solve(self, U: ArrayLike, y: ArrayLike, C: ArrayLike) -> SVMSolution:
        """Solve one problem with features U, labels +1/-1 and costs C (scalar or per row)."""
        return self.solve_batch(single(U, y, C))[0]

    def solve_batch(self, batch: Any) -> list[SVMSolution]:
        """Solve every problem of the batch."""
        if not isinstance(batch, SVMBatch):
            raise SolverError(
                "libsvm needs all rows in the memory of one process, and got rows in blocks; use "
                "solver='interior_point'."
            )
        check_batch(batch)
        return [self.solve_problem(batch, b) for b in range(len(batch))]

    def solve_problem(self, batch: SVMBatch, b: int) -> SVMSolution:
        """Solve one problem of a batch that was checked."""
        c = batch.costs[b]
        features = batch.whitened(b)
        svc = SVC(
            kernel="linear",
            C=1.0,
            tol=self.kkt_tol,
            max_iter=self.max_iter,
            shrinking=self.quiet,
            random_state=0,  # else it draws from the global generator, to no purpose
        )
        weights = np.ascontiguousarray(c)
        with (
            config_context(assume_finite=True, skip_parameter_validation=True),
            warnings.catch_warnings() if self.quiet else nullcontext(),
        ):
            if self.quiet:
                warnings.simplefilter("ignore", ConvergenceWarning)
            svc.fit(features, batch.signs[b], sample_weight=weights)
        dual: Array = np.zeros(len(c))
        dual[svc.support_] = np.abs(svc.dual_coef_[0])
        coef = np.asarray(svc.coef_[0], dtype=np.float64)
        n_iter = int(np.max(svc.n_iter_))
        lower, upper = face_of(dual, c)
        exact = crossover(batch, b, lower, upper, dual, n_iter=n_iter, tol=self.tol)
        if exact is not None and exact.gap <= EXACT:
            return uncentre(batch, b, exact)
        plain = certify(batch, b, coef, dual, n_iter=n_iter, tol=self.tol)
        return uncentre(batch, b, exact if exact and exact.gap < plain.gap else plain)
