"""PathSearchCV: the answer of GridSearchCV, with fits that share a graph and a metric."""

from __future__ import annotations

import numpy as np
import pytest
from grid_search import assert_same
from numpy.testing import assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.preprocessing import scale

from marginfold import GESVC, LSVA, LapSVC, PathSearchCV
from marginfold.errors import InvalidInputError, InvalidParameterError

X, Y = scale(load_wine().data)[::2], load_wine().target_names[load_wine().target[::2]]
GRID = {"C": [0.001, 1.0], "graph_weight": [0.1, 10.0]}
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)


@pytest.mark.parametrize("estimator", [GESVC(), GESVC(kernel="rbf"), LapSVC(unlabeled=None)])
@pytest.mark.parametrize("scoring", [None, "balanced_accuracy"])
def test_it_chooses_as_grid_search_does(estimator, scoring):
    ours = PathSearchCV(estimator, **GRID, cv=FOLDS, scoring=scoring, return_train_score=True)
    theirs = GridSearchCV(estimator, GRID, cv=FOLDS, scoring=scoring, return_train_score=True)
    assert_same(ours.fit(X, Y), theirs.fit(X, Y))
    assert_array_equal(ours.predict(X), theirs.predict(X))
    assert_array_equal(ours.decision_function(X), theirs.decision_function(X))
    assert ours.score(X, Y) == theirs.score(X, Y)
    assert_array_equal(ours.classes_, theirs.classes_)


def test_a_weight_of_zero_is_the_row_left_out_of_every_fit():
    weights = (np.arange(len(Y)) % 4 > 0).astype(float)
    search = PathSearchCV(GESVC(), **GRID, cv=[(np.arange(60), np.arange(60, len(Y)))])
    weighted = clone(search).fit(X, Y, sample_weight=weights)
    alone = GESVC(**weighted.best_params_).fit(X[weights > 0], Y[weights > 0])
    assert_array_equal(weighted.predict(X), alone.predict(X))


def test_a_fit_that_fails_has_the_error_score():
    broken = X.copy()
    broken[0, 0] = np.nan
    split = [(np.arange(40), np.arange(40, 60)), (np.arange(1, 40), np.arange(40, 60))]
    search = PathSearchCV(GESVC(), C=[1.0], cv=split, refit=False)
    with pytest.warns(match="fits failed"):
        scores = search.fit(broken, Y).cv_results_
    assert np.isnan(scores["split0_test_score"]).all()
    assert np.isfinite(scores["split1_test_score"]).all()


BAD = {
    "a transformer": ({"estimator": LSVA()}, "instance of GESVC"),
    "a bad cost": ({"C": [-1.0]}, "C must be"),
    "an iterator": ({"C": iter([1.0])}, "iterator"),
    "nothing to try": ({"graph_weight": []}, "no value to try"),
}


@pytest.mark.parametrize("name", BAD)
def test_misuse_is_refused_in_words(name):
    parameters, message = BAD[name]
    with pytest.raises(InvalidParameterError, match=message):
        PathSearchCV(**{"estimator": GESVC(), "cv": 2, **parameters}).fit(X, Y)


def test_labels_are_needed():
    with pytest.raises(InvalidInputError, match="requires y"):
        PathSearchCV(GESVC()).fit(X)
