"""Scales: how many seeds and graph weights, and that names in records are reproducible."""

from __future__ import annotations

import json

import numpy as np
import pytest

from marginfold.errors import InvalidParameterError
from marginfold.protocols.studies import STUDY_SIZES, StudySize, study_size


def test_weights_are_even_on_the_logarithm_from_end_to_end():
    for size in STUDY_SIZES.values():
        for kernel in (False, True):
            weights = size.weights(1e-3, 1e4, kernel=kernel)
            assert len(weights) == (size.n_kernel_weights if kernel else size.n_weights)
            assert (weights[0], weights[-1]) == (1e-3, 1e4)
            steps = np.diff(np.log10(weights))
            np.testing.assert_allclose(steps, steps.mean(), atol=1e-5)


def test_weights_are_plain_numbers_with_short_names():
    for weight in STUDY_SIZES["full"].weights(2.0**-10, 2.0**10):
        assert type(weight) is float
        text = json.dumps(weight)
        assert json.loads(text) == weight == float(f"{weight:.6g}")
        assert len(text) <= 12


def test_one_weight_is_the_lower_end():
    assert StudySize("one", 1, 1, 1, 1, controls=False).weights(0.5, 8.0) == [0.5]


def test_seeds_of_a_smaller_scale_are_among_those_of_a_larger():
    quick, standard, full = (STUDY_SIZES[name] for name in ("quick", "standard", "full"))
    assert list(quick.seeds) == list(range(quick.n_seeds))
    assert set(quick.seeds) <= set(standard.seeds) <= set(full.seeds)
    for larger, smaller in ((standard, quick), (full, standard)):
        assert larger.n_weights >= smaller.n_weights
        assert larger.n_kernel_weights >= smaller.n_kernel_weights
        assert larger.controls >= smaller.controls


def test_scales_are_found_by_their_names_only():
    assert all(study_size(name) is size for name, size in STUDY_SIZES.items())
    assert all(size.name == name for name, size in STUDY_SIZES.items())
    with pytest.raises(InvalidParameterError, match=r"'quick', 'standard', 'full'.*got 'huge'"):
        study_size("huge")
