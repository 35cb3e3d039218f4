"""How two fitted models are compared."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

CERTIFICATES = {"gap_", "n_iter_per_component_"}
"""What depends on how a solution was found, not on what it is."""


def assert_same_fit(found: BaseEstimator, expected: BaseEstimator, tolerance: float = 1e-8) -> None:
    """Compare all fitted arrays, numbers and labels; arrays relative to their largest entry."""
    names = {name for name in vars(expected) if name.endswith("_") and name not in CERTIFICATES}
    names -= {"scores_", "alphas_", "feature_map_", "n_iter_"}
    assert names <= set(vars(found)), names - set(vars(found))
    for name in sorted(names):
        _assert_close(name, getattr(found, name), getattr(expected, name), tolerance)


def _assert_close(name: str, found: Any, expected: Any, tolerance: float) -> None:
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), name
        return
    if not isinstance(expected, np.ndarray | float):
        assert found == expected, name
        return
    values = np.asarray(expected)
    if values.dtype.kind != "f":
        assert np.array_equal(found, values), name
        return
    size = float(np.abs(values).max(initial=0.0))
    assert np.shape(found) == values.shape, name
    assert np.abs(np.asarray(found) - values).max(initial=0.0) <= tolerance * size, name
