"""scikit-learn's callbacks, such as its progress bar, told of the steps of a fit.

They exist from scikit-learn 1.9 on; with earlier versions an estimator has no ``set_callbacks``.
A fit is one task.  Its stages, as `report` names them, are tasks inside it, and their parts, many
of them together if there are many, are the leaves.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial, wraps
from inspect import isfunction
from typing import Any, TypeVar, cast

from marginfold.runtime.progress import Progress, watch
from marginfold.runtime.threads import SizedCalls

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before 1.9
    CallbackSupportMixin, with_callbacks = object, None

MOST_PARTS = 100
"""Leaves of a stage: one that counts rows has thousands of parts, and a callback is told of each
leaf twice."""

M = TypeVar("M", bound=Callable[..., Any])


class FollowedFits(SizedCalls, CallbackSupportMixin):
    """Base of the estimators: callbacks that were set on one are told how far its fit is."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        fit = cls.__dict__.get("fit")
        if isfunction(fit):
            cls.fit = _followed(fit)


def _followed(fit: M) -> M:
    @wraps(fit)
    def fit_with_callbacks(self: Any, *args: Any, **named: Any) -> Any:
        work = partial(fit, self, *args, **named)
        if not getattr(self, "_skl_callbacks", ()) or hasattr(self, "_callback_fit_ctx"):
            return work()
        X = args[0] if args else named.get("X")
        y = args[1] if len(args) > 1 else named.get("y")
        return with_callbacks(_as_tasks)(self, work, X, y)

    return cast(M, fit_with_callbacks)


def _as_tasks(estimator: Any, work: Callable[[], Any], X: Any, y: Any) -> Any:
    """Do the work of a fit, as a task with subtasks."""
    whole = estimator._init_callback_context(max_subtasks=None)
    whole.call_on_fit_task_begin(estimator=estimator, X=X, y=y)
    stages = _Stages(estimator, whole)
    with watch(stages.follow):
        result = work()
    stages.close()
    whole.call_on_fit_task_end(estimator=estimator, X=X, y=y)
    return result


class _Stages:
    """The tasks of the stages that have begun and not ended, with their finished parts."""

    def __init__(self, estimator: Any, whole: Any) -> None:
        self.estimator = estimator
        self.whole = whole
        self.open: dict[str, tuple[Any, int]] = {}

    def follow(self, event: Progress) -> None:
        """Tell of the parts that were finished since the last event; cancel if one says stop."""
        stage, stop = event.stage, False
        done, total = _parts(event)
        if stage in self.open and done < self.open[stage][1]:
            self._end(stage)  # it has begun anew
        if stage not in self.open:
            task = self.whole.subcontext(task_name=stage, max_subtasks=total)
            self.open[stage] = task.call_on_fit_task_begin(estimator=self.estimator), 0
        task, before = self.open[stage]
        for _ in range(before, done):
            part = task.subcontext(task_name=f"part of {stage}")
            part.call_on_fit_task_begin(estimator=self.estimator)
            stop |= bool(part.call_on_fit_task_end(estimator=self.estimator))
        self.open[stage] = task, done
        if done == total:
            self._end(stage)
        elif stop:
            event.cancel()

    def close(self) -> None:
        """End the stages that stopped before their last part."""
        for stage in list(self.open):
            self._end(stage)

    def _end(self, stage: str) -> None:
        task, _ = self.open.pop(stage)
        task.call_on_fit_task_end(estimator=self.estimator)


def _parts(event: Progress) -> tuple[int, int | None]:
    """Return how many parts are finished, of at most `MOST_PARTS`."""
    if event.total is None or event.total <= MOST_PARTS:
        return event.done, event.total
    return event.done * MOST_PARTS // event.total, MOST_PARTS
