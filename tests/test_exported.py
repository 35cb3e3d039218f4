"""What `import marginfold` offers: a pinned list, documented to the last parameter, and cheap."""

from __future__ import annotations

import importlib.metadata
import importlib.resources
import inspect
import re
import subprocess
import sys

import numpy as np
import pytest
from estimator_families import EVERY_ESTIMATOR
from sklearn.base import BaseEstimator

import marginfold
from marginfold import errors

PUBLIC = [
    "GEPSVC",
    "GESVC",
    "KDA",
    "LDA",
    "LPP",
    "LSVA",
    "MMDA",
    "MRGEPSVC",
    "NPE",
    "SVMPCA",
    "WSVDA",
    "AnchorGraph",
    "BetweenClassGraph",
    "EmbeddingDisplay",
    "ExactKernel",
    "GainDisplay",
    "GraphEmbedding",
    "GraphTestDisplay",
    "InteriorPoint",
    "LapSVC",
    "LaplacianEigenmaps",
    "LibSVM",
    "Linear",
    "LoadingsDisplay",
    "LocallyLinearEmbedding",
    "LowRankKernel",
    "MarginMap",
    "MarginMapDisplay",
    "NeighborGraph",
    "NeighborsClassifier",
    "PathDisplay",
    "PathSearchCV",
    "PermutedGraph",
    "PlanesDisplay",
    "PrecomputedGraph",
    "ReconstructionGraph",
    "SubspaceSearchCV",
    "TotalGraph",
    "TwinSVC",
    "WithinClassGraph",
    "__version__",
    "graph_permutation_test",
    "load_model",
    "path",
    "plan",
    "save_model",
    "to_onnx",
    "watch",
]
OBJECTS = [name for name in PUBLIC if name != "__version__"]
ESTIMATORS = [cls.__name__ for cls in EVERY_ESTIMATOR]
FITTABLE = [
    *(*ESTIMATORS, "ExactKernel", "Linear", "LowRankKernel"),
    *("NeighborsClassifier", "PathSearchCV", "SubspaceSearchCV"),
]
NEEDED = {
    "PathSearchCV": {"estimator": marginfold.GESVC(), "cv": 2},
    "SubspaceSearchCV": {"estimator": marginfold.LSVA(), "cv": 2},
}
"""Parameters without which an estimator cannot be made, or fitted to the rows below."""
FROM_SCIKIT_LEARN = {"n_features_in_", "feature_names_in_"}
OPTIONAL = ["dask", "matplotlib", "numba", "onnx", "pandas", "polars", "skl2onnx"]

X = np.random.default_rng(0).standard_normal((12, 3))
y = np.repeat([0, 1, 2], 4)


def isort_key(name):
    """Constants, then classes, then the rest, as ruff sorts ``__all__``."""
    kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
    return kind, name


def test_the_public_names_are_pinned_and_sorted():
    assert marginfold.__all__ == PUBLIC
    assert sorted(PUBLIC, key=isort_key) == PUBLIC


def test_a_star_import_gives_exactly_these_names():
    namespace = {}
    exec("from marginfold import *", namespace)
    assert set(namespace) - {"__builtins__"} == set(PUBLIC)


def test_the_version_is_that_of_the_distribution():
    assert re.fullmatch(r"\d+\.\d+\.\d+([a-z.]+\d+)?", marginfold.__version__)
    try:
        installed = importlib.metadata.version("marginfold")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("marginfold is on the path but not installed")
    assert installed == marginfold.__version__


@pytest.mark.parametrize("name", OBJECTS)
def test_every_name_is_documented_with_an_example(name):
    document = inspect.getdoc(getattr(marginfold, name))
    assert re.search(r"^Examples\n-+$", document, re.MULTILINE)
    assert ">>> " in document
    assert name in document.partition("Examples")[2]


@pytest.mark.parametrize("name", OBJECTS)
def test_every_parameter_is_documented(name):
    document = inspect.getdoc(getattr(marginfold, name))
    parameters = inspect.signature(getattr(marginfold, name)).parameters
    section = document.partition("Parameters\n")[2].partition("\nAttributes\n")[0]
    missing = [p for p in parameters if not re.search(rf"\b{p}\b", section)]
    assert not missing


@pytest.mark.parametrize("name", OBJECTS)
def test_the_documented_defaults_are_the_defaults(name):
    """Every ``name : ..., default=...`` line states the value of the signature."""
    document = inspect.getdoc(getattr(marginfold, name))
    parameters = inspect.signature(getattr(marginfold, name)).parameters
    stated = dict(re.findall(r"^(\w+) : .*default=(.+)$", document, re.MULTILINE))
    for parameter, text in stated.items():
        default, value = parameters[parameter].default, eval(text)
        assert default is value or default == value, parameter  # np.nan is not equal to itself


@pytest.mark.parametrize("name", FITTABLE)
def test_every_fitted_attribute_is_documented(name):
    estimator = getattr(marginfold, name)(**NEEDED.get(name, {})).fit(X, y)
    document = inspect.getdoc(type(estimator))
    fitted = {a for a in vars(estimator) if a.endswith("_")} - FROM_SCIKIT_LEARN
    assert sorted(a for a in fitted if not re.search(rf"\b{a}\b", document)) == []


@pytest.mark.parametrize("name", FITTABLE)
def test_every_method_is_documented(name):
    cls = getattr(marginfold, name)
    own = [
        attribute
        for attribute, value in inspect.getmembers(cls, callable)
        if not attribute.startswith("_") and value.__module__.startswith("marginfold")
    ]
    assert own
    assert [attribute for attribute in own if not inspect.getdoc(getattr(cls, attribute))] == []


@pytest.mark.parametrize("name", FITTABLE)
def test_the_parameters_are_stored_untouched(name):
    cls = getattr(marginfold, name)
    assert issubclass(cls, BaseEstimator)
    for parameter in inspect.signature(cls).parameters:
        value = object()
        parameters = NEEDED.get(name, {}) | {parameter: value}
        assert getattr(cls(**parameters), parameter) is value


def test_the_error_tree_is_the_one_that_is_drawn():
    drawn = re.findall(r"\+-- (\w+)", errors.__doc__)
    defined = [
        name for name, value in vars(errors).items() if inspect.isclass(value) and name[0] != "_"
    ]
    assert sorted(drawn) == sorted(defined)
    assert issubclass(errors.InvalidInputError, ValueError)
    assert issubclass(errors.MarginfoldWarning, UserWarning)


def test_importing_needs_no_optional_package():
    """scikit-learn loads pandas when it finds it; marginfold must add none of them itself."""
    program = (
        "import sys, scipy.sparse.linalg, sklearn.metrics, sklearn.neighbors, sklearn.svm;"
        "before = set(sys.modules); import marginfold;"
        f"print([m for m in {OPTIONAL} if m in set(sys.modules) - before])"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert loaded.stdout.strip() == "[]"
    assert loaded.stderr == ""


def test_the_type_marker_is_shipped():
    assert importlib.resources.files("marginfold").joinpath("py.typed").is_file()
