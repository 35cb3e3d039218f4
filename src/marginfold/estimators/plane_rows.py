"""The moments of rows that the nonparallel planes are made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np

from marginfold.estimators.embedded_rows import Coordinates
from marginfold.geometry.moments import class_sums
from marginfold.geometry.tikhonov import TikhonovBasis, tikhonov_basis
from marginfold.linalg.blocks import Block, total
from marginfold.linalg.tall import Array, gram


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
