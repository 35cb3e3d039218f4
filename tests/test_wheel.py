"""The wheel: what it holds, and under which terms; `make dist` asks the same of what it builds."""

from __future__ import annotations

import shutil
import zipfile
from pathlib import Path

import dist_contents
import pytest

from marginfold._version import __version__

ROOT = Path(__file__).parents[1]
INFO = f"marginfold-{__version__}.dist-info"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    builders = pytest.importorskip("hatchling.builders.wheel")
    folder = str(tmp_path_factory.mktemp("wheel"))
    (path,) = builders.WheelBuilder(str(ROOT)).build(directory=folder, versions=["standard"])
    return Path(path)


@pytest.fixture
def changed(wheel, tmp_path):
    """A function that returns the faults of the wheel with one file rewritten (None: left out)."""

    def change(changed_name, rewrite):
        copy = tmp_path / wheel.name
        with (
            zipfile.ZipFile(wheel) as old,
            zipfile.ZipFile(copy, "w", zipfile.ZIP_DEFLATED) as new,
        ):
            contents = {name: old.read(name) for name in old.namelist()}
            contents[changed_name] = rewrite(contents.get(changed_name))
            for name, content in contents.items():
                if content is not None:
                    new.writestr(name, content)
        return faults(copy)

    return change


def faults(wheel):
    return list(dist_contents.wheel_faults(wheel, dist_contents.files_of_project()))


def test_the_wheel_holds_the_package_its_data_and_their_terms_and_nothing_else(wheel):
    assert faults(wheel) == []


@pytest.mark.parametrize(
    "name",
    [
        *("marginfold/py.typed", "marginfold/explorer/static/page.js", "marginfold/errors.py"),
        *("marginfold/data/bundled/wine.csv.gz", "marginfold/reports/page.html.j2"),
        *(f"{INFO}/licenses/LICENSE", f"{INFO}/licenses/{dist_contents.TERMS}"),
    ],
)
def test_a_file_that_is_missing_is_a_fault(name, changed):
    assert changed(name, lambda content: None) == [f"{name} is missing"]


@pytest.mark.parametrize(
    "name",
    [
        "tests/test_wheel.py",
        "marginfold/__pycache__/errors.cpython-311.pyc",
        "marginfold/notes.txt",
    ],
)
def test_a_file_that_is_no_part_of_the_package_is_a_fault(name, changed):
    assert changed(name, lambda content: b"x") == [f"{name} should not be there"]


def test_the_expression_must_name_the_licences_of_the_code_and_of_every_bundled_set(changed):
    def without_data(content):
        return content.replace(b"BSD-3-Clause AND CC-BY-4.0", b"BSD-3-Clause")

    (fault,) = changed(f"{INFO}/METADATA", without_data)
    assert "needed are ['BSD-3-Clause', 'CC-BY-4.0']" in fault


def test_a_wheel_beyond_its_size_is_a_fault(wheel, tmp_path):
    large = Path(shutil.copy(wheel, tmp_path))
    with zipfile.ZipFile(large, "a") as archive:
        archive.writestr("marginfold/errors.bin", bytes(dist_contents.WHEEL_BYTES))
    assert "2,000,000 are allowed" in faults(large)[0]
