"""A table that is read while its page comes up.

A browser needs a second for a page, Python three for pandas and scikit-learn: both begin at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING

from marginfold.errors import CancelledError
from marginfold.explorer.jobs import TICK, Job, Workers

if TYPE_CHECKING:
    from marginfold.explorer.session import Session
    from marginfold.explorer.table import Table

Read = Callable[[], "Table | None"]
"""Returns the table that is looked at, or none."""


class Opening:
    """The reading of a table, in a thread that nobody needs to wait for.

    Parameters
    ----------
    read : callable
        Returns a table or None; its error is the answer to every call.
    failed : callable, optional
        Called if there was one.

    Examples
    --------
    >>> from marginfold.explorer import Table, open_table
    >>> from marginfold.explorer.jobs import Job, Workers
    >>> from marginfold.explorer.opening import Opening
    >>> opening = Opening(lambda: Table.of(open_table("iris")))
    >>> with Workers() as workers:
    ...     opening.session(workers, Job()).table.target
    'label'
    """

    def __init__(self, read: Read, failed: Callable[[], object] = lambda: None) -> None:
        self._table: Future[Table | None] = Future()
        self._failed = failed
        self._done = threading.Event()
        threading.Thread(target=self._run, args=(read,), daemon=True).start()

    @property
    def error(self) -> BaseException | None:
        """Why there is no table; None while it is read."""
        return self._table.exception() if self._table.done() else None

    def session(self, workers: Workers, job: Job) -> Session:
        """Return a new session of the table when it is there."""
        while not self._done.wait(TICK):
            if job.cancelled:
                raise CancelledError("cancelled before the table was read.")
        from marginfold.explorer.session import Session

        return Session(self._table.result(), workers=workers)

    def _run(self, read: Read) -> None:
        try:
            import marginfold.explorer.session  # noqa: F401  (what every call needs)

            self._table.set_result(read())
        except BaseException as error:
            self._table.set_exception(error)
            self._failed()
        finally:
            self._done.set()
