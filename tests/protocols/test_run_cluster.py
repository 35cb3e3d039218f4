"""Runs on a real cluster: the records of a run in one process, whoever is killed."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from clusters import ALLOWED_FAILURES, PATIENCE, Killer, complete, wait_for
from protocols import work_functions as w

from marginfold.compare.runs import Comparison
from marginfold.compare.table import Source
from marginfold.data import load
from marginfold.errors import ClusterError
from marginfold.protocols.records import Record, RecordStore
from marginfold.protocols.run import Outcome, Summary, run_tasks

distributed = pytest.importorskip("distributed", reason="clusters need the extra dask")

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX systems")

PAUSE = 0.05
"""Seconds that a counted task takes."""


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.txt"


@pytest.fixture
def client(cluster: Any, log: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    environment = {w.LOG: str(log), w.PAUSE: str(PAUSE)}
    for name, value in environment.items():
        monkeypatch.setenv(name, value)  # workers that replace others inherit it
    complete(cluster)
    cluster.run(w.set_environment, environment)
    return cluster


def table(store: RecordStore) -> list[Record]:
    return [replace(record, seconds=0.0) for record in store.read()]


def undisturbed(folder: Path, tasks: list, monkeypatch: pytest.MonkeyPatch) -> list[Record]:
    monkeypatch.setenv(w.LOG, str(folder.with_suffix(".txt")))
    monkeypatch.setenv(w.PAUSE, "0")
    with RecordStore(folder) as store:
        run_tasks(tasks, store)
        return table(store)


def test_a_cluster_gives_the_table_of_one_process(client, log, tmp_path, monkeypatch):
    tasks = w.counted_tasks(12)
    with RecordStore(tmp_path / "run") as store:
        summary = run_tasks(tasks, store, client=client)
        assert summary == Summary(found=0, done=8, skipped=3, failed=1)
        assert table(store) == undisturbed(tmp_path / "calm", tasks, monkeypatch)
        assert run_tasks(tasks, store, client=client) == Summary(8, done=0, skipped=3, failed=1)
    assert Counter(fold for fold, _ in w.logged(log))[0] == 1


def test_killed_workers_leave_no_trace_in_the_records(client, tmp_path, monkeypatch):
    tasks, seen = w.counted_tasks(80), []
    with RecordStore(tmp_path / "run") as store:
        with Killer(client, 2, most=2) as killer:
            run_tasks(tasks, store, client=client, progress=lambda *told: seen.append(told))
        assert killer.kills == 2
        assert [told[1] for told in seen] == list(range(81))  # no outcome twice
        assert table(store) == undisturbed(tmp_path / "calm", tasks, monkeypatch)


def test_a_task_that_takes_its_worker_down_has_failed_alone(client, tmp_path):
    tasks = [*w.counted_tasks(2, w.succeed), w.killer(), *w.counted_tasks(5, w.succeed)]
    with RecordStore(tmp_path / "run") as store:
        assert run_tasks(tasks, store, client=client) == Summary(0, done=5, skipped=0, failed=1)
        (record,) = store.read(status="failed")
    assert record.fold == w.KILLER
    assert record.reason.startswith(f"its worker died {2 * (ALLOWED_FAILURES + 1)} times")


def test_a_lost_cluster_keeps_what_is_stored(client, log, tmp_path, monkeypatch):
    own = distributed.Client(client.scheduler.address, set_as_default=False)
    tasks = w.counted_tasks(20)

    def end(outcome: Outcome | None, finished: int, total: int) -> None:
        if finished == 4:
            own.close()

    with RecordStore(tmp_path / "run") as store:
        with pytest.raises(ClusterError, match="lost after 4 of 20 calls"):
            run_tasks(tasks, store, client=own, progress=end)
        stored = {record.fold for record in store.read()}
        assert len(stored) == 4
        again = run_tasks(tasks, store, client=client)
        assert again.found + again.done + again.skipped + again.failed == 20
        assert table(store) == undisturbed(tmp_path / "calm", tasks, monkeypatch)


def test_a_killed_client_goes_on_where_it_was(client, log, tmp_path, monkeypatch):
    folder, address = tmp_path / "run", client.scheduler.address
    process = w.start(w.run_on_cluster, folder, 40, address, log=log)
    assert wait_for(lambda: len(w.logged(log)) >= 12 or process.poll() is not None)
    process.kill()
    process.communicate(timeout=PATIENCE)
    tasks = w.counted_tasks(40)
    with RecordStore(folder) as store:
        found = run_tasks(tasks, store, client=address).found
        assert 0 < found < 40
        assert table(store) == undisturbed(tmp_path / "calm", tasks, monkeypatch)


def test_rows_are_sent_where_the_file_cannot_be_seen(client, tmp_path):
    path = tmp_path / "wine.csv"
    load("wine").frame.to_csv(path, index=False)
    source = Source(str(path), "label")
    comparison = Comparison.of(source, ["pca", "lda"], n_folds=2, n_repeats=1)
    with RecordStore(tmp_path / "here") as store:
        run_tasks(comparison.tasks(), store)
        expected = table(store)
    sent, unseen = comparison.sent().tasks(), comparison.tasks()
    path.rename(tmp_path / "elsewhere.csv")
    with RecordStore(tmp_path / "there") as store:
        assert run_tasks(unseen, store, client=client).failed == len(unseen)
        assert run_tasks(sent, store, client=client).failed == 0
        assert table(store) == expected
