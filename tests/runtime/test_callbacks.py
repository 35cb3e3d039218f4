"""Callbacks of scikit-learn follow a fit: every task that begins ends, and nothing else changes."""

from __future__ import annotations

import io
import pickle
import warnings
from collections import Counter

import numpy as np
import pytest
from estimator_families import EVERY_ESTIMATOR, every
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from marginfold import GESVC, LSVA, MMDA, PathSearchCV, SubspaceSearchCV
from marginfold.errors import CancelledError, CancelledWarning, InvalidInputError
from marginfold.runtime.callbacks import MOST_PARTS, FollowedFits
from marginfold.runtime.progress import report

pytest.importorskip("sklearn.callback", reason="scikit-learn has callbacks from 1.9 on")

WINE = load_wine()
X, Y = scale(WINE.data), WINE.target


class Notes:
    """A callback that writes down what it is told."""

    max_propagation_depth = None

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.begun, self.ended = Counter(), Counter()
        self.sizes, self.calls = {}, []

    def setup(self, estimator, context):
        self.calls.append("setup")

    def teardown(self, estimator, context):
        self.calls.append("teardown")

    def on_fit_task_begin(self, estimator, context):
        name = f"{context.estimator_name} {context.task_name}"
        self.begun[name] += 1
        self.sizes[name] = context.max_subtasks

    def on_fit_task_end(self, estimator, context):
        name = f"{context.estimator_name} {context.task_name}"
        self.ended[name] += 1
        return self.stop_after is not None and self.ended[name] >= self.stop_after


def answers(model):
    return model.transform(X) if hasattr(model, "transform") else model.predict(X)


@pytest.mark.filterwarnings("ignore::marginfold.errors.MarginfoldWarning")
@every([*EVERY_ESTIMATOR])
def test_every_task_that_begins_ends_and_the_fit_is_the_same(cls):
    notes = Notes()
    model = cls().set_callbacks(notes).fit(X, Y)
    assert notes.calls == ["setup", "teardown"]
    assert notes.begun == notes.ended
    assert notes.begun[f"{cls.__name__} fit"] == 1
    np.testing.assert_array_equal(answers(model), answers(cls().fit(X, Y)))
    assert not [name for name in vars(model) if "callback" in name and name != "_skl_callbacks"]


def test_the_parts_of_a_stage_are_its_leaves():
    notes = Notes()
    LSVA(3).set_callbacks(notes).fit(X, Y)
    assert notes.begun == {"LSVA fit": 1, "LSVA components": 1, "LSVA part of components": 3}
    assert notes.sizes["LSVA components"] == 3
    assert notes.sizes["LSVA part of components"] == 0


def test_many_parts_are_told_together():
    class Long(FollowedFits):
        def fit(self, X, y=None):
            for row in range(0, 1001, 7):
                report("rows", row, 1001)
            for row in range(3):
                report("unknown", row)
            return self

    notes = Notes()
    Long().set_callbacks(notes).fit(X)
    assert notes.sizes["Long rows"] == MOST_PARTS
    assert MOST_PARTS - 1 <= notes.begun["Long part of rows"] <= MOST_PARTS
    assert notes.sizes["Long unknown"] is None
    assert notes.begun["Long part of unknown"] == 2
    assert notes.begun == notes.ended


@pytest.mark.parametrize(
    ("model", "stage"),
    [
        (make_pipeline(StandardScaler(), LSVA(3)), "LSVA components"),
        (make_pipeline(LSVA(3), KNeighborsClassifier()), "LSVA components"),
        (make_pipeline(StandardScaler(), GESVC(kernel="rbf")), "GESVC machines"),
        (GridSearchCV(GESVC(kernel="rbf"), {"C": [1.0]}, cv=2), "GESVC machines"),
        (PathSearchCV(GESVC(), C=[1.0, 2.0], cv=3), "PathSearchCV folds"),
        (SubspaceSearchCV(LSVA(2), cv=3), "SubspaceSearchCV folds"),
    ],
)
def test_callbacks_reach_a_step_and_the_folds_of_a_search(model, stage):
    notes = Notes()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The estimator KNeighborsClassifier does not")
        clone(model).set_callbacks(notes).fit(X, Y)
    assert notes.begun == notes.ended
    assert notes.begun[stage] > 0
    assert notes.calls == ["setup", "teardown"]


def test_a_callback_that_says_stop_cancels():
    with pytest.warns(CancelledWarning, match="after 2 of 5 components"):
        model = LSVA(5).set_callbacks(Notes(stop_after=2)).fit(X, Y)
    np.testing.assert_array_equal(model.transform(X), LSVA(5).fit(X, Y).transform(X)[:, :2])
    classifier = GESVC().fit(X, Y).set_callbacks(Notes(stop_after=1))
    with pytest.raises(CancelledError):
        classifier.fit(X[::2], Y[::2])
    np.testing.assert_array_equal(classifier.predict(X), GESVC().fit(X, Y).predict(X))


def test_a_fit_that_fails_is_torn_down():
    notes = Notes()
    model = MMDA().set_callbacks(notes)
    with pytest.raises(InvalidInputError):
        model.fit(X, np.zeros(len(X)))
    assert notes.calls == ["setup", "teardown"]
    assert vars(model).keys() == {*vars(MMDA()), "_skl_callbacks"}


def test_callbacks_can_be_taken_away():
    model = LSVA(2).set_callbacks(Notes()).set_callbacks().fit(X, Y)
    assert pickle.loads(pickle.dumps(model)).transform(X).shape == (178, 2)


def test_the_progress_bar_of_scikit_learn_draws_the_stages(monkeypatch):
    rich = pytest.importorskip("rich", reason="the progress bar needs rich")
    from sklearn.callback import ProgressBar

    out = io.StringIO()
    monkeypatch.setattr(rich, "_console", rich.console.Console(file=out, width=120))
    make_pipeline(StandardScaler(), LSVA(3)).set_callbacks(ProgressBar()).fit(X, Y)
    assert "LSVA - components" in out.getvalue()
