"""Watching and cancelling: every step is told, nothing changes, and what was found is kept."""

from __future__ import annotations

import contextvars
import os
import signal
import subprocess
import sys
import threading
import warnings

import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

from marginfold import GESVC, LSVA, MMDA, WSVDA
from marginfold.errors import CancelledError, CancelledWarning, InvalidParameterError
from marginfold.runtime.progress import Progress, report, watch

X, Y = load_wine(return_X_y=True)
X = scale(X)
SUBSPACES = [MMDA, LSVA, WSVDA]


def cancel_at(done):
    """Return a callback that cancels when so many parts of the components are done."""

    def callback(event):
        if event.stage == "components" and event.done >= done:
            event.cancel()

    return callback


def test_nobody_is_told_outside_of_a_block():
    seen = []
    with watch(seen.append):
        pass
    report("work", 1, 2)
    assert seen == []


def test_events_say_what_was_reported_and_time_goes_forward():
    seen = []
    with watch(seen.append):
        for done in range(4):
            report("work", done, 3)
        report("other", 5)
    assert [(e.stage, e.done, e.total) for e in seen] == [
        *(("work", done, 3) for done in range(4)),
        ("other", 5, None),
    ]
    assert all(isinstance(event, Progress) for event in seen)
    times = [event.seconds for event in seen]
    assert times == sorted(times)
    assert times[0] >= 0


def test_the_rest_is_estimated_from_the_pace_of_the_stage(monkeypatch):
    clock = iter([0.0, 10.0, 12.0, 14.0, 100.0, 101.0])
    monkeypatch.setattr("marginfold.runtime.progress.time.perf_counter", lambda: next(clock))
    seen = []
    with watch(seen.append):
        for done in (0, 1, 2):
            report("work", done, 5)
        report("work", 0, 5)  # the stage begins again
        report("work", 1)
    assert [event.remaining for event in seen] == [None, 8.0, 6.0, None, None]


def test_a_watcher_must_be_a_function():
    with pytest.raises(InvalidParameterError, match="function of one Progress"), watch(None):
        pass


def test_nested_watchers_are_all_told_the_innermost_first():
    seen = []
    with watch(lambda e: seen.append("outer")), watch(lambda e: seen.append("inner")):
        report("work", 0)
    assert seen == ["inner", "outer"]


@pytest.mark.parametrize("outer", [True, False])
def test_any_watcher_can_cancel(outer):
    callbacks = [Progress.cancel, lambda event: None]
    first, second = callbacks if outer else callbacks[::-1]
    with watch(first), watch(second), pytest.raises(CancelledError, match=r"'work' \(1 of 2"):
        report("work", 1, 2)


def test_later_work_in_the_block_is_cancelled_too_and_work_after_it_is_not():
    with watch(lambda event: None) as watched:
        watched.cancel()
        assert watched.cancelled
        for _ in range(2):
            with pytest.raises(CancelledError):
                report("work", 0)
    report("work", 0)


def test_cancel_from_another_thread_is_felt_at_the_next_report():
    with watch(lambda event: None) as watched:
        report("work", 0)
        thread = threading.Thread(target=watched.cancel)
        thread.start()
        thread.join()
        with pytest.raises(CancelledError):
            report("work", 1)


def test_threads_are_watched_in_a_copy_of_the_context_only():
    seen = []
    with watch(seen.append):
        for run in (lambda work: work(), contextvars.copy_context().run):
            thread = threading.Thread(target=run, args=(lambda: report("work", 0),))
            thread.start()
            thread.join()
    assert len(seen) == 1


def test_an_error_of_the_callback_ends_the_fit_and_the_watch():
    model = MMDA()
    with pytest.raises(ZeroDivisionError), watch(lambda event: 1 / 0):
        model.fit(X, Y)
    assert not hasattr(model, "components_")
    report("work", 0)
    model.fit(X, Y)


@pytest.mark.parametrize("cls", SUBSPACES)
def test_a_watched_fit_is_the_same_fit_and_counts_its_components(cls):
    seen = []
    with watch(seen.append):
        watched = cls(3).fit(X, Y)
    assert_array_equal(watched.components_, cls(3).fit(X, Y).components_)
    counted = [(e.done, e.total) for e in seen if e.stage == "components"]
    assert counted == [(0, 3), (1, 3), (2, 3), (3, 3)]


@pytest.mark.parametrize("found", [1, 4])
@pytest.mark.parametrize("tasks", ["one_vs_rest", "greedy", "splits"])
@pytest.mark.parametrize("cls", SUBSPACES)
def test_a_cancelled_fit_keeps_the_first_components_of_a_full_one(cls, tasks, found):
    full = cls(5, tasks=tasks).fit(X, Y)
    model = cls(5, tasks=tasks)
    with watch(cancel_at(found)), pytest.warns(CancelledWarning, match=f"after {found} of 5"):
        model.fit(X, Y)
    assert model.n_components_ == found
    assert model.n_components == 5
    rounding = {"rtol": 1e-12, "atol": 1e-12}  # products of fewer columns round differently
    assert_allclose(model.components_, full.components_[:found], **rounding)
    assert_allclose(model.transform(X), full.transform(X)[:, :found], **rounding)
    for name in ("gain_", "gap_", "norms_", "intercepts_", "n_iter_per_component_"):
        assert_array_equal(getattr(model, name), getattr(full, name)[:found])
    assert model.tasks_ == full.tasks_[:found]


def test_a_cancelled_fit_is_not_filled_up_with_variance():
    model = MMDA(6, on_exhausted="pca")
    with watch(cancel_at(2)), pytest.warns(CancelledWarning):
        model.fit(X, Y)
    assert model.n_components_ == 2
    assert None not in model.tasks_


def test_cancelling_after_the_last_component_changes_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with watch(cancel_at(3)):
            model = MMDA(3).fit(X, Y)
    assert model.n_components_ == 3


@pytest.mark.parametrize("cls", [*SUBSPACES, GESVC])
def test_cancelled_before_anything_was_found_leaves_the_estimator_as_it_was(cls):
    model = cls().fit(X[:, :5], Y)
    before = dict(vars(model))
    with watch(Progress.cancel), pytest.raises(CancelledError, match="as they were before"):
        model.fit(X, Y)
    assert vars(model).keys() == before.keys()
    assert all(vars(model)[name] is value for name, value in before.items())


def test_several_fits_side_by_side_are_cancelled_as_a_whole():
    with watch(cancel_at(2)), pytest.raises(CancelledError):
        LSVA(4).fit_path(X, Y, graph_weight=[0.1, 1.0])


INTERRUPTED = """
import os, signal, sys
import numpy as np
from marginfold import MMDA
from marginfold.runtime.progress import watch

rng = np.random.default_rng(0)
X, y = rng.normal(size=(60, 4)), np.arange(60) % 2
model = MMDA().fit(X, y)
before = dict(vars(model))
for done in (0, 2):
    def interrupt(event):
        if event.done == done:
            os.kill(os.getpid(), signal.SIGINT)

    try:
        with watch(interrupt):
            model.set_params(n_components=4).fit(rng.normal(size=(200, 6)), np.arange(200) % 3)
    except KeyboardInterrupt:
        assert all(vars(model)[name] is value for name, value in before.items() if name[-1] == "_")
        assert model.transform(X).shape == (60, 2)
    else:
        sys.exit("not interrupted")
"""


@pytest.mark.attack("kills and interrupts")
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT between processes")
def test_an_interrupt_in_mid_fit_leaves_the_estimator_as_it_was():
    finished = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert finished.returncode == 0, finished.stderr


@pytest.mark.attack("kills and interrupts")
@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGINT between processes")
def test_an_interrupt_from_outside_in_mid_solve_leaves_the_estimator_as_it_was():
    code = """
import sys
import numpy as np
from marginfold import LSVA
from marginfold.runtime.progress import watch

rng = np.random.default_rng(0)
model = LSVA(graph="within").fit(rng.normal(size=(60, 4)), np.arange(60) % 2)
before = dict(vars(model))
X, y = rng.normal(size=(20000, 30)), np.arange(20000) % 5
try:
    with watch(lambda event: print("going", flush=True)):
        for _ in range(50):
            model.fit(X, y)
except KeyboardInterrupt:
    sys.exit(0 if all(vars(model)[k] is v for k, v in before.items() if k != "n_components") else 1)
sys.exit(2)
"""
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        begun = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, complaints = process.communicate(timeout=60)
    assert begun == "going\n", complaints
    assert process.returncode == 0, complaints
