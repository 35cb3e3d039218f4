"""Tasks: their key is the hash of what decides the result, the same in every process and order."""

from __future__ import annotations

import hashlib
import pickle
from dataclasses import replace

import pytest
from protocols import work_functions as w

from marginfold.protocols.studies import Task

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
