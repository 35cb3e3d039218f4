"""Data sets are verified by a hash of their canonical text; nothing else is taken for one.

The canonical text has a header ``f1,...,fd,label``, then a line for each row; numbers in their
shortest form without ``.0``, nothing for a missing value, the label last, and a line feed after
every line.  The files in the wheel are this text, compressed, so ``gzip -dc iris.csv.gz |
sha256sum`` shows the hash.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import numpy as np
from numpy.typing import NDArray

from marginfold.data.catalogue import Entry
from marginfold.errors import InvalidInputError

MISSING = "nan"
"""How Python prints a missing value; the canonical text has nothing in its place."""


def verify(entry: Entry, X: NDArray[Any], y: NDArray[Any], origin: str) -> None:
    """Raise `InvalidInputError` that names the origin and the first thing that differs."""
    got, need = _first_difference(entry, X, y)
    if got != need:
        raise InvalidInputError(
            f"{origin} is not the data set {entry.name!r}: got {got}, need {need}. "
            f"Use the original file ({entry.source})."
        )


def _first_difference(entry: Entry, X: NDArray[Any], y: NDArray[Any]) -> tuple[str, str]:
    shape, expected = f"{X.shape[0]} x {X.shape[1]} values", f"{entry.rows} x {entry.columns}"
    if shape != f"{expected} values":
        return shape, f"{expected} values"
    missing = int(np.isnan(X).sum())
    if missing != entry.missing:
        return f"{missing} missing values", str(entry.missing)
    classes, counts = np.unique(y, return_counts=True)
    found = dict(zip(map(str, classes.tolist()), counts.tolist(), strict=True))
    if found != dict(entry.class_counts):
        return f"rows by class {found}", str(dict(entry.class_counts))
    digest = fingerprint(X, y)
    if digest != entry.sha256 and unordered_fingerprint(X, y) == entry.sha256_unordered:
        return "its rows in another order", f"the order {entry.order}"
    return f"values with hash {digest[:12]}", f"values with hash {entry.sha256[:12]}"


def canonical_text(X: NDArray[Any], y: NDArray[Any]) -> str:
    r"""Return the canonical text of a data set.

    Examples
    --------
    >>> import numpy as np
    >>> canonical_text(np.array([[1.0, 0.50], [np.nan, -0.0]]), np.array(["a", "b"]))
    'f1,f2,label\n1,0.5,a\n,0,b\n'
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
