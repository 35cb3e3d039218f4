"""What a wheel and a source archive of marginfold have to hold, and under which terms.

`make dist` and `tests/test_wheel.py` ask for the faults of what was built.
"""

from __future__ import annotations

import re
import subprocess
import tarfile
import tomllib
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from pathlib import Path

ROOT = Path(__file__).parents[1]

WHEEL_BYTES = 2_000_000
"""Most bytes of the wheel: twice those of 0.1.0."""

SDIST_BYTES = 4_000_000
"""Most bytes of the source archive: about twice those of 0.1.0."""

SPDX = {"CC BY 4.0": "CC-BY-4.0"}
"""How the terms of the catalogue of data sets are called in a licence expression."""

TERMS = "src/marginfold/data/bundled/LICENSES.md"
INFORMATION = {
    *("METADATA", "RECORD", "WHEEL", "entry_points.txt"),
    *("licenses/LICENSE", f"licenses/{TERMS}"),
}
"""Files of a wheel that are not of the package."""

NOT_SHIPPED = re.compile(r"\.ci/|\.github/")
"""Files of the repository that are no part of the source archive."""


def version() -> str:
    """Return the version that the sources state."""
    text = (ROOT / "src/marginfold/_version.py").read_text("utf-8")
    return re.findall(r'^__version__ = "(.*)"$', text, re.MULTILINE)[0]


def wheel_faults(wheel: Path, files: set[str]) -> Iterator[str]:
    """Yield what is wrong with a wheel of a project that has some files."""
    yield from size_faults(wheel, WHEEL_BYTES)
    info = f"marginfold-{version()}.dist-info/"
    package = {name.removeprefix("src/") for name in files if name.startswith("src/marginfold/")}
    with zipfile.ZipFile(wheel) as archive:
        yield from differences(archive.namelist(), package | {info + name for name in INFORMATION})
        metadata = message_from_bytes(archive.read(info + "METADATA"))
    said = set(str(metadata["License-Expression"]).split(" AND "))
    if said != licences():
        yield f"the licence expression names {sorted(said)}; needed are {sorted(licences())}"
    if metadata.get_all("License-File") != ["LICENSE", TERMS]:
        yield f"License-File names {metadata.get_all('License-File')}; needed is also {TERMS}"


def sdist_faults(sdist: Path, files: set[str]) -> Iterator[str]:
    """Yield what is wrong with a source archive of a project that has some files."""
    yield from size_faults(sdist, SDIST_BYTES)
    top = f"marginfold-{version()}/"
    wanted = {top + name for name in files if not NOT_SHIPPED.match(name)} | {top + "PKG-INFO"}
    with tarfile.open(sdist) as archive:
        yield from differences([item.name for item in archive if item.isfile()], wanted)


def size_faults(path: Path, most: int) -> Iterator[str]:
    """Yield a sentence if a file is too large."""
    if path.stat().st_size > most:
        yield f"{path.name} has {path.stat().st_size:,} bytes; {most:,} are allowed"


def differences(names: list[str], wanted: set[str]) -> Iterator[str]:
    """Yield what is missing in an archive, and what should not be there."""
    yield from (f"{name} is missing" for name in sorted(wanted - set(names)))
    yield from (f"{name} should not be there" for name in sorted(set(names) - wanted))


def licences() -> set[str]:
    """Return the licences of the code and of every bundled data set."""
    text = (ROOT / "src/marginfold/data/catalogue.toml").read_text("utf-8")
    bundled = [entry for entry in tomllib.loads(text)["dataset"] if entry["where"] == "bundled"]
    return {"BSD-3-Clause"} | {SPDX[entry["license"]] for entry in bundled}


def files_of_project(*, tracked_only: bool = False) -> set[str]:
    """Return the files of the repository; of an unpacked archive, the files in it."""
    others = [] if tracked_only else ["--others", "--exclude-standard"]
    listed = subprocess.run(
        ["git", "ls-files", "--cached", *others], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode == 0 and (ROOT / ".git").exists():
        return {name for name in listed.stdout.splitlines() if (ROOT / name).exists()}
    present = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*") if path.is_file()}
    return {name for name in present if "__pycache__" not in name and name != "PKG-INFO"}
