"""What users bring along: data frames of three libraries, weights by routing, notebooks, chance."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from estimator_families import CLASSIFIERS, EVERY_ESTIMATOR, SUBSPACES, every
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_wine
from sklearn.metrics import accuracy_score, log_loss, make_scorer
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate, train_test_split
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.fixes import parse_version

from marginfold import (
    GESVC,
    LSVA,
    ExactKernel,
    Linear,
    LowRankKernel,
    NeighborsClassifier,
    PathSearchCV,
    SubspaceSearchCV,
)

pa = pytest.importorskip("pyarrow", reason="the extra parquet is not installed")

SKLEARN = parse_version(sklearn.__version__)
FOLDS = StratifiedKFold(3, shuffle=True, random_state=0)

WINE = load_wine()
X = StandardScaler().fit_transform(WINE.data)
NAMES = list(WINE.feature_names)
LABELS = np.array(["barolo", "grignolino", "barbera"])[WINE.target]

FRAMES = {
    "pandas": pd.DataFrame(X, columns=NAMES),
    "polars": pl.DataFrame(X, schema=NAMES),
    "pyarrow": pa.table(dict(zip(NAMES, X.T, strict=True))),
}
COLUMNS = {
    "pandas": pd.Series(LABELS),
    "pandas of arrow": pd.Series(LABELS, dtype=pd.ArrowDtype(pa.string())),
    "polars": pl.Series(LABELS.tolist()),
    "polars categories": pl.Series(LABELS.tolist(), dtype=pl.Categorical),
    "pyarrow": pa.array(LABELS.tolist()),
    "pyarrow in chunks": pa.chunked_array([LABELS.tolist()[:90], LABELS.tolist()[90:]]),
    "pyarrow dictionary": pa.array(LABELS.tolist()).dictionary_encode(),
}

MODELS = {
    **{cls.__name__: cls() for cls in EVERY_ESTIMATOR},
    "NeighborsClassifier": NeighborsClassifier(),
    "PathSearchCV": PathSearchCV(GESVC(), C=[1.0, 10.0], cv=3),
    "SubspaceSearchCV": SubspaceSearchCV(LSVA(), cv=3),
    "Linear": Linear(),
    "ExactKernel": ExactKernel(),
    "LowRankKernel": LowRankKernel(rank=20),
}
WITH_IMAGES = [name for name, model in MODELS.items() if hasattr(model, "set_output")]
WITH_WEIGHTS = [name for name in MODELS if name != "NeighborsClassifier"]


def answers(model, rows):
    """Return images, or if there are none scores or shares of classes."""
    methods = ("transform", "decision_function", "predict_proba")
    method = next(name for name in methods if hasattr(model, name))
    return np.asarray(getattr(model, method)(rows))


def assert_alike(found, wanted):
    """Columns of a frame are stored side by side: sums are rounded in another order."""
    np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-8 * np.abs(wanted).max())


# ----------------------------------------------------------------------------------------- frames


@pytest.mark.parametrize("library", FRAMES)
@pytest.mark.parametrize("name", MODELS)
def test_a_frame_of_any_library_is_its_numbers_and_names(name, library):
    frame = FRAMES[library]
    fitted = clone(MODELS[name]).fit(frame, LABELS)
    assert_alike(answers(fitted, frame), answers(clone(MODELS[name]).fit(X, LABELS), X))
    assert list(fitted.feature_names_in_) == NAMES


@pytest.mark.parametrize("library", FRAMES)
@every(EVERY_ESTIMATOR)
def test_columns_in_another_order_are_refused(cls, library):
    fitted = cls().fit(FRAMES["pandas"], LABELS)
    frame = FRAMES[library]
    moved = frame[NAMES[::-1]] if library == "pandas" else frame.select(NAMES[::-1])
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.transform(moved) if hasattr(fitted, "transform") else fitted.predict(moved)


@pytest.mark.parametrize("library", COLUMNS)
@pytest.mark.parametrize("name", [name for name in MODELS if name not in ("Linear", "SVMPCA")])
def test_a_column_of_any_library_is_its_labels(name, library):
    column = COLUMNS[library]
    fitted, expected = clone(MODELS[name]).fit(X, column), clone(MODELS[name]).fit(X, LABELS)
    np.testing.assert_array_equal(answers(fitted, X), answers(expected, X))
    if hasattr(expected, "classes_"):
        assert list(fitted.classes_) == sorted(set(LABELS))
    if hasattr(expected, "score"):
        assert fitted.score(X, column) == expected.score(X, LABELS)


@pytest.mark.parametrize("library", ["pandas", "polars"])
@pytest.mark.parametrize("name", WITH_IMAGES)
def test_the_same_library_comes_out(name, library):
    frame = FRAMES[library]
    model = clone(MODELS[name]).set_output(transform=library).fit(frame, LABELS)
    result = model.transform(frame)
    assert type(result) is type(frame)
    assert list(result.columns) == list(model.get_feature_names_out())
    expected = clone(MODELS[name]).fit(X, LABELS).transform(X)
    assert_alike(result.to_numpy(), expected)


# ---------------------------------------------------------------------------------- probabilities


@pytest.mark.parametrize("method", ["sigmoid", "isotonic"])
@every(CLASSIFIERS)
def test_calibrated_probabilities_beat_the_shares_of_the_classes(cls, method):
    rows, held_out, y, wanted = train_test_split(X, LABELS, random_state=0, stratify=LABELS)
    model = CalibratedClassifierCV(cls(), method=method).fit(rows, y)
    found = model.predict_proba(held_out)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)
    shares = [np.mean(y == label) for label in model.classes_]
    constant = np.tile(shares, (len(wanted), 1))
    found = found.clip(1e-6)  # isotonic ones may be 0
    assert log_loss(wanted, found / found.sum(axis=1, keepdims=True)) < 0.5 * log_loss(
        wanted, constant
    )


# ---------------------------------------------------------------------------------------- routing


WEIGHTS = np.random.default_rng(1).uniform(0.2, 3.0, len(X))


def asking(name):
    """Return a pipeline that ends in a classifier and whose model asks for weights, and a score."""
    model = clone(MODELS[name]).set_fit_request(sample_weight=True)
    steps = [] if hasattr(model, "predict") else [("last", KNeighborsClassifier(1))]
    scorer = make_scorer(accuracy_score).set_score_request(sample_weight=True)
    return Pipeline([("model", model), *steps]), scorer


def weighted(name, rows=slice(None)):
    """Return the model that was given the weights itself."""
    return clone(MODELS[name]).fit(X[rows], LABELS[rows], sample_weight=WEIGHTS[rows])


@pytest.mark.parametrize("name", WITH_WEIGHTS)
def test_weights_go_through_a_pipeline(name):
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline, _ = asking(name)
        pipeline.fit(X, LABELS, sample_weight=WEIGHTS)
    np.testing.assert_array_equal(answers(pipeline[0], X), answers(weighted(name), X))


@pytest.mark.parametrize("name", WITH_WEIGHTS)
def test_weights_go_through_a_grid_search(name):
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline, scorer = asking(name)
        search = GridSearchCV(pipeline, {}, cv=FOLDS, scoring=scorer, error_score="raise")
        search.fit(X, LABELS, sample_weight=WEIGHTS)
    best = search.best_estimator_[0]
    np.testing.assert_array_equal(answers(best, X), answers(weighted(name), X))


@pytest.mark.parametrize("name", WITH_WEIGHTS)
def test_weights_go_through_cross_validation(name):
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline, scorer = asking(name)
        found = cross_validate(
            *(pipeline, X, LABELS),
            params={"sample_weight": WEIGHTS},
            cv=FOLDS,
            scoring=scorer,
            return_estimator=True,
            error_score="raise",
        )
    for fitted, (rows, _) in zip(found["estimator"], FOLDS.split(X, LABELS), strict=True):
        np.testing.assert_array_equal(answers(fitted[0], X), answers(weighted(name, rows), X))


# ------------------------------------------------------------------------------- in a notebook


@pytest.mark.parametrize("name", MODELS)
def test_a_notebook_shows_parameters_and_what_was_fitted(name):
    model = clone(MODELS[name]).fit(X, LABELS)
    text = model._repr_html_()
    assert type(model).__name__ in text
    if parse_version("1.7") <= SKLEARN:  # the table of the parameters
        assert [p for p in model.get_params(deep=False) if p not in text] == []
    if parse_version("1.9") <= SKLEARN:  # the table of what was fitted
        shown = set(re.findall(r">\s*(\w+_)\s*</a>", text))
        fitted = {a for a in vars(model) if a.endswith("_") and not a.startswith("_")}
        assert fitted <= shown
        assert "Fitted attributes" in text


@pytest.mark.skipif(parse_version("1.9") > SKLEARN, reason="scikit-learn shows them from 1.9 on")
@every(SUBSPACES)
def test_the_certificate_is_among_them(cls):
    model = make_pipeline(StandardScaler(), cls()).fit(WINE.data, LABELS)
    text = model._repr_html_()
    assert re.search(r">\s*gap_\s*</a>", text)
    assert re.search(r">\s*n_components_\s*</a>", text)
