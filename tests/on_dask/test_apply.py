"""Fitted models applied to dask collections: nothing is computed, and the result is the same."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

from marginfold import GEPSVC, GESVC, LDA, LSVA, SVMPCA
from marginfold.errors import InvalidInputError

da = pytest.importorskip("dask.array", reason="dask is not installed")
dd = pytest.importorskip("dask.dataframe", reason="dask is not installed")
pd = pytest.importorskip("pandas", reason="pandas is not installed")

CALLS = [
    (LSVA(2, graph="within"), "transform"),
    (LSVA(2, graph="within"), "decision_function"),
    (SVMPCA(2), "transform"),
    (LDA(kernel="rbf", shrinkage=1e-3), "transform"),
    (GESVC(graph="within"), "predict"),
    (GESVC(graph="within"), "decision_function"),
    (GEPSVC(), "predict"),
    (GEPSVC(), "decision_function"),
    (GEPSVC(), "distances"),
]
ROUNDING = 1e-12
"""Blocks are multiplied apart from each other."""

IDS = [f"{type(model).__name__}.{method}" for model, method in CALLS]


@pytest.fixture(scope="module")
def two_classes(data):
    X, y = data
    rows = np.flatnonzero(y < 2)[::3]
    return X[rows], np.array(["low", "high"])[y[rows]]


def fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model).fit(X, y)


def rounding(model):
    """Return what rounding may change.

    An image is a sum of kernel values, here between 0 and 1, times the expansion of the direction
    in the training rows.  Each term is rounded, and their sizes add up to 3e7: the image, which is
    about 1, is known to eps times that, 7e-9, in whichever blocks it is computed.
    """
    if getattr(model, "kernel", "linear") != "rbf":
        return ROUNDING
    expansion = model.feature_map_.dual_basis_ @ model.directions_
    return np.finfo(float).eps * np.abs(expansion).sum(axis=0).max()


@pytest.mark.parametrize(("model", "method"), CALLS, ids=IDS)
def test_arrays_stay_lazy_and_keep_their_chunks(model, method, two_classes):
    X, y = two_classes
    model = fitted(model, X, y)
    n = len(X)
    chunks = da.from_array(X, chunks=((50, 0, 1, n - 51), (2, 4)))
    result = getattr(model, method)(chunks)
    expected = getattr(model, method)(X)
    assert isinstance(result, da.Array)
    assert result.chunks[0] == (50, 0, 1, n - 51)
    assert result.shape == expected.shape
    assert result.dtype == expected.dtype
    found = result.compute()
    if expected.dtype.kind == "f":
        assert np.allclose(found, expected, rtol=ROUNDING, atol=rounding(model))
    else:
        assert (found == expected).all()


@pytest.mark.parametrize(("model", "method"), CALLS, ids=IDS)
def test_frames_keep_their_index(model, method, two_classes):
    X, y = two_classes
    frame = pd.DataFrame(X, columns=list("abcdef"), index=1000 + 2 * np.arange(len(X)))
    model = fitted(model, frame, y)
    lazy = dd.from_pandas(frame, npartitions=4)
    result = getattr(model, method)(lazy)
    expected = getattr(model, method)(frame)
    assert result.divisions == lazy.divisions
    found = result.compute()
    assert found.index.equals(frame.index)
    assert found.dtypes is not None
    assert str(found.dtypes) == str(result.dtypes)
    if expected.dtype.kind == "f":
        assert np.allclose(found.to_numpy(), expected, rtol=ROUNDING, atol=rounding(model))
    else:
        assert (found.to_numpy() == expected).all()


def test_images_of_a_frame_are_named(two_classes):
    X, y = two_classes
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = fitted(LSVA(2, graph="within"), frame, y)
    assert list(model.transform(dd.from_pandas(frame, npartitions=2)).columns) == [
        "lsva0",
        "lsva1",
    ]


def test_fit_transform_and_score(two_classes, client, small_blocks):
    X, y = two_classes
    chunks = da.from_array(X, chunks=(40, 6))
    images = fitted(LDA(), X, y).transform(X)
    assert np.allclose(LDA().fit_transform(chunks, y).compute(), images, rtol=1e-8)
    model = GESVC(graph="within").fit(chunks, y)
    assert model.score(chunks, y) == model.score(X, y)


def test_nothing_is_computed(two_classes):
    def refuse(block):
        raise AssertionError("computed")

    X, y = two_classes
    model = fitted(LDA(), X, y)
    rows = da.from_array(X, chunks=(40, 6)).map_blocks(refuse, dtype=float, meta=np.zeros((0, 0)))
    assert model.transform(rows).shape == (len(X), 1)


def test_an_unfitted_model_says_so(two_classes):
    chunks = da.from_array(two_classes[0], chunks=(40, 6))
    for model, method in CALLS:
        with pytest.raises(NotFittedError):
            getattr(clone(model), method)(chunks)


def test_wrong_features_are_refused_at_once(two_classes):
    X, y = two_classes
    frame = pd.DataFrame(X, columns=list("abcdef"))
    model = fitted(LDA(), frame, y)
    with pytest.raises(ValueError, match="expecting 6 features"):
        fitted(LDA(), X, y).transform(da.from_array(X[:, :3], chunks=(40, 3)))
    renamed = dd.from_pandas(frame.rename(columns={"a": "z"}), npartitions=2)
    with pytest.raises(ValueError, match="feature names"):
        model.transform(renamed)


def test_set_output_does_not_gather(two_classes):
    X, y = two_classes
    chunks = da.from_array(X, chunks=(40, 6))
    model = fitted(LDA(), X, y).set_output(transform="pandas")
    with pytest.raises(InvalidInputError, match="set_output"):
        model.transform(chunks)
    model.set_output(transform="default")
    with config_context(transform_output="pandas"), pytest.raises(InvalidInputError):
        model.transform(chunks)
    assert isinstance(model.transform(chunks), da.Array)
