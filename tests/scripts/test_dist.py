"""The script behind `make dist`: every extra has its step, and a fault is told and counted."""

from __future__ import annotations

import argparse
import tarfile
import tomllib
import zipfile
from pathlib import Path

import dist
import dist_contents
import pytest

ROOT = Path(__file__).parents[2]


def test_every_extra_of_the_project_is_installed_by_a_step_of_its_own():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    names = [step.name for step in dist.steps(argparse.Namespace(all_tests=False))]
    for extra in project["optional-dependencies"]:
        assert names.count(f"install [{extra}]") == 1


def test_the_tests_of_the_archive_exist():
    assert [name for name in dist.TESTS if not (ROOT / name).exists()] == []


def test_a_step_that_fails_is_told_and_the_others_go_on(monkeypatch, capsys, tmp_path):
    def fail():
        raise dist.FaultError("the wheel is empty")

    steps = [dist.Step("one", fail), dist.Step("two", lambda: "all well")]
    monkeypatch.setattr(dist, "steps", lambda options: steps)
    monkeypatch.setattr(dist, "WORK", tmp_path / "work")
    with pytest.raises(SystemExit, match="1 of 2 steps failed"):
        dist.main([])
    said = capsys.readouterr().out
    assert "FAILED: the wheel is empty" in said
    assert "all well" in said


@pytest.mark.parametrize(
    ("changelog", "citation", "fault"),
    [
        ("## [Unreleased]\n", "", "CHANGELOG.md has no heading"),
        ("## 7.0 (2026-01-02)\n", "\nversion: 6.0\n", "no line 'version: 7.0'"),
        ("## 7.0 (2026-01-02)\n", "\nversion: 7.0\n", "no line 'date-released: 2026-01-02'"),
    ],
)
def test_versions_that_differ_are_a_fault(changelog, citation, fault, monkeypatch, tmp_path):
    (tmp_path / "CHANGELOG.md").write_text(changelog, "utf-8")
    (tmp_path / "CITATION.cff").write_text(citation, "utf-8")
    monkeypatch.setattr(dist, "ROOT", tmp_path)
    monkeypatch.setattr(dist, "version", lambda: "7.0")
    with pytest.raises(dist.FaultError, match=fault):
        dist.check_versions()


def test_wheels_are_compared_by_the_content_of_their_files(tmp_path):
    paths = [tmp_path / f"{number}.whl" for number in range(3)]
    for path, content in zip(paths, ("a", "a", "b"), strict=True):
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("module.py", content)
    one, same, other = map(dist.digests, paths)
    assert one == same != other


def test_an_archive_with_a_stray_file_or_without_a_needed_one_is_faulty(tmp_path):
    top = f"marginfold-{dist_contents.version()}"
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name in ("PKG-INFO", "stray.txt"):
            (tmp_path / name).write_text("x", "utf-8")
            archive.add(tmp_path / name, f"{top}/{name}")
    files = {"README.md", ".github/PULL_REQUEST_TEMPLATE.md", ".ci/run"}
    assert list(dist_contents.sdist_faults(path, files)) == [
        f"{top}/README.md is missing",
        f"{top}/stray.txt should not be there",
    ]
