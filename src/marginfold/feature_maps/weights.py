"""Sample weights: weight 2 is the row twice, weight 0 is the row absent."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils import check_array

from marginfold.errors import InvalidInputError
from marginfold.rows import Array


def check_weights(sample_weight: Any, n_rows: int) -> Array:
    """Return the weights as an array of n_rows numbers; None means ones."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = check_array(
        sample_weight, ensure_2d=False, dtype=np.float64, input_name="sample_weight"
    )
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise InvalidInputError(
            f"sample_weight has shape {weights.shape} for {n_rows} rows; give one weight per row."
        )
    if (weights < 0).any():
        raise InvalidInputError(
            f"sample_weight must not be negative; the smallest is {weights.min():g}."
        )
    if not weights.any():
        raise InvalidInputError("All sample weights are zero; at least two rows must count.")
    return weights
