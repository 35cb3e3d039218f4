"""The synthetic sets: on their curves without noise, the same for the same seed."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.svm import SVC

from marginfold import GEPSVC
from marginfold.data import cross_planes, noisy_sine
from marginfold.errors import InvalidParameterError

GENERATORS = [cross_planes, noisy_sine]


@pytest.mark.parametrize("generate", GENERATORS)
def test_a_seed_decides_the_rows_and_no_global_state_does(generate):
    np.random.seed(1)  # noqa: NPY002
    first = generate(50, random_state=3)
    np.random.seed(2)  # noqa: NPY002
    again, other = generate(50, random_state=3), generate(50, random_state=4)
    assert_array_equal(first.X, again.X)
    assert_array_equal(first.y, again.y)
    assert (first.X != other.X).any()


def test_without_noise_the_classes_are_the_two_lines():
    data = cross_planes(101, noise=0.0)
    assert_array_equal(np.bincount(data.y), [51, 50])
    assert_array_equal(data.X[:, 1], np.where(data.y == 0, 1, -1) * data.X[:, 0])
    assert np.abs(data.X).max() <= 1


def test_no_line_parts_the_crossing_planes():
    data = cross_planes(400, noise=0.02)
    assert GEPSVC().fit(data.X, data.y).score(data.X, data.y) > 0.9
    assert SVC(kernel="linear").fit(data.X, data.y).score(data.X, data.y) < 0.75


def test_without_noise_the_sine_is_a_sine():
    data = noisy_sine(33, noise=0.0)
    assert_allclose(data.X[:, 1], np.sin(np.pi * data.X[:, 0] / 3), atol=1e-15)
    assert_array_equal(data.y, np.linspace(-1, 1, 33))
    assert repr(data) == "Dataset(33 x 2)"


@pytest.mark.parametrize("generate", GENERATORS)
def test_the_noise_has_the_deviation_asked_for(generate):
    clean, noisy = generate(20_000, noise=0.0), generate(20_000, noise=0.3)
    assert_allclose((noisy.X - clean.X).std(axis=0), 0.3, rtol=0.03)
    assert_allclose((noisy.X - clean.X).mean(axis=0), 0, atol=0.01)


@pytest.mark.parametrize("generate", GENERATORS)
@pytest.mark.parametrize(
    "bad",
    [
        {"n_samples": 0},
        {"n_samples": 2.5},
        {"n_samples": True},
        {"noise": -0.1},
        {"noise": np.nan},
        {"random_state": -1},
        {"random_state": None},
        {"random_state": "seed"},
    ],
)
def test_bad_parameters_are_named(generate, bad):
    (name,) = bad
    with pytest.raises(InvalidParameterError, match=f"^{name} must be"):
        generate(**bad)
