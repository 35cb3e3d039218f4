"""The hinge problem of a plane: the rest of the rows at distance 1, in memory or in blocks.

With the moments of the own class factored, ``P + dT T = F F'``, the rest is a support vector
problem without a bias on the rows ``u = -F^-1 h``.  Each row with its mirror image makes that a
problem with one, whose optimal bias is 0 (see `marginfold.svm.box_qp`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

import numpy as np
import scipy.linalg

from marginfold.estimators.plane_rows import PlaneRows, extended
from marginfold.geometry.tikhonov import TikhonovBasis
from marginfold.linalg.blocks import Block, RowBlocks
from marginfold.linalg.tall import Array
from marginfold.svm import BlockBatch, BlockRows, InteriorPoint, SVMSolution
from marginfold.svm.box_qp import BoxSolution, solve_box_qp

T = TypeVar("T")


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
    batch = BlockBatch(
        rows=BlockRows.of(mirrored, None, 2),
        signs=np.array([[1.0, -1.0]]),
        costs=np.full((1, 2), cost),
        scale=np.ones((1, len(F))),
        deflated=np.zeros((1, len(F), 0)),
    )
    return solver.solve_batch(batch)[0]


def _itself(block: Block) -> Block:
    return block
