"""The machines of all pairs of classes by one kernel matrix, at once.

A pair is a problem on all rows in which those of the other classes cost nothing.  Where pairs have
few rows the steps that a problem takes by itself (`gram`) last no longer than their calls: here
they are taken for all pairs together.  The active sets that libsvm tells are nearly always right;
a pair for which they are not is left to `gram.solve_gram`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from marginfold.linalg.tall import Array
from marginfold.linalg.tall import dense as _dense
from marginfold.svm.active_set import repaired, sets_of
from marginfold.svm.certificate import feasible
from marginfold.svm.gram import (
    EXACT,
    KKT_TOLERANCES,
    Gram,
    GramSolution,
    Multipliers,
    certified,
    fitted,
)
from marginfold.svm.problem import EPS

MOST_PRODUCTS = 1e8
"""Rows squared times pairs up to which the pairs are made exact together: products with the whole
kernel matrix, most of which is zero.  At 1257 rows of 10 classes, 0.7e8, this takes half of the
time of pair after pair; no larger tables were tried."""

ROUNDS = 3
"""Active sets that are tried for a pair: nine of ten are right at first, most others then."""

MOST_EQUATIONS = 2e6
"""Entries of the equations of all pairs that are solved together."""

NUDGE = 8 * EPS
"""Share of its diagonal that is added to the kernel of the free rows: of two copies of a row both
may be free, and their equations would be singular."""


@dataclass(frozen=True)
class PairMultipliers:
    """Nearly optimal multipliers of all pairs of classes, as libsvm has them.

    Attributes
    ----------
    codes : array of shape (n,)
        Class codes.
    support : array of shape (s,)
        Numbers of the rows that have a multiplier above 0 in some pair.
    table : array of shape (n_classes - 1, s)
        Multipliers of these rows in the pairs of their class with the others, in their order.
    n_iter : array of shape (n_pairs,)
        Iterations for each pair.
    """

    codes: Array
    support: Array
    table: Array
    n_iter: Array

    @property
    def n_classes(self) -> int:
        """Number of classes."""
        return len(self.table) + 1

    def of_pair(self, first: int, second: int) -> Multipliers:
        """Return the multipliers of the rows of two classes, in their order."""
        dual = np.zeros(len(self.codes))
        own = self.codes[self.support]
        for code, row in ((first, second - 1), (second, first)):
            dual[self.support[own == code]] = self.table[row, own == code]
        both = (self.codes == first) | (self.codes == second)
        n_iter = self.n_iter[_numbers(self.n_classes)[first, second]]
        return Multipliers(dual[both], int(n_iter))

    def of_all(self) -> Array:
        """Return the multipliers of all rows in all pairs, shape (n_pairs, n)."""
        dual = np.zeros((len(self.n_iter), len(self.codes)))
        own = self.codes[self.support]
        others = np.arange(self.n_classes - 1)[:, None]
        others = others + (others >= own)
        dual[_numbers(self.n_classes)[own, others], self.support] = self.table
        return dual


def libsvm_pairs(gram: Gram, codes: Array, costs: Array) -> PairMultipliers | None:
    """Let libsvm solve all pairs of classes in one call; None if it fails on one of them."""
    svc = fitted(gram, codes, costs, KKT_TOLERANCES[0])
    if svc is None:
        return None
    return PairMultipliers(codes, svc.support_, np.abs(_dense(svc.dual_coef_)), svc.n_iter_)


def exact_pairs(K: Array, costs: Array, near: PairMultipliers) -> list[GramSolution | None]:
    """Return the exact machines of pairs whose active set is right as it is, None for the others.

    The coefficients of a machine are those of all rows.

    Parameters
    ----------
    K : array of shape (n, n)
        The kernel matrix.
    costs : array of shape (n,)
    near : PairMultipliers
        Those of libsvm.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.svm.gram import GivenGram
    >>> from marginfold.svm.pairs import exact_pairs, libsvm_pairs
    >>> x, y = np.array([[0.0], [1.0], [3.0], [4.0], [8.0]]), np.array([0, 0, 1, 1, 2])
    >>> near = libsvm_pairs(GivenGram(x @ x.T), y, np.full(5, 10.0))
    >>> found = exact_pairs(x @ x.T, np.full(5, 10.0), near)
    >>> [round(float(machine.coefs @ x[:, 0]), 6) for machine in found]
    [1.0, 0.285714, 0.5]
    """
    found: list[GramSolution | None] = [None] * len(near.n_iter)
    if len(found) * float(len(K)) ** 2 > MOST_PRODUCTS:
        return found
    signs = _signs(near.n_classes)[:, near.codes]
    costs = np.abs(signs) * costs
    lower, upper = sets_of(feasible(signs, costs, near.of_all()), costs)
    left = np.arange(len(found))
    for _ in range(ROUNDS):
        free = ~(lower | upper)
        coefs = np.where(upper, signs * costs, 0.0)
        pushed = _times(coefs, K)
        solved = _on_margins(K, free, signs - pushed, -coefs.sum(axis=1))
        if solved is None:
            break
        beta, intercepts = solved
        f = pushed + _times(beta, K)
        coefs += beta
        values = certified(K.diagonal(), signs, costs, coefs, f, intercepts)
        right = free.any(axis=1) & (values.gaps <= EXACT)
        for place in np.flatnonzero(right):
            objective, _, gap = (float(own[place]) for own in values)
            n_iter, intercept = int(near.n_iter[left[place]]), float(intercepts[place])
            found[left[place]] = GramSolution(coefs[place], intercept, objective, gap, n_iter, True)
        if right.all():
            break
        excess = signs * (f + intercepts[:, None]) - 1.0
        lower, upper = repaired(lower, upper, signs * coefs, costs, excess)
        left, signs, costs, lower, upper = (
            own[~right] for own in (left, signs, costs, lower, upper)
        )
    return found


def _times(coefs: Array, K: Array) -> Array:
    """Return the products of coefficients, most of which may be 0, with the kernel matrix."""
    used = np.flatnonzero(coefs.any(axis=0))
    if 2 * len(used) > len(K):
        return np.asarray(coefs @ K)
    return np.asarray(coefs[:, used] @ K[used])


def _on_margins(K: Array, free: Array, values: Array, totals: Array) -> tuple[Array, Array] | None:
    """Solve ``K beta + b = values, sum(beta) = total`` on the free rows of every pair.

    Equations of fewer rows than the most have ones on the diagonal for what they lack.  Returns the
    coefficients, 0 for rows that are not free, and the intercepts; None if the equations are too
    many, or singular.
    """
    n_pairs, counts = len(free), np.count_nonzero(free, axis=1)
    m = int(counts.max())
    if n_pairs * float(m) ** 2 > MOST_EQUATIONS:
        return None
    pair, row = np.nonzero(free)
    place = np.arange(len(row)) - np.repeat(np.cumsum(counts) - counts, counts)
    rows, taken = np.zeros((n_pairs, m), dtype=np.intp), np.zeros((n_pairs, m + 1))
    rows[pair, place] = row
    taken[pair, place] = 1.0
    system = np.zeros((n_pairs, m + 1, m + 1))
    system[:, :m, :m] = K[rows[:, :, None], rows[:, None, :]]
    system[:, :m, m] = system[:, m, :m] = 1.0
    taken[:, m] = counts > 0
    system *= taken[:, :, None] * taken[:, None, :]
    diagonal = np.arange(m + 1)
    system[:, diagonal, diagonal] += NUDGE * system[:, diagonal, diagonal] + (1.0 - taken)
    right = np.zeros((n_pairs, m + 1, 1))
    right[pair, place, 0] = values[pair, row]
    right[:, m, 0] = totals
    try:
        solved = np.linalg.solve(system, right)[..., 0]
    except np.linalg.LinAlgError:
        return None
    beta = np.zeros(free.shape)
    beta[pair, row] = solved[pair, place]
    return beta, solved[:, m]


@lru_cache(maxsize=8)
def _signs(n_classes: int) -> Array:
    """Return -1 for the first class of each pair, +1 for the second and 0 for the others."""
    first, second = np.triu_indices(n_classes, 1)
    classes = np.arange(n_classes)
    return (classes == second[:, None]).astype(np.float64) - (classes == first[:, None])


@lru_cache(maxsize=8)
def _numbers(n_classes: int) -> Array:
    """Return the number of the pair of two classes."""
    numbers = np.zeros((n_classes, n_classes), dtype=np.intp)
    first, second = np.triu_indices(n_classes, 1)
    numbers[first, second] = numbers[second, first] = np.arange(len(first))
    return numbers
