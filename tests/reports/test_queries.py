"""The query of a number, asked of real records, finds those that the number rests on."""

from __future__ import annotations

import sqlite3

import numpy as np
import pytest

from marginfold.protocols.records import RecordStore, Result
from marginfold.protocols.studies import Task
from marginfold.reports.rendering import COLUMNS, counts, query

DATASETS = ["wine", "it's", "sonar"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    with RecordStore(folder) as store:
        for number, dataset in enumerate(DATASETS):
            for seed in range(3):
                task = Task("lsva", dataset, "LSVA", "paper", seed=seed, work=print)
                results = [
                    Result("error", 0.1 * number + 0.01 * seed, {"lam": lam, "graph": "knn"}, 2)
                    for lam in (0.5, 2.0)
                ]
                store.write(task, [*results, Result("seconds", 1.0)], seconds=1.0)
    return folder


def asked(folder, source):
    connection = sqlite3.connect(folder / "records.sqlite")
    try:
        cursor = connection.execute(query(source))
        names = [column[0] for column in cursor.description]
        return sorted((dict(zip(names, row, strict=True)) for row in cursor), key=str)
    finally:
        connection.close()


@pytest.mark.parametrize(
    "columns",
    [
        {},
        {"study": "lsva", "dataset": "wine"},
        {"dataset": "it's", "seed": 1},
        {"dataset": ["wine", "sonar"], "seed": (0, 2)},
        {"seed": 2, "metric": "error"},
        {"dataset": {"wine", "it's"}},
        {"protocol": ""},
        {"study": "'; DROP TABLE records; --"},
    ],
    ids=["all", "two", "quote", "lists", "numbers", "set", "empty", "hostile"],
)
def test_a_query_finds_what_the_store_finds(folder, columns):
    with RecordStore(folder, read_only=True) as store:
        expected = sorted(str((r.seed, r.fold, r.metric, r.value)) for r in store.read(**columns))
    found = asked(folder, {**columns, "records": len(expected), "seeds": 3})
    assert sorted(str((r["seed"], r["fold"], r["metric"], r["value"])) for r in found) == expected


def test_a_bar_is_a_letter_like_others(folder):
    assert asked(folder, {"dataset": "it's|wine"}) == []
    assert len(asked(folder, {"dataset": ["wine", "it's"], "protocol": ["", "paper"]})) == 2 * 3 * 3


def test_options_are_asked_for_as_a_whole(tmp_path):
    grids = ({"grid": [0.1, 1.0], "folds": 5}, {"grid": [0.1], "folds": 5}, {})
    with RecordStore(tmp_path) as store:
        for options in grids:
            task = Task("demo", "wine", "LDA", options=options, work=print)
            store.write(task, [Result("error", 0.5)], seconds=0.0)
    for options in grids:
        assert len(asked(tmp_path, {"options": options})) == 1


def test_entries_of_json_columns_can_be_asked_for(folder):
    found = asked(folder, {"params": {"lam": 0.5, "graph": "knn"}, "dataset": "wine"})
    assert len(found) == 3
    assert asked(folder, {"params": {"lam": [0.5, 2.0]}, "dataset": "wine"})[0]["metric"] == "error"
    assert asked(folder, {"params": {"la'm": 1}}) == []


def test_numbers_of_numpy_are_numbers(folder):
    assert asked(folder, {"seed": np.int64(2)}) == asked(folder, {"seed": 2}) != []
    assert asked(folder, {"value": np.float64(0.1)}) == asked(folder, {"value": 0.1}) != []


def test_a_missing_value_is_asked_for_as_null(folder):
    assert {r["metric"] for r in asked(folder, {"dimension": None})} == {"seconds"}


def test_what_is_no_column_is_counted_in_words():
    source = {"dataset": "wine", "records": 1, "seeds": 5}
    assert counts(source) == "1 record, 5 seeds"
    assert "records =" not in query(source)
    assert {"study", "dataset", "method", "protocol", "task"} <= COLUMNS
    assert not {"records", "seeds", "versions"} & COLUMNS
