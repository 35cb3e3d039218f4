"""Model files with other numbers in them, which all checksums of the format let pass.

Each array of a saved model is replaced in turn.  A file is refused in words, or its model answers
as a model does: finite numbers, known classes, refusals in words.
"""

from __future__ import annotations

import io
import zipfile

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

pytest.importorskip("skops.io", reason="model files need skops")

from marginfold import GEPSVC, GESVC, LDA, LPP, LSVA, SVMPCA, LaplacianEigenmaps, MarginMap
from marginfold.data import TableModel, inspect_columns
from marginfold.data.models import load_model, save_model
from marginfold.errors import InvalidInputError, MarginfoldError
from marginfold.model_selection.neighbors_classifier import NeighborsClassifier

pytestmark = pytest.mark.attack("forged models")

rng = np.random.default_rng(3)
y = np.repeat([0, 1, 2], 12)
X = rng.standard_normal((36, 4)) + 2 * np.eye(3, 4)[y]
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(hue=np.where(y == 1, "red", "blue"))

MODELS = {
    "LDA": LDA().fit(X, y),
    "LSVA": LSVA(2).fit(X, y),
    "LSVA, kernel": LSVA(2, kernel="rbf").fit(X, y),
    "LPP": LPP(2).fit(X),
    "SVMPCA": SVMPCA(2).fit(X, y),
    "LaplacianEigenmaps": LaplacianEigenmaps(2).fit(X),
    "GESVC": GESVC().fit(X, y),
    "GEPSVC": GEPSVC().fit(X, y),
    "MarginMap": MarginMap().fit(X, y),
    "neighbors": NeighborsClassifier().fit(X, y),
    "pipeline": make_pipeline(StandardScaler(), LogisticRegression()).fit(X, y),
    "table": TableModel.fit(LSVA(2), FRAME, y, "kind", inspect_columns(FRAME)),
}


def with_nan(array):
    return np.full_like(array, np.nan) if array.dtype.kind == "f" else None


def shorter(array):
    return array[:-1] if array.ndim and len(array) > 1 else None


def wider(array):
    return np.concatenate([array, array], axis=-1) if array.ndim else None


def of_words(array):
    return np.full(array.shape, "x") if array.dtype.kind == "f" else None


def forged(content, member, array):
    """The archive with another array in place of one, its sums being right."""
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(made, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            if info.filename == member:
                buffer = io.BytesIO()
                np.save(buffer, array, allow_pickle=False)
                data = buffer.getvalue()
            new.writestr(info.filename, data)
    return made.getvalue()


def forgeries(content, change):
    """Every array of a model file, changed."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        for member in archive.namelist():
            if member.endswith(".npy"):
                array = change(np.load(io.BytesIO(archive.read(member)), allow_pickle=False))
                if array is not None:
                    yield member, forged(content, member, array)


def answers_well(model):
    """Whether what a model says of rows can be what a model says."""
    rows = FRAME if isinstance(model, TableModel) else X
    said = []
    for name in ("transform", "decision_function", "predict_proba", "predict"):
        if isinstance(model, TableModel) and name == "predict":
            continue  # a transformer
        if hasattr(model, name):
            try:
                said.append(np.asarray(getattr(model, name)(rows)))
            except MarginfoldError:
                continue
    return all(len(s) == len(X) and (s.dtype.kind != "f" or np.isfinite(s).all()) for s in said)


@pytest.mark.parametrize("change", [with_nan, shorter, wider, of_words])
@pytest.mark.parametrize("name", MODELS)
def test_forged_numbers_are_refused_or_harmless(name, change, tmp_path):
    save_model(MODELS[name], tmp_path / "m.skops")
    content = (tmp_path / "m.skops").read_bytes()
    wrong = []
    for k, (member, forgery) in enumerate(forgeries(content, change)):
        path = tmp_path / f"{k}.skops"
        path.write_bytes(forgery)
        try:
            fine = answers_well(load_model(path))
        except InvalidInputError:
            continue
        except Exception as error:
            wrong.append((member, repr(error)))
        else:
            if not fine:
                wrong.append((member, "answers that are not finite, or too few"))
    assert not wrong


def test_numbers_that_are_missing_are_refused_by_name(tmp_path):
    model = LDA().fit(X, y)
    model.components_ = np.full_like(model.components_, np.nan)
    save_model(model, tmp_path / "m.skops")
    with pytest.raises(InvalidInputError, match=r"components_ of LDA .* not finite; nothing was"):
        load_model(tmp_path / "m.skops")


def test_a_lack_of_memory_is_not_called_damage(tmp_path, monkeypatch):
    import skops.io

    def fail(*_, **__):
        raise MemoryError

    save_model(MODELS["LDA"], tmp_path / "m.skops")
    monkeypatch.setattr(skops.io, "loads", fail)
    with pytest.raises(MarginfoldError, match="the memory ran out") as lack:
        load_model(tmp_path / "m.skops")
    assert isinstance(lack.value, MemoryError)
    assert "damaged" not in str(lack.value)
