"""One version in the sources, the changelog and the citation file; templates that can be read."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from packaging.version import Version

from marginfold._version import __version__

ROOT = Path(__file__).parents[1]
yaml = pytest.importorskip("yaml")


def citation():
    return yaml.safe_load((ROOT / "CITATION.cff").read_text("utf-8"))


def test_the_citation_has_the_version_of_the_sources():
    assert str(citation()["version"]) == __version__


def test_the_newest_entry_of_the_changelog_is_this_version_with_the_date_of_the_citation():
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    entries = re.findall(r"^## (\d\S*) \((\d{4}-\d\d-\d\d)\)$", text, re.MULTILINE)
    if not entries:
        pytest.skip("the changelog has no entry with a number yet")
    assert entries[0] == (__version__, str(citation()["date-released"]))
    versions = [Version(version) for version, _ in entries]
    assert versions == sorted(versions, reverse=True)


def test_the_citation_names_the_papers_as_the_errata_do():
    lines = (ROOT / "docs" / "errata.md").read_text("utf-8").splitlines()
    named = dict(
        re.findall(r"^- 00\d: (.*), \*(.*)\*$", line)[0][::-1]
        for line in lines
        if re.match("- 00", line)
    )
    cited = {
        paper["title"]: ", ".join(author["family-names"] for author in paper["authors"])
        for paper in citation()["references"]
    }
    assert cited == named
    assert len(cited) == 5


def test_the_hooks_before_a_commit_run_what_make_check_runs():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    recipe = re.findall(r"^check: .*\n((?:\t.*\n)+)", makefile, re.MULTILINE)[0]
    checks = {" ".join(line.split()[:2]) for line in recipe.replace("$(BIN)/", "").splitlines()}
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text("utf-8"))["repos"][0][
        "hooks"
    ]
    entries = {" ".join(hook["entry"].removeprefix(".venv/bin/").split()[:2]) for hook in hooks}
    assert entries == checks


def test_the_smoke_test_knows_every_extra():
    tomllib = pytest.importorskip("tomllib")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    tree = ast.parse((ROOT / "scripts" / "smoke.py").read_text("utf-8"))
    (table,) = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and node.targets[0].id == "PROMISES"
    )
    assert {key.value for key in table.keys} >= set(project["optional-dependencies"])


@pytest.mark.skipif(not (ROOT / ".github").exists(), reason="not in the source archive")
def test_issue_forms_have_a_name_a_description_and_required_questions():
    forms = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[0-9]*.yml"))
    assert len(forms) == 4
    for form in map(yaml.safe_load, (path.read_text("utf-8") for path in forms)):
        assert form["name"]
        assert form["description"]
        assert any(field.get("validations", {}).get("required") for field in form["body"])
