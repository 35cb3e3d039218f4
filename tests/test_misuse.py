"""Misuse: methods before fit, other columns after it, and what a failed fit leaves behind."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from bad_data import K, N, X, Y, changed
from estimator_families import (
    CLASSIFIERS,
    ESTIMATORS,
    PLANES,
    SUPERVISED,
    TRANSFORMERS,
    every,
    images,
    state,
    where_it_applies,
)
from sklearn.decomposition import PCA
from sklearn.exceptions import NotFittedError
from sklearn.neighbors import KNeighborsClassifier

from marginfold import LSVA, GraphEmbedding
from marginfold.errors import InvalidInputError, InvalidParameterError

pytestmark = [
    pytest.mark.filterwarnings("error::RuntimeWarning", "error::DeprecationWarning"),
    pytest.mark.attack("misuse of estimators"),
]

# --------------------------------------------------------------------------------------- the use

METHODS = {
    "transform": X,
    "inverse_transform": X,
    "denoise": X,
    "reconstruction_error": X,
    "loadings": X,
    "feature_contributions": X,
    "decision_function": X,
    "distances": X,
    "predict": X,
}


@every(ESTIMATORS)
def test_unfitted_use(cls):
    estimator = cls(kernel="linear")  # what a kernel cannot do is no attribute of it
    methods = [name for name in METHODS if hasattr(estimator, name)]
    assert len(methods) >= 2
    for method in methods:
        with pytest.raises(NotFittedError, match=f"{cls.__name__} instance is not fitted"):
            getattr(estimator, method)(METHODS[method])
    if cls in TRANSFORMERS:
        with pytest.raises(NotFittedError):
            estimator.get_feature_names_out()
    else:
        with pytest.raises(NotFittedError):
            estimator.score(X, Y)


@every(PLANES)
def test_unfitted_planes(cls):
    with pytest.raises(NotFittedError, match=f"{cls.__name__} instance is not fitted"):
        _ = cls().planes_


@every(ESTIMATORS)
@pytest.mark.parametrize("kernel", ["linear", "rbf", PCA(2)], ids=str)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_other_columns_at_use(cls, kernel):
    frame = pd.DataFrame(X, columns=list("abcd"))
    fitted = cls(kernel=kernel).fit(frame, Y)
    with pytest.raises(ValueError, match=r"3 features.*expecting 4"):
        images(fitted, X[:, :3])
    with pytest.raises(ValueError, match=r"(?s)feature names should match.*z"):
        images(fitted, frame.rename(columns={"a": "z"}))
    with pytest.raises(ValueError, match="same order"):
        images(fitted, frame[list("dcba")])
    with pytest.raises(ValueError, match="X contains NaN"):
        images(fitted, frame.where(frame < 1))
    with pytest.raises(ValueError, match="Expected 2D"):
        images(fitted, X[0])
    with pytest.warns(UserWarning, match="valid feature names"):
        images(fitted, X)


@every(TRANSFORMERS)
def test_inverse_transform_of_another_width(cls):
    y = np.arange(N) % 3  # two class means
    fitted = cls(n_components=2, kernel="linear").fit(X, y)
    with pytest.raises(ValueError, match=r"X has 3 columns.*2 components"):
        fitted.inverse_transform(X[:, :3])
    with pytest.raises(ValueError, match="contains NaN"):
        fitted.inverse_transform(np.full((2, 2), np.nan))
    with pytest.raises(ValueError, match="Expected 2D"):
        fitted.inverse_transform(X[:, 0])


@every(TRANSFORMERS)
@pytest.mark.parametrize("components", [[2], [-1], [0.0], [True], [], "0", [[0, 1]], [0, 0]])
def test_components_that_are_none(cls, components):
    fitted = cls(n_components=2, kernel="linear").fit(X, np.arange(N) % 3)
    with pytest.raises(InvalidInputError, match="components must be"):
        fitted.denoise(X, components)
    with pytest.raises(InvalidInputError, match="components must be"):
        fitted.inverse_transform(X[:, : np.size(components) or 1], components)


@every(TRANSFORMERS)
def test_there_is_no_inverse_with_a_kernel(cls):
    fitted = cls(kernel="rbf").fit(X, Y)
    for method in ("inverse_transform", "denoise", "reconstruction_error"):
        assert not hasattr(fitted, method)
        with pytest.raises(AttributeError, match=method):
            getattr(fitted, method)


@pytest.mark.parametrize("weights", [[-1.0], [1.0, np.nan], ["a"], [1.0, -2.0]])
def test_a_path_refuses_the_weights_that_a_fit_refuses(weights):
    with pytest.raises(InvalidParameterError, match="graph_weight must be"):
        LSVA().fit_path(X, Y, weights)


# -------------------------------------------------------------------------------- after a failure

FAILURES = {
    "bad cost": ({"C": -1.0}, X, Y),
    "bad costs": ({"C1": -1.0}, X, Y),
    "bad ridge": ({"ridge": -1.0}, X, Y),
    "bad shrinkage": ({"shrinkage": -1.0}, X, Y),
    "bad solver": ({"solver": "newton"}, X, Y),
    "NaN": ({}, changed(X, (3, 1), np.nan), Y),
    "constant rows": ({"n_components": 2}, np.ones((N, 2)), Y),
    "class weight": ({"class_weight": {9: 1.0}}, X[:, :2], Y),
    "kernel function": ({"kernel": lambda A, B: np.ones((2, 2))}, X[:, :2], Y),
    "kernel name": ({"kernel": "rfb"}, X[:, :2], Y),
    "reconstruction": ({"reconstruct": "fixed_point", "kernel": "poly"}, X[:, :2], Y),
    "regressor": ({"reconstruct": KNeighborsClassifier(99)}, X[:, :2], Y),
    "graph": ({"graph": "kkn"}, X[:, :2], Y),
    "intrinsic": ({"intrinsic": "kkn"}, X[:, :2], Y),
    "penalty": ({"penalty": "kkn"}, X[:, :2], Y),
}
LABEL_FAILURES = {
    "one class": ({}, X, np.zeros(N)),
    "one class, fewer columns": ({}, X[:, :2], np.zeros(N)),
}


def refuse_any(estimator, rows, y):
    with pytest.raises((ValueError, TypeError)):
        estimator.fit(rows, y)


def nothing_is_fitted(cls, parameters, rows, y):
    estimator = cls(**parameters)
    refuse_any(estimator, rows, y)
    assert state(estimator) == {}
    with pytest.raises(NotFittedError):
        images(estimator, rows)


def the_old_fit_survives(cls, parameters, rows, y):
    estimator = cls().fit(X, Y)
    before, said = dict(state(estimator)), images(estimator, X)
    estimator.set_params(**parameters)
    refuse_any(estimator, rows, y)
    estimator.set_params(**cls().get_params(deep=False))
    assert state(estimator).keys() == before.keys()
    assert all(state(estimator)[name] is value for name, value in before.items())
    np.testing.assert_array_equal(images(estimator, X), said)


@where_it_applies(FAILURES)
def test_nothing_is_fitted_after_a_failure(cls, case):
    nothing_is_fitted(cls, *FAILURES[case])


@where_it_applies(LABEL_FAILURES, SUPERVISED)
def test_nothing_is_fitted_after_a_failure_of_the_labels(cls, case):
    nothing_is_fitted(cls, *LABEL_FAILURES[case])


@where_it_applies(FAILURES)
def test_a_fitted_estimator_survives_a_failed_fit(cls, case):
    the_old_fit_survives(cls, *FAILURES[case])


@where_it_applies(LABEL_FAILURES, SUPERVISED)
def test_a_fitted_estimator_survives_a_failure_of_the_labels(cls, case):
    the_old_fit_survives(cls, *LABEL_FAILURES[case])


@every(ESTIMATORS)
def test_feature_names_survive_a_failed_fit(cls):
    frame = pd.DataFrame(X, columns=list("abcd"))
    estimator = cls().fit(frame, Y)
    with pytest.raises(ValueError, match="sample weights are zero"):
        estimator.fit(frame.rename(columns=str.upper), Y, sample_weight=np.zeros(N))
    assert list(estimator.feature_names_in_) == list("abcd")


@every(ESTIMATORS)
def test_a_new_fit_forgets_the_old_one(cls):
    """After a change from linear to a kernel nothing of the linear fit may be left."""
    estimator = cls(kernel="linear").fit(pd.DataFrame(X, columns=list("abcd")), Y)
    estimator.set_params(kernel="rbf").fit(X[:, :2], Y)
    fresh = cls(kernel="rbf").fit(X[:, :2], Y)
    assert state(estimator).keys() == state(fresh).keys()


def test_a_fit_without_classes_forgets_those_of_the_last():
    model = GraphEmbedding(penalty="between").fit(X, Y)
    assert list(model.classes_) == [0, 1]
    model.set_params(penalty="total").fit(X, Y)
    assert not hasattr(model, "classes_")
    model.set_params(reconstruct="linear").fit(X)
    assert hasattr(model, "reconstruction_")
    model.set_params(reconstruct=None).fit(X)
    assert not hasattr(model, "reconstruction_")


@every(ESTIMATORS)
@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
def test_neighbors_see_the_same_rows_afterwards(cls, kernel):
    """Read-only arrays are enough: nothing is written into what the user gave."""
    given = K if kernel == "precomputed" else X
    rows, y, weights = given.copy(), Y.copy(), np.linspace(0.5, 2.0, N)
    for array in (rows, y, weights):
        array.flags.writeable = False
    fitted = cls(kernel=kernel).fit(rows, y, sample_weight=weights)
    images(fitted, rows)
    if cls in TRANSFORMERS and kernel == "linear":
        fitted.denoise(rows)
    if cls in CLASSIFIERS:
        fitted.predict(rows)
    KNeighborsClassifier().fit(rows, y)
    np.testing.assert_array_equal(rows, given)
