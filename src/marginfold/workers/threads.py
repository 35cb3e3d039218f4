"""One thread of linear algebra for each call, because many calls run side by side."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

from threadpoolctl import ThreadpoolController, threadpool_limits


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit BLAS and OpenMP to one thread; calls in several threads of a process may overlap.

    A limit of OpenMP belongs to the thread that sets it, one of BLAS to the whole process: that one
    is lifted when the last call has ended.
    """
    with threadpool_limits(1, user_api="openmp"), _BLAS.hold():
        yield


class _BlasLimit:
    """One limit for all calls that run at the same time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._users = 0
        self._limiter: Any = None

    @contextmanager
    def hold(self) -> Iterator[None]:
        with self._lock:
            if self._users == 0:
                self._limiter = ThreadpoolController().limit(limits=1, user_api="blas")
            self._users += 1
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if self._users == 0:
                    self._limiter.restore_original_limits()


_BLAS = _BlasLimit()
