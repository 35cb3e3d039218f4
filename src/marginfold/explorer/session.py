"""A session: one table, its split, its fits and edits, behind one door.

`Session.handle` takes the name of a call and its parameters and returns a body and arrays; server,
widget and exported file are transports around it.  Nothing here knows of the web.
"""

from __future__ import annotations

import logging
import threading
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from html import escape
from typing import Any

import numpy as np

from marginfold._version import __version__
from marginfold.data.catalogue import catalogue, status
from marginfold.data.columns import decoded
from marginfold.errors import CancelledError, InvalidInputError, MarginfoldError
from marginfold.estimators.pushes import row_pushes
from marginfold.explorer import fits
from marginfold.explorer.bodies import NOTHING, map_body, told
from marginfold.explorer.calls import checked
from marginfold.explorer.exports import MEDIA, exported, file_name, picture
from marginfold.explorer.frames import frame, quantised
from marginfold.explorer.jobs import Job, Workers
from marginfold.explorer.kept import Kept
from marginfold.explorer.methods import (
    METHODS,
    estimator_of,
    listed_methods,
    method_named,
    planned,
    settings_of,
)
from marginfold.explorer.one_file import FILE_DIGITS, KeptAnswer, coarser, one_file, without_server
from marginfold.explorer.source import script
from marginfold.explorer.table import Table, open_sent, open_table, prepared_table
from marginfold.linalg.tall import Array

Answer = tuple[dict[str, Any], dict[str, Array]]
"""The body and the arrays of an answer."""

WEIGHTS = [0.0, *np.logspace(-2, 2, 29).tolist()]
"""Graph weights of a path: none, and from a hundredth to a hundred, 1 in the middle."""

MOST_PUSHES = 12
"""Columns that are named as moving a row."""

MOST_CELLS = 500_000
"""Cells of the rows that one call asks for."""

MOST_MAPS = 4
"""Maps side by side on a page."""

QUICK_CELLS = 200_000
"""Cells of a table that is parted into features and labels here, and not by a worker: 150,000
numbers take 0.03 s of CPU time, 500,000 words 0.8 s."""

MOST_SUSPECTS = 500
"""Suspects that are listed."""

LOG = logging.getLogger(__name__)


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


@dataclass(frozen=True, eq=False)
class _Map:
    """A fitted map with what it was fitted to."""

    method: str
    params: dict[str, Any]
    fitted: fits.Fitted
    table: Table
    rows: fits.Rows


@dataclass(frozen=True, eq=False)
class _Path:
    """A path with what it was fitted to."""

    method: str
    params: dict[str, Any]
    found: fits.Path
    table: Table
    rows: fits.Rows


class Session:
    """One person's look at one table.

    Parameters
    ----------
    table : Table, optional
        What is looked at; without, a table is opened by a call.
    workers : Workers, optional
        Where fits run; of its own by default.
    given : Given, optional
        A map of the table that is fitted already; it is shown first.

    Examples
    --------
    >>> from marginfold.explorer import Session, Table, open_table
    >>> with Session(Table.of(open_table("iris"))) as session:
    ...     body, arrays = session.handle("fit", {"method": "LDA"})
    >>> body["axes"], arrays["coordinates"].shape
    (['LDA 1', 'LDA 2'], (150, 2))
    """

    def __init__(
        self,
        table: Table | None = None,
        *,
        workers: Workers | None = None,
        given: Given | None = None,
    ) -> None:
        self._given = given
        self._own = workers is None
        self.workers = Workers() if workers is None else workers
        self._lock = threading.RLock()
        self._maps: Kept[_Map] = Kept("map")
        self._paths: Kept[_Path] = Kept("path")
        self._table: Table | None = None
        self._labels = np.empty(0)
        self._edits: list[tuple[Array, Array]] = []
        if table is not None:
            self._take(table)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the workers, if they are the session's own."""
        if self._own:
            self.workers.close()

    def handle(self, name: str, params: Any, job: Job | None = None) -> Answer:
        """Answer a call.

        Parameters
        ----------
        name : str
            A name of `marginfold.explorer.calls.CALLS`.
        params : dict
            Checked against the registry.
        job : Job, optional
            Is told of progress, and ends the call when it is cancelled.

        Returns
        -------
        body : dict
        arrays : dict of arrays

        Raises
        ------
        MarginfoldError
            What cannot be done, and why.
        """
        arguments = checked(name, params)
        answer: Answer = getattr(self, f"_{name}")(job or Job(), **arguments)
        return answer

    def open_file(self, path: str, name: str, job: Job | None = None) -> Answer:
        """Open a file that was sent, under the name it had where it came from."""
        self._take(self.workers.run(job or Job(), open_sent, path, name))
        return self._describe(Job())

    # What is there ------------------------------------------------------------------------------

    @property
    def table(self) -> Table:
        """The table that is open."""
        if self._table is None:
            raise InvalidInputError("no table is open; drop a file, or choose a set.")
        return self._table

    @property
    def rows(self) -> fits.Rows:
        """The rows with their labels as they are now, edits included."""
        with self._lock:
            return fits.Rows(self.table.encoded, self._labels, self.table.held_out)

    def _take(self, table: Table) -> None:
        """Look at another table, or at the same one in another way."""
        _ = table.size  # what cannot be encoded is refused before anything changes
        with self._lock:
            self._table, self._labels = table, table.labels.copy()
            self._edits = []
            self._maps.clear()
            self._paths.clear()

    def _describe(self, job: Job) -> Answer:
        common = {"version": __version__, "sets": _sets(), "edits": len(self._edits)}
        common["edited"] = self._edited()
        if self._table is None:
            return NOTHING | common, {
                "class": np.empty(0, np.uint16),
                "held_out": np.empty(0, np.uint8),
                "number": np.empty(0, np.uint32),
            }
        table = self._table
        held_out, given = int(table.held_out.sum()), table.opened.held_out
        counts = np.bincount(table.codes, minlength=len(table.classes))
        body: dict[str, Any] = {
            "name": table.opened.name,
            "rows": len(table.opened.frame),
            "shown": len(table.labels),
            "sampled": table.sampled,
            "target": table.target,
            "targets": list(dict.fromkeys([*table.opened.targets, table.target])),
            "columns": table.listed_columns(),
            "classes": [
                {"name": str(name), "count": count}
                for name, count in zip(table.classes.tolist(), counts.tolist(), strict=True)
            ],
            "split": {
                "seed": table.seed,
                "share": table.share if given is None else held_out / len(table.labels),
                "training": len(table.labels) - held_out,
                "held_out": held_out,
            },
            "notes": list(table.notes),
            "methods": listed_methods(table.size),
        }
        if self._given is not None:
            body["methods"].insert(0, self._given.listed())
            body["maps"] = [{"method": name, "params": {}} for name in (self._given.name, "LSVA")]
        return body | common, {
            "class": self._codes(),
            "held_out": table.held_out.astype(np.uint8),
            "number": table.row_numbers.astype(np.uint32),
        }

    def _open_set(self, job: Job, name: str) -> Answer:
        if name not in _sets():
            raise InvalidInputError(f"there is no set {name!r}; there are {', '.join(_sets())}.")
        self._take(Table.of(open_table(name)))
        return self._describe(job)

    def _choose(
        self, job: Job, target: str | None, ignored: list[str], seed: int, held_out: float
    ) -> Answer:
        opened = self.table.opened
        wanted = opened, target or self.table.target, ignored, seed, float(held_out)
        if opened.frame.size > QUICK_CELLS:
            self._take(self.workers.run(job, prepared_table, *wanted))
        else:
            self._take(Table.of(*wanted))
        return self._describe(job)

    def _rows(self, job: Job, ids: list[int]) -> Answer:
        table = self.table
        _check_rows(ids, table)
        if len(ids) * table.opened.frame.shape[1] > MOST_CELLS:
            raise InvalidInputError(
                f"{len(ids)} rows are too many to list at once with "
                f"{table.opened.frame.shape[1]} columns; ask for fewer."
            )
        columns = [str(name) for name in table.opened.frame.columns]
        return {"columns": columns, "cells": table.cells(np.array(ids, dtype=int))}, {}

    # Fits ---------------------------------------------------------------------------------------

    def _plan(self, job: Job, method: str, params: Mapping[str, Any]) -> Answer:
        if self._given is not None and method == self._given.name:
            return {"seconds": [0.0, 0.0], "memory": 0, "text": "fitted already"}, {}
        cost = planned(method, self.table.size, params)
        return {"seconds": cost.seconds, "memory": cost.memory, "text": cost.text}, {}

    def _fit(self, job: Job, method: str, params: Mapping[str, Any]) -> Answer:
        table, rows = self.table, self.rows
        if self._given is not None and method == self._given.name:
            X = self._given.X[np.asarray(table.frame.index)]
            placed = fits.place(self._given.estimator, replace(rows, X=X))
            return self._keep(_Map(method, {}, placed, table, rows))
        estimator = estimator_of(method, table.size, params)
        fitted = self.workers.run(job, fits.fit_map, estimator, rows)
        settings = settings_of(method, table.size, params)
        return self._keep(_Map(method, settings, fitted, table, rows))

    def _keep(self, found: _Map) -> Answer:
        with self._lock:
            number = self._maps.add(found)
        return self._map_answer(number, found)

    def _map_answer(self, number: int, found: _Map) -> Answer:
        body = map_body(found.method, found.params, found.fitted, found.table.classes)
        coordinates = found.fitted.coordinates.astype(np.float32)
        return {"map": number} | body, {"coordinates": coordinates}

    def _path(self, job: Job, method: str, params: Mapping[str, Any]) -> Answer:
        if not method_named(method).path:
            raise InvalidInputError(f"{method} has no graph weight to go along; LSVA has.")
        table, rows = self.table, self.rows
        settings = settings_of(method, table.size, params)
        estimator = estimator_of(method, table.size, params)
        found = self.workers.run(job, fits.fit_path, estimator, rows, WEIGHTS)
        path = _Path(method, settings, found, table, rows)
        with self._lock:
            number = self._paths.add(path)
        return self._path_answer(number, path, settings["graph_weight"])

    def _path_answer(self, number: int, path: _Path, weight: float) -> Answer:
        here = np.abs(np.array(path.found.weights) - weight).argmin()
        body = {
            "path": number,
            "weights": path.found.weights,
            "errors": [told(error) for error in path.found.errors],
            "chosen": int(here),
            "axes": [f"{path.method} 1", f"{path.method} 2"],
            "seconds": path.found.seconds,
        }
        return body, quantised(path.found.coordinates)

    def _path_map(self, job: Job, path: int, index: int) -> Answer:
        found = self._paths.get(path)
        if index >= len(found.found.weights):
            raise InvalidInputError(
                f"path {path} has {len(found.found.weights)} steps, from 0; got index {index}."
            )
        settings = found.params | {"graph_weight": found.found.weights[index]}
        fitted = self.workers.run(job, fits.place, found.found.estimators[index], found.rows)
        return self._keep(_Map(found.method, settings, fitted, found.table, found.rows))

    def _control(self, job: Job, map: int) -> Answer:
        found = self._maps.get(map)
        if not METHODS[found.method].graph:
            raise InvalidInputError(f"{found.method} has no graph to permute; LSVA has.")
        estimator = estimator_of(found.method, found.table.size, found.params)
        result, Z = self.workers.run(job, fits.control_map, estimator, found.rows)
        body = {
            "sentence": result.verdict,
            "p_value": result.p_value,
            "observed": result.score,
            "permuted": result.permuted_scores.tolist(),
        }
        return body, {"coordinates": Z.astype(np.float32)}

    def _regions(self, job: Job, map: int, axes: list[int], classifier: str, size: int) -> Answer:
        found = self._maps.get(map)
        Z = found.fitted.coordinates
        _check_axes(axes, Z)
        drawn = self.workers.run(job, fits.draw_regions, classifier, Z[:, axes], found.rows, size)
        grid = np.searchsorted(found.table.classes, drawn.grid).astype(np.uint16)
        return {"extent": drawn.extent, "error": told(drawn.error)}, {"grid": grid}

    # One row ------------------------------------------------------------------------------------

    def _loadings(self, job: Job, map: int, row: int, axes: list[int]) -> Answer:
        found = self._maps.get(map)
        estimator, table = found.fitted.estimator, found.table
        if not hasattr(estimator, "loadings"):
            raise InvalidInputError(f"{found.method} has no loadings; a linear map has.")
        _check_rows([row], table)
        _check_axes(axes, found.fitted.coordinates)
        centre = table.encoded[found.rows.training].mean(axis=0)
        pushes = row_pushes(estimator, table.encoded[row], centre)[axes]
        names = np.array(table.feature_names, dtype=object)
        whole = {name: pushes[:, names == name].sum(axis=1) for name in dict.fromkeys(names)}
        largest = sorted(whole, key=lambda name: -float(np.abs(whole[name]).sum()))[:MOST_PUSHES]
        values = _row_values(table, row)
        columns = [
            {"name": name, "value": values[name], "push": whole[name].tolist()} for name in largest
        ]
        return {"columns": columns}, {}

    def _preimage(self, job: Job, map: int, at: list[float], axes: list[int]) -> Answer:
        found = self._maps.get(map)
        estimator, table = found.fitted.estimator, found.table
        if not hasattr(estimator, "inverse_transform"):
            raise InvalidInputError(
                f"{found.method} with these settings has no way back to rows; a linear map or one "
                "with the rbf kernel has."
            )
        components = axes or list(range(len(at)))
        if len(components) != len(at):
            raise InvalidInputError(f"preimage got {len(at)} numbers for {len(components)} axes.")
        row = estimator.inverse_transform([at], components)[0]
        values = decoded(table.encoder, row)
        nearest = np.linalg.norm(table.encoded - row, axis=1).argmin()
        original = _row_values(table, int(nearest))
        columns = [
            {"name": name, "value": value, "original": original[name]}
            for name, value in values.items()
        ]
        return {"columns": columns, "nearest": int(nearest)}, {}

    # Labels -------------------------------------------------------------------------------------

    def _suspects(self, job: Job, map: int) -> Answer:
        found = self._maps.get(map)
        estimator = estimator_of(found.method, found.table.size, found.params)
        suspects = self.workers.run(job, fits.find_suspects, estimator, found.rows)
        classes = found.table.classes
        labels = np.searchsorted(classes, found.rows.labels)
        suggested = np.searchsorted(classes, suspects.suggested)
        rows = [
            {"id": int(row), "label": int(labels[row]), "suggested": int(other), "margin": margin}
            for row, other, margin in zip(
                suspects.rows[:MOST_SUSPECTS], suggested, suspects.margins.tolist(), strict=False
            )
        ]
        n, n_training = len(suspects.rows), len(found.rows.training)
        sentence = (
            f"{n} of {n_training} training rows speak against their label when {found.method} has "
            "not seen them"
        )
        return {"rows": rows, "sentence": sentence}, {}

    def _relabel(self, job: Job, ids: list[int], label: int) -> Answer:
        table = self.table
        _check_rows(ids, table)
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
            changed = self._labels.copy()
            changed[rows] = table.classes[label]
            if len(np.unique(changed[~table.held_out])) < 2:
                raise InvalidInputError("two classes must be left among the training rows.")
            self._edits.append((rows, self._labels[rows]))
            self._labels = changed
            return self._edited_answer()

    def _undo(self, job: Job) -> Answer:
        with self._lock:
            if not self._edits:
                raise InvalidInputError("there is nothing to undo: no label was edited.")
            rows, before = self._edits.pop()
            self._labels = self._labels.copy()
            self._labels[rows] = before
            return self._edited_answer()

    def _edited_answer(self) -> Answer:
        return {"edits": len(self._edits), "edited": self._edited()}, {"class": self._codes()}

    def _edited(self) -> str | None:
        """Say how many labels differ from the table's."""
        if self._table is None:
            return None
        n = int((self._labels != self._table.labels).sum())
        if not n:
            return None
        return f"{n} {'label' if n == 1 else 'labels'} edited after looking"

    def _codes(self) -> Array:
        return np.searchsorted(self.table.classes, self._labels).astype(np.uint16)

    # Out of the session -------------------------------------------------------------------------

    def _code(self, job: Job, maps: list[dict[str, Any]]) -> Answer:
        table = self.table
        estimators = [
            (each["method"], estimator_of(each["method"], table.size, each.get("params", {})))
            for each in maps
        ]
        with self._lock:
            labels = self._labels
        return {"python": script(table, labels, estimators)}, {}

    def _export(self, job: Job, map: int, kind: str, axes: list[int], maps: list[int]) -> Answer:
        found = self._maps.get(map)
        Z = found.fitted.coordinates
        _check_axes(axes, Z)
        if kind == "html":
            text = self.page(maps or [map])
            body = {
                "file_name": file_name(found.table, found.method, kind),
                "media_type": MEDIA[kind],
            }
            return body, {"content": np.frombuffer(text.encode("utf-8"), dtype=np.uint8)}
        name, media, content = exported(
            *(kind, found.table, found.rows.labels, Z, found.method, found.fitted.estimator, axes)
        )
        body = {"file_name": name, "media_type": media}
        return body, {"content": np.frombuffer(content, dtype=np.uint8)}

    def page(self, maps: list[int] | None = None) -> str:
        """Return maps as one HTML file that needs no server.

        It has the rows, the paths over graph weights that were computed for these maps, and what
        stands in the legend; whatever would need a fit is left out.

        Parameters
        ----------
        maps : list of int, optional
            Numbers of fitted maps; by default the latest of each method, four at most. Where
            nothing was fitted yet, PCA and LSVA with its path are.
        """
        maps = maps or self._latest_maps()
        shown = [self._maps.get(number) for number in maps]
        body, arrays = self._describe(Job())
        asked = [{"method": each.method, "params": each.params} for each in shown]
        answers = [KeptAnswer("describe", {}, body | {"maps": asked}, arrays), self._kept_rows()]
        for number, each, request in zip(maps, shown, asked, strict=True):
            path = self._path_of(each)
            fit_body, coordinates = self._map_answer(number, each)
            kept = without_server(fit_body, path=path is not None)
            answers.append(KeptAnswer("fit", request, kept, coordinates))
            if path is not None:
                weight = each.params["graph_weight"]
                path_body, steps = self._path_answer(*path, weight)
                answers.append(KeptAnswer("path", request, path_body, coarser(steps)))
        return one_file(self.table.opened.name, answers, _plainly(shown))

    def _latest_maps(self) -> list[int]:
        if not self._maps.items():
            asked = self._describe(Job())[0].get("maps", [{"method": "PCA"}, {"method": "LSVA"}])
            for each in asked:
                body, _ = self.handle("fit", each)
                if body["has"]["path"]:
                    self.handle("path", {"method": body["method"], "params": body["params"]})
        latest = {each.method: number for number, each in reversed(self._maps.items())}
        return list(latest.values())[-MOST_MAPS:]

    def _kept_rows(self) -> KeptAnswer:
        """Return the cells of all rows, or of none where they are too many for a file."""
        table = self.table
        columns = [str(name) for name in table.opened.frame.columns]
        fits_in = len(table.labels) * len(columns) <= MOST_CELLS
        cells = table.cells(np.arange(len(table.labels)), FILE_DIGITS) if fits_in else []
        return KeptAnswer("rows", {}, {"columns": columns, "cells": cells}, {})

    def _path_of(self, shown: _Map) -> tuple[int, _Path] | None:
        """Return the path that a map lies on, if it was computed."""
        for number, path in self._paths.items():
            same = path.method == shown.method and path.rows.labels is shown.rows.labels
            if same and _but_weight(path.params) == _but_weight(shown.params):
                return number, path
        return None


def answered(call: Callable[[], Answer]) -> bytes:
    """Return the last frame of a call: its result, or the error that it ended with."""
    try:
        return frame("result", *call())
    except CancelledError as error:
        kind, message = "Cancelled", str(error)
    except MarginfoldError as error:
        kind, message = type(error).__name__, str(error)
    except MemoryError:
        kind, message = "TooLargeError", "the memory ran out; take fewer rows or another method."
    except Exception as error:
        LOG.exception("a call failed")
        kind, message = "Unexpected", f"{type(error).__name__}: {error}"
    return frame("error", {"type": kind, "message": message})


def _sets() -> list[str]:
    """Return the data sets that are there."""
    return [name for name in catalogue() if status(name) != "missing"]


def _check_rows(ids: list[int], table: Table) -> None:
    n = len(table.labels)
    if ids and max(ids) >= n:
        raise InvalidInputError(f"there is no row {max(ids)}; there are {n}, from 0.")


def _check_axes(axes: list[int], Z: Array) -> None:
    if max(axes) >= Z.shape[1]:
        raise InvalidInputError(f"there is no axis {max(axes)}; the map has {Z.shape[1]}, from 0.")


def _row_values(table: Table, row: int) -> dict[str, str]:
    names = [str(name) for name in table.opened.frame.columns]
    return dict(zip(names, table.cells(np.array([row]))[0], strict=True))


def _but_weight(params: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in params.items() if name != "graph_weight"}


def _plainly(maps: list[_Map]) -> str:
    """Return pictures of maps and their errors as HTML, for a page whose scripts are off."""
    parts = []
    for shown in maps:
        Z = fits.two_axes(shown.fitted.coordinates)
        drawing = picture("png", shown.table, shown.rows.labels, Z, shown.method, [0, 1])
        source = f"data:image/png;base64,{b64encode(drawing).decode()}"
        text = f"Held-out error: {shown.fitted.held_out_error}"
        image = f'<img alt="{escape(shown.method)}" src="{source}">'
        parts.append(f"<figure>{image}<figcaption>{escape(text)}</figcaption></figure>")
    return "".join(parts)
