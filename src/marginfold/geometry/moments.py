"""Sums over all rows as sums over blocks of rows, so that it does not matter where the rows are.

The functions that are handed to ``blocks.map`` are pure: one block and small arguments in, a small
array out.  Scatters are taken about means that are known, in a second pass: the difference of two
large moments would lose the digits of rows far from the origin.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from marginfold.linalg.tall import TIE, Array, Block, RowBlocks, gram, row_blocks, total
from marginfold.validation.rows import UNLABELLED


@dataclass(frozen=True)
class TotalScatter:
    """The scatter ``S = sum_i weight_i (z_i - mean)(z_i - mean)'`` of rows, by its products.

    Attributes
    ----------
    blocks : RowBlocks
    rotation : array of shape (r, k) or None
        S is that of the rows ``z rotation``.
    """

    blocks: RowBlocks
    rotation: Array | None = None

    @cached_property
    def mean(self) -> Array:
        """The weighted mean row, before the rotation."""
        sums = total(self.blocks.map(row_sums))
        return sums[:-1] / sums[-1] if sums[-1] > 0 else np.zeros(len(sums) - 1)

    def along(self, W: Array) -> Array:
        """Return S W, in one pass over the rows.

        It is ``Z'(Z W)``: with the matrix S, scores that vary little would be lost in rounding.
        """
        turned = W if self.rotation is None else self.rotation @ W
        found = total(self.blocks.map(scatter_along, self.mean, turned))
        return found if self.rotation is None else self.rotation.T @ found

    def dual(self, w: Array) -> Array:
        """Return ``S w / w'S w``: orthogonal to it are the directions uncorrelated with w."""
        product = self.along(w[:, None])[:, 0]
        return np.asarray(product / (w @ product))


def class_means(blocks: RowBlocks, n_classes: int) -> tuple[Array, Array]:
    """Return the weight of each class and its weighted mean row (0 for one without weight)."""
    sums = total(blocks.map(class_sums, n_classes))
    weights = sums[:, -1]
    return weights, sums[:, :-1] / np.where(weights > 0, weights, 1.0)[:, None]


def scatter(blocks: RowBlocks) -> Array:
    """Return the weighted Z'Z."""
    return total(blocks.map(plain_scatter))


def within_scatter(blocks: RowBlocks, means: Array) -> Array:
    """Return the scatter of the labelled rows about the mean row of their class."""
    return total(blocks.map(scatter_about, means))


def spread(blocks: RowBlocks) -> Array:
    """Return the scatter of all rows about their weighted mean."""
    return total(blocks.map(scatter_about_mean, TotalScatter(blocks).mean))


def label_variances(blocks: RowBlocks, n_classes: int, rotation: Array | None = None) -> Array:
    """Return the weighted variances of the labelled rows along the columns of a rotation.

    None stands for the axes.
    """
    weights, means = class_means(blocks, n_classes)
    mean = weights @ means / weights.sum()
    everywhere = np.broadcast_to(mean, means.shape)
    return total(blocks.map(squares_about, everywhere, rotation)) / weights.sum()


def within_fourth(blocks: RowBlocks, means: Array) -> float:
    """Return the weighted sum of ``|z - mean of its class|^4`` over the labelled rows."""
    return float(sum(blocks.map(fourth_about, means)))


def score_signs(blocks: RowBlocks, W: Array) -> Array:
    """Return the sign of the score of largest size along each column of W.

    The rule of `linalg.tall.column_signs` for the scores Z W, which need not be in one place.
    """
    high, low = np.max(np.stack(blocks.map(score_ends, W)), axis=0)
    largest, other = np.maximum(high, low), np.minimum(high, low)
    signs = np.where(high >= low, 1.0, -1.0) * (largest > 0)
    tied = (other >= (1.0 - TIE) * largest) & (largest > 0)
    if tied.any():
        units = np.where(largest > 0, largest, 1.0)
        skews = total(blocks.map(score_cubes, W, units))
        first = np.stack(blocks.map(first_signs, W, units))
        found = first[(first != 0).argmax(axis=0), np.arange(len(signs))]
        decided = np.abs(skews) > TIE * blocks.n_rows
        even = np.where(found != 0, found, signs)
        signs = np.where(tied, np.where(decided, np.sign(skews), even), signs)
    return np.asarray(signs)


def class_sums(block: Block, n_classes: int) -> Array:
    """Return the weighted sum of the rows of each class, and its weight in the last column."""
    known = block.codes != UNLABELLED
    codes, weights = np.where(known, block.codes, 0), np.where(known, block.weights, 0.0)
    shape = (n_classes, len(codes))
    members = sp.csc_array((weights, codes, np.arange(len(codes) + 1)), shape=shape)
    sizes = np.bincount(codes, weights, minlength=n_classes)
    return np.column_stack([members @ block.Z, sizes])


def row_sums(block: Block) -> Array:
    """Return the weighted sum of all rows, and their weight as the last entry."""
    return np.append(block.weights @ block.Z, block.weights.sum())


def plain_scatter(block: Block) -> Array:
    """Return the weighted Z'Z of a block."""
    return gram(block.Z, block.weights)


def scatter_about(block: Block, means: Array) -> Array:
    """Return the scatter of the labelled rows of a block about the given means of classes."""
    S = np.zeros((means.shape[1], means.shape[1]))
    for rows, weights in _centred(block, means):
        S += gram(rows, weights)  # sum_c Z_c'Z_c - s_c m_c m_c', without the cancellation
    return S


def scatter_about_mean(block: Block, mean: Array) -> Array:
    """Return the scatter of all rows of a block about one mean."""
    everyone = np.zeros(len(block), dtype=np.intp)
    return scatter_about(Block(block.Z, everyone, block.weights, block.start), mean[None])


def scatter_along(block: Block, mean: Array, W: Array) -> Array:
    """Return what the rows of a block add to the scatter about a mean, times W."""
    product = np.zeros(W.shape)
    for piece in row_blocks(*block.Z.shape):
        rows = block.Z[piece] - mean
        product += rows.T @ (block.weights[piece, None] * (rows @ W))
    return product


def squares_about(block: Block, means: Array, rotation: Array | None) -> Array:
    """Return the weighted sum of squares of the labelled rows about the given means of classes."""
    squares = np.zeros(means.shape[1] if rotation is None else rotation.shape[1])
    for rows, weights in _centred(block, means):
        turned = rows if rotation is None else rows @ rotation
        squares += weights @ turned**2
    return squares


def fourth_about(block: Block, means: Array) -> float:
    """Return the weighted sum of fourth powers of the distances from the means of classes."""
    powers = [
        float(weights @ np.einsum("ij,ij->i", rows, rows) ** 2)
        for rows, weights in _centred(block, means)
    ]
    return sum(powers)


def score_ends(block: Block, W: Array) -> Array:
    """Return the size of the largest score along each column, and that of the smallest below 0."""
    scores = block.Z @ W
    return np.stack([scores.max(axis=0, initial=0.0), -scores.min(axis=0, initial=0.0)])


def score_cubes(block: Block, W: Array, units: Array) -> Array:
    """Return the sum of the cubes of the scores, in the given units."""
    return np.asarray((((block.Z @ W) / units) ** 3).sum(axis=0))


def first_signs(block: Block, W: Array, sizes: Array) -> Array:
    """Return the sign of the first score of the given size in each column, 0 if there is none."""
    scores = block.Z @ W
    reached = np.abs(scores) >= sizes
    first = scores[reached.argmax(axis=0), np.arange(W.shape[1])]
    return np.where(reached.any(axis=0), np.sign(first), 0.0)


def _centred(block: Block, means: Array) -> Iterator[tuple[Array, Array]]:
    """Yield the labelled rows about the means of their classes, in pieces, with their weights."""
    known = block.codes != UNLABELLED
    for piece in row_blocks(*block.Z.shape):
        kept: Any = piece
        if not known[piece].all():
            kept = piece.start + np.flatnonzero(known[piece])
        rows = means[block.codes[kept]]
        yield np.subtract(block.Z[kept], rows, out=rows), block.weights[kept]
