"""Paper 001: what its tables count and say of records, mostly of records made for the purpose."""

from __future__ import annotations

from numpy.testing import assert_allclose

from marginfold.papers import wsvda
from marginfold.papers.wsvda.runs import HEADS, PROBLEMS, study_tasks
from marginfold.protocols.published_numbers import printed
from marginfold.protocols.records import RecordStore, Result
from marginfold.protocols.run import run_tasks
from marginfold.protocols.studies import StudySize

TINY = StudySize("tiny", 1, 1, 1, 1, controls=True)


def pairs_of(method):
    """Return the tasks of one partition that say which pairs a method parts."""
    return [task for task in study_tasks(TINY) if (task.method, task.protocol) == (method, "pairs")]


def test_a_missing_component_parts_nothing(tmp_path):
    """Of ten folds nine part the second pair and one has no fourth component."""
    tasks = pairs_of("MMDA")
    with RecordStore(tmp_path) as store:
        for task in tasks:
            missing = task.fold == 3
            results = [
                Result("separable", 1.0, {"pair": "1, 2"}),
                Result("separable", None, {"pair": "3, 4"}, reason="fewer components")
                if missing
                else Result("separable", 1.0, {"pair": "3, 4"}),
                Result("separable", None, {"pair": "5, 6"}, reason="fewer components"),
            ]
            store.write(task, results, seconds=0.0)
        (table,) = wsvda.tables(store, TINY)
    shares = [table.cell(pair, "MMDA").value for pair in ("1, 2", "3, 4", "5, 6")]
    assert_allclose(shares, [100.0, 90.0, 0.0])
    notes = [table.cell(pair, "MMDA").note for pair in ("1, 2", "3, 4", "5, 6")]
    assert [note.partition(" folds")[0] for note in notes] == ["", "in 1 of 10", "in 10 of 10"]
    assert "all 10 folds" in table.protocol


def test_a_failed_fold_leaves_no_share(tmp_path):
    """That a method failed says nothing of what it would have parted."""
    tasks = pairs_of("MMDA")
    with RecordStore(tmp_path) as store:
        for task in tasks[1:]:
            pairs = [Result("separable", 1.0, {"pair": pair}) for pair in ("1, 2", "3, 4", "5, 6")]
            store.write(task, pairs, seconds=0.0)
        failed = [Result("none", None, reason="why")]
        store.write(tasks[0], failed, seconds=0.0, status="failed")
        for task in pairs_of("PCA"):
            store.write(task, pairs, seconds=0.0)
        (table,) = wsvda.tables(store, TINY)
    assert table.cell("1, 2", "PCA").value == 100.0
    assert (table.cell("1, 2", "MMDA").value, table.cell("1, 2", "MMDA").note) == (None, "why")


def test_no_printed_cell_is_counted_twice(tmp_path):
    protocol = f"in order, {PROBLEMS['wine 1v2'].scaling}"
    tasks = [
        task
        for task in study_tasks(TINY, "3")
        if (task.dataset, task.method, task.protocol) == ("wine 1v2", "WSVDA", protocol)
    ]
    with RecordStore(tmp_path) as store:
        assert run_tasks(tasks, store).failed == 0
        tables = {table.number: table for table in wsvda.tables(store, TINY)}
    again = tables["3, open settings"].cell("wine 1v2", "WSVDA+KNN")
    assert again.mark == tables["3"].cell("wine 1v2", "WSVDA+KNN").mark != ""
    assert again.printed == printed("wsvda", "3")["wine 1v2", "WSVDA+KNN"].value
    assert sum(tables["3, open settings"].counts().values()) == 0
    assert sum(tables["3"].counts().values()) == 2


def test_remarks_count_who_is_ahead(tmp_path):
    """WSVDA ahead with KNN, behind with NC; in print ahead with both."""
    errors = {("WSVDA", "5-nn"): 0.1, ("WSVDA", "centroid"): 0.3}
    with RecordStore(tmp_path) as store:
        for task in study_tasks(TINY, "figure 3"):
            if task.dataset == "sonar" and task.method in ("WSVDA", "MMDA"):
                found = [
                    Result("error", errors.get((task.method, head), 0.2), {"head": head}, 1)
                    for head in HEADS.values()
                ]
                store.write(task, found, seconds=0.0)
        (table,) = wsvda.tables(store, TINY)
    numbers = printed("wsvda", "3")
    in_print = sum(
        numbers["sonar", f"WSVDA+{head}"].value > numbers["sonar", f"MMDA+{head}"].value
        for head in HEADS
    )
    expected = f"ahead of MMDA in 1 of 2 places, in print in {in_print} of them."
    assert table.remark.endswith(expected)
