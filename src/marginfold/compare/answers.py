"""What a method answered for every held-out row, read from the records."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from marginfold.compare.measures import WRONG
from marginfold.compare.race import counted_records
from marginfold.compare.runs import Comparison
from marginfold.linalg.tall import Array
from marginfold.protocols.records import RecordStore
from marginfold.protocols.splits import folds


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
        _, test = folds(table.labels, comparison.n_folds, record.seed)[record.fold]
        answer = dict(zip(record.params["rows"], record.params["said"], strict=True))
        given = table.labels[test].copy()
        wrong = np.isin(test, record.params["rows"])
        given[wrong] = [table.classes[answer[row]] for row in test[wrong].tolist()]
        rows.append(test)
        said.append(given)
    none = np.zeros(0, dtype=np.intp)
    every = np.concatenate([none, *rows])
    return Answers(every, table.labels[every], np.concatenate([table.labels[none], *said]))
