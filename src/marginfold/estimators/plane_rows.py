"""Rows as the problems of planes see them: the moments of classes, or the span of two of them.

A plane ``w'z + b = 0`` is a vector ``v = (w, b)`` on rows ``h = (z, 1)``, in coordinates in which
the Tikhonov term T is the identity.  Its problem needs the moments ``sum h h'`` of its own class
and of the rest, and the scatter of a graph on the own class.  They are computed once for a class
and serve every pair of classes that it belongs to.

With T = I no plane of a pair leaves the span of the rows h of that pair.  Where these are fewer
than the coordinates, as with most kernels, its problem is solved in an orthonormal basis of the
span (`PairSpan`): the rows in it are a Cholesky factor of their Gram matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.linalg
from scipy.linalg.lapack import dpstrf

from marginfold.estimators.inputs import Coordinates, LocalCoordinates
from marginfold.estimators.plane_problem import PlaneProblem, PlaneSpace, PlaneTask
from marginfold.geometry.metric import TikhonovBasis, dual_basis, rank_of, rkhs_basis
from marginfold.linalg.tall import Array, Block, gram, total
from marginfold.runtime.memory import require_memory
from marginfold.runtime.progress import report

NO_SPAN = 4.0
"""Squared lengths below this many roundings, times the number of rows, span nothing."""

SMALL_SQUARES = 32 << 20
"""Bytes of the moments of all classes that are kept whatever the size of the rows.  Made again for
every pair they took two thirds of the time of 60 classes of 2 and 3 rows with a graph."""

COPIES = 2.0
"""Arrays of the size of all normals that a fit has at the same time, at most."""


@dataclass(frozen=True)
class Heights:
    """Where the rows that a plane is about lie above it, one entry for each plane.

    Attributes
    ----------
    low, high : arrays of shape (n_planes,)
        Smallest and largest height.
    sums, sizes : arrays of shape (n_planes,)
        Weighted sums of the heights, and of their absolute values, of the rows that the plane is to
        be far from.
    """

    low: Array
    high: Array
    sums: Array
    sizes: Array

    @property
    def largest(self) -> Array:
        """The largest absolute height above each plane."""
        return np.maximum(np.abs(self.low), np.abs(self.high))


@dataclass(frozen=True, eq=False)
class PlaneRows:
    """Rows ``h = (V'z, 1)`` with weights and classes, and the planes to be found for them.

    It is also the `PlaneSpace` of all coordinates.

    Attributes
    ----------
    coordinates : Coordinates
        The rows z that have a class.
    everyone : Coordinates
        These and the rows without one, which act through the graph.
    factors : array of shape (n_classes,)
        What the weights of the rows of a class are multiplied by.
    basis : TikhonovBasis
        V and the unit of the rows.
    tasks : list of PlaneTask
        The planes, in their order.
    graph : graph rule or None
        The graph on the rows of each class.
    """

    coordinates: Coordinates
    everyone: Coordinates
    factors: Array
    basis: TikhonovBasis
    tasks: Sequence[PlaneTask]
    graph: Any = None
    _known: dict[tuple[str, int], Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls,
        c: Coordinates,
        factors: Array,
        tasks: Sequence[PlaneTask],
        *,
        graph: Any,
        tikhonov: str,
        normalize: bool,
    ) -> Self:
        """Choose the coordinates for the Tikhonov term in the norm of w or of its coefficients."""
        known = c.labelled() if isinstance(c, LocalCoordinates) else c
        if tikhonov == "dual":  # w is a combination of all rows
            of_all = np.append(factors, 1.0)  # the last one is that of the code UNLABELLED
            basis = dual_basis(_scatter(c, of_all), _size(c, of_all), normalize)
        else:
            squares = sum(known.blocks.map(weighted_squares, factors))
            basis = rkhs_basis(squares, _size(known, factors), normalize)
        return cls(known, c, factors, basis, tasks, graph)

    @cached_property
    def rank(self) -> int:
        """Dimensions in which all rows vary, and one for the offset."""
        return rank_of(_scatter(self.everyone, np.append(self.factors, 1.0))) + 1

    @property
    def n_coordinates(self) -> int:
        """Entries of a row h."""
        V = self.basis.V
        return (self.coordinates.n_columns if V is None else V.shape[1]) + 1

    @property
    def n_unknowns(self) -> int:
        """Unknowns of the largest problem: those of two classes have at most one for each row."""
        if self.tasks[0].rest is None or not self._spanned_by_pairs:
            return self.n_coordinates
        return min(self.n_coordinates, int(np.sort(self.counts)[-2:].sum()))

    @property
    def sizes(self) -> Array:
        """The total weight of each class."""
        return _sizes(self.coordinates, self.factors)

    @cached_property
    def counts(self) -> Array:
        """The number of rows of each class."""
        c = self.coordinates
        return np.bincount(np.asarray(c.codes)[c.weights > 0], minlength=len(self.factors))

    def solve(
        self, work: Callable[[PlaneProblem], tuple[Array, float]]
    ) -> tuple[Array, Array, Array]:
        """Return normals (rows) and offsets, and the figures that ``work`` has for the planes."""
        shape = len(self.tasks), self.n_coordinates - 1
        if self.tasks[0].rest is not None:
            require_memory(
                8.0 * COPIES * shape[0] * shape[1],
                f"A pair of planes for each of {shape[0] // 2} pairs of classes",
                'multiclass="one_vs_rest" or kernel=LowRankKernel("rbf", rank=100)',
            )
        normals, offsets, figures = np.empty(shape), np.empty(shape[0]), np.empty(shape[0])
        for k, problem in enumerate(self._problems()):
            report("planes", k, len(self.tasks))
            v, figures[k] = work(problem)
            plane = problem.space.lift(v)
            normals[k], offsets[k] = plane[:-1], plane[-1]
        return normals, offsets, figures

    def _problems(self) -> Iterator[PlaneProblem]:
        """Yield the problems in the order of the tasks; the two of a pair share their space."""
        space: PlaneSpace = self
        for task in self.tasks:
            if task.rest is not None and task.own < task.rest:
                space = self._pair_space(task.own, task.rest)
            yield PlaneProblem(self, space, task)

    def _pair_space(self, first: int, second: int) -> PlaneSpace:
        """Return the span of the rows of two classes, or all coordinates if these are fewer."""
        n_rows = int(self.counts[[first, second]].sum())
        if not self._spanned_by_pairs or n_rows >= self.n_coordinates:
            return self
        return PairSpan.of(self, first, second)

    @property
    def _spanned_by_pairs(self) -> bool:
        """Whether the rows of a pair span its planes: not if rows without a class act on them."""
        return self.coordinates.Z is not None and self.everyone is self.coordinates

    def heights(self, normals: Array, offsets: Array) -> Heights:
        """Return where the rows that each plane is about lie above it."""
        work = normals, offsets, self.tasks, self.factors, self.basis
        parts = self.coordinates.blocks.map(plane_heights, *work)
        return Heights(
            low=np.min(np.stack([part.low for part in parts]), axis=0),
            high=np.max(np.stack([part.high for part in parts]), axis=0),
            sums=total([part.sums for part in parts]),
            sizes=total([part.sizes for part in parts]),
        )

    @property
    def joins_rows(self) -> bool:
        """Whether the graph joins different rows of a class, as far as it was asked for."""
        return any(np.any(found) for (name, _), found in self._known.items() if name == "joined")

    @property
    def offset(self) -> Array:
        """The last unit vector."""
        return np.eye(1, self.n_coordinates, self.n_coordinates - 1)[0]

    def own(self, code: int) -> Array:
        """Return P: the moments of the rows of a class."""
        return np.asarray(self._kept("own", code, self._class_moments))

    def _class_moments(self, code: int) -> Array:
        blocks = self.coordinates.blocks
        return float(self.factors[code]) * total(blocks.map(class_moments, code, self.basis))

    def rest(self, task: PlaneTask) -> Array:
        """Return Q: the moments of another class, or of all other rows."""
        if task.rest is not None:
            return self.own(task.rest)
        return np.asarray(self.moments - self.own(task.own))

    @cached_property
    def moments(self) -> Array:
        """The moments of all rows."""
        return total(self.coordinates.blocks.map(all_moments, self.factors, self.basis))

    def graph_moments(self, code: int) -> Array | None:
        """Return M of 003 eq. (24): the scatter of the graph on the rows of a class."""
        return None if self.graph is None else self._kept("graph", code, self._graph_moments)

    def _graph_moments(self, code: int) -> Array:
        S = self.everyone.class_scatter(self.graph, code, float(self.factors[code]))
        S = self.basis.rows(self.basis.rows(S).T)
        M = np.zeros((len(S) + 1, len(S) + 1))
        M[:-1, :-1] = (S + S.T) / 2
        self._known["joined", code] = M.any()
        return M

    def rest_rows(self, task: PlaneTask) -> tuple[Array, Array]:
        """Return the rows that a plane is to be far from, and their weights."""
        return rest_rows(self.local, task, self.factors, self.basis)

    def lift(self, v: Array) -> Array:
        """Return the plane itself."""
        return v

    @cached_property
    def local(self) -> Block:
        """All rows of positive weight."""
        (block,) = self.coordinates.blocks.map(_itself)
        return block

    def members(self, code: int) -> Array:
        """Return which of the local rows are those of a class."""
        codes = self.local.codes
        return np.asarray(self._kept("members", code, lambda own: np.flatnonzero(codes == own)))

    def class_rows(self, code: int) -> tuple[Array, Array]:
        """Return the rows h of a class and their weights."""
        members = self.members(code)
        weights = float(self.factors[code]) * self.local.weights[members]
        return extended(self.local.Z[members], self.basis), weights

    def class_gram(self, code: int) -> Array:
        """Return the Gram matrix of the rows h of a class."""
        return np.asarray(self._kept("gram", code, self._class_gram))

    def _class_gram(self, code: int) -> Array:
        H = self.class_rows(code)[0]
        return np.asarray(H @ H.T)

    def class_laplacian(self, code: int) -> Any:
        """Return the Laplacian of the graph on the rows of a class."""
        return self._kept("laplacian", code, self._class_laplacian)

    def _class_laplacian(self, code: int) -> Any:
        assert isinstance(self.coordinates, LocalCoordinates)
        return self.coordinates.class_laplacian(self.graph, code, float(self.factors[code]))

    def _kept(self, name: str, code: int, find: Callable[[int], Any]) -> Any:
        """Return what was found for a class, and keep it if pairs will ask for it again.

        Squares of all coordinates of a class with few rows are not kept unless those of all classes
        are small: they would need more memory than the rows.
        """
        found = self._known.get((name, code))
        if found is None:
            found = find(code)
            square = name in ("own", "graph") and self.coordinates.Z is not None
            if not square or self._keeps_square(code):
                self._known[name, code] = found
        return found

    def _keeps_square(self, code: int) -> bool:
        squares = 8 * len(self.factors) * self.n_coordinates**2
        return squares <= SMALL_SQUARES or 2 * int(self.counts[code]) >= self.n_coordinates


@dataclass(frozen=True, eq=False)
class PairSpan:
    """An orthonormal basis of the span of the rows h of two classes.

    With their Gram matrix ``H H' = S S'``, S lower triangular up to the order of the rows, the rows
    of S are the rows h in the basis ``B = G'R^-T``: G are the rows that were pivots, R is their
    part of S.

    Attributes
    ----------
    rows : PlaneRows
    found : dict of int to (array of shape (n, q), array of shape (n,))
        The rows of each class in the basis, and their weights.
    pivots : array of shape (q, r + 1)
        G.
    triangle : array of shape (q, q)
        R.
    """

    rows: PlaneRows
    found: dict[int, tuple[Array, Array]]
    pivots: Array
    triangle: Array
    _moments: dict[int, Array] = field(default_factory=dict, repr=False)

    @classmethod
    def of(cls, rows: PlaneRows, first: int, second: int) -> Self:
        """Factor the Gram matrix of the rows of two classes, with pivoting."""
        (H_1, weights_1), (H_2, weights_2) = rows.class_rows(first), rows.class_rows(second)
        between = H_1 @ H_2.T
        squares = [[rows.class_gram(first), between], [between.T, rows.class_gram(second)]]
        G: Array = np.block(squares)
        least = NO_SPAN * len(G) * np.finfo(np.float64).eps * G.diagonal().max()
        factor, order, rank, _ = dpstrf(G, lower=1, tol=least)
        order = order - 1
        S = np.empty((len(G), rank))
        S[order] = np.tril(factor)[:, :rank]
        found = {first: (S[: len(H_1)], weights_1), second: (S[len(H_1) :], weights_2)}
        pivots = np.concatenate([H_1, H_2])[order[:rank]]
        return cls(rows, found, pivots, np.tril(factor[:rank, :rank]))

    @cached_property
    def offset(self) -> Array:
        """B'(0, ..., 0, 1): the last entry of a row h is 1."""
        ones = np.ones(len(self.triangle))
        return np.asarray(
            scipy.linalg.solve_triangular(self.triangle, ones, lower=True, check_finite=False)
        )

    def own(self, code: int) -> Array:
        """Return the moments of the rows of a class."""
        if code not in self._moments:
            self._moments[code] = gram(*self.found[code])
        return self._moments[code]

    def rest(self, task: PlaneTask) -> Array:
        """Return the moments of the rows of the other class."""
        assert task.rest is not None
        return self.own(task.rest)

    def graph_moments(self, code: int) -> Array | None:
        """Return the scatter of the graph on the rows of a class, which the offset has no part in.

        The rows are those of z: without the offset, whose entry in the basis is its vector.
        """
        if self.rows.graph is None:
            return None
        M = self.rows.class_laplacian(code).scatter(self.found[code][0] - self.offset)
        self.rows._known["joined", code] = M.any()
        return np.asarray(M)

    def rest_rows(self, task: PlaneTask) -> tuple[Array, Array]:
        """Return the rows of the other class and their weights."""
        assert task.rest is not None
        return self.found[task.rest]

    def lift(self, v: Array) -> Array:
        """Return B v."""
        shares = scipy.linalg.solve_triangular(
            self.triangle, v, lower=True, trans=1, check_finite=False
        )
        return np.asarray(shares @ self.pivots)


def weighted_squares(block: Block, factors: Array) -> float:
    """Return the sum of the squared lengths of the rows of a block, with all weights."""
    lengths = np.einsum("ij,ij->i", block.Z, block.Z)
    return float((block.weights * factors[block.codes]) @ lengths)


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


def rest_rows(
    block: Block, task: PlaneTask, factors: Array, basis: TikhonovBasis
) -> tuple[Array, Array]:
    """Return the rows h of a block that a plane is to be far from, and their weights."""
    others = np.flatnonzero(task.is_against(block.codes))
    weights = block.weights[others] * factors[block.codes[others]]
    return extended(block.Z[others], basis), weights


def plane_heights(
    block: Block,
    normals: Array,
    offsets: Array,
    tasks: Sequence[PlaneTask],
    factors: Array,
    basis: TikhonovBasis,
) -> Heights:
    """Return where the rows of a block lie above planes, class by class."""
    n_planes = len(tasks)
    low, high = np.full(n_planes, np.inf), np.full(n_planes, -np.inf)
    sums, sizes = np.zeros((2, n_planes))
    owns = np.array([task.own for task in tasks])
    rests = np.array([-1 if task.rest is None else task.rest for task in tasks])
    for code in np.unique(block.codes):
        members = np.flatnonzero(block.codes == code)
        about = np.flatnonzero((owns == code) | (rests == code) | (rests == -1))
        heights = basis.rows(block.Z[members]) @ normals[about].T + offsets[about]
        low[about] = np.minimum(low[about], heights.min(axis=0))
        high[about] = np.maximum(high[about], heights.max(axis=0))
        weights = block.weights[members] * factors[code]
        against = owns[about] != code
        sums[about[against]] += weights @ heights[:, against]
        sizes[about[against]] += weights @ np.abs(heights[:, against])
    return Heights(low, high, sums, sizes)


def extended(Z: Array, basis: TikhonovBasis) -> Array:
    """Return the rows h of rows z."""
    return np.column_stack([basis.rows(Z), np.ones(len(Z))])


def _scatter(c: Coordinates, factors: Array) -> Array:
    """Return Z'Z with the weights of the classes."""
    if (factors == 1.0).all():
        return c.total
    return total(c.blocks.map(weighted_scatter, factors))


def _size(c: Coordinates, factors: Array) -> float:
    return float(c.weights @ factors[np.asarray(c.codes)])


def _sizes(c: Coordinates, factors: Array) -> Array:
    counted = c.weights > 0
    codes = np.asarray(c.codes)[counted]
    return np.bincount(codes, c.weights[counted] * factors[codes], minlength=len(factors))


def _itself(block: Block) -> Block:
    return block
