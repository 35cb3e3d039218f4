"""Sample weights: weight 2 is the row twice, weight 0 is the row absent."""

from __future__ import annotations

from typing import Any

import numpy as np

from marginfold.errors import InvalidInputError
from marginfold.linalg.tall import Array

WEIGHT_RANGE = (1e-100, 1e100)
"""Positive weights outside this range would under- or overflow in products."""


def check_weights(sample_weight: Any, n_rows: int) -> Array:
    """Return the weights as an array of n_rows numbers; None means ones, a number means equal."""
    if sample_weight is None:
        return np.ones(n_rows)
    try:
        weights = np.array(sample_weight, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidInputError(f"sample_weight must hold numbers ({error}).") from error
    if weights.ndim == 0:
        weights = np.full(n_rows, float(weights))
    if weights.shape != (n_rows,):
        raise InvalidInputError(
            f"sample_weight has shape {weights.shape} for {n_rows} rows; give one weight per row."
        )
    if not np.isfinite(weights).all():
        what = "NaN" if np.isnan(weights).any() else "infinity"
        raise InvalidInputError(f"sample_weight contains {what}; every weight must be finite.")
    if (weights < 0).any():
        raise InvalidInputError(
            f"sample_weight must not be negative; the smallest is {weights.min():g}."
        )
    positive = weights[weights > 0]
    if not len(positive):
        raise InvalidInputError("All sample weights are zero; at least two rows must count.")
    low, high = WEIGHT_RANGE
    if positive.min() < low or positive.max() > high:
        raise InvalidInputError(
            f"sample_weight must lie between {low:g} and {high:g} (or be 0); it ranges from "
            f"{positive.min():g} to {positive.max():g}. Multiply all weights by a constant."
        )
    return weights
