"""Paper 003: what its tables say of records made for the purpose."""

from __future__ import annotations

import numpy as np

from marginfold.papers import mrgepsvm
from marginfold.papers.paper_data import rows_and_labels
from marginfold.protocols.published_numbers import printed
from marginfold.protocols.records import RecordStore, Result
from marginfold.protocols.studies import StudySize

SMALL = StudySize("quick", 1, 2, 2, 1, controls=False)


def first(number, dataset, method):
    """Return the first task of a cell."""
    tasks = mrgepsvm.study_tasks(SMALL, number)
    return next(t for t in tasks if (t.dataset, t.method) == (dataset, method))


def test_a_remark_names_the_sets_on_which_the_printed_planes_are_below_ours(tmp_path):
    numbers = printed("mrgepsvm", "1")
    gains = {"sonar": 20.0, "votes": 0.1, "heart": -20.0}
    with RecordStore(tmp_path) as store:
        for dataset, gain in gains.items():
            task = first("1", dataset, "GEPSVM")
            error = 1 - (numbers[dataset, "GEPSVM"].value + gain) / 100
            store.write(task, [Result("error", error)], seconds=0.0)
        (table,) = mrgepsvm.tables(store, SMALL)
    assert "GEPSVM is below ours on sonar, as if" in table.remark


def test_the_remark_on_the_rbf_kernel_quotes_the_paper_and_the_catalogue(tmp_path):
    task = first("2", "liver", "SVM")
    with RecordStore(tmp_path) as store:
        store.write(task, [Result("error", 0.3)], seconds=0.0)
        (table,) = mrgepsvm.tables(store, SMALL)
    _, y = rows_and_labels("liver")
    share = 100 * np.bincount(y).max() / len(y)
    value = printed("mrgepsvm", "2")["liver", "SVM"].value
    assert abs(value - share) < 1.0
    assert f"({value:.2f})" in table.remark
    assert f"({share:.2f})" in table.remark
