"""The command datasets: what there is, and what of it is here."""

from __future__ import annotations

import json

import pytest

from marginfold.cli import main
from marginfold.data import catalogue


@pytest.fixture
def nothing_here(tmp_path, monkeypatch):
    """No folder of data but an empty one."""
    monkeypatch.delenv("MARGINFOLD_DATA", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path


def test_the_json_list_holds_every_set_with_its_state(command, nothing_here):
    result = command("datasets", "--json")
    assert (result.returncode, result.stderr) == (0, "")
    rows = {row["name"]: row for row in json.loads(result.stdout)}
    assert rows.keys() == catalogue().keys()
    wine, australian = rows["wine"], rows["australian"]
    assert (wine["rows"], wine["columns"], wine["classes"]) == (178, 13, 3)
    assert (wine["status"], australian["status"]) == ("bundled", "missing")
    assert sum(wine["class_counts"].values()) == wine["rows"]
    assert command.listing() == {}


def test_a_folder_with_the_file_is_seen(nothing_here, capsys):
    (nothing_here / catalogue()["australian"].file).write_text("")
    arguments = ["datasets", "--data-home", str(nothing_here), "--json"]
    assert main(arguments) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["australian"]["status"] == "in data_home"


def test_the_table_has_a_line_for_each_set_and_fits_a_terminal(nothing_here, capsys):
    assert main(["datasets"]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    assert head.split() == ["name", "rows", "columns", "classes", "missing", "license", "status"]
    assert [line.split()[0] for line in lines] == list(catalogue())
    assert max(map(len, [head, *lines])) <= 100


def test_one_set_is_shown_with_all_that_is_known(nothing_here, capsys):
    assert main(["datasets", "heart"]) == 0
    shown = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert (shown["rows"], shown["status"]) == ("270", "bundled")
    assert "It is not the Cleveland set" in shown["description"]
    assert main(["datasets", "heart", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["name"] == "heart"


def test_an_unknown_set_is_one_line_that_names_what_is_like_it(capsys):
    assert main(["datasets", "hart"]) == 2
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err.startswith("error: Unknown data set 'hart'; did you mean 'heart'")
    assert said.err.count("\n") == 1
