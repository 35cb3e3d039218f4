"""One session for each tab of a browser."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from marginfold.explorer.jobs import Job

if TYPE_CHECKING:
    from marginfold.explorer.session import Session

MOST_TABS, IDLE = 12, 6 * 3600.0
"""Tabs that have a session at once, and seconds without a call after which one is forgotten."""


class Tabs:
    """The sessions of tabs that were heard of lately.

    Parameters
    ----------
    make : callable
        Returns the session of a new tab for the job that asks for it first.

    Examples
    --------
    >>> from marginfold.explorer import Session
    >>> from marginfold.explorer.jobs import Job
    >>> from marginfold.explorer.tabs import Tabs
    >>> tabs = Tabs(lambda job: Session())
    >>> first = tabs.session("first", Job())
    >>> first is tabs.session("first", Job()), first is tabs.session("second", Job())
    (True, False)
    """

    def __init__(self, make: Callable[[Job], Session]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._kept: dict[str, tuple[Session, float]] = {}

    def session(self, tab: str, job: Job) -> Session:
        """Return the session of a tab; forget those that were not heard of for long."""
        now = time.monotonic()
        with self._lock:
            known = {name: kept for name, kept in self._kept.items() if now < kept[1] + IDLE}
            session = known.pop(tab)[0] if tab in known else self._make(job)
            latest = sorted(known, key=lambda name: known[name][1])[1 - MOST_TABS :]
            self._kept = {name: known[name] for name in latest} | {tab: (session, now)}
            return session
