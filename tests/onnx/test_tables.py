"""Models of tables as ONNX: columns are inputs, numbers and words, some of them missing."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_wine
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from marginfold import GESVC, LSVA, NeighborsClassifier, TwinSVC, to_onnx

pd = pytest.importorskip("pandas", reason="tables need the extra cli")
for package in ("onnx", "skl2onnx", "onnxruntime"):
    pytest.importorskip(package, reason="the extra onnx is not installed")

import onnxruntime  # noqa: E402

from marginfold.data import TableModel, inspect_columns  # noqa: E402

WINE = load_wine(as_frame=True)
LABELS = np.array(["barolo", "grignolino", "barbera"])[WINE.target]
TOLERANCES = {np.float32: 1e-5, np.float64: 1e-9}


def a_table():
    """Numbers, two columns of words, one of them with rare ones, and missing entries."""
    frame = WINE.data[["alcohol", "ash", "proline", "od280/od315_of_diluted_wines"]].copy()
    frame["region"] = np.where(WINE.data["magnesium"] > 100, "north", "süd")
    frame["cellar no"] = [f"cellar {int(value) % 40}" for value in WINE.data["proline"]]
    frame.loc[::9, "ash"] = np.nan
    frame.loc[::11, "region"] = None
    return frame


def fed(model, frame, dtype):
    """Return the inputs: columns by the names that ONNX allows."""
    names = [name.replace(" ", "_").replace("/", "_") for name in model.columns]
    numbers = {
        name: frame[[column]].to_numpy(dtype)
        for name, column in zip(names, model.numbers, strict=False)
    }
    words = {
        name: frame[[column]].fillna("").to_numpy(object)
        for name, column in zip(names[len(model.numbers) :], model.levels, strict=True)
    }
    return numbers | words


def run(exported, feed):
    session = onnxruntime.InferenceSession(
        exported.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    assert {one.name for one in session.get_inputs()} == feed.keys()
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, feed), strict=True))


METHODS = {
    "kernel": (GESVC(kernel="rbf"), "standard", "both"),
    "planes": (TwinSVC(), "range", "both"),
    "neighbors": (make_pipeline(LSVA(3), NeighborsClassifier(5)), "none", "both"),
    "foreign": (make_pipeline(LSVA(3), LogisticRegression()), "standard", "both"),
    "images": (LSVA(2), "standard", "both"),
    "numbers": (GESVC(), "range", "numbers"),
    "words": (GESVC(), "standard", "words"),
}


@pytest.mark.parametrize("dtype", TOLERANCES)
@pytest.mark.parametrize("case", METHODS)
@pytest.mark.filterwarnings("ignore:Found unknown categories")
def test_a_table_has_the_same_answers(case, dtype):
    method, scale, kind = METHODS[case]
    frame = a_table()
    chosen = {"numbers": frame.columns[:4], "words": frame.columns[4:], "both": frame.columns}
    frame = frame[list(chosen[kind])]
    known = np.arange(len(frame)) % 3 > 0
    columns = inspect_columns(frame[known])
    model = TableModel.fit(method, frame[known], LABELS[known], "kind", columns, scale=scale)
    new = frame.copy()
    if "region" in new:
        new.loc[3, "region"] = "overseas"  # which the model has never seen
    new.loc[5, new.columns[0]] = None
    found = run(to_onnx(model, dtype=dtype), fed(model, new, dtype))
    if "label" in found:
        np.testing.assert_array_equal(found["label"], model.predict(new))
        numbers, wanted = found.get("scores"), None
        if numbers is None:
            numbers, wanted = found["probabilities"], model.probabilities(new)
        else:
            wanted = model.method.decision_function(model._encoded(new))
    else:
        numbers, wanted = found["variable"], model.transform(new)
    assert numbers.dtype == dtype
    assert np.abs(numbers - wanted).max() <= TOLERANCES[dtype] * np.abs(wanted).max()
