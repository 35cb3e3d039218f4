"""Progress callbacks and cancellation of long computations.

A loop calls `report` at points where it can stop without harm; without a callback that costs
nothing.

Watchers belong to the context (`contextvars`) they were set in: work in other threads is not seen
unless it runs in a copy of the context (``contextvars.copy_context().run``), and work in other
processes never is.  Cancelling works from any thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from marginfold.errors import CancelledError, InvalidParameterError


@dataclass(frozen=True)
class Progress:
    """How far some work is.

    Attributes
    ----------
    stage : str
        What is being done, such as "components".
    done : int
        Finished parts of this stage.
    total : int or None
        All parts of this stage, if that is known: an upper bound where a method may stop earlier.
    seconds : float
        Time since `watch` was entered.
    remaining : float or None
        Seconds that the rest of this stage takes if it goes on at the same pace; None before the
        first part is done and without a total.
    """

    stage: str
    done: int
    total: int | None
    seconds: float
    remaining: float | None
    _watch: Watch = field(repr=False, compare=False)

    def cancel(self) -> None:
        """End the work at this point; what can be kept is kept (see `watch`)."""
        self._watch.cancel()


class Watch:
    """One watcher: its callback, and whether cancellation was requested."""

    def __init__(self, callback: Callable[[Progress], object]) -> None:
        self._callback = callback
        self._begun = time.perf_counter()
        self._stages: dict[str, tuple[int, float]] = {}
        self.cancelled = False

    def cancel(self) -> None:
        """End the watched work at its next report."""
        self.cancelled = True

    def _tell(self, stage: str, done: int, total: int | None) -> None:
        now = time.perf_counter()
        first_done, first_time = self._stages.get(stage, (done, now))
        if done <= first_done:
            first_done, first_time = done, now
        self._stages[stage] = first_done, first_time
        pace = (now - first_time) / (done - first_done) if done > first_done else None
        remaining = None if pace is None or total is None else pace * max(total - done, 0)
        self._callback(Progress(stage, done, total, now - self._begun, remaining, self))


_WATCHERS: ContextVar[tuple[Watch, ...]] = ContextVar("marginfold_watchers", default=())


@contextmanager
def watch(callback: Callable[[Progress], object]) -> Iterator[Watch]:
    """Call ``callback`` with a `Progress` whenever work inside the block has made a step.

    ``event.cancel()`` in the callback (or ``cancel()`` of what ``as`` gives, from any thread) ends
    the work at this step.  MMDA, LSVA and WSVDA keep the components found so far and warn with
    `CancelledWarning`, because each component is final once it is found.  All other work raises
    `CancelledError` and leaves the estimator as it was before.  Further work in the block is
    cancelled too.

    Blocks may be nested: every callback is called, the innermost first.  An error that the callback
    raises ends the work like any other error.

    Parameters
    ----------
    callback : callable
        It is called with one `Progress`.

    Yields
    ------
    Watch
        Its ``cancel()`` ends the work, ``cancelled`` says whether that was asked for.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.preprocessing import scale
    >>> from marginfold import MMDA, watch
    >>> X, y = load_wine(return_X_y=True)
    >>> with watch(lambda event: print(event.stage, event.done, "of", event.total)):
    ...     mmda = MMDA(n_components=2).fit(scale(X), y)
    components 0 of 2
    components 1 of 2
    components 2 of 2
    """
    if not callable(callback):
        raise InvalidParameterError(
            f"watch needs a function of one Progress, such as print; got {callback!r}."
        )
    watcher = Watch(callback)
    token = _WATCHERS.set((watcher, *_WATCHERS.get()))
    try:
        yield watcher
    finally:
        _WATCHERS.reset(token)


def report(stage: str, done: int, total: int | None = None) -> None:
    """Report progress to the callbacks: ``done`` of ``total`` parts are finished.

    Call it only where the work can stop: it raises `CancelledError` if a watcher wants that.  A
    loop that has something to keep catches the error; all others let it pass.
    """
    watchers = _WATCHERS.get()
    if not watchers:
        return
    for watcher in watchers:
        watcher._tell(stage, done, total)
    if any(watcher.cancelled for watcher in watchers):
        parts = f"{done}" if total is None else f"{done} of {total}"
        raise CancelledError(
            f"Cancelled by a watcher at {stage!r} ({parts} done); nothing of this work is kept, "
            "and estimators are as they were before. Run it again, without cancelling, for a "
            "result."
        )
