"""The command reproduce: resumed, with absent data, and refused."""

from __future__ import annotations

import json

import pytest

from marginfold.cli import main
from marginfold.protocols.papers import lsva
from marginfold.protocols.records import RecordStore, Result
from marginfold.protocols.scales import SCALES

pytest.importorskip("matplotlib", reason="reports need the extra cli")
pytest.importorskip("jinja2", reason="reports need the extra cli")

ABSENT = "australian"
"""A set that does not come with the package."""


@pytest.fixture
def nothing_here(tmp_path_factory, monkeypatch):
    """No folder of data but an empty one."""
    monkeypatch.delenv("MARGINFOLD_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))


def begin(folder, errors=0.2):
    """Leave the records of a run of Table I that was stopped before the absent set."""
    planned = lsva.plan(SCALES["quick"], "I")
    with RecordStore(folder) as store:
        for task in planned:
            if task.dataset != ABSENT:
                store.write(task, [Result("error", errors, {}, 1)], seconds=0.0)
    return planned


def test_a_stopped_run_goes_on_and_absent_data_is_a_skipped_cell(command, nothing_here):
    planned = begin(command.folder / "papers")
    left = sum(task.dataset == ABSENT for task in planned)
    result = command(
        *("reproduce", "lsva", "--table", "I", "--quick", "--run", "papers", "-j", "1", "--json")
    )
    assert result.returncode == 0
    said = json.loads(result.stdout)
    expected = {"found": len(planned) - left, "done": 0, "skipped": left, "failed": 0}
    assert said["tasks"] == expected
    assert [table["number"] for table in said["tables"]] == ["I", "differences"]
    table = said["tables"][0]
    cells = {(cell["row"], cell["column"]): cell for cell in table["cells"]}
    cell = cells[ABSENT, "LLSVA"]
    assert (cell["value"], cell["mark"]) == (None, "")
    assert cell["printed"] is not None
    assert f"The data set {ABSENT!r} is not in" in cell["note"]
    assert cells["heart", "LLSVA"]["value"] == pytest.approx(20.0)
    assert sum(table["counts"].values()) == sum(
        c["printed"] is not None and c["value"] is not None for c in table["cells"]
    )
    assert result.stderr.count("\n") == 1
    assert result.stderr.startswith(f"note: {ABSENT}: The data set")
    assert result.stderr.endswith(f"({left} tasks)\n")
    page = (command.folder / "papers" / "report.html").read_text(encoding="utf-8")
    assert f"The data set &#39;{ABSENT}&#39; is not in" in page
    assert sorted(path.name for path in command.folder.iterdir()) == ["papers"]

    again = command(*("reproduce", "lsva", "--table", "I", "--quick", "--run", "papers", "-j", "1"))
    assert again.returncode == 0
    lines = again.stdout.splitlines()
    assert lines[0].split() == ["paper", "table", "printed", "agree", "near", "differ", "empty"]
    printed = [c for c in table["cells"] if c["printed"] is not None]
    empty = sum(c["value"] is None for c in printed)
    counts = [len(printed), *table["counts"].values(), empty]
    assert lines[1].split() == ["lsva", "I", *map(str, counts)]
    assert table["remark"] in " ".join(again.stdout.split())
    assert max(map(len, lines)) <= 100
    assert "report:  papers/report.html" in lines


def test_a_figure_is_computed_once(command):
    arguments = ("reproduce", "lsva", "--table", "figure 1", "--quick", "-j", "1", "--json")
    first, second = (json.loads(command(*arguments).stdout) for _ in range(2))
    assert first["tasks"] == {"found": 0, "done": 4, "skipped": 0, "failed": 0}
    assert second["tasks"] == {"found": 4, "done": 0, "skipped": 0, "failed": 0}
    assert [figure["number"] for figure in first["figures"]] == ["1"]
    assert first["tables"] == []
    assert first["run"] == "marginfold-runs/lsva-quick"
    assert (command.folder / first["report"]).is_file()


def test_records_of_another_plan_in_the_folder_say_nothing(tmp_path, capsys, nothing_here):
    begin(tmp_path / "run")
    (figure,) = (t for t in lsva.plan(SCALES["quick"], "figure 2") if t.method == "KLSVA")
    with RecordStore(tmp_path / "run") as store:
        result = Result("none", None, reason="a reason of a figure")
        store.write(figure, [result], seconds=0.0, status="failed")
    arguments = ["reproduce", "lsva", "--table", "I", "--quick", "-j", "1"]
    assert main([*arguments, "--run", str(tmp_path / "run")]) == 0
    assert "a reason of a figure" not in capsys.readouterr().err


REFUSED = {
    "unknown paper": (("reproduce", "lsav"), "There is no paper 'lsav'; choose from lsva"),
    "unknown table": (("reproduce", "lsva", "--table", "V"), "lsva has no table or figure 'V'"),
    "empty table": (("reproduce", "lsva", "--table", ""), "lsva has no table or figure ''"),
    "table of all": (("reproduce", "all", "--table", "I"), "--table needs one paper"),
    "two scales": (("reproduce", "lsva", "--quick", "--full"), "exclude each other"),
    "no processes": (("reproduce", "lsva", "--jobs", "0"), "marginfold reproduce --help"),
    "no paper": (("reproduce",), "marginfold reproduce --help"),
    "run is a file": (("reproduce", "lsva", "--run", "taken"), "The run folder taken cannot"),
    "no records": (("reproduce", "lsva", "--run", "other"), "cannot be used as records"),
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
