"""The oracle of SubspaceSearchCV: scikit-learn's GridSearchCV over the pipeline."""

from __future__ import annotations

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import has_fit_parameter

from marginfold.errors import MarginfoldWarning
from marginfold.model_selection.subspace_search import SubspaceSearchCV

STEP = "subspace__"


def both(estimator, X, y, *, grid, classifier=None, weights=None, groups=None, **options):
    """Return the search and GridSearchCV with the same grid, fitted."""
    head = KNeighborsClassifier(1) if classifier is None else classifier
    theirs = {STEP + name: values for name, values in grid.items()}
    theirs.setdefault(STEP + "n_components", list(range(1, estimator.n_components + 1)))
    pipeline = Pipeline([("subspace", clone(estimator)), ("classifier", clone(head))])
    given = {} if weights is None else {STEP + "sample_weight": weights}
    if weights is not None and has_fit_parameter(head, "sample_weight"):
        given["classifier__sample_weight"] = weights
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MarginfoldWarning)
        ours = SubspaceSearchCV(estimator, classifier=classifier, **grid, **options)
        ours.fit(X, y, groups=groups, sample_weight=weights)
        search = GridSearchCV(pipeline, theirs, **options).fit(X, y, groups=groups, **given)
    return ours, search


def plain(name):
    return name.replace(STEP, "")


def assert_same(ours, theirs, tolerance=0.0):
    """Everything that GridSearchCV reports but times, to the digit or to a tolerance."""
    results, expected = ours.cv_results_, theirs.cv_results_
    assert list(results) == [plain(key) for key in expected]
    points = [{plain(name): value for name, value in p.items()} for p in expected["params"]]
    assert results["params"] == points
    for key, value in expected.items():
        found = results[plain(key)]
        if key.startswith("param_"):
            assert isinstance(found, np.ma.MaskedArray)
            assert found.dtype == value.dtype
            np.testing.assert_array_equal(found.mask, value.mask)
        if key != "params" and not key.endswith("_time"):
            np.testing.assert_allclose(
                found.astype(float), value.astype(float), rtol=0, atol=tolerance, err_msg=key
            )
    assert ours.n_splits_ == theirs.n_splits_
    assert ours.multimetric_ == theirs.multimetric_
    for name in ("best_index_", "best_score_"):
        assert hasattr(ours, name) == hasattr(theirs, name)
    if hasattr(theirs, "best_index_"):
        assert ours.best_index_ == theirs.best_index_
        assert ours.best_params_ == points[ours.best_index_]
    if hasattr(theirs, "best_score_"):
        np.testing.assert_allclose(ours.best_score_, theirs.best_score_, rtol=0, atol=tolerance)
