"""The machines of all pairs of classes by one kernel, at once.

A pair is a problem on the rows of two classes.  Where these are few the steps that a problem takes
by itself (`gram`) last no longer than their calls: here they are taken for many pairs together.
The active sets that libsvm tells are nearly always right; a pair for which they are not is left to
`gram.solve_gram`.  Rows go class by class, so that the kernel between two classes is one block.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

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

ROUNDS = 3
"""Active sets that are tried for a pair: nine of ten are right at first, most others then."""

MOST_TOGETHER = 10**6
"""Rows of pairs, and entries of their equations, that are taken together."""

ALIKE = 1.5
"""Largest ratio of the numbers of equations of pairs that are solved together, if not few."""

FEW_EQUATIONS = 16

NUDGE = 8 * EPS
"""Share of its diagonal that is added to the kernel of the free rows: of two copies of a row both
may be free, and their equations would be singular."""

SAMPLE = 1000
"""Rows of all classes that tell the products of classes where the kernel matrix is not there."""


@dataclass(frozen=True)
class PairMultipliers:
    """Nearly optimal multipliers of all pairs of classes, as libsvm has them.

    Attributes
    ----------
    codes : array of shape (n,)
        Class codes, in ascending order.
    support : array of shape (s,)
        Numbers, in ascending order, of the rows that have a multiplier above 0 in some pair.
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

    @cached_property
    def starts(self) -> Array:
        """Where the rows of each class begin, and where the last ones end."""
        return np.searchsorted(self.codes, np.arange(self.n_classes + 1))

    @cached_property
    def pairs(self) -> tuple[Array, Array]:
        """The first and the second class of each pair."""
        first, second = np.triu_indices(self.n_classes, 1)
        return first, second

    def of_pair(self, first: int, second: int) -> Multipliers:
        """Return those of the rows of one class, then of another that comes after it."""
        starts, k = self._starts, self.n_classes
        before = starts[first + 1] - starts[first]
        dual = np.zeros(before + starts[second + 1] - starts[second])
        dual[self._own[first]] = self.table[second - 1, self._spans[first]]
        dual[before:][self._own[second]] = self.table[first, self._spans[second]]
        number = first * k - first * (first + 1) // 2 + second - first - 1
        return Multipliers(dual, int(self.n_iter[number]))

    @cached_property
    def _starts(self) -> list[int]:
        return self.starts.tolist()

    @cached_property
    def _spans(self) -> list[slice]:
        """The places of the support vectors of each class."""
        return [slice(*ends) for ends in pairwise(np.searchsorted(self.support, self.starts))]

    @cached_property
    def _own(self) -> list[Array]:
        """Their numbers among the rows of their class."""
        return [self.support[self._spans[c]] - self._starts[c] for c in range(self.n_classes)]


def libsvm_pairs(gram: Gram, codes: Array, costs: Array) -> PairMultipliers | None:
    """Let libsvm solve all pairs of classes in one call; None if it fails on one of them."""
    svc = fitted(gram, codes, costs, KKT_TOLERANCES[0])
    if svc is None:
        return None
    return PairMultipliers(codes, svc.support_, np.abs(_dense(svc.dual_coef_)), svc.n_iter_)


def exact_pairs(gram: Gram, costs: Array, near: PairMultipliers) -> list[GramSolution | None]:
    """Return the exact machines of pairs whose active set is soon right, None for the others.

    The coefficients of a machine are those of the rows of its first class, then of its second.

    Parameters
    ----------
    gram : Gram
        The kernel matrix of n rows that go class by class.
    costs : array of shape (n,)
    near : PairMultipliers
        Those of libsvm.

    Examples
    --------
    >>> import numpy as np
    >>> from marginfold.svm.gram import GivenGram
    >>> from marginfold.svm.pairs import exact_pairs, libsvm_pairs
    >>> x, y = np.array([[0.0], [1.0], [3.0], [4.0], [8.0]]), np.array([0, 0, 1, 1, 2])
    >>> gram, costs = GivenGram(x @ x.T), np.full(5, 10.0)
    >>> found = exact_pairs(gram, costs, libsvm_pairs(gram, y, costs))
    >>> [machine.coefs.round(6).tolist() for machine in found]
    [[0.0, -0.5, 0.5, 0.0], [0.0, -0.040816, 0.040816], [0.0, -0.125, 0.125]]
    """
    found: list[GramSolution | None] = [None] * len(near.n_iter)
    columns = _Columns.of(gram, near)
    if columns is None:
        return found
    first, second = near.pairs
    counts = np.diff(near.starts)
    sizes = counts[first] + counts[second]
    for some in _parts(sizes, MOST_TOGETHER):
        pairs = _Pairs.of(near, first[some], second[some], costs, gram.diagonal)
        dual = np.zeros(pairs.rows.shape)
        for line, a, b in zip(dual, pairs.first.tolist(), pairs.second.tolist(), strict=True):
            own = near.of_pair(a, b).dual
            line[: len(own)] = own
        for place, coefs, intercept, objective, gap in _solved(columns, pairs, dual):
            number = int(some[place])
            found[number] = GramSolution(
                coefs[: sizes[number]], intercept, objective, gap, int(near.n_iter[number]), True
            )
    return found


def class_products(gram: Gram, starts: Array) -> Array:
    """Return the mean kernel between two rows of each two classes; within a class two different.

    Where the matrix is not there it is that of some rows of each class.

    Parameters
    ----------
    gram : Gram
        The kernel matrix of rows that go class by class.
    starts : array of shape (n_classes + 1,)
        Where the classes begin, and where the last one ends.
    """
    K, counts = gram.K, np.diff(starts)
    if K is None:
        steps = -(-counts // max(SAMPLE // len(counts), 2))
        rows = [np.arange(*ends) for ends in zip(starts[:-1], starts[1:], steps, strict=True)]
        counts = np.array([len(own) for own in rows])
        K = gram.among(np.concatenate(rows))
        starts = np.concatenate([[0], np.cumsum(counts)])
    sums = np.stack([np.ones(j - i) @ K[i:j] for i, j in pairwise(starts.tolist())])
    sums = np.add.reduceat(sums, starts[:-1], axis=1)
    within = sums.diagonal() - np.add.reduceat(K.diagonal(), starts[:-1])
    means = sums / np.outer(counts, counts)
    np.fill_diagonal(means, within / np.maximum(counts * (counts - 1), 1))
    return means


@dataclass(frozen=True)
class _Columns:
    """Columns of the kernel matrix of rows that go class by class.

    Attributes
    ----------
    values : array of shape (n, n_columns)
    place : array of shape (n,)
        Which column is that of a row, -1 if none is.
    starts, bounds : lists of length n_classes + 1
        Where the rows and the columns of each class begin.
    own : list of array
        Which rows of each class have a column.
    """

    values: Array
    place: Array
    starts: list[int]
    bounds: list[int]
    own: list[Any]

    @classmethod
    def of(cls, gram: Gram, near: PairMultipliers) -> _Columns | None:
        """Return those of all support vectors; None if they are too many."""
        n, starts = len(near.codes), near.starts.tolist()
        if gram.K is not None:
            return cls(gram.K, np.arange(n), starts, starts, [slice(None)] * near.n_classes)
        support = np.sort(near.support)
        values = gram.columns(support)
        if values is None:
            return None
        place = np.full(n, -1)
        place[support] = np.arange(len(support))
        bounds = np.searchsorted(support, near.starts).tolist()
        own = [np.flatnonzero(place[i:j] >= 0) for i, j in pairwise(starts)]
        return cls(values, place, starts, bounds, own)

    def times(self, pairs: _Pairs, coefs: Array) -> Array:
        """Return the kernel of the rows of each pair times their coefficients."""
        out, s, b = np.zeros_like(coefs), self.starts, self.bounds
        classes = zip(pairs.first.tolist(), pairs.second.tolist(), strict=True)
        for line, values, (first, second) in zip(coefs, out, classes, strict=True):
            m = s[first + 1] - s[first]
            end = m + s[second + 1] - s[second]
            u, v = line[:m][self.own[first]], line[m:end][self.own[second]]
            left, right = slice(b[first], b[first + 1]), slice(b[second], b[second + 1])
            for code, part in ((first, values[:m]), (second, values[m:end])):
                block = self.values[s[code] : s[code + 1]]
                np.add(block[:, left] @ u, block[:, right] @ v, out=part)
        return out

    def among(self, rows: Array) -> Array:
        """Return the kernels among the rows of each line, which all have columns."""
        return np.asarray(self.values[rows[:, :, None], self.place[rows][:, None, :]])


@dataclass(frozen=True)
class _Pairs:
    """Some pairs of classes, a line each: rows of the first, of the second, then nothing.

    What is nothing is row 0 and has sign and cost 0.
    """

    first: Array
    second: Array
    rows: Array
    signs: Array
    costs: Array
    diagonal: Array

    @classmethod
    def of(
        cls, near: PairMultipliers, first: Array, second: Array, costs: Array, diagonal: Array
    ) -> _Pairs:
        """Return the pairs of these classes."""
        counts = np.diff(near.starts)
        before, sizes = counts[first][:, None], (counts[first] + counts[second])[:, None]
        place = np.arange(int(sizes.max()))
        rows = place + np.where(
            place < before, near.starts[first][:, None], near.starts[second][:, None] - before
        )
        signs = np.where(place < before, -1.0, 1.0)
        rows[place >= sizes], signs[place >= sizes] = 0, 0.0
        return cls(first, second, rows, signs, np.abs(signs) * costs[rows], diagonal[rows])

    def some(self, taken: Array) -> _Pairs:
        """Return some of the lines."""
        parts = (self.first, self.second, self.rows, self.signs, self.costs, self.diagonal)
        return _Pairs(*(part[taken] for part in parts))


def _solved(
    columns: _Columns, pairs: _Pairs, dual: Array
) -> Iterator[tuple[int, Array, float, float, float]]:
    """Yield line, coefficients, intercept, objective and gap of pairs that are exact."""
    lower, upper = sets_of(feasible(pairs.signs, pairs.costs, dual), pairs.costs)
    lines = np.arange(len(dual))
    for _ in range(ROUNDS):
        free = ~(lower | upper)
        coefs = np.where(upper, pairs.signs * pairs.costs, 0.0)
        pushed = columns.times(pairs, coefs)
        beta, intercepts = _on_margins(
            columns, pairs, free, pairs.signs - pushed, -coefs.sum(axis=1)
        )
        f = pushed + columns.times(pairs, beta)
        coefs += beta
        values = certified(pairs.diagonal, pairs.signs, pairs.costs, coefs, f, intercepts)
        right = free.any(axis=1) & (values.gaps <= EXACT)
        for line in np.flatnonzero(right).tolist():
            objective, _, gap = (float(own[line]) for own in values)
            yield int(lines[line]), coefs[line], float(intercepts[line]), objective, gap
        excess = pairs.signs * (f + intercepts[:, None]) - 1.0
        lower, upper = repaired(lower, upper, pairs.signs * coefs, pairs.costs, excess)
        lacks = ~lower & (columns.place[pairs.rows] < 0) & (pairs.signs != 0.0)
        left = ~right & ~lacks.any(axis=1) & np.isfinite(intercepts)
        if not left.any():
            return
        lines, lower, upper, pairs = lines[left], lower[left], upper[left], pairs.some(left)


def _on_margins(
    columns: _Columns, pairs: _Pairs, free: Array, values: Array, totals: Array
) -> tuple[Array, Array]:
    """Solve ``K beta + b = values, sum(beta) = total`` on the free rows of every pair.

    Returns the coefficients, 0 for rows that are not free, and the intercepts: not a number for
    pairs whose equations are too many, or singular.
    """
    beta, intercepts = np.zeros(free.shape), np.full(len(free), np.nan)
    counts = np.count_nonzero(free, axis=1)
    for some in _parts((counts + 1) ** 2 + FEW_EQUATIONS**2, MOST_TOGETHER, ALIKE**2):
        m = int(counts[some[-1]])
        if (m + 1) ** 2 > MOST_TOGETHER:
            break  # those with fewer came before
        line, place = np.nonzero(free[some])
        number = np.arange(len(line)) - np.repeat(
            np.cumsum(counts[some]) - counts[some], counts[some]
        )
        rows, taken = np.zeros((len(some), m), dtype=np.intp), np.zeros((len(some), m + 1))
        rows[line, number] = pairs.rows[some[line], place]
        taken[line, number] = 1.0
        taken[:, m] = counts[some] > 0
        system = np.ones((len(some), m + 1, m + 1))
        system[:, m, m] = 0.0
        system[:, :m, :m] = columns.among(rows)
        system *= taken[:, :, None] * taken[:, None, :]
        diagonal = np.arange(m + 1)
        system[:, diagonal, diagonal] += NUDGE * system[:, diagonal, diagonal] + (1.0 - taken)
        right = np.zeros((len(some), m + 1, 1))
        right[line, number, 0] = values[some[line], place]
        right[:, m, 0] = totals[some]
        try:
            solved = np.linalg.solve(system, right)[..., 0]
        except np.linalg.LinAlgError:
            continue
        beta[some[line], place] = solved[line, number]
        intercepts[some] = solved[:, m]
    return beta, intercepts


def _parts(sizes: Array, most: float, ratio: float = np.inf) -> Iterator[Array]:
    """Yield numbers of what goes together, small before large.

    At most ``most`` times the size of the largest (or a single one), no larger than ``ratio`` times
    the smallest.
    """
    order = np.argsort(sizes, kind="stable")
    ascending = sizes[order]
    start = 0
    while start < len(order):
        end = int(np.searchsorted(ascending, ratio * ascending[start], side="right"))
        fits = ascending[start:end] * np.arange(1, end - start + 1) <= most
        end = start + max(int(fits.sum()), 1)
        yield order[start:end]
        start = end
