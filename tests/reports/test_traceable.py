"""Every number of a table leads to exactly the records it was computed from."""

from __future__ import annotations

import sqlite3

import pytest

from marginfold.papers import study
from marginfold.protocols.records import RecordStore
from marginfold.protocols.run import run_tasks
from marginfold.protocols.studies import STUDY_SIZES

pytest.importorskip("jinja2", reason="reports need the extra cli")

from marginfold.reports.rendering import query

QUICK = STUDY_SIZES["quick"]

CHOSEN = {
    "lsva": lambda task: task.dataset == "iris" and task.method in {"1-NN", "PCA", "LDA"},
    "svmpca": lambda task: True,
    "wsvda": lambda task: task.dataset == "heart" and task.method in {"KNN", "PCA", "LDA"},
}


@pytest.mark.parametrize("name", CHOSEN)
def test_the_query_of_a_cell_finds_its_records(name, tmp_path):
    tasks = [task for task in study(name).study_tasks(QUICK) if CHOSEN[name](task)]
    with RecordStore(tmp_path) as store:
        run_tasks(tasks, store)
        tables = study(name).tables(store, QUICK)
    cells = [cell for table in tables for cell in table.cells if cell.value is not None]
    assert cells
    connection = sqlite3.connect(tmp_path / "records.sqlite")
    for cell in cells:
        found = connection.execute(query(cell.source)).fetchall()
        assert len(found) == cell.source.get("records", len(found)), (cell.row, cell.column)
        assert found
    connection.close()
