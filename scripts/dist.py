"""Build wheel and source archive into dist/, check both, and try them in clean environments.

    python scripts/dist.py [--only WORD] [--all-tests]

Nothing is uploaded.  `make dist` runs it in .venv-dist, which has the programs that check.  Extras
are those of pyproject.toml; what each of them promises is tried by scripts/smoke.py.  --only runs
the steps whose name contains a word; --all-tests runs all tests of the archive, not a part.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path

import install
from dist_contents import ROOT, files_of_project, sdist_faults, version, wheel_faults

BUILT = ROOT / "dist"
WORK = ROOT / "build" / "dist-check"
"""Environments and what was unpacked; removed before and after."""

TESTS = ("tests/test_exported.py", "tests/test_wheel.py", "tests/test_literal.py", "tests/data")
"""The tests of the archive that are run without --all-tests; all of them are collected."""


class FaultError(Exception):
    """What was built is not what it should be."""


@dataclass(frozen=True)
class Step:
    """Something that is done; it returns what is to be said of it, or raises `FaultError`."""

    name: str
    call: Callable[[], str]


def main(arguments: list[str]) -> None:
    """Take every step, then print what came of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", metavar="WORD")
    parser.add_argument("--all-tests", action="store_true")
    options = parser.parse_args(arguments)
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir(parents=True)
    outcomes = [take(step) for step in steps(options) if options.only in step.name]
    shutil.rmtree(WORK, ignore_errors=True)
    print(f"\n{'step':34} {'s':>5}  outcome")
    print("\n".join(f"{name:34} {seconds:5.0f}  {said}" for name, seconds, said, _ in outcomes))
    n_failed = sum(failed for *_, failed in outcomes)
    if n_failed:
        sys.exit(f"{n_failed} of {len(outcomes)} steps failed: do not release")
    print(f"{len(outcomes)} steps passed; nothing was uploaded")


def steps(options: argparse.Namespace) -> list[Step]:
    """Return all steps in their order; building is the first if it is not left out."""
    names = extras()
    return [
        Step("build", build),
        Step("versions agree", check_versions),
        Step("citation", check_citation),
        Step("twine", check_with_twine),
        Step("contents of the wheel", partial(check_contents, "*.whl", wheel_faults)),
        Step("contents of the sdist", partial(check_contents, "*.tar.gz", sdist_faults)),
        Step("the sdist builds the same wheel", build_again),
        Step("install without extras", partial(try_extras, ())),
        *(Step(f"install [{name}]", partial(try_extras, (name,))) for name in names),
        Step("install lowest", partial(try_lowest, ())),
        Step("install lowest, all extras", partial(try_lowest, names)),
        Step("tests of the sdist", partial(run_tests, names, options.all_tests)),
    ]


def take(step: Step) -> tuple[str, float, str, bool]:
    """Return name, seconds, outcome and whether the step failed."""
    print(f"== {step.name}", flush=True)
    start, failed = time.monotonic(), False
    try:
        said = step.call()
    except FaultError as fault:
        said, failed = f"FAILED: {fault}", True
        print(f"   {said}", flush=True)
    return step.name, time.monotonic() - start, said.splitlines()[0], failed


# What is built -----------------------------------------------------------------------------------


def build() -> str:
    """Build both from the tree."""
    shutil.rmtree(BUILT, ignore_errors=True)
    call(*uv_build(), "--sdist", "--wheel", "--out-dir", str(BUILT), str(ROOT))
    sizes = [f"{path.name} {path.stat().st_size / 1000:.0f} kB" for path in built("marginfold-*")]
    changed = call("git", "status", "--porcelain")
    return ", ".join(sizes) + ("; not everything is committed" if changed else "")


def check_versions() -> str:
    """Require one version in the sources, the changelog and the citation file."""
    text = (ROOT / "CHANGELOG.md").read_text("utf-8")
    heading = re.search(rf"^## {re.escape(version())} \((\d{{4}}-\d\d-\d\d)\)$", text, re.MULTILINE)
    if not heading:
        raise FaultError(f"CHANGELOG.md has no heading '## {version()} (YYYY-MM-DD)'")
    citation = (ROOT / "CITATION.cff").read_text("utf-8")
    for line in (f"version: {version()}", f"date-released: {heading.group(1)}"):
        if f"\n{line}\n" not in citation:
            raise FaultError(f"CITATION.cff has no line '{line}'")
    return f"{version()} of {heading.group(1)}"


def check_citation() -> str:
    """Let cffconvert read the citation file, where it could be installed."""
    program = Path(sys.executable).with_name("cffconvert")
    if not program.exists():
        return "skipped: cffconvert is not installed"
    return call(str(program), "--validate", "-i", "CITATION.cff").splitlines()[-1]


def check_with_twine() -> str:
    """Require metadata and a description that an index would take."""
    call(sys.executable, "-m", "twine", "check", "--strict", *map(str, built("marginfold-*")))
    return "metadata and description pass"


def check_contents(
    pattern: str, faults_of: Callable[[Path, set[str]], Iterable[str]], most: int = 5
) -> str:
    """Require that an archive holds what it should, and nothing that git does not know."""
    (path,) = built(pattern)
    faults = list(faults_of(path, files_of_project(tracked_only=True)))
    if faults:
        more = f" and {len(faults) - most} more" if len(faults) > most else ""
        raise FaultError("; ".join(faults[:most]) + more)
    return f"{path.stat().st_size / 1000:.0f} kB, complete, nothing else"


def build_again() -> str:
    """Build a wheel from the source archive alone."""
    (sdist,), (wheel,) = built("*.tar.gz"), built("*.whl")
    call(*uv_build(), "--wheel", "--out-dir", str(WORK / "again"), str(sdist))
    (again,) = (WORK / "again").glob("*.whl")
    if digests(again) != digests(wheel):
        raise FaultError("the wheel of the source archive differs from that of the tree")
    return f"{len(digests(wheel))} files, byte by byte"


def digests(wheel: Path) -> dict[str, str]:
    """Return a number for the content of every file of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        return {name: hashlib.sha256(archive.read(name)).hexdigest() for name in names}


# Clean environments ------------------------------------------------------------------------------


def try_extras(names: tuple[str, ...]) -> str:
    """Install the wheel with some extras into a new environment, and try what it promises."""
    python = new_environment("-".join(names) or "bare")
    uv_pip("install", python, with_extras(names))
    return smoke(python, names)


def try_lowest(names: tuple[str, ...]) -> str:
    """Do the same with the lowest versions that pyproject.toml allows, on the oldest Python."""
    python = new_environment("lowest" + "-all" * bool(names), install.oldest_python())
    wanted = str(python.parents[1] / "lowest.txt")
    chosen = [word for name in names for word in ("--extra", name)]
    lowest = ["--resolution", "lowest-direct", "--output-file", wanted]
    uv_pip("compile", python, "pyproject.toml", *chosen, *lowest)
    uv_pip("install", python, "-r", wanted)
    uv_pip("install", python, "--no-deps", *map(str, built("*.whl")))
    return smoke(python, names)


def run_tests(names: tuple[str, ...], every: bool) -> str:
    """Run tests of the unpacked source archive against the installed wheel."""
    (sdist,) = built("*.tar.gz")
    with tarfile.open(sdist) as archive:
        archive.extractall(WORK, filter="data")
    folder = WORK / f"marginfold-{version()}"
    python = new_environment("tests")
    groups = [f"{folder / 'pyproject.toml'}:{group}" for group in ("test", "check", "build")]
    options = [word for group in groups for word in ("--group", group)]
    uv_pip("install", python, with_extras(names), *options)
    pytest = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    collected = call(*pytest, "--collect-only", "tests", folder=folder).splitlines()[-1]
    done = call(*pytest, *([] if every else TESTS), folder=folder).splitlines()[-1]
    return f"{done} ({collected})"


def smoke(python: Path, names: tuple[str, ...]) -> str:
    """Run scripts/smoke.py in an environment, away from the sources."""
    said = call(str(python), "-I", str(ROOT / "scripts/smoke.py"), *names, folder=WORK)
    print(said, end="", flush=True)
    which = call(str(python), "-c", VERSIONS).strip()
    return f"{said.count('works')} work, {said.count('refused')} refused by name ({which})"


VERSIONS = """
import sys
from importlib.metadata import version
names = "numpy", "scipy", "scikit-learn"
print("Python %d.%d," % sys.version_info[:2], *(f"{name} {version(name)}" for name in names))
"""


def new_environment(name: str, python: str = sys.executable) -> Path:
    """Return the Python of a new environment without packages."""
    uv = str(install.program_of(ROOT / ".venv", "uv"))
    call(uv, "venv", "--quiet", "--python", python, str(WORK / name))
    return install.python_of(WORK / name)


def with_extras(names: tuple[str, ...]) -> str:
    """Return the wheel with extras, as an installer takes it."""
    (wheel,) = built("*.whl")
    return f"marginfold[{','.join(names)}] @ {wheel.as_uri()}"


def extras() -> tuple[str, ...]:
    """Return the extras of pyproject.toml."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    return tuple(project["optional-dependencies"])


# Files and processes -----------------------------------------------------------------------------


def built(pattern: str) -> list[Path]:
    """Return the files in dist/ that have a name."""
    found = sorted(BUILT.glob(pattern))
    if not found:
        raise FaultError(f"there is no {pattern} in dist/: build first")
    return found


def uv_build() -> list[str]:
    """Return the command that builds with the locked hatchling of .venv."""
    venv = ROOT / ".venv"
    uv, python = install.program_of(venv, "uv"), install.python_of(venv)
    options = ["--quiet", "--no-build-isolation", "--no-create-gitignore", "--python", str(python)]
    return [str(uv), "build", *options]


def uv_pip(task: str, python: Path, *arguments: str) -> None:
    """Let uv install or choose packages for an environment."""
    uv = str(install.program_of(ROOT / ".venv", "uv"))
    call(uv, "pip", task, "--quiet", "--python", str(python), *arguments)


def call(*command: str, folder: Path = ROOT) -> str:
    """Return what a command prints; its errors are the fault if it fails."""
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, text=True)
    if done.returncode:
        print(done.stdout + done.stderr, file=sys.stderr, flush=True)
        lines = (done.stdout + done.stderr).strip().splitlines() or ["no message"]
        raise FaultError(f"{Path(command[0]).name} {' '.join(command[1:4])}: {lines[-1]}")
    return done.stdout


@cache
def environment() -> dict[str, str]:
    """Return the variables of all commands: uv asks the index that pip is configured to ask."""
    settings = install.pip_settings(ROOT / ".venv")
    return install.with_index({**os.environ, **install.SETTINGS}, settings)


if __name__ == "__main__":
    main(sys.argv[1:])
