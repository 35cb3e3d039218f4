"""Data that every estimator must refuse, and how a refusal is checked."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

N = 20
X = np.random.default_rng(0).standard_normal((N, 4))
Y = np.repeat([0, 1], N // 2)
K = X @ X.T


def changed(array, index, value):
    """Return a copy with other values in some places."""
    array = np.array(array, dtype=object if isinstance(value, str) else float)
    array[index] = value
    return array


def refuse(estimator, X, y, sample_weight, message, error=ValueError):
    """Expect an error with this message, and nothing changed; return the whole message."""
    copies = [None if part is None else np.array(part) for part in (X, y, sample_weight)]
    with pytest.raises(error, match=f"(?s){message}") as caught:
        estimator.fit(X, y, sample_weight=sample_weight)
    for part, copy in zip((X, y, sample_weight), copies, strict=True):
        if part is not None:
            np.testing.assert_array_equal(np.asarray(part), copy)
    return str(caught.value)


BAD_ROWS = {
    "NaN in X": (changed(X, (3, 1), np.nan), Y, None, "X contains NaN"),
    "infinity in X": (changed(X, (3, 1), np.inf), Y, None, "X contains infinity"),
    "text in X": (changed(X, (3, 1), "red"), Y, None, "could not convert string to float.*red"),
    "text column": (
        pd.DataFrame(X, columns=list("abcd")).assign(b="red"),
        Y,
        None,
        "could not convert string to float.*red",
    ),
    "complex X": (X * 1j, Y, None, "Complex data not supported"),
    "1-D X": (X[:, 0], Y, None, "Expected 2D array, got 1D array"),
    "3-D X": (X[:, :, None], Y, None, "Found array with dim 3.*<= 2"),
    "no rows": (X[:0], Y[:0], None, r"0 sample\(s\).*minimum of 2"),
    "one row": (X[:1], Y[:1], None, r"1 sample\(s\).*minimum of 2"),
    "no columns": (X[:, :0], Y, None, r"0 feature\(s\).*minimum of 1"),
    "weights too short": (X, Y, np.ones(3), r"sample_weight.*\(3,\).*20 rows"),
    "weights with two columns": (X, Y, np.ones((N, 2)), r"sample_weight.*\(20, 2\)"),
    "text weights": (X, Y, np.full(N, "heavy"), "sample_weight must be numbers.*heavy"),
    "negative weight": (X, Y, changed(np.ones(N), 2, -0.5), "sample_weight.*negative.*-0.5"),
    "NaN weight": (X, Y, changed(np.ones(N), 2, np.nan), "sample_weight contains NaN"),
    "infinite weight": (X, Y, changed(np.ones(N), 2, np.inf), "sample_weight contains infinity"),
    "zero weights": (X, Y, np.zeros(N), "sample weights are zero.*at least two"),
}
BAD_LABELS = {
    "y missing": (X, None, None, "requires y.*None"),
    "y too short": (X, Y[:-1], None, r"inconsistent numbers of samples: \[20, 19\]"),
    "y continuous": (X, X[:, 0], None, "Unknown label type: continuous"),
    "y with two columns": (X, np.c_[Y, Y], None, r"y should be a 1d array.*\(20, 2\)"),
    "NaN in y": (X, changed(Y, 3, np.nan), None, "y contains NaN"),
    "infinity in y": (X, changed(Y, 3, np.inf), None, "y contains infinity"),
    "one class": (X, np.full(N, 7), None, "1 class.*7.*at least 2"),
    "one class has weight": (X, Y, 1.0 - Y, "1 class.*0.*at least 2"),
}
