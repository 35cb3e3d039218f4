"""A task: the smallest piece of a study that is computed, stored and resumed as a whole."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

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
    """

    study: str
    dataset: str
    method: str
    protocol: str = ""
    seed: int = -1
    fold: int = -1
    options: Mapping[str, Any] = field(default_factory=dict)
    work: Callable[[Task], Any] = field(kw_only=True, compare=False)

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
