"""One measured line of the table: what, ours, theirs, and how it was taken."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from marginfold import InteriorPoint

REPEATS = 5
"""Measurements of which the median is taken."""


@dataclass(frozen=True)
class Times:
    """CPU seconds of repeated runs."""

    seconds: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    def __str__(self) -> str:
        if len(self.seconds) == 1:
            return f"{self.median:.3g} s (measured once)"
        return f"{self.median:.3g} s ({min(self.seconds):.3g} to {max(self.seconds):.3g})"


@dataclass(frozen=True)
class Line:
    """A line of the table; without times the texts stand alone."""

    work: str
    ours: Times | str
    theirs: Times | str = "-"
    ratio: str = "-"
    needed: str = "-"

    def __str__(self) -> str:
        ratio = self.ratio
        if ratio == "-" and isinstance(self.ours, Times) and isinstance(self.theirs, Times):
            ratio = ratio_text(self.ours, self.theirs)
        return f"| {self.work} | {self.ours} | {self.theirs} | {ratio} | {self.needed} |"


def ratio_text(ours: Times, theirs: Times) -> str:
    """Return theirs / ours, with the widest range that the measured times allow."""
    low = min(theirs.seconds) / max(ours.seconds)
    high = max(theirs.seconds) / min(ours.seconds)
    return f"{theirs.median / ours.median:.3g}x ({low:.3g} to {high:.3g})"


def cpu(work: Callable[[], object]) -> float:
    """Return the CPU seconds of one call, of all threads of this process."""
    start = time.process_time()
    work()
    return time.process_time() - start


def repeat(work: Callable[[], object], repeats: int = REPEATS) -> Times:
    """Return the CPU seconds of repeated calls, after one that is not counted."""
    work()
    return Times(tuple(cpu(work) for _ in range(repeats)))


def in_turn(works: Sequence[Callable[[], object]], repeats: int = REPEATS) -> list[Times]:
    """Measure several calls in turn, so that a slow moment of the machine meets all of them."""
    for work in works:
        work()
    rounds = [[cpu(work) for work in works] for _ in range(repeats)]
    return [Times(tuple(column)) for column in zip(*rounds, strict=True)]


def load_compiled() -> None:
    """Compile, or load what was compiled, if numba is here: short fits do not by themselves."""
    if find_spec("numba"):
        InteriorPoint(compiled=True).solve([[0.0], [1.0], [2.0]], [-1, -1, 1], 1.0)
