"""What a session holds: the maps and paths that it shows, the labels as they are now.

Each map and path stands with what it was fitted to, and says what an answer tells of it in plain
values.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np

from marginfold.errors import InvalidInputError
from marginfold.explorer import fits
from marginfold.explorer.frames import Answer, quantised
from marginfold.explorer.methods import METHODS
from marginfold.explorer.table import Table
from marginfold.linalg.tall import Array
from marginfold.protocols.statistics import Share

NOTHING: dict[str, Any] = {
    "name": "",
    "rows": 0,
    "shown": 0,
    "sampled": None,
    "target": None,
    "targets": [],
    "columns": [],
    "classes": [],
    "split": {"seed": 0, "share": 0.0, "training": 0, "held_out": 0},
    "notes": [],
    "methods": [],
    "edits": 0,
    "edited": None,
}
"""What is described where no table is open."""

KEPT = 32
"""Maps and paths that a session keeps; older ones are fitted again where they are wanted."""

K = TypeVar("K")


@dataclass(frozen=True, eq=False)
class ShownMap:
    """A fitted map with what it was fitted to."""

    method: str
    params: dict[str, Any]
    fitted: fits.Fitted
    table: Table
    rows: fits.Rows

    def answer(self, number: int) -> Answer:
        """Return it as the answer to a fit."""
        body = map_body(self.method, self.params, self.fitted, self.table.classes)
        coordinates = self.fitted.coordinates.astype(np.float32)
        return {"map": number} | body, {"coordinates": coordinates}

    def errors(self, axes: Sequence[int]) -> fits.Errors:
        """Return the errors of neighbors on some axes (0.02 s at 5000 rows)."""
        return fits.count_errors(self.fitted.coordinates[:, sorted(set(axes))], self.rows)


@dataclass(frozen=True, eq=False)
class ShownPath:
    """A path with what it was fitted to."""

    method: str
    params: dict[str, Any]
    found: fits.Path
    table: Table
    rows: fits.Rows

    def answer(self, number: int, weight: float) -> Answer:
        """Return it as the answer to a call; the step nearest to the weight is the chosen one."""
        here = np.abs(np.array(self.found.weights) - weight).argmin()
        body = {
            "path": number,
            "weights": self.found.weights,
            "errors": [told(error) for error in self.found.errors],
            "chosen": int(here),
            "axes": [f"{self.method} 1", f"{self.method} 2"],
            "seconds": self.found.seconds,
        }
        return body, quantised(self.found.coordinates)

    def holds(self, shown: ShownMap) -> bool:
        """Return whether a map lies on the path."""
        same = self.method == shown.method and self.rows.labels is shown.rows.labels
        return same and _but_weight(self.params) == _but_weight(shown.params)


def _but_weight(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name != "graph_weight"}


def map_body(
    method: str, params: dict[str, Any], fitted: fits.Fitted, classes: Array
) -> dict[str, Any]:
    """Return what is told of a fitted map beside its coordinates."""
    estimator, k = fitted.estimator, fitted.coordinates.shape[1]
    known = METHODS.get(method)  # None for one that was fitted before
    return {
        "method": method,
        "params": params,
        "axes": [f"{method} {axis + 1}" for axis in range(k)],
        "gain": _listed(estimator, "gain_", "explained_variance_ratio_"),
        "new_gain": _listed(estimator, "new_gain_"),
        "errors": {
            **told_errors(fitted.drawn),
            "all": told_errors(fitted.whole),
            "neighbors": fits.NEIGHBORS,
        },
        "seconds": fitted.seconds,
        "gap": _largest(estimator, "gap_"),
        "notes": fitted.notes,
        "has": {
            "loadings": known is not None and hasattr(estimator, "loadings"),
            "preimage": known is not None and hasattr(estimator, "inverse_transform"),
            "path": known is not None and known.path,
            "control": known is not None and known.graph and params.get("graph_weight") != 0,
            "suspects": known is not None,
        },
        "anchors": _anchors(estimator, classes),
    }


def told_errors(errors: fits.Errors) -> dict[str, Any]:
    """Return both errors of a map."""
    return {"held_out": told(errors.held_out), "training": told(errors.training)}


def told(share: Share) -> dict[str, Any]:
    """Return an error with its interval and its sentence."""
    return {
        "value": share.value,
        "low": share.low,
        "high": share.high,
        "n": share.n,
        "text": str(share),
    }


def _listed(estimator: Any, *names: str) -> list[float] | None:
    """Return the first of these attributes that there is."""
    for name in names:
        if hasattr(estimator, name):
            return np.asarray(getattr(estimator, name), dtype=float).tolist()
    return None


def _largest(estimator: Any, name: str) -> float | None:
    values = _listed(estimator, name)
    return max(values) if values else None


def _anchors(estimator: Any, classes: Array) -> list[dict[str, Any]] | None:
    if not hasattr(estimator, "anchors_"):
        return None
    places = np.searchsorted(classes, estimator.classes_)
    return [
        {"class": int(place), "at": at.tolist()}
        for place, at in zip(places, estimator.anchors_, strict=True)
    ]


@dataclass(frozen=True, eq=False)
class Given:
    """A map that was fitted before the session, and the rows as it takes them.

    Attributes
    ----------
    name : str
        What it is called among the methods.
    estimator : estimator
        Fitted, with ``transform``.
    X : array
        All rows of the table, before its own treatment of columns.
    """

    name: str
    estimator: Any
    X: Any

    @classmethod
    def of(cls, estimator: Any, X: Any, held_out: Any = None) -> Given:
        """Return a fitted map with its rows, the held-out ones last."""
        if not hasattr(estimator, "transform"):
            raise InvalidInputError(
                f"{type(estimator).__name__} has no transform; a map places rows by it."
            )
        rows = np.asarray(X) if held_out is None else np.vstack([X, held_out[0]])
        return cls(f"{type(estimator).__name__} as fitted", estimator, rows)

    def listed(self) -> dict[str, Any]:
        """Return it as a page is told of methods."""
        title = f"{self.name}: it was fitted before, perhaps to some of these rows"
        plain = {"group": "map", "path": False, "graph": False, "controls": [], "why_not": None}
        return {"name": self.name, "title": title, "plan": "fitted already", **plain}


class Kept(Generic[K]):
    """The latest values by number.

    Examples
    --------
    >>> from marginfold.explorer.state import Kept
    >>> maps = Kept[str]("map")
    >>> maps.get(maps.add("first"))
    'first'
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._values: OrderedDict[int, K] = OrderedDict()
        self._number = 0

    def add(self, value: K) -> int:
        """Keep a value and return its number; forget the oldest of too many."""
        self._number += 1
        self._values[self._number] = value
        while len(self._values) > KEPT:
            self._values.popitem(last=False)
        return self._number

    def get(self, number: int) -> K:
        """Return a value that is still there."""
        if number not in self._values:
            raise InvalidInputError(
                f"there is no {self._what} {number} (any more); fit it again on this table."
            )
        return self._values[number]

    def items(self) -> list[tuple[int, K]]:
        """Return what is kept with its numbers, latest first."""
        return list(reversed(self._values.items()))

    def clear(self) -> None:
        """Forget all values; numbers go on."""
        self._values.clear()


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
    >>> from marginfold.explorer.state import Labels
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
