"""Studies: their sizes and grids, and tasks whose keys name what is measured."""

from __future__ import annotations

import hashlib
import json
import pickle
from dataclasses import replace

import numpy as np
import pytest
from protocols import work_functions as w

from marginfold.errors import InvalidParameterError
from marginfold.protocols.studies import STUDY_SIZES, StudySize, Task, study_size

TASK = Task("demo", "wine", "LSVA", "plain", 1, 2, {"b": [1, 2.5], "a": "é"}, work=w.succeed)


def test_the_key_is_a_hash_of_the_plain_json():
    text = r'["demo","wine","LSVA","plain",1,2,{"a":"\u00e9","b":[1,2.5]}]'
    assert TASK.key == hashlib.sha256(text.encode()).hexdigest()[:24]


def test_the_order_of_options_and_the_work_do_not_enter():
    assert replace(TASK, options={"a": "é", "b": (1, 2.5)}).key == TASK.key
    assert replace(TASK, work=w.kill_itself).key == TASK.key
    assert replace(TASK, work=w.kill_itself) == TASK


@pytest.mark.parametrize(
    "change",
    [
        {"study": "lsva"},
        {"dataset": "iris"},
        {"method": "MMDA"},
        {"protocol": ""},
        {"seed": 0},
        {"fold": 1},
        {"options": {"b": [1, 2.5]}},
        {"options": {"b": [2.5, 1], "a": "é"}},
        {"dataset": "wineLSVA", "method": ""},  # no joint between the parts is lost
    ],
)
def test_everything_that_decides_the_result_enters(change):
    assert replace(TASK, **change).key != TASK.key


@pytest.mark.parametrize(
    ("options", "error"),
    [({"grid": float("nan")}, ValueError), ({"grid": {1, 2}}, TypeError)],
)
def test_options_without_a_plain_form_are_refused(options, error):
    with pytest.raises(error):
        _ = replace(TASK, options=options).key


def test_a_task_reaches_another_process_whole():
    copy = pickle.loads(pickle.dumps(TASK))
    assert copy == TASK
    assert copy.key == TASK.key
    assert copy.work is w.succeed


def test_a_task_is_named_without_what_it_lacks():
    assert str(TASK) == "demo wine LSVA plain seed 1 fold 2"
    assert str(Task("demo", "wine", "PCA", work=print)) == "demo wine PCA"
    assert str(Task("demo", "wine", "PCA", seed=0, work=print)) == "demo wine PCA seed 0"


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
