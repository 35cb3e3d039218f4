"""Which columns matter: how many more errors a method makes when one of them is shuffled."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from marginfold.linalg.tall import Array
from marginfold.protocols.records import Record, Result
from marginfold.protocols.studies import Skip

if TYPE_CHECKING:
    import pandas as pd

IMPORTANCE = "importance"
"""The metric of a record that holds the errors added by one shuffle of one column, and the protocol
of its task."""

REPEATS = 5
"""Shuffles of each column."""

MOST_ANSWERS = 100_000
"""Answers that are asked for in all: fewer held-out rows are taken if there are many columns.  A
support vector machine of 4000 vectors in 100 dimensions gives so many in about 20 s."""

LEAST_ROWS = 100
"""With fewer held-out rows than this, of more, shuffling says too little: it is left out."""


@dataclass(frozen=True)
class Importance:
    """The columns of a method, those that matter most first, or the reason why it is not known."""

    method: str
    columns: Sequence[ColumnImportance] = ()
    reason: str = ""


@dataclass(frozen=True)
class ColumnImportance:
    """Points of error that shuffling a column adds: mean and standard deviation over shuffles."""

    column: str
    mean: float
    spread: float


def held_out_rows(n_rows: int, n_columns: int) -> int:
    """Return how many held-out rows are shuffled; refuse a table of too many columns.

    Examples
    --------
    >>> from marginfold.compare.importance import held_out_rows
    >>> held_out_rows(900, 13), held_out_rows(900, 100)
    (900, 200)
    """
    allowed = MOST_ANSWERS // (REPEATS * n_columns)
    if allowed < min(n_rows, LEAST_ROWS):
        most = MOST_ANSWERS // (REPEATS * min(n_rows, LEAST_ROWS))
        raise Skip(
            f"the table has {n_columns} columns: shuffling each of more than {most} takes too long"
        )
    return min(n_rows, allowed)


def added_errors(
    answer: Callable[[pd.DataFrame], Array], frame: pd.DataFrame, labels: Array, seed: int
) -> Array:
    """Return the share of errors that each shuffle of each column adds, columns by shuffles.

    Parameters
    ----------
    answer : callable
        From rows of the table to classes.
    frame : DataFrame
        Held-out rows.
    labels : array
        Their classes.
    seed : int
        Of the shuffles: column by column, each `REPEATS` times.
    """
    import pandas

    rng = np.random.default_rng(seed)
    n = len(frame)
    before = float(np.mean(answer(frame) != labels))
    added = np.empty((frame.shape[1], REPEATS))
    for j, name in enumerate(frame.columns):
        shuffled = pandas.concat([frame] * REPEATS, ignore_index=True)
        order = np.concatenate([rng.permutation(n) for _ in range(REPEATS)])
        shuffled[name] = frame[name].to_numpy()[order]
        wrong = answer(shuffled) != np.tile(labels, REPEATS)
        added[j] = wrong.reshape(REPEATS, n).mean(axis=1) - before
    return added


def importance_results(columns: Sequence[str], added: Array) -> list[Result]:
    """Return one result for each shuffle of each column."""
    return [
        Result(IMPORTANCE, float(value), {"column": str(name), "shuffle": shuffle})
        for name, values in zip(columns, added, strict=True)
        for shuffle, value in enumerate(values)
    ]


def read_importance(method: str, records: Sequence[Record]) -> Importance:
    """Return what the records of its task say."""
    values: dict[str, list[float]] = {}
    reason = ""
    for r in records:
        reason = reason or r.reason
        if r.metric == IMPORTANCE and r.value is not None:
            values.setdefault(r.params["column"], []).append(100.0 * r.value)
    found = [
        ColumnImportance(name, float(np.mean(v)), float(np.std(v, ddof=1)))
        for name, v in values.items()
    ]
    return Importance(method, sorted(found, key=lambda one: -one.mean), reason)
