"""The explorer in a notebook: the same page over the same session, through anywidget's messages."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from marginfold.errors import InvalidInputError
from marginfold.explorer.frames import answered, frame
from marginfold.explorer.jobs import Job, Workers
from marginfold.explorer.session import Session
from marginfold.explorer.state import Given
from marginfold.explorer.table import array_table
from marginfold.runtime.files import write_file

STATIC = Path(__file__).parent / "static"

EDITS = ("relabel", "undo")
"""Calls after which labels are others."""


class Explorer(anywidget.AnyWidget):
    """Linked maps of labelled rows in a notebook.

    ``Explorer(X, y)`` holds a part of the rows out, and draws it; ``Explorer(fitted, X, y)`` shows
    a fitted map first.  Every fit sees training rows only.

    Parameters
    ----------
    *rows : X, y or fitted, X, y
        Rows (an array or a data frame) and their labels; before them, if wanted, an estimator that
        is fitted already and has ``transform``.
    held_out : tuple (X, y), optional
        Rows that no fit sees; by default 30 % of the rows, drawn by class.
    seed : int, default=0
        Of that draw.

    Attributes
    ----------
    selection : list of int
        The selected rows, numbered as in X, then as in held_out; set it to select rows on all maps.
    weight : float or None
        The graph weight of the first map that has one; set it to move its slider.
    labels : list
        The labels as they are now, edits included.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from marginfold.explorer import Explorer
    >>> X, y = load_iris(return_X_y=True)
    >>> explorer = Explorer(X, y)
    >>> len(explorer.labels), explorer.selection
    (150, [])
    >>> explorer.close()
    """

    _esm = STATIC / "widget.js"
    _css = STATIC / "page.css"

    selection = traitlets.List(traitlets.Int()).tag(sync=True)
    weight = traitlets.Float(None, allow_none=True).tag(sync=True)
    labels: Any = traitlets.List()

    def __init__(self, *rows: Any, held_out: Any = None, seed: int = 0) -> None:
        if len(rows) not in (2, 3):
            raise InvalidInputError(
                f"Explorer takes X, y or fitted, X, y; got {len(rows)} positional arguments."
            )
        *fitted, X, y = rows
        table = array_table(X, y, held_out, seed)
        given = Given.of(fitted[0], X, held_out) if fitted else None
        self._session = Session(table, workers=shared_workers(), given=given)
        self._threads = ThreadPoolExecutor(4)
        self._jobs: dict[Any, Job] = {}
        super().__init__(labels=table.labels.tolist())
        self.on_msg(self._receive)

    @traitlets.validate("selection")
    def _known_rows(self, proposal: Any) -> Any:
        n, ids = len(self.labels), proposal["value"]
        if ids and not 0 <= min(ids) <= max(ids) < n:
            raise traitlets.TraitError(f"selection has rows from 0 to {n - 1}; got {ids!r:.80}.")
        return ids

    def export_html(self, path: str | os.PathLike[str], *, overwrite: bool = False) -> None:
        """Write the maps that are shown as one HTML file that needs no server.

        Parameters
        ----------
        path : path-like
        overwrite : bool, default=False
            Whether a file that is there may be replaced.
        """
        write_file(path, self._session.page().encode("utf-8"), overwrite=overwrite)

    def close(self) -> None:
        """End the fits and take the widget away."""
        if hasattr(self, "_jobs"):  # what was refused has nothing to end
            for job in list(self._jobs.values()):
                job.cancel()
            self._threads.shutdown(wait=False, cancel_futures=True)
        super().close()

    def _receive(self, _: Any, content: Any, buffers: Any) -> None:
        """Take a message of the page: a call, or that one is not wanted any more."""
        number = content.get("id") if isinstance(content, dict) else None
        if not isinstance(number, int):
            return
        if content.get("cancel"):
            if number in self._jobs:
                self._jobs[number].cancel()
            return

        def say(part: bytes) -> None:
            self.send({"id": number}, [part])

        def tell(stage: str, done: int, total: int | None) -> None:
            say(frame("progress", {"stage": stage, "done": done, "total": total}))

        self._jobs[number] = Job(tell)
        self._threads.submit(self._answer, number, content, say)

    def _answer(self, number: int, content: dict[str, Any], say: Callable[[bytes], None]) -> None:
        name, params = str(content.get("call")), content.get("params", {})
        try:
            say(answered(lambda: self._session.handle(name, params, self._jobs[number])))
            if name in EDITS:
                self.labels = self._session.rows.labels.tolist()
        finally:
            self._jobs.pop(number, None)


@cache
def shared_workers() -> Workers:
    """Return the processes of all widgets of a notebook; they end with it."""
    return Workers()
