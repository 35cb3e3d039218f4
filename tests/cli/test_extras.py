"""Commands without the optional packages: one line, exit code 2, and nothing was computed."""

from __future__ import annotations

import subprocess
import sys

import pytest
from cli.bad_tables import HEADER, ROWS

pytest.importorskip("pandas", reason="the command line needs the extra cli")

PROGRAM = """
import sys
missing, arguments = sys.argv[1].split(","), sys.argv[2:]
sys.modules.update(dict.fromkeys(missing))  # None: the import fails as if not installed
def refuse(*_, **__):
    raise AssertionError("computing began before the packages were asked for")
import marginfold.protocols.run
import marginfold.data
marginfold.protocols.run.run_tasks = marginfold.data.TableModel.fit = refuse
from marginfold.cli import main
sys.exit(main(arguments))
"""

TABLE = ("t.csv", "--target", "kind")

WITHOUT = {
    "compare with a report": ("jinja2", ("compare", *TABLE, "--report", "r.html")),
    "compare with figures": ("matplotlib", ("compare", *TABLE, "--report", "r.html")),
    "compare a bundled set": ("pandas", ("compare", "wine")),
    "fit": ("pandas", ("fit", *TABLE)),
    "fit and save": ("skops", ("fit", *TABLE, "--save", "m.skops")),
    "transform": ("skops", ("transform", "m.skops", "t.csv")),
    "predict": ("pandas", ("predict", "m.skops", "t.csv")),
    "reproduce": ("matplotlib", ("reproduce", "lsva", "--table", "figure 1", "--quick")),
    "any command": ("typer", ("datasets",)),
}


def run_without(missing, arguments, folder):
    (folder / "t.csv").write_bytes(HEADER + ROWS)
    return subprocess.run(
        [sys.executable, "-c", PROGRAM, missing, *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=100,
    )


@pytest.mark.parametrize("case", WITHOUT)
def test_a_missing_package_is_said_before_anything_is_computed(case, tmp_path):
    missing, arguments = WITHOUT[case]
    result = run_without(missing, arguments, tmp_path)
    expected = f'error: {missing} is not installed: pip install "marginfold[cli]"\n'
    assert (result.returncode, result.stdout, result.stderr) == (2, "", expected)
    assert [path.name for path in tmp_path.iterdir()] == ["t.csv"]


def test_all_that_is_missing_is_said_at_once(tmp_path):
    arguments = ("compare", *TABLE, "--report", "r.html")
    result = run_without("jinja2,matplotlib", arguments, tmp_path)
    assert result.returncode == 2
    assert result.stderr == (
        'error: jinja2 and matplotlib are not installed: pip install "marginfold[cli]"\n'
    )


def test_parquet_has_an_extra_of_its_own(tmp_path):
    result = run_without("pyarrow", ("fit", "t.parquet", "-t", "kind"), tmp_path)
    assert "there is no file t.parquet" in result.stderr
    (tmp_path / "t.parquet").write_bytes(b"PAR1")
    result = run_without("pyarrow", ("fit", "t.parquet", "-t", "kind"), tmp_path)
    assert (result.returncode, result.stderr) == (
        2,
        'error: pyarrow is not installed: pip install "marginfold[parquet]"\n',
    )


@pytest.mark.parametrize(
    ("missing", "module", "extra"),
    [
        ("matplotlib", "plotting", "plot"),
        ("matplotlib", "reports", "cli"),
        ("jinja2", "reports", "cli"),
    ],
)
def test_a_module_says_what_it_needs_and_can_be_caught_by_name(missing, module, extra):
    program = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "try:\n"
        f"    import marginfold.{module}\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error.name, error, sep='|')\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    line = f'{missing}|{missing} is not installed: pip install "marginfold[{extra}]"\n'
    assert (result.stdout, result.stderr) == (line, "")
