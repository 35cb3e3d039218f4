"""The wheel: what it holds, and under which terms."""

from __future__ import annotations

import zipfile
from email import message_from_string
from pathlib import Path

import pytest

from marginfold._version import __version__
from marginfold.data import catalogue

ROOT = Path(__file__).parents[1]
BUNDLED = "marginfold/data/bundled/"
SPDX = {"CC BY 4.0": "CC-BY-4.0"}
"""How the terms of the catalogue are called in a licence expression."""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    builders = pytest.importorskip("hatchling.builders.wheel")
    folder = str(tmp_path_factory.mktemp("wheel"))
    (path,) = builders.WheelBuilder(str(ROOT)).build(directory=folder, versions=["standard"])
    with zipfile.ZipFile(path) as archive:
        yield archive


def info(wheel, name):
    return wheel.read(f"marginfold-{__version__}.dist-info/{name}").decode()


def test_the_expression_names_the_licences_of_the_code_and_of_every_bundled_set(wheel):
    terms = {SPDX[entry.license] for entry in catalogue().values() if entry.where == "bundled"}
    said = message_from_string(info(wheel, "METADATA"))["License-Expression"]
    assert set(said.split(" AND ")) == {"BSD-3-Clause"} | terms


def test_the_licence_files_are_in_the_information_and_beside_the_data(wheel):
    terms = f"{BUNDLED}LICENSES.md"
    said = message_from_string(info(wheel, "METADATA")).get_all("License-File")
    assert said == ["LICENSE", f"src/{terms}"]
    assert info(wheel, "licenses/LICENSE") == (ROOT / "LICENSE").read_text("utf-8")
    assert info(wheel, f"licenses/src/{terms}") == wheel.read(terms).decode()


def test_the_wheel_holds_the_package_and_the_bundled_sets_and_nothing_else(wheel):
    names = set(wheel.namelist())
    assert {name.split("/")[0] for name in names} == {
        "marginfold",
        f"marginfold-{__version__}.dist-info",
    }
    data = {name.removeprefix(BUNDLED) for name in names if name.startswith(BUNDLED)}
    bundled = {entry.file for entry in catalogue().values() if entry.where == "bundled"}
    assert data == bundled | {"LICENSES.md"}
    assert not [name for name in names if "__pycache__" in name or name.endswith(".pyc")]
    sources = {str(path.relative_to(ROOT / "src")) for path in (ROOT / "src").rglob("*.py")}
    assert sources <= names
