"""The command export: a saved model as an ONNX file that answers as `predict` does."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from cli.conftest import Command

from marginfold import load_model

for package in ("onnx", "pandas", "skl2onnx"):
    pytest.importorskip(package, reason="the extra onnx is not installed")

onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder with a model of the wine data."""
    command = Command(tmp_path_factory.mktemp("export"))
    done = command("fit", "wine", "--method", "gesvc", "--save", "wine.skops")
    assert done.returncode == 0, done.stderr
    return command


def test_the_file_answers_as_predict_does(saved):
    done = saved("export", "wine.skops", "double.onnx", "--float64")
    assert (done.returncode, done.stderr) == (0, "")
    session = onnxruntime.InferenceSession(
        (saved.folder / "double.onnx").read_bytes(), providers=["CPUExecutionProvider"]
    )
    names = [one.name for one in session.get_inputs()]
    assert f"inputs   {', '.join(names)}\noutputs  label, scores\n" in done.stdout
    rows = np.random.default_rng(0).normal(size=(20, len(names))) * 2 + 3
    with open(saved.folder / "new.csv", "w", newline="", encoding="utf-8") as file:
        columns = load_model(saved.folder / "wine.skops").columns
        csv.writer(file).writerows([columns, *rows.tolist()])
    told = saved("predict", "wine.skops", "new.csv", "--scores", "--json")
    assert told.returncode == 0, told.stderr
    wanted = json.loads(told.stdout)["data"]
    feed = dict(zip(names, rows.T[..., None], strict=True))
    label, scores = session.run(["label", "scores"], feed)
    assert [str(one) for one in label] == [str(row["prediction"]) for row in wanted]
    margins = [key for key in wanted[0] if key != "prediction"]
    expected = np.array([[row[key] for key in margins] for row in wanted])
    np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)


def test_no_file_is_replaced_unless_told(saved):
    assert saved("export", "wine.skops", "wine.onnx").returncode == 0
    before = saved.listing()
    again = saved("export", "wine.skops", "wine.onnx")
    assert (again.returncode, "exists and is left as it is" in again.stderr) == (2, True)
    onto = saved("export", "wine.skops", "wine.skops", "--overwrite")
    assert (onto.returncode, "never replaced" in onto.stderr) == (2, True)
    assert saved.listing() == before
    told = saved("export", "wine.skops", "wine.onnx", "--overwrite", "--json")
    found = json.loads(told.stdout)
    assert found["outputs"] == ["label", "scores"]
    assert found["bytes"] == len((saved.folder / "wine.onnx").read_bytes())


def test_what_cannot_be_exported_is_one_line(command):
    fitted = command("fit", "wine", "--method", "laplacianeigenmaps", "--save", "w.skops")
    assert fitted.returncode == 0, fitted.stderr
    done = command("export", "w.skops", "w.onnx")
    assert done.returncode == 2
    assert done.stderr.startswith("error: ONNX export of LaplacianEigenmaps is not possible")
    assert done.stderr.count("\n") == 1
    assert not (command.folder / "w.onnx").exists()
