"""The bias in the middle of its optimal values, for rows in blocks.

When no row is on the margin the hinge loss is flat in the bias, up to the next row that comes to
it.  A reduced problem does not know all rows and sees a longer interval than there is.
"""

from __future__ import annotations

import numpy as np

from marginfold.linalg.blocks import Block, RowBlocks
from marginfold.linalg.tall import Array
from marginfold.svm.problem import EPS


def bias_shifts(blocks: RowBlocks, planes: Array, signs: Array, costs: Array) -> Array:
    """Return what moves each plane's bias to the middle of its flat interval; 0 without one."""
    parts = np.stack(blocks.map(flat_interval, planes, signs, costs))
    slope, total = parts[:, :, 0].sum(axis=0), parts[:, :, 1].sum(axis=0)
    down, up = parts[:, :, 2].max(axis=0), parts[:, :, 3].min(axis=0)
    flat = np.abs(slope) <= blocks.n_rows * EPS * total  # rounding of the summed costs
    flat &= np.isfinite(down) & np.isfinite(up)
    return np.where(flat, 0.5 * (np.where(flat, down, 0.0) + np.where(flat, up, 0.0)), 0.0)


def flat_interval(block: Block, planes: Array, signs: Array, costs: Array) -> Array:
    """Return slope, total cost, and the changes of the bias at which a row comes to its margin.

    Shape (n_problems, 4); the changes are the nearest below and above 0.
    """
    found = np.empty((len(planes), 4))
    for b, f in enumerate(planes[:, :-1] @ block.Z.T + planes[:, -1:]):
        c = block.weights * costs[b][block.codes]
        y = signs[b][block.codes]
        taken = c > 0
        f, c, y = f[taken], c[taken], y[taken]
        changes = y - f  # y (f + change) = 1
        inside = y * changes > 0
        found[b] = (
            -float((y * c)[inside].sum()),
            float(c.sum()),
            changes[changes <= 0].max(initial=-np.inf),
            changes[changes >= 0].min(initial=np.inf),
        )
    return found
