"""The option --scheduler: the answers of local processes, and refusals in one line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from marginfold.cli import main
from marginfold.executors import cluster

pytest.importorskip("distributed", reason="clusters need the extra dask")
pytest.importorskip("pandas", reason="the command line needs the extra cli")
pytest.importorskip("jinja2", reason="reports need the extra cli")
pytest.importorskip("matplotlib", reason="reports need the extra cli")

COMPARE = ("compare", "wine", "--methods", "pca,lda", "--folds", "2", "--repeats", "1", "--json")
REPRODUCE = ("reproduce", "lsva", "--table", "figure 1", "--quick", "--json")
NOWHERE = "tcp://127.0.0.1:1"


@pytest.fixture
def address(cluster: Any) -> str:
    return cluster.scheduler.address


def said(capsys: pytest.CaptureFixture, *arguments: str) -> dict[str, Any]:
    assert main(list(arguments)) == 0
    out, err = capsys.readouterr()
    assert err == ""
    return json.loads(out)


def without_seconds(result: Any) -> Any:
    if isinstance(result, dict):
        left_out = ("seconds", "report", "records", "run")
        return {k: without_seconds(v) for k, v in result.items() if k not in left_out}
    return [without_seconds(part) for part in result] if isinstance(result, list) else result


@pytest.mark.parametrize("command", [COMPARE, REPRODUCE], ids=lambda command: command[0])
def test_a_cluster_answers_as_local_processes_do(command, address, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    here = said(capsys, *command, "--run", "here", "--jobs", "1")
    there = said(capsys, *command, "--run", "there", "--scheduler", address)
    assert there["tasks"]["failed"] == 0
    assert there["tasks"]["done"] > 0
    assert without_seconds(there) == without_seconds(here)
    again = said(capsys, *command, "--run", "there", "--scheduler", address)
    assert again["tasks"]["found"] == there["tasks"]["done"]


@pytest.mark.parametrize("command", [COMPARE, REPRODUCE], ids=lambda command: command[0])
@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--jobs", "2"), "--jobs and --scheduler cannot be used together"),
        ((), f"No scheduler answers at '{NOWHERE}'"),
    ],
)
def test_what_cannot_be_used_is_one_line(command, options, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 0.5)
    assert main([*command, *options, "--scheduler", NOWHERE]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert err.startswith(f"error: {message}")
