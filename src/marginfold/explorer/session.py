"""A session: one table, its split, its fits and edits, behind one door.

`Session.handle` takes the name of a call and its parameters and returns a body and arrays; server,
widget and exported file are transports around it.  Nothing here knows of the web.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from marginfold._version import __version__
from marginfold.data.catalogue import catalogue, status
from marginfold.data.columns import decoded
from marginfold.errors import InvalidInputError
from marginfold.explorer import fits
from marginfold.explorer.calls import checked
from marginfold.explorer.exports import MEDIA, exported, file_name, script, session_file
from marginfold.explorer.frames import Answer
from marginfold.explorer.jobs import Job, Workers
from marginfold.explorer.methods import (
    METHODS,
    estimator_of,
    listed_methods,
    method_named,
    planned,
    settings_of,
)
from marginfold.explorer.pushes import largest_pushes
from marginfold.explorer.state import (
    NOTHING,
    Given,
    Kept,
    Labels,
    ShownMap,
    ShownPath,
    told,
    told_errors,
)
from marginfold.explorer.table import Table, open_sent, open_table, prepared_table
from marginfold.linalg.tall import Array

WEIGHTS = [0.0, *np.logspace(-2, 2, 29).tolist()]
"""Graph weights of a path: none, and from a hundredth to a hundred, 1 in the middle."""

MOST_CELLS = 500_000
"""Cells of the rows that one call asks for."""

MOST_MAPS = 4
"""Maps side by side on a page."""

QUICK_CELLS = 200_000
"""Cells of a table that is parted into features and labels here, and not by a worker: 150,000
numbers take 0.03 s of CPU time, 500,000 words 0.8 s."""

WORTH_COMPILING = 20.0
"""Seconds of a fit, in the geometric middle of its plan, from which it may compile what it runs:
that takes 5 to 10 s once for an installation, and 1 s in every process."""

MOST_SUSPECTS = 500
"""Suspects that are listed."""


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
        self._maps: Kept[ShownMap] = Kept("map")
        self._paths: Kept[ShownPath] = Kept("path")
        self._table: Table | None = None
        self._labels: Labels | None = None
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
            return fits.Rows(self.table.encoded, self._edited.now, self.table.held_out)

    def _take(self, table: Table) -> None:
        """Look at another table, or at the same one in another way."""
        _ = table.size  # what cannot be encoded is refused before anything changes
        with self._lock:
            self._table, self._labels = table, Labels(table)
            self._maps.clear()
            self._paths.clear()

    def _describe(self, job: Job) -> Answer:
        common: dict[str, Any] = {"version": __version__, "sets": _sets()}
        if self._table is None or self._labels is None:
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
        return body | common | self._labels.told(), {
            "class": self._labels.codes,
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
            return self._keep(ShownMap(method, {}, placed, table, rows))
        estimator = estimator_of(method, table.size, params)
        fitted = self._run(job, method, params, fits.fit_map, estimator, rows)
        settings = settings_of(method, table.size, params)
        return self._keep(ShownMap(method, settings, fitted, table, rows))

    def _run(self, job: Job, method: str, params: Mapping[str, Any], *work: Any) -> Any:
        """Have a worker compute with a method; only long work may wait for a compiler."""
        least, most = planned(method, self.table.size, params).seconds
        prompt = [] if (least * most) ** 0.5 > WORTH_COMPILING else [fits.promptly]
        return self.workers.run(job, *prompt, *work)

    def _keep(self, found: ShownMap) -> Answer:
        with self._lock:
            number = self._maps.add(found)
        return found.answer(number)

    def _path(self, job: Job, method: str, params: Mapping[str, Any]) -> Answer:
        if not method_named(method).path:
            raise InvalidInputError(f"{method} has no graph weight to go along; LSVA has.")
        table, rows = self.table, self.rows
        settings = settings_of(method, table.size, params)
        estimator = estimator_of(method, table.size, params)
        found = self._run(job, method, params, fits.fit_path, estimator, rows, WEIGHTS)
        path = ShownPath(method, settings, found, table, rows)
        with self._lock:
            number = self._paths.add(path)
        return path.answer(number, settings["graph_weight"])

    def _path_map(self, job: Job, path: int, index: int) -> Answer:
        found = self._paths.get(path)
        if index >= len(found.found.weights):
            raise InvalidInputError(
                f"path {path} has {len(found.found.weights)} steps, from 0; got index {index}."
            )
        settings = found.params | {"graph_weight": found.found.weights[index]}
        fitted = self.workers.run(job, fits.place, found.found.estimators[index], found.rows)
        return self._keep(ShownMap(found.method, settings, fitted, found.table, found.rows))

    def _errors(self, job: Job, map: int, axes: list[int]) -> Answer:
        found = self._maps.get(map)
        _check_axes(axes, found.fitted.coordinates)
        return told_errors(found.errors(axes)), {}

    def _control(self, job: Job, map: int) -> Answer:
        found = self._maps.get(map)
        if not METHODS[found.method].graph:
            raise InvalidInputError(f"{found.method} has no graph to permute; LSVA has.")
        estimator = estimator_of(found.method, found.table.size, found.params)
        result, Z = self._run(
            job, found.method, found.params, fits.control_map, estimator, found.rows
        )
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
        drawn = self.workers.run(
            *(job, fits.promptly, fits.draw_regions, classifier, Z[:, axes], found.rows, size)
        )
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
        return {"columns": largest_pushes(found, row, axes)}, {}

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
        original = table.row_values(int(nearest))
        columns = [
            {"name": name, "value": value, "original": original[name]}
            for name, value in values.items()
        ]
        return {"columns": columns, "nearest": int(nearest)}, {}

    # Labels -------------------------------------------------------------------------------------

    def _suspects(self, job: Job, map: int) -> Answer:
        found = self._maps.get(map)
        estimator = estimator_of(found.method, found.table.size, found.params)
        suspects = self._run(
            job, found.method, found.params, fits.find_suspects, estimator, found.rows
        )
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
        _check_rows(ids, self.table)
        with self._lock:
            self._edited.change(ids, label)
            return self._edited.answer()

    def _undo(self, job: Job) -> Answer:
        with self._lock:
            self._edited.undo()
            return self._edited.answer()

    @property
    def _edited(self) -> Labels:
        """The labels of the table that is open."""
        _ = self.table
        assert self._labels is not None
        return self._labels

    # Out of the session -------------------------------------------------------------------------

    def _code(self, job: Job, maps: list[dict[str, Any]]) -> Answer:
        with self._lock:
            table, labels = self.table, self._edited.now
        estimators = [
            (each["method"], estimator_of(each["method"], table.size, each.get("params", {})))
            for each in maps
        ]
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
        shown = {number: self._maps.get(number) for number in maps}
        paths = [
            next((each for each in self._paths.items() if each[1].holds(one)), None)
            for one in shown.values()
        ]
        return session_file(self._describe(Job()), list(shown.items()), paths)

    def _latest_maps(self) -> list[int]:
        if not self._maps.items():
            asked = self._describe(Job())[0].get("maps", [{"method": "PCA"}, {"method": "LSVA"}])
            for each in asked:
                body, _ = self.handle("fit", each)
                if body["has"]["path"]:
                    self.handle("path", {"method": body["method"], "params": body["params"]})
        latest = {each.method: number for number, each in reversed(self._maps.items())}
        return list(latest.values())[-MOST_MAPS:]


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
