"""The passes of sifting over the rows: each a pure function of one block and a few numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from marginfold.linalg.blocks import Block
from marginfold.linalg.tall import Array

STEPS = np.linspace(0.0, 1.0, 17)[1:]
"""Points of the line search between two solutions."""

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""Odd multiplier that scatters row numbers evenly over 64 bits."""


@dataclass(frozen=True)
class BlockProblem:
    """One support vector problem on rows in blocks.

    Attributes
    ----------
    signs, costs : arrays of shape (n_classes + 1,)
        Label +1 or -1 and cost of each class; the cost of a row is its weight times that of its
        class.  The last entry, 0, belongs to rows without a class.
    scale : array of shape (r,)
    deflated : array of shape (r, k)
        As in `SVMBatch`.
    rotation : array of shape (r, r) or None
        The solver sees ``(z - centre) @ rotation * scale``.
    centre : array of shape (r,)
    """

    signs: Array
    costs: Array
    scale: Array
    deflated: Array
    rotation: Array | None
    centre: Array

    def features(self, Z: Array) -> Array:
        """Return rows as the solver sees them, before the scale."""
        Z = Z - self.centre
        return Z if self.rotation is None else Z @ self.rotation

    def plane(self, s: Array, intercept: float) -> Array:
        """Return [w ; b] with ``f = z'w + b`` for weights s of the solver."""
        w = self.scale * s
        w = w if self.rotation is None else self.rotation @ w
        return np.append(w, intercept - float(self.centre @ w))

    def weights(self, plane: Array) -> Array:
        """Return the solver's weights and bias [s ; b] of a plane."""
        w = plane[:-1]
        rotated = w if self.rotation is None else self.rotation.T @ w
        return np.append(rotated / self.scale, plane[-1] + float(self.centre @ w))


@dataclass(frozen=True)
class Question:
    """What a pass needs to know of one problem."""

    plane: Array
    delta: float
    signs: Array
    costs: Array
    extra: Array


@dataclass(frozen=True)
class Zone:
    """The rows near the margin, and the rows inside it added up for each side."""

    Z: Array
    codes: Array
    weights: Array
    numbers: Array
    mass: Array  # (2,) costs of the rows inside, labelled +1 and -1
    sums: Array  # (2, r) their coordinates times their costs

    @classmethod
    def joined(cls, parts: Sequence[Zone]) -> Zone:
        return cls(
            Z=np.concatenate([part.Z for part in parts]),
            codes=np.concatenate([part.codes for part in parts]),
            weights=np.concatenate([part.weights for part in parts]),
            numbers=np.concatenate([part.numbers for part in parts]),
            mass=np.sum([part.mass for part in parts], axis=0),
            sums=np.sum([part.sums for part in parts], axis=0),
        )

    def distance(self, problem: BlockProblem, plane: Array) -> float:
        """Return the distance to the margin of the row that is nearest to it."""
        t = problem.signs[self.codes] * (self.Z @ plane[:-1] + plane[-1]) - 1.0
        return float(np.abs(t).min(initial=np.inf))

    @property
    def is_empty(self) -> bool:
        """Whether every row is far outside, so that nothing is left to solve."""
        return not len(self.Z) and not self.mass.any()


def scores_of(block: Block, planes: Array) -> Array:
    """Return f for every problem, shape (n_problems, n)."""
    scores = planes[:, :-1] @ block.Z.T
    scores += planes[:, -1:]
    return np.asarray(scores)


def screen(block: Block, questions: Sequence[Question]) -> list[Zone]:
    """Part the rows of a block for each problem."""
    scores = scores_of(block, np.stack([q.plane for q in questions]))
    zones = []
    for q, t in zip(questions, scores, strict=True):
        y, c = q.signs[block.codes], block.weights * q.costs[block.codes]
        t *= y
        t -= 1.0
        near = (np.abs(t) <= q.delta) & (c > 0)
        near[_own(block, q.extra)] = True
        deep = (t < -q.delta) & ~near
        costs = np.zeros((2, len(t)))
        costs[0] = c * (deep & (y > 0))
        costs[1] = c * (deep & (y < 0))
        index = np.flatnonzero(near)
        zones.append(
            Zone(
                block.Z[index],
                block.codes[index],
                block.weights[index],
                index + block.start,
                costs.sum(axis=1),
                costs @ block.Z,
            )
        )
    return zones


def hinge(block: Block, planes: Array, signs: Array, costs: Array) -> Array:
    """Return the hinge loss of each plane on a block."""
    losses = np.empty(len(planes))
    for b, f in enumerate(scores_of(block, planes)):
        f *= signs[b][block.codes]
        np.subtract(1.0, f, out=f)
        np.maximum(f, 0.0, out=f)
        losses[b] = f @ (block.weights * costs[b][block.codes])
    return losses


def along(block: Block, questions: Sequence[Question], ends: Array) -> list[tuple[Array, Array]]:
    """Return the hinge loss on the way to other planes, and the rows that change sides."""
    starts = scores_of(block, np.stack([q.plane for q in questions]))
    moved = scores_of(block, ends)
    found = []
    for q, f, g in zip(questions, starts, moved, strict=True):
        y, c = q.signs[block.codes], block.weights * q.costs[block.codes]
        t, change = y * f - 1.0, y * (g - f)
        losses = np.array([c @ np.maximum(-t - step * change, 0.0) for step in STEPS])
        end = t + change
        changed = ((t > q.delta) & (end < 0)) | ((t < -q.delta) & (end > 0))
        found.append((losses, np.flatnonzero(changed & (c > 0)) + block.start))
    return found


def _own(block: Block, numbers: Array) -> Array:
    """Return the positions in a block of the rows with the given numbers (sorted)."""
    low, high = np.searchsorted(numbers, (block.start, block.start + len(block)))
    return np.asarray(numbers[low:high] - block.start)


def count(block: Block, n_classes: int) -> Array:
    """Return the number of rows with a positive weight in each class."""
    known = block.codes[(block.codes >= 0) & (block.weights > 0)]
    return np.bincount(known, minlength=n_classes)


def sample(block: Block, rates: Array) -> tuple[Array, Array, Array]:
    """Return some rows of a block, chosen by their numbers, with weights for all."""
    numbers = np.arange(block.start, block.start + len(block), dtype=np.uint64)
    with np.errstate(over="ignore"):
        place = (numbers * GOLDEN) / np.float64(2**64)
    own = rates[block.codes]
    index = np.flatnonzero((place < own) & (block.weights > 0))
    return block.Z[index], block.codes[index], block.weights[index] / own[index]
