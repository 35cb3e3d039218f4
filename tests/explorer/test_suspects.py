from __future__ import annotations

import numpy as np
from sklearn.datasets import load_wine
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import scale

from marginfold import LDA
from marginfold.explorer.fits import suspect_rows
from marginfold.model_selection.neighbors_classifier import left_out_predictions
from marginfold.protocols.splits import folds

X, y = load_wine(return_X_y=True)
X = scale(X)


def test_margins_are_those_of_votes_that_scikit_learn_predicts_out_of_fold():
    rng = np.random.default_rng(0)
    labels = y.copy()
    wrong = rng.choice(len(y), 12, replace=False)
    labels[wrong] = (labels[wrong] + 1) % 3
    splits = folds(labels, 5, seed=2)
    judge = make_pipeline(LDA(2), KNeighborsClassifier(15))
    shares = cross_val_predict(judge, X, labels, cv=splits, method="predict_proba")
    margins = shares.max(axis=1) - shares[np.arange(len(y)), labels]
    found = suspect_rows(LDA(2), X, labels, splits)
    assert sorted(found.rows.tolist()) == np.flatnonzero(margins > 0).tolist()
    np.testing.assert_allclose(found.margins, margins[found.rows])
    assert (np.diff(found.margins) <= 0).all()
    assert set(wrong.tolist()) <= set(found.rows.tolist())


def test_a_row_that_no_split_holds_out_is_no_suspect_whatever_its_label():
    labels = y.copy()
    labels[0] = 2
    train, test = np.arange(0, 178, 2), np.arange(1, 178, 2)
    assert 0 not in suspect_rows(LDA(2), X, labels, [(train, test)]).rows


def test_a_class_that_a_fold_lacks_gets_no_votes_there():
    labels = np.r_[y[:130], np.full(48, 2)]
    train = np.flatnonzero(labels < 2)
    found = suspect_rows(LDA(1), X, labels, [(train, np.arange(130, 178))])
    assert set(found.rows.tolist()) == set(range(130, 178))
    assert set(found.suggested.tolist()) <= {0, 1}


def test_a_row_among_equal_rows_is_judged_by_the_others():
    rows = np.zeros((6, 1))
    labels = np.array([0, 0, 0, 0, 0, 1])
    assert left_out_predictions(rows, labels, 3).tolist() == [0] * 6
    assert left_out_predictions(np.arange(3.0)[:, None], np.array([0, 1, 0]), 9).tolist()[1] == 0
