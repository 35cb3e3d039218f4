"""Rows, labels and weights are validated at the door, once, and trusted after it."""

from __future__ import annotations

import subprocess
import sys
import warnings

import numpy as np
import pytest
import sklearn.utils.validation
from estimator_families import ESTIMATORS
from sklearn.datasets import load_wine
from sklearn.preprocessing import scale

import marginfold.feature_maps.feature_map
import marginfold.graphs.rule
import marginfold.validation.rows
from marginfold import LSVA, LaplacianEigenmaps, LocallyLinearEmbedding
from marginfold.errors import InvalidInputError
from marginfold.validation import SERVED_BY, register_row_types
from marginfold.validation.rows import LARGEST_ENTRY, backend_of, is_lazy, read_rows

X, y = load_wine(return_X_y=True)
X = scale(X)
WEIGHTS = np.ones(len(X))
CHECKS_WEIGHTS = [
    marginfold.feature_maps.feature_map,
    marginfold.graphs.rule,
    marginfold.validation.rows,
]


@pytest.fixture
def seen(monkeypatch):
    """The arrays that scikit-learn validates and the weights that are checked, in turn."""
    seen = {"rows": [], "weights": []}
    check_array = sklearn.utils.validation.check_array

    def counted(array, *args, **kwargs):
        seen["rows"].append(array)
        return check_array(array, *args, **kwargs)

    monkeypatch.setattr(sklearn.utils.validation, "check_array", counted)
    for module in CHECKS_WEIGHTS:
        check_weights = module.check_weights

        def check(weights, n_rows, check_weights=check_weights):
            seen["weights"].append(weights)
            return check_weights(weights, n_rows)

        monkeypatch.setattr(module, "check_weights", check)
    return seen


def looked_at(arrays):
    return sum(isinstance(array, np.ndarray) and np.shares_memory(array, X) for array in arrays)


def fitted(model):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y, sample_weight=WEIGHTS)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("cls", ESTIMATORS)
def test_a_fit_validates_rows_and_weights_once(cls, kernel, seen):
    fitted(cls(kernel=kernel))
    assert looked_at(seen["rows"]) == 1
    assert len(seen["weights"]) == 1


@pytest.mark.parametrize("cls", [LaplacianEigenmaps, LocallyLinearEmbedding])
def test_an_embedding_without_a_map_validates_once(cls, seen):
    fitted(cls())
    assert looked_at(seen["rows"]) == 1
    assert len(seen["weights"]) == 1


@pytest.mark.parametrize("method", ["transform", "decision_function"])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_new_rows_are_validated_once(kernel, method, seen):
    model = fitted(LSVA(2, kernel=kernel))
    seen["rows"].clear()
    getattr(model, method)(X)
    assert looked_at(seen["rows"]) == 1


@pytest.mark.parametrize(
    ("value", "message"),
    [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity"), (-2 * LARGEST_ENTRY, "size")],
)
@pytest.mark.parametrize("place", [0, 150_000])
def test_one_entry_is_found_wherever_it_is(value, message, place):
    rows = np.ones((200_000, 3))
    rows[place, 1] = value
    with pytest.raises(ValueError, match=message):
        read_rows(LSVA(), rows, None)


class Remote:
    """A collection of a package that nobody knows."""


def test_a_type_is_served_by_the_module_that_is_registered(monkeypatch):
    assert backend_of(np.ones(3)) is None
    monkeypatch.setattr(Remote, "__module__", "far.away")
    assert not is_lazy(Remote())
    monkeypatch.setitem(SERVED_BY, "far", "")
    register_row_types(["far"], "marginfold.errors")
    assert is_lazy(Remote())
    assert backend_of(Remote()) is marginfold.errors
    with pytest.raises(InvalidInputError, match="far Remote"):
        marginfold.graphs.NeighborGraph().build(Remote())


def test_the_package_is_imported_without_numpy_and_dask():
    code = "import sys, marginfold; print(sorted({'numpy', 'dask', 'sklearn'} & set(sys.modules)))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
