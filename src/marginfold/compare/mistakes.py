"""Where a method is wrong: which classes it confuses, and which rows it never gets right.

Its answers for held-out rows are read from the records.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginfold.compare.measures import WRONG
from marginfold.compare.race import counted_records
from marginfold.compare.runs import Comparison
from marginfold.linalg.tall import Array
from marginfold.protocols.records import RecordStore

MOST_ROWS = 20
"""Rows that are always wrong, at most, that are listed."""


@dataclass(frozen=True)
class WrongRow:
    """A row that was answered wrongly whenever it was held out.

    Attributes
    ----------
    row : int
        Its number in the file, from 1.
    label : str
    answer : str
        The wrong answer given most often.
    times : int
        How often it was held out.
    """

    row: int
    label: str
    answer: str
    times: int


@dataclass(frozen=True)
class Mistakes:
    """What held-out rows of one method were answered.

    Attributes
    ----------
    method : str
    classes : list
        The classes in order.
    counts : array of shape (n_classes, n_classes)
        How many answers were given: classes of the rows by classes answered, all repeats together.
    always : list of WrongRow
        The first `MOST_ROWS` rows that were always wrong, in the order of the file.
    n_always : int
        How many there are in all.
    """

    method: str
    classes: Sequence[Any]
    counts: Array
    always: Sequence[WrongRow]
    n_always: int

    @property
    def errors(self) -> Array:
        """The share of wrong answers for each class; NaN where none was held out."""
        total = self.counts.sum(axis=1)
        right = np.diag(self.counts)
        return 1.0 - np.divide(right, total, out=np.full(len(total), np.nan), where=total > 0)


def find_mistakes(
    method: str, rows: Sequence[int], labels: Sequence[Any], answers: Sequence[Any]
) -> Mistakes:
    """Count the answers to held-out rows.

    Parameters
    ----------
    method : str
    rows : sequence of int
        Number of each row in the file; one that was held out in several repeats is there as often.
    labels, answers : sequences
        Its class, and what the method said.

    Examples
    --------
    >>> from marginfold.compare.mistakes import find_mistakes
    >>> found = find_mistakes("LDA", [1, 2, 1, 2], ["a", "b", "a", "b"], ["a", "a", "b", "a"])
    >>> found.counts.tolist(), found.always
    ([[1, 1], [2, 0]], [WrongRow(row=2, label='b', answer='a', times=2)])
    """
    classes = sorted(set(labels) | set(answers))
    place = {label: k for k, label in enumerate(classes)}
    counts = np.zeros((len(classes), len(classes)), dtype=int)
    given: dict[int, Counter[Any]] = {}
    truth = dict(zip(rows, labels, strict=True))
    for row, label, answer in zip(rows, labels, answers, strict=True):
        counts[place[label], place[answer]] += 1
        given.setdefault(row, Counter())[answer] += 1
    always = [
        WrongRow(row, str(truth[row]), str(_commonest(answers_)), answers_.total())
        for row, answers_ in sorted(given.items())
        if truth[row] not in answers_
    ]
    return Mistakes(method, classes, counts, always[:MOST_ROWS], len(always))


def _commonest(answers: Counter[Any]) -> Any:
    """Return the answer given most often, of several the first in order."""
    most = max(answers.values())
    return min(answer for answer, n in answers.items() if n == most)


@dataclass(frozen=True)
class Answers:
    """The answers for held-out rows, of all folds one after the other.

    Attributes
    ----------
    rows : array of int
        Numbers of the rows among those compared; each as often as it was held out.
    labels, said : arrays
        Their classes, and what the method answered.
    """

    rows: Array
    labels: Array
    said: Array


def held_out_answers(comparison: Comparison, store: RecordStore, method: str) -> Answers:
    """Return the answers of a method on all folds that count."""
    table = comparison.source.read()
    rows, said = [], []
    for record in counted_records(comparison, store, method=method, metric=WRONG):
        _, test = table.folds(comparison.n_folds, record.seed)[record.fold]
        answer = dict(zip(record.params["rows"], record.params["said"], strict=True))
        given = table.labels[test].copy()
        wrong = np.isin(test, record.params["rows"])
        given[wrong] = [table.classes[answer[row]] for row in test[wrong].tolist()]
        rows.append(test)
        said.append(given)
    none = np.zeros(0, dtype=np.intp)
    every = np.concatenate([none, *rows])
    return Answers(every, table.labels[every], np.concatenate([table.labels[none], *said]))
