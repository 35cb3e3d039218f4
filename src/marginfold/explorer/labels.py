"""The labels of a table as they are now: edits of training rows, counted, and taken back."""

from __future__ import annotations

import threading

import numpy as np

from marginfold.errors import InvalidInputError
from marginfold.explorer.frames import Answer
from marginfold.explorer.table import Table
from marginfold.linalg.tall import Array


class Labels:
    """Labels with their edits; those of held-out rows are locked.

    Parameters
    ----------
    table : Table

    Attributes
    ----------
    now : array
        Never written to: an edit makes another one.

    Examples
    --------
    >>> from marginfold.explorer import Table, open_table
    >>> from marginfold.explorer.labels import Labels
    >>> labels = Labels(Table.of(open_table("iris")))
    >>> labels.change([0], 2)
    >>> labels.sentence
    '1 label edited after looking'
    """

    def __init__(self, table: Table) -> None:
        self._table = table
        self._lock = threading.Lock()
        self._edits: list[tuple[Array, Array]] = []
        self.now = table.labels.copy()

    @property
    def codes(self) -> Array:
        """The place of each row's class among the classes."""
        return np.searchsorted(self._table.classes, self.now).astype(np.uint16)

    @property
    def sentence(self) -> str | None:
        """How many labels differ from the table's."""
        n = int((self.now != self._table.labels).sum())
        if not n:
            return None
        return f"{n} {'label' if n == 1 else 'labels'} edited after looking"

    def told(self) -> dict[str, int | str | None]:
        """Return how many edits there are, and what is said of them."""
        return {"edits": len(self._edits), "edited": self.sentence}

    def answer(self) -> Answer:
        """Return the labels as the answer to an edit."""
        return self.told(), {"class": self.codes}

    def change(self, ids: list[int], label: int) -> None:
        """Give training rows another label."""
        table = self._table
        if label >= len(table.classes):
            raise InvalidInputError(
                f"there is no class {label}; there are {len(table.classes)}, from 0."
            )
        locked = int(table.held_out[ids].sum())
        if locked:
            raise InvalidInputError(
                f"{locked} of {len(ids)} rows are held out, and their labels are locked: they "
                "judge the map. Take training rows only."
            )
        with self._lock:
            rows = np.unique(ids)
            changed = self.now.copy()
            changed[rows] = table.classes[label]
            if len(np.unique(changed[~table.held_out])) < 2:
                raise InvalidInputError("two classes must be left among the training rows.")
            self._edits.append((rows, self.now[rows]))
            self.now = changed

    def undo(self) -> None:
        """Take the last edit back."""
        with self._lock:
            if not self._edits:
                raise InvalidInputError("there is nothing to undo: no label was edited.")
            rows, before = self._edits.pop()
            changed = self.now.copy()
            changed[rows] = before
            self.now = changed
