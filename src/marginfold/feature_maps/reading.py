"""Rows as the feature maps take them: arrays or sparse matrices in the memory of this process."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import validate_data

from marginfold.validation.row_types import refuse_lazy

FIT_INSTEAD = "give it as the kernel of an estimator, which fits it on the cluster if it can"
"""What to do with a dask collection that a map is to be fitted on."""

MAP_INSTEAD = "go chunk by chunk with X.map_blocks(map.transform)"
"""What to do with a dask collection that is to be mapped."""


def read_rows(feature_map: Any, X: Any, *, reset: bool = True) -> Any:
    """Return finite rows, dense or CSR, whose features are learned or (``reset=False``) known."""
    refuse_lazy(X, feature_map, FIT_INSTEAD if reset else MAP_INSTEAD)
    return validate_data(feature_map, X, accept_sparse="csr", dtype=np.float64, reset=reset)
