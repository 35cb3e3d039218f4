"""The command reproduce: resumed, with absent data, and refused."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from marginfold.cli import main
from marginfold.papers import lsva, paper_data
from marginfold.protocols.records import RecordStore, Result
from marginfold.protocols.studies import STUDY_SIZES

pytest.importorskip("matplotlib", reason="reports need the extra cli")
pytest.importorskip("jinja2", reason="reports need the extra cli")

ABSENT = "australian"
"""A set that does not come with the package."""


PLANNED = lsva.study_tasks(STUDY_SIZES["quick"], "I")

LEFT = sum(task.dataset == ABSENT for task in PLANNED)
"""Tasks of the set that is absent."""


@pytest.fixture
def nothing_here(tmp_path_factory, monkeypatch):
    """No folder of data but an empty one."""
    monkeypatch.delenv("MARGINFOLD_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    paper_data._load.cache_clear()


@pytest.fixture(scope="module")
def begun(tmp_path_factory):
    """A run of Table I that was stopped before the absent set, after one of a figure."""
    folder = tmp_path_factory.mktemp("begun")
    other = lsva.study_tasks(STUDY_SIZES["quick"], "figure 2")[0]
    with RecordStore(folder) as store:
        for task in PLANNED:
            if task.dataset != ABSENT:
                store.write(task, [Result("error", 0.2, {}, 1)], seconds=0.0)
        lost = Result("none", None, reason="why the figure failed")
        store.write(other, [lost], seconds=0.0, status="failed")
    return folder


@pytest.fixture
def stopped(begun, tmp_path, monkeypatch):
    """A copy of it in the current folder."""
    monkeypatch.chdir(tmp_path)
    return Path(shutil.copytree(begun, "papers"))


def test_a_stopped_run_goes_on_and_absent_data_is_a_skipped_cell(stopped, nothing_here, capsys):
    arguments = ("reproduce", "lsva", "--table", "I", "--quick", "--run", "papers", "-j", "1")
    assert main([*arguments, "--json"]) == 0
    out, err = capsys.readouterr()
    said = json.loads(out)
    expected = {"found": len(PLANNED) - LEFT, "done": 0, "skipped": LEFT, "failed": 0}
    assert said["tasks"] == expected
    assert [table["number"] for table in said["tables"]] == ["I", "differences"]
    table = said["tables"][0]
    cells = {(cell["row"], cell["column"]): cell for cell in table["cells"]}
    cell = cells[ABSENT, "LLSVA"]
    assert (cell["value"], cell["mark"]) == (None, "")
    assert cell["printed"] is not None
    assert f"The data set {ABSENT!r} is not in" in cell["note"]
    assert cells["heart", "LLSVA"]["value"] == pytest.approx(20.0)
    printed = [c for c in table["cells"] if c["counted"] and c["printed"] is not None]
    empty = sum(c["value"] is None for c in printed)
    assert sum(table["counts"].values()) == len(printed) - empty
    assert err.count("\n") == 1  # of this plan only
    assert err.startswith(f"note: {ABSENT}: The data set")
    assert err.endswith(f"({LEFT} tasks)\n")
    page = (stopped / "report.html").read_text(encoding="utf-8")
    assert f"The data set &#39;{ABSENT}&#39; is not in" in page
    assert os.listdir() == ["papers"]

    assert main([*arguments]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["paper", "table", "printed", "agree", "near", "differ", "empty"]
    counts = [len(printed), *table["counts"].values(), empty]
    assert lines[1].split() == ["lsva", "I", *map(str, counts)]
    assert table["remark"] in " ".join(" ".join(lines).split())
    assert max(map(len, lines)) <= 100
    assert "report:  papers/report.html" in lines


def test_failed_tasks_are_an_exit_code_with_a_report(stopped, monkeypatch, capsys):
    """Memory runs out whenever the set that is left is read; the next run tries again."""

    def exhausted(name):
        raise MemoryError(f"no room\nfor {name}")

    monkeypatch.setattr("marginfold.papers.paper_data._load", exhausted)
    arguments = ["reproduce", "lsva", "--table", "I", "--quick", "--run", "papers", "-j", "1"]
    for _ in range(2):
        assert main([*arguments, "--json"]) == 1
        said = capsys.readouterr()
        tasks = json.loads(said.out)["tasks"]
        assert tasks == {"found": len(PLANNED) - LEFT, "done": 0, "skipped": 0, "failed": LEFT}
        reason, last = said.err.splitlines()
        assert reason == f"note: MemoryError: no room for {ABSENT} ({LEFT} tasks)"
        assert last == f"error: tasks that failed: {LEFT}; the next run tries them again."
    assert ABSENT in (stopped / "report.html").read_text(encoding="utf-8")


def test_a_figure_is_computed_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    first, second = (figure_one(capsys) for _ in range(2))
    assert first["tasks"] == {"found": 0, "done": 4, "skipped": 0, "failed": 0}
    assert second["tasks"] == {"found": 4, "done": 0, "skipped": 0, "failed": 0}
    assert [figure["number"] for figure in first["figures"]] == ["1"]
    assert first["tables"] == []
    assert first["run"] == "marginfold-runs/lsva-quick"
    assert (tmp_path / first["report"]).is_file()


def figure_one(capsys):
    arguments = ["reproduce", "lsva", "--table", "figure 1", "--quick", "-j", "1", "--json"]
    assert main(arguments) == 0
    return json.loads(capsys.readouterr().out)


REFUSED = {
    "unknown paper": (("reproduce", "lsav"), "There is no paper 'lsav'; choose from lsva"),
    "unknown table": (("reproduce", "lsva", "--table", "V"), "lsva has no table or figure 'V'"),
    "empty table": (("reproduce", "lsva", "--table", ""), "lsva has no table or figure ''"),
    "table of all": (("reproduce", "all", "--table", "I"), "--table needs one paper"),
    "two scales": (("reproduce", "lsva", "--quick", "--full"), "cannot be used together"),
    "no processes": (("reproduce", "lsva", "--jobs", "0"), "marginfold reproduce --help"),
    "no paper": (("reproduce",), "marginfold reproduce --help"),
    "run is a file": (
        ("reproduce", "lsva", "--run", "taken"),
        "the folder taken cannot be created",
    ),
    "no records": (
        ("reproduce", "lsva", "--run", "other"),
        "cannot be used as a database of records",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_a_wrong_call_is_one_line_and_nothing_is_written(case, tmp_path, monkeypatch, capsys):
    arguments, message = REFUSED[case]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken").write_text("a file")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "records.sqlite").write_text("no database, but longer than a header" * 9)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert main(list(arguments)) == 2
    said = capsys.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith("error: ")
    assert message in said.err
    assert {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()} == before


def test_help_has_examples_that_are_calls(capsys):
    assert main(["reproduce", "--help"]) == 0
    said = capsys.readouterr().out
    assert "marginfold reproduce lsva --table I --quick" in said
    assert "goes on where it was" in " ".join(said.split())
