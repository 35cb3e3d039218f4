"""Saved models: equal to the last bit after loading, refused when they could be anything else."""

from __future__ import annotations

import io
import json
import os
import pickle
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.kernel_approximation import Nystroem
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import marginfold
from marginfold import (
    LSVA,
    MMDA,
    AnchorGraph,
    LowRankKernel,
    MarginMap,
    NeighborGraph,
    WithinClassGraph,
)
from marginfold.data.models import ALLOWED, HEADER, SCHEMA, load_model, save_model
from marginfold.errors import InvalidInputError, MarginfoldWarning

skops_io = pytest.importorskip("skops.io", reason="model files need skops")

X, y = load_iris(return_X_y=True)
X, y = X[::3], y[::3]
SEARCHES = ("SubspaceSearchCV", "PathSearchCV")  # of an estimator: see test_compiled_parts.py
ESTIMATORS = sorted(
    name
    for name in marginfold.__all__
    if name[0].isupper()
    and name not in SEARCHES
    and hasattr(value := getattr(marginfold, name), "fit")
    and hasattr(value, "get_params")
)


def has(name, *parameters):
    return set(parameters) <= getattr(marginfold, name)().get_params(deep=False).keys()


CASES = [pytest.param(name, {}, id=name) for name in ESTIMATORS]
CASES += [
    pytest.param(name, {"kernel": "rbf"}, id=f"{name}-rbf")
    for name in ESTIMATORS
    if has(name, "kernel")
]
CASES += [
    pytest.param(name, {"graph": 0.3 * NeighborGraph(5) + WithinClassGraph()}, id=f"{name}-sum")
    for name in ("LSVA", "GESVC", "MRGEPSVC")
]
CASES += [
    pytest.param("LSVA", {"kernel": "rbf", "reconstruct": way}, id=f"LSVA-{way}")
    for way in ("linear", "kernel_ridge", "fixed_point")
]
CASES += [
    pytest.param("LSVA", {"kernel": Nystroem(n_components=9, random_state=0)}, id="LSVA-nystroem"),
    pytest.param("LSVA", {"kernel": LowRankKernel(rank=9)}, id="LSVA-low-rank"),
    pytest.param("GESVC", {"graph": AnchorGraph(9)}, id="GESVC-anchors"),
    pytest.param("GESVC", {"penalty_graph": "between", "kernel": "rbf"}, id="GESVC-penalty"),
    pytest.param("MMDA", {"solver": marginfold.LibSVM()}, id="MMDA-libsvm"),
    pytest.param("MMDA", {"solver": "auto"}, id="MMDA-auto"),
    pytest.param("LaplacianEigenmaps", {"graph": "lle"}, id="LaplacianEigenmaps-lle"),
    pytest.param(
        "LaplacianEigenmaps",
        {"graph": NeighborGraph(5, weights="distance")},
        id="LaplacianEigenmaps-distance",
    ),
    pytest.param("LSVA", {"tasks": "random", "random_state": 3}, id="LSVA-random"),
    pytest.param("SVMPCA", {"n_components": "cv"}, id="SVMPCA-cv"),
]


def fitted(name, parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MarginfoldWarning)
        return getattr(marginfold, name)(**parameters).fit(X, y)


def answers(model):
    """Everything that a model says about rows it has not seen."""
    rows = X[::2] + 0.01
    said = [
        getattr(model, method)(rows)
        for method in ("transform", "predict", "decision_function")
        if hasattr(model, method)
    ]
    if getattr(model, "reconstruct", None):
        said.append(model.inverse_transform(model.transform(rows)))
    assert said
    return said


@pytest.mark.parametrize(("name", "parameters"), CASES)
def test_a_loaded_model_is_equal_to_the_last_bit(name, parameters, tmp_path):
    model = fitted(name, parameters)
    save_model(model, tmp_path / "m.skops")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loaded = load_model(tmp_path / "m.skops")
    assert type(loaded) is type(model)
    assert str(loaded.get_params()) == str(model.get_params())
    assert vars(loaded).keys() == vars(model).keys()
    for ours, theirs in zip(answers(model), answers(loaded), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_labels_survive_as_strings_and_pipelines_as_pipelines(tmp_path):
    labels = np.array(["čáp", "b", "c"])[y]
    model = make_pipeline(StandardScaler(), marginfold.GESVC()).fit(X, labels)
    save_model(model, tmp_path / "m.skops")
    loaded = load_model(tmp_path / "m.skops")
    assert loaded.predict(X).tolist() == model.predict(X).tolist()
    assert "čáp" in loaded.classes_


def test_every_public_estimator_is_allowed():
    public = {getattr(marginfold, name) for name in (*ESTIMATORS, *SEARCHES)}
    missing = {f"{kind.__module__}.{kind.__qualname__}" for kind in public} - ALLOWED
    assert not missing


def test_the_list_is_pinned_where_it_names_types_of_others():
    others = {name for name in ALLOWED if not name.startswith("marginfold.")}
    splitters = {name for name in others if name.startswith("sklearn.model_selection._split.")}
    assert len(splitters) == 9
    scores = {
        name
        for name in others
        if name.startswith(("sklearn.metrics._classification.", "sklearn.metrics._ranking."))
    }
    assert len(scores) == 12
    assert others - splitters - scores == {
        "numpy.dtype",
        "sklearn.calibration._CalibratedClassifier",
        "sklearn.calibration._SigmoidCalibration",
        "sklearn.calibration._TemperatureScaling",
        "sklearn.compose._column_transformer._RemainderColsList",
        "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
        "sklearn.metrics._scorer._PassthroughScorer",
        "sklearn.metrics._scorer._Scorer",
        "sklearn.utils._metadata_requests.MetadataRequest",
        "sklearn.utils._metadata_requests.MethodMetadataRequest",
    }


def own_kernel(a, b):
    return a @ b.T


def changed(**parameters):
    """A fitted model with parameters that it was not fitted with."""
    return MMDA().fit(X, y).set_params(**parameters)


@pytest.mark.parametrize(
    ("model", "named"),
    {
        "lambda": (lambda: MMDA(kernel=lambda a, b: a @ b.T).fit(X, y), "<lambda>"),
        "function": (lambda: MMDA(kernel=own_kernel).fit(X, y), "own_kernel"),
        "system": (lambda: changed(kernel=os.system), "system"),
        "generator": (lambda: changed(kernel=(k for k in "ab")), "generator"),
        "boolean keys": (lambda: changed(class_weight={True: 2, False: 1}), "True or False"),
        "tuple keys": (lambda: changed(class_weight={(1, 2): 2}), "keys"),
    }.values(),
    ids=["lambda", "function", "system", "generator", "boolean-keys", "tuple-keys"],
)
def test_what_could_not_be_loaded_is_not_saved(model, named, tmp_path):
    with pytest.raises(InvalidInputError, match=f"cannot be saved.*{named}"):
        save_model(model(), tmp_path / "m.skops")
    assert list(tmp_path.iterdir()) == []


def test_an_existing_file_is_kept_unless_told_otherwise(tmp_path):
    path = tmp_path / "m.skops"
    path.write_bytes(b"precious")
    with pytest.raises(InvalidInputError, match="exists"):
        save_model(MMDA().fit(X, y), path)
    assert path.read_bytes() == b"precious"
    save_model(MMDA().fit(X, y), path, overwrite=True)
    assert isinstance(load_model(path), MMDA)
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("where", ["no/such/folder.skops", "."])
def test_a_path_that_cannot_be_a_file_is_refused(where, tmp_path):
    with pytest.raises(InvalidInputError, match="cannot write"):
        save_model(MMDA().fit(X, y), tmp_path / where, overwrite=True)
    assert list(tmp_path.iterdir()) == []


def rewritten(content, changes):
    """An archive with some members changed (None: removed)."""
    result = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(result, "w") as new:
        for member in old.namelist():
            value = changes.get(member, old.read(member))
            if value is not None:
                new.writestr(member, value)
        for member in changes.keys() - set(old.namelist()):
            new.writestr(member, changes[member])
    return result.getvalue()


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "m.skops"
    save_model(LSVA().fit(X, y), path)
    return path


class Bomb:
    """Leaves a trace if it is ever made or restored."""

    def __init__(self):
        self.armed = True

    def __setstate__(self, state):
        raise AssertionError("code of the file was run")

    def __reduce__(self):
        return os.mkdir, ("exploded",)


def with_header(content):
    return rewritten(content, {HEADER: json.dumps({"schema": SCHEMA})})


class Stranger:
    def __init__(self):
        self.value = 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(lambda: with_header(skops_io.dumps(Stranger())), "Stranger", id="class"),
        pytest.param(
            lambda: with_header(skops_io.dumps(MMDA(kernel=os.system))), "system", id="function"
        ),
        pytest.param(lambda: pickle.dumps(Bomb()), "pickle", id="pickle"),
        pytest.param(lambda: pickle.dumps(MMDA()), "pickle", id="pickled-model"),
        pytest.param(lambda: b"", "not a model file", id="empty"),
        pytest.param(lambda: b"a,b\n1,2\n", "not a model file", id="table"),
        pytest.param(lambda: skops_io.dumps(SVC()), "not written by marginfold", id="plain-skops"),
        pytest.param(lambda: b"PK\x03\x04 and then nothing", "damaged", id="half-header"),
    ],
)
def test_a_hostile_or_foreign_file_is_refused(content, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "m.skops").write_bytes(content())
    with pytest.raises(InvalidInputError, match=message):
        load_model("m.skops")
    assert [path.name for path in tmp_path.iterdir()] == ["m.skops"]


def test_a_type_smuggled_into_a_good_file_is_refused(saved):
    content = saved.read_bytes()
    with zipfile.ZipFile(saved) as archive:
        schema = archive.read("schema.json").decode()
    for module, name in [("os", "system"), ("subprocess", "Popen"), ("builtins", "eval")]:
        forged = schema.replace('"marginfold.estimators.lsva"', f'"{module}"').replace(
            '"LSVA"', f'"{name}"'
        )
        assert forged != schema
        saved.write_bytes(rewritten(content, {"schema.json": forged}))
        with pytest.raises(InvalidInputError, match=rf"{module}\.{name}.*nothing was loaded"):
            load_model(saved)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9, 0.999])
def test_a_truncated_file_is_refused(share, saved):
    content = saved.read_bytes()
    saved.write_bytes(content[: int(share * len(content))])
    with pytest.raises(InvalidInputError, match="damaged"):
        load_model(saved)


def test_a_flipped_bit_is_noticed_wherever_it_is(saved):
    """Loading gives the same model or an error: the archive's sums cover every member."""
    content = bytearray(saved.read_bytes())
    expected = load_model(saved).transform(X)
    rng = np.random.default_rng(0)
    for position in rng.integers(0, len(content), 60):
        flipped = content.copy()
        flipped[position] ^= 1 << int(rng.integers(8))
        saved.write_bytes(flipped)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                loaded = load_model(saved)
            except InvalidInputError:
                continue
        np.testing.assert_array_equal(loaded.transform(X), expected)


def test_a_later_schema_is_refused_before_its_types_are_judged(saved):
    header = json.dumps({"schema": SCHEMA + 1, "marginfold": "9.0"})
    saved.write_bytes(rewritten(saved.read_bytes(), {HEADER: header, "schema.json": "{}"}))
    with pytest.raises(InvalidInputError, match=r"schema 2 \(marginfold 9.0\).*Update"):
        load_model(saved)


def test_other_versions_are_named_in_a_warning(saved):
    header = json.dumps({"schema": SCHEMA, "marginfold": "0.0.1", "numpy": np.__version__})
    saved.write_bytes(rewritten(saved.read_bytes(), {HEADER: header}))
    with pytest.warns(MarginfoldWarning, match="marginfold 0.0.1 .*scikit-learn unknown") as caught:
        load_model(saved)
    assert "numpy" not in str(caught[0].message)
    assert caught[0].filename == __file__


def test_a_file_that_unpacks_to_more_than_its_size_is_refused(saved):
    result = io.BytesIO()
    with zipfile.ZipFile(saved) as old, zipfile.ZipFile(result, "w", zipfile.ZIP_DEFLATED) as new:
        for member in old.namelist():
            new.writestr(member, old.read(member))
        new.writestr("padding", bytes(10**7))
    saved.write_bytes(result.getvalue())
    with pytest.raises(InvalidInputError, match="more than its size"):
        load_model(saved)


def test_a_missing_model_is_said_to_be_missing(tmp_path):
    with pytest.raises(InvalidInputError, match="there is no model file"):
        load_model(tmp_path / "m.skops")
    with pytest.raises(InvalidInputError, match="not a regular file"):
        load_model(tmp_path)


FULL_DISK = """
import resource, sys
from sklearn.datasets import load_iris
from marginfold import MMDA
from marginfold.data.models import save_model
model = MMDA(kernel="rbf").fit(*load_iris(return_X_y=True))
sys.dont_write_bytecode = True  # a module that is cut off would stay for later processes
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
for path in sys.argv[1:]:
    try:
        save_model(model, path, overwrite=True)
    except OSError as error:
        print(type(error).__name__)
"""


@pytest.mark.skipif(os.name != "posix", reason="limits of processes are a matter of POSIX")
def test_a_full_disk_leaves_what_was_there_and_nothing_else(tmp_path):
    old, new = tmp_path / "old.skops", tmp_path / "new.skops"
    old.write_bytes(b"precious")
    result = subprocess.run(
        [sys.executable, "-c", FULL_DISK, old, new], capture_output=True, text=True, check=True
    )
    assert result.stdout.split() == ["OSError", "OSError"]
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "old.skops": b"precious"
    }


def test_a_map_of_a_foreign_classifier_is_saved_as_scikit_learn_has_it(tmp_path):
    model = MarginMap(SVC(), sharpness=2.0).fit(X, y)
    save_model(model, tmp_path / "m.skops")
    np.testing.assert_array_equal(load_model(tmp_path / "m.skops").transform(X), model.transform(X))


def test_the_second_axis_of_a_map_of_two_classes_is_saved(tmp_path):
    rows, labels = load_iris(return_X_y=True)
    rows, labels = rows[labels < 2], labels[labels < 2]
    model = make_pipeline(StandardScaler(), MarginMap()).fit(rows, labels)
    save_model(model, tmp_path / "map.skops")
    loaded = load_model(tmp_path / "map.skops")
    assert loaded.transform(rows)[:, 1].std() > 0.1
    assert np.array_equal(loaded.transform(rows), model.transform(rows))
