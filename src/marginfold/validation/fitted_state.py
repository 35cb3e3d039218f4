"""Atomic fits: one that fails leaves the estimator as it was, another leaves nothing old."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def atomic_fit(estimator: object) -> Iterator[None]:
    """Drop the attributes of an earlier fit, and restore them if the body raises."""
    before = dict(vars(estimator))
    for name in before:
        if name.endswith("_") and not name.startswith("_"):
            delattr(estimator, name)
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise
