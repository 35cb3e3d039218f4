"""One text for one data set, whoever wrote the file: what hashes are taken of.

A header ``f1,...,fd,label``, then a line for each row; numbers in their shortest form without
``.0``, nothing for a missing value, the label last, and a line feed after every line. The files in
the wheel are this text, compressed, so ``gzip -dc iris.csv.gz | sha256sum`` shows the hash.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

MISSING = "nan"
"""How Python prints a missing value; the canonical text has nothing in its place."""


def canonical_text(X: NDArray[Any], y: NDArray[Any]) -> str:
    """Return the canonical text of a data set.

    Examples
    --------
    >>> import numpy as np
    >>> canonical_text(np.array([[1.0, 0.50], [np.nan, -0.0]]), np.array(["a", "b"]))
    'f1,f2,label\\n1,0.5,a\\n,0,b\\n'
    """
    return "\n".join([header(X.shape[1]), *_lines(X, y), ""])


def header(columns: int) -> str:
    """Return the first line: f1, f2, ..., label."""
    return ",".join([*(f"f{j}" for j in range(1, columns + 1)), "label"])


def fingerprint(X: NDArray[Any], y: NDArray[Any]) -> str:
    """Return the hash of the canonical text: of the values and the order of the rows."""
    return sha256(canonical_text(X, y).encode()).hexdigest()


def unordered_fingerprint(X: NDArray[Any], y: NDArray[Any]) -> str:
    """Return a hash of the rows that does not depend on their order."""
    return sha256("\n".join(sorted(_lines(X, y))).encode()).hexdigest()


def _lines(X: NDArray[Any], y: NDArray[Any]) -> Iterator[str]:
    """Yield the rows; each distinct value is printed once, which images are full of."""
    values, places = np.unique(X + 0.0, return_inverse=True)  # -0.0 becomes 0.0
    texts = np.array([_number(value) for value in values.tolist()], dtype=object)
    for row, label in zip(texts[places].reshape(X.shape).tolist(), y.tolist(), strict=True):
        yield ",".join([*row, str(label)])


def _number(value: float) -> str:
    text = repr(value)
    return "" if text == MISSING else text.removesuffix(".0")
