"""The record store: what was written is read, and what cannot be used is refused in words."""

from __future__ import annotations

import math
import sqlite3
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import fields, replace

import numpy as np
import pytest
import scipy
import sklearn

import marginfold
from marginfold.protocols.records import (
    FILE_NAME,
    SCHEMA,
    Record,
    RecordStore,
    Result,
    installed_versions,
)
from marginfold.protocols.studies import Task

TASK = Task("demo", "wine", "1-NN", "plain", seed=3, fold=1, options={"folds": 5}, work=print)

RESULTS = (Result("error", 0.25),)
"""What a task comes to where it does not matter."""


@pytest.fixture
def store(tmp_path):
    with RecordStore(tmp_path / "run") as opened:
        yield opened


def write(store, *tasks, results=RESULTS, **given):
    for task in tasks:
        store.write(task, results, **{"seconds": 0.5} | given)


def test_every_column_comes_back(store):
    result = Result("error", 0.125, {"graph_weight": 2.5, "head": "1-nn"}, 7, "a remark")
    write(store, TASK, results=[result])
    assert store.read() == [
        Record(
            study="demo",
            dataset="wine",
            method="1-NN",
            protocol="plain",
            seed=3,
            fold=1,
            options={"folds": 5},
            params={"graph_weight": 2.5, "head": "1-nn"},
            dimension=7,
            metric="error",
            value=0.125,
            seconds=0.5,
            status="done",
            reason="a remark",
            task=TASK.key,
            versions=installed_versions(),
        )
    ]


def test_values_come_back_bit_by_bit(store):
    rng = np.random.default_rng(0)
    values = [*rng.standard_normal(200), 5e-324, 1.7976931348623157e308, 0.1 + 0.2, math.inf]
    write(store, TASK, results=[Result("error", float(value)) for value in values])
    assert [r.value for r in store.read()] == values


def test_a_value_that_is_no_number_is_no_value(store):
    write(store, TASK, results=[Result("error", math.nan), Result("error", None, reason="none")])
    assert [r.value for r in store.read()] == [None, None]


def test_text_of_any_script_comes_back(store):
    text = "Ωμέγα 木 — «ñ» 🙂 ' \" ; DROP TABLE records; \n\t"
    task = Task(text, text, text, text, options={text: text}, work=print)
    write(store, task, results=[Result(text, 1.0, {text: [text, None, True]}, reason=text)])
    (record,) = store.read(dataset=text, method=[text])
    assert {record.study, record.protocol, record.metric, record.reason} == {text}
    assert (record.options, record.params) == ({text: text}, {text: [text, None, True]})


def test_rows_stay_in_their_order_and_tasks_in_a_fixed_one(tmp_path):
    tasks = [replace(TASK, seed=seed, fold=fold) for seed in range(3) for fold in range(3)]
    results = [Result("error", float(v), {"part": v}) for v in (9, 1, 5)]
    tables = []
    for name, order in (("up", tasks), ("down", tasks[::-1])):
        with RecordStore(tmp_path / name) as store:
            write(store, *order, results=results)
            tables.append(store.read())
    assert tables[0] == tables[1]
    assert [(r.seed, r.fold, r.value) for r in tables[0]] == [
        (task.seed, task.fold, r.value) for task in tasks for r in results
    ]


def test_writing_again_replaces_all_rows_of_the_task(store):
    other = replace(TASK, fold=2)
    write(store, TASK, other, results=[Result("error", 1.0), Result("error", 2.0)])
    write(store, TASK, results=[Result("error", 3.0)], seconds=9.0)
    assert [(r.fold, r.value) for r in store.read()] == [(1, 3.0), (2, 1.0), (2, 2.0)]


def test_finished_is_what_is_done(store):
    tasks = {s: replace(TASK, dataset=s) for s in ("done", "skipped", "failed")}
    for status, task in tasks.items():
        write(store, task, status=status)
    assert store.finished() == {tasks["done"].key}
    write(store, tasks["failed"])
    assert store.finished() == {tasks["done"].key, tasks["failed"].key}


def test_an_attempt_that_cannot_be_written_leaves_the_earlier_one(store):
    write(store, TASK)
    earlier = store.read()
    with pytest.raises(ValueError, match="no result"):
        write(store, TASK, results=[])
    with pytest.raises(sqlite3.IntegrityError):
        write(store, TASK, status="half done")
    with pytest.raises(TypeError):
        write(store, TASK, results=[Result("error", 1.0), Result("error", 1.0, {"rows": {1}})])
    assert store.read() == earlier
    write(store, replace(TASK, fold=2))  # and the store goes on
    assert len(store.read()) == 2


def test_reading_by_columns_is_filtering_by_hand(store):
    tasks = [
        Task("demo", d, m, seed=s, fold=f, work=print)
        for d in ("wine", "iris")
        for m in ("PCA", "LDA")
        for s in range(2)
        for f in range(2)
    ]
    for task in tasks:
        status = "failed" if task.seed and task.fold else "done"
        write(
            store,
            task,
            results=[Result(x, 1.0, dimension=k) for x in "ab" for k in (1, 2)],
            status=status,
        )
    everything = store.read()
    assert len(everything) == len(store.read()) == 64
    for columns in (
        {"dataset": "wine"},
        {"dataset": ["wine"], "method": ("PCA", "LDA")},
        {"seed": {0, 1}, "metric": "a", "status": "done"},
        {"seed": frozenset({1}), "fold": 1},
        {"dimension": 2, "metric": ["b", "c"]},
        {"dataset": []},
        {"dataset": "none"},
        {"task": [tasks[0].key, tasks[5].key]},
    ):
        wanted = [
            r
            for r in everything
            if all(
                getattr(r, name) in value
                if isinstance(value, list | tuple | set | frozenset)
                else getattr(r, name) == value
                for name, value in columns.items()
            )
        ]
        assert store.read(**columns) == wanted
        assert len(store.read(**columns)) == len(wanted)


def test_names_that_are_no_columns_are_refused(store):
    with pytest.raises(ValueError, match="is no column"):
        store.read(**{"1=1 OR study": "x"})


def test_identifiers_that_are_no_columns_are_refused(store):
    with pytest.raises(ValueError, match="is no column"):
        store.read(datasets="wine")


def test_none_finds_what_has_none(store):
    write(store, TASK, results=[Result("error", 1.0), Result("error", 1.0, dimension=1)])
    assert [r.dimension for r in store.read(dimension=None)] == [None]


def test_numbers_of_numpy_are_numbers(store):
    results = [Result("error", np.float64(0.5), {}, np.int64(3)), Result("error", np.float32(0.5))]
    write(store, replace(TASK, seed=int(np.int64(3))), results=results)
    assert [(r.value, r.dimension) for r in store.read(seed=np.int64(3))] == [(0.5, 3), (0.5, None)]


def test_versions_of_all_that_computes_are_kept_with_each_row(store):
    write(store, TASK)
    (record,) = store.read()
    for name, module in (("numpy", np), ("scipy", scipy), ("scikit-learn", sklearn)):
        assert f"{name} {module.__version__}" in record.versions
    assert f"marginfold {marginfold.__version__}" in record.versions


def test_rows_of_an_older_version_keep_it(store):
    write(store, TASK, replace(TASK, fold=2))
    with closing(sqlite3.connect(store.path)) as file, file:
        assert file.execute("SELECT COUNT(*) FROM environments").fetchone() == (1,)
        file.execute("UPDATE environments SET versions = 'marginfold 0.0.1'")
    write(store, replace(TASK, fold=3))
    assert [r.versions for r in store.read()] == ["marginfold 0.0.1"] * 2 + [installed_versions()]


def test_the_file_is_in_wal_mode_and_numbered(store):
    with closing(sqlite3.connect(store.path)) as file:
        assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert file.execute("PRAGMA user_version").fetchone() == (SCHEMA,)
        columns = {row[1] for row in file.execute("PRAGMA table_info(records)")}
    assert columns - {"part", "environment"} == {f.name for f in fields(Record)} - {"versions"}


def test_a_store_opened_again_has_what_it_had(tmp_path):
    folder = tmp_path / "a" / "b" / "run %20 #?x"
    with RecordStore(folder) as store:
        write(store, TASK)
        written = store.read()
    assert [path.name for path in folder.iterdir()] == [FILE_NAME]
    for read_only in (False, True):
        with RecordStore(str(folder), read_only=read_only) as store:
            assert store.read() == written


def test_many_may_open_and_write_at_once(tmp_path):
    def fill(seed: int) -> None:
        with RecordStore(tmp_path / "run") as store:
            write(store, *(replace(TASK, seed=seed, fold=fold) for fold in range(5)))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(fill, range(6)))
    with RecordStore(tmp_path / "run", read_only=True) as store:
        assert [(r.seed, r.fold) for r in store.read()] == [
            (s, f) for s in range(6) for f in range(5)
        ]


def test_a_mapping_is_the_whole_of_a_column(store):
    params = ({"head": "1-nn"}, {"head": "1-nn", "k": 2}, {})
    write(store, TASK, results=[Result("error", 0.1 * k, p) for k, p in enumerate(params)])
    assert [r.params for r in store.read(params={"k": 2, "head": "1-nn"})] == [params[1]]
    assert len(store.read(params={})) == 1
    assert len(store.read(options={"none": "such"})) == 0
