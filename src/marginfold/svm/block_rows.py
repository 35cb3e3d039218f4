"""Rows in blocks as the solvers see them: what `SharedRows` and `SVMBatch` are for an array."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from marginfold.linalg.blocks import Block, RowBlocks
from marginfold.linalg.tall import Array
from marginfold.svm.sifting_passes import BlockProblem


@dataclass(frozen=True)
class BlockRows:
    """Labelled rows in blocks; rows without a class or weight take no part.

    Attributes
    ----------
    blocks : RowBlocks
    rotation : array of shape (r, r) or None
        The solver sees ``(z - centre) @ rotation``.
    centre : array of shape (r,)
        The mean labelled row.
    variances : array of shape (r,)
        Variances of the rotated features.
    class_means : array of shape (n_classes, r)
        Weighted mean of each class, rotated and centred.
    class_weights : array of shape (n_classes,)
        Summed weights of each class.
    """

    blocks: RowBlocks
    rotation: Array | None
    centre: Array
    variances: Array
    class_means: Array
    class_weights: Array

    @classmethod
    def of(cls, blocks: RowBlocks, rotation: Array | None, n_classes: int) -> BlockRows:
        """Look at all rows twice: for the means, then for the scatter about them."""
        counts, sums, masses, class_sums = (
            np.sum(part, axis=0) for part in zip(*blocks.map(label_sums, n_classes), strict=True)
        )
        centre = sums / counts
        covariance = np.sum(blocks.map(label_scatter, centre), axis=0) / counts
        means = class_sums / masses[:, None] - centre
        if rotation is None:
            return cls(blocks, None, centre, covariance.diagonal().copy(), means, masses)
        variances = np.einsum("ji,jk,ki->i", rotation, covariance, rotation)
        return cls(blocks, rotation, centre, variances, means @ rotation, masses)

    @property
    def n_columns(self) -> int:
        return len(self.centre)


def label_sums(block: Block, n_classes: int) -> tuple[Array, Array, Array, Array]:
    """Return number and sum of the labelled rows, and weights and weighted sums by class."""
    labelled = _labelled(block)
    Z, codes, weights = block.Z[labelled], block.codes[labelled], block.weights[labelled]
    indicator = np.zeros((n_classes, len(Z)))
    indicator[codes, np.arange(len(Z))] = weights
    return np.asarray(float(len(Z))), Z.sum(axis=0), indicator.sum(axis=1), indicator @ Z


def label_scatter(block: Block, centre: Array) -> Array:
    """Return the scatter of the labelled rows about a centre."""
    Z = block.Z[_labelled(block)] - centre
    return np.asarray(Z.T @ Z)


def _labelled(block: Block) -> Array:
    return np.flatnonzero((block.codes >= 0) & (block.weights > 0))


@dataclass(frozen=True)
class BlockBatch:
    """Support vector problems on rows in blocks.

    ``signs`` and ``costs`` have shape (B, n_classes): the cost of a row is its weight times that
    of its class.  ``scale`` and ``deflated`` are those of `SVMBatch`.
    """

    rows: BlockRows
    signs: Array
    costs: Array
    scale: Array
    deflated: Array

    def __len__(self) -> int:
        return len(self.signs)

    @cached_property
    def smaller_sides(self) -> Array:
        """The total cost of the cheaper side of each problem."""
        costs = self.costs * self.rows.class_weights
        above = self.signs > 0
        positive = np.where(above, costs, 0.0).sum(axis=1)
        return np.minimum(positive, np.where(above, 0.0, costs).sum(axis=1))

    def problem(self, b: int) -> BlockProblem:
        return BlockProblem(
            signs=np.append(self.signs[b], 0.0),
            costs=np.append(self.costs[b], 0.0),
            scale=self.scale[b],
            deflated=self.deflated[b],
            rotation=self.rows.rotation,
            centre=self.rows.centre,
        )
