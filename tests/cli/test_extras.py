"""Commands without the optional packages: one line, exit code 2, and nothing was computed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli.bad_tables import HEADER, ROWS

pytest.importorskip("pandas", reason="the command line needs the extra cli")

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

PROGRAM = """
import json, os, sys
def refuse(*_, **__):
    raise AssertionError("computing began before the packages were asked for")
import marginfold.protocols.run
import marginfold.data
marginfold.protocols.run.run_tasks = marginfold.data.TableModel.fit = refuse
from marginfold.cli import main
calls = json.loads(sys.argv[1])
loaded = [name for _, missing, _ in calls for name in missing if name in sys.modules]
assert not loaded, f"{loaded} came with marginfold itself"
codes = []
for folder, missing, arguments in calls:  # each in a process of its own, all with one start
    child = os.fork()
    if child == 0:
        os.chdir(folder)
        for number, name in ((1, ".out"), (2, ".err")):
            os.dup2(os.open(folder + name, os.O_CREAT | os.O_WRONLY), number)
        sys.modules.update(dict.fromkeys(missing))  # None: as if not installed
        code = main(arguments)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
print(json.dumps(codes))
"""

TABLE = ("t.csv", "--target", "kind")

WITHOUT = {
    "compare with a report": ("jinja2", ("compare", *TABLE, "--report", "r.html")),
    "compare a bundled set": ("pandas", ("compare", "wine")),
    "fit": ("pandas", ("fit", *TABLE)),
    "fit and save": ("skops", ("fit", *TABLE, "--save", "m.skops")),
    "transform": ("skops", ("transform", "m.skops", "t.csv")),
    "predict": ("pandas", ("predict", "m.skops", "t.csv")),
    "export": ("skl2onnx", ("export", "m.skops", "m.onnx")),
    "reproduce": ("matplotlib", ("reproduce", "lsva", "--table", "figure 1", "--quick")),
    "explore": ("starlette", ("explore", "t.csv", "--no-browser")),
    "any command": ("typer", ("datasets",)),
    "two packages": ("jinja2,matplotlib", ("reproduce", "lsva", "--table", "figure 1", "--quick")),
    "compare on a cluster": ("distributed", ("compare", *TABLE, "--scheduler", "tcp://no:1")),
}


def run_without(calls, folder):
    """Make calls without packages; return exit codes, outputs, errors and what is in the folders.

    Each call is a file's name and content to begin with, the packages and the arguments.
    """
    folders = [folder / str(number) for number in range(len(calls))]
    for path, (name, content, _, _) in zip(folders, calls, strict=True):
        path.mkdir()
        (path / name).write_bytes(content)
    told = [
        (str(path), missing.split(","), arguments)
        for path, (_, _, missing, arguments) in zip(folders, calls, strict=True)
    ]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, json.dumps(told)],
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stderr
    return [
        (code, *(Path(f"{path}{end}").read_text() for end in (".out", ".err")), os.listdir(path))
        for code, path in zip(json.loads(done.stdout), folders, strict=True)
    ]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    calls = [("t.csv", HEADER + ROWS, *WITHOUT[case]) for case in WITHOUT]
    return dict(zip(WITHOUT, run_without(calls, tmp_path_factory.mktemp("without")), strict=True))


@pytest.mark.parametrize("case", WITHOUT)
def test_a_missing_package_is_said_before_anything_is_computed(case, results):
    names = WITHOUT[case][0].split(",")
    extra = {"distributed": "dask", "skl2onnx": "onnx", "starlette": "explorer"}.get(
        names[0], "cli"
    )
    verb = "is" if len(names) == 1 else "are"
    line = f'error: {" and ".join(names)} {verb} not installed: pip install "marginfold[{extra}]"\n'
    assert results[case] == (2, "", line, ["t.csv"])


def test_parquet_has_an_extra_of_its_own(tmp_path):
    fit = ("pyarrow", ("fit", "t.parquet", "-t", "kind"))
    absent, present = run_without([("t.csv", b"", *fit), ("t.parquet", b"PAR1", *fit)], tmp_path)
    assert "there is no file t.parquet" in absent[2]
    line = 'error: pyarrow is not installed: pip install "marginfold[parquet]"\n'
    assert (present[0], present[2]) == (2, line)


@pytest.mark.parametrize(
    ("missing", "statement", "extra"),
    [
        ("matplotlib", "from marginfold.plotting import draw", "plot"),
        ("matplotlib", "import marginfold as m; m.GainDisplay([0.5]).plot()", "plot"),
        ("jinja2", "import marginfold.reports", "cli"),
        ("skl2onnx", "import marginfold as m; m.to_onnx(m.LDA())", "onnx"),
    ],
)
def test_a_module_says_what_it_needs_and_can_be_caught_by_name(missing, statement, extra):
    program = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "try:\n"
        f"    {statement}\n"
        "except ModuleNotFoundError as error:\n"
        "    print(error.name, error, sep='|')\n"
    )
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    line = f'{missing}|{missing} is not installed: pip install "marginfold[{extra}]"\n'
    assert (result.stdout, result.stderr) == (line, "")
