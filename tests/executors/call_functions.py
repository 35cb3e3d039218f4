"""Calls that reach other processes: some die, raise or cannot travel."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_info

from marginfold.executors import run_calls

KILLER = 5
"""The item that takes its process down."""


class OddError(Exception):
    """An error that pickle can write and not read."""

    def __init__(self, first: int, second: int) -> None:
        super().__init__(f"{first} and {second}")


def square(item: int, pause: float = 0.0) -> int:
    time.sleep(pause)
    return item * item


def logged_square(item: int, folder: str, pause: float = 0.0) -> int:
    """Leave a file for each beginning of a call, then return the square."""
    (Path(folder) / f"{item}-{os.getpid()}-{time.monotonic_ns()}").touch()
    return square(item, pause)


def logged(folder: Path) -> list[int]:
    """Return the items of all calls that were begun."""
    return sorted(int(path.name.split("-")[0]) for path in folder.iterdir())


def killer(item: int, pause: float = 0.0) -> int:
    if item == KILLER:
        os.kill(os.getpid(), signal.SIGKILL)
    return square(item, pause)


def fail(item: int) -> int:
    if item == KILLER:
        raise ZeroDivisionError(f"item {item}")
    return item


def fail_oddly(item: int) -> int:
    raise OddError(item, 2)


def return_a_lock(item: int) -> object:
    return threading.Lock()


def process(item: int) -> int:
    time.sleep(0.05)
    return os.getpid()


def threads(item: int) -> list[int]:
    """Return the numbers of threads that linear algebra may use now."""
    np.linalg.norm(np.eye(3) @ np.eye(3))
    time.sleep(0.05)
    return [library["num_threads"] for library in threadpool_info()]


def thread_limits() -> list[int]:
    """Return the numbers of threads that linear algebra may use outside of calls."""
    return [library["num_threads"] for library in threadpool_info()]


class Rows:
    """Rows that count how often they are sent."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values
        self.journeys = 0

    def __reduce__(self) -> tuple:
        self.journeys += 1
        return Rows, (self.values,)


def sum_of_rows(item: int, rows: Rows) -> float:
    return float(rows.values[item].sum())


def main() -> None:
    """Make calls from a script that does not protect its work."""
    dict(run_calls(square, range(4), n_jobs=2))
