"""Limit the threads of a small search: waking them takes longer than the search."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from threadpoolctl import ThreadpoolController


@contextmanager
def one_openmp_thread(small: bool) -> Iterator[None]:
    """Run a small search on one OpenMP thread; the former number is restored afterwards.

    OpenMP keeps the number for each calling thread, so searches in other threads are not touched.
    """
    if not small:
        yield
        return
    with _controller().limit(limits=1, user_api="openmp"):
        yield


@cache
def _controller() -> Any:
    return ThreadpoolController()
