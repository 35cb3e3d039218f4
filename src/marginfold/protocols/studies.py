"""A study: how much of it is run, and the tasks that are computed and stored as a whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from marginfold.errors import InvalidParameterError

KEY_LENGTH = 24
"""Characters of a task's key: 96 bits of the hash."""


class Skip(Exception):  # noqa: N818 - not an error: a result that says why there is none
    """Raised by a task's work when there is nothing to measure; the message is the reason."""


@dataclass(frozen=True)
class Task:
    """What is measured, on what, and the function that does it.

    Attributes
    ----------
    study : str
        "lsva", "wsvda", "gesvm", "mrgepsvm", "svmpca" or "compare".
    dataset, method, protocol : str
    seed, fold : int
        -1 where there is none.
    options : mapping
        Whatever else decides the result, JSON-ready: grids, number of folds, hash of the data.
    work : callable
        A function of a module (so that it reaches another process) which takes the task and
        returns a list of `Result`, or raises `Skip`.
    may_compile : bool
        Whether long work may be compiled.  That takes some seconds in each process, which a run of
        minutes does not miss; a comparison that must answer soon is better off without.
    """

    study: str
    dataset: str
    method: str
    protocol: str = ""
    seed: int = -1
    fold: int = -1
    options: Mapping[str, Any] = field(default_factory=dict)
    work: Callable[[Task], Any] = field(kw_only=True, compare=False)
    may_compile: bool = field(default=False, kw_only=True, compare=False)

    @cached_property
    def key(self) -> str:
        """Hash of what tells the task from others; the settings of a method are not in it."""
        identity = [
            *(self.study, self.dataset, self.method, self.protocol),
            *(self.seed, self.fold, dict(self.options)),
        ]
        text = json.dumps(identity, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return hashlib.sha256(text.encode()).hexdigest()[:KEY_LENGTH]

    def __str__(self) -> str:
        parts = [self.study, self.dataset, self.method, self.protocol]
        parts += [f"seed {self.seed}"] * (self.seed >= 0) + [f"fold {self.fold}"] * (self.fold >= 0)
        return " ".join(part for part in parts if part)


def select_tasks(
    study: str, table: str | None, names: Sequence[str], make: Callable[[str], Iterable[Task]]
) -> list[Task]:
    """Return the tasks of all tables and figures of a paper, or of one; each task once."""
    if table is not None and table not in names:
        raise InvalidParameterError(
            f"{study} has no table or figure {table!r}; choose from {', '.join(map(repr, names))}."
        )
    wanted = names if table is None else [table]
    tasks = (replace(task, may_compile=True) for name in wanted for task in make(name))
    return list({task.key: task for task in tasks}.values())


@dataclass(frozen=True)
class StudySize:
    """Sizes of a study.

    Attributes
    ----------
    name : str
    n_seeds : int
        Partitions of the rows, seeds 0, 1, ...
    n_weights : int
        Values of the graph weight with the linear kernel, spread evenly over the logarithm.
    n_kernel_weights : int
        The same with other kernels, where each costs more.
    n_kernel_components : int
        Most components with other kernels.
    controls : bool
        Whether honest selection and permuted graphs are measured beside the papers' protocols.
    """

    name: str
    n_seeds: int
    n_weights: int
    n_kernel_weights: int
    n_kernel_components: int
    controls: bool

    @property
    def seeds(self) -> range:
        """The seeds."""
        return range(self.n_seeds)

    def weights(self, low: float, high: float, *, kernel: bool = False) -> list[float]:
        """Return graph weights between two, rounded so that records name them alike."""
        n = self.n_kernel_weights if kernel else self.n_weights
        return [float(f"{weight:.6g}") for weight in np.geomspace(low, high, n)]


STUDY_SIZES = {
    "quick": StudySize("quick", 2, 5, 3, 5, controls=False),
    "standard": StudySize("standard", 5, 8, 3, 8, controls=True),
    "full": StudySize("full", 5, 30, 30, 12, controls=True),
}
"""quick: minutes, to look; standard: five seeds, coarse grids; full: the papers' grids."""


def study_size(name: str) -> StudySize:
    """Return a scale by its name."""
    if name not in STUDY_SIZES:
        raise InvalidParameterError(f"scale must be one of {list(STUDY_SIZES)}; got {name!r}.")
    return STUDY_SIZES[name]
