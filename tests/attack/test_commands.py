"""What an attack on the commands found, as a table: what is given, and what must come of it.

Whatever is given, a command ends with the expected code and words, never with an error that nobody
expected; it sends nothing to the terminal that is not to be seen, and leaves its inputs alone.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import sqlite3
import subprocess
import sys
import unicodedata
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd
import pytest

pytest.importorskip("typer", reason="the command line needs the extra cli")
pytest.importorskip("skops.io", reason="model files need skops")

from marginfold.cli import main
from marginfold.protocols import records

pytestmark = pytest.mark.attack("commands")

LINUX = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc, where nobody can write")
ROWS = [f"{i % 7}.5,{i * i % 11},{'ab'[i % 2]}" for i in range(40)]


def table(header="size,age,kind", rows=ROWS, end="\n"):
    return end.join([header, *rows, ""])


def classes(first, second="b"):
    """A table whose classes have these names."""
    names = {"a": f'"{first}"', "b": second}
    return table(rows=[f"{row[:-1]}{names[row[-1]]}" for row in ROWS])


TITLE = "\x1b]0;owned\x07"
FIT = ("fit", "t.csv", "-t", "kind", "-m", "lda")
PREDICT = ("predict", "m.skops", "t.csv")
COMPARE = ("compare", "t.csv", "-t", "kind", "--methods", "lda,largest-class", "--jobs", "1")
FORMULA = "=HYPERLINK(1)"


@dataclass(frozen=True)
class Case:
    """Files by name, a call, its exit code, and words of what it says."""

    call: tuple[str, ...]
    words: tuple[str, ...]
    code: int = 2
    files: dict[str, str | bytes] = field(default_factory=lambda: {"t.csv": table()})
    links: dict[str, str] = field(default_factory=dict)


def told(text, *words, call=FIT, code=2):
    """A case of one table."""
    return Case(call, words, code, {"t.csv": text})


def unwritable(option, *call):
    return Case((*call, option, "/proc/out.csv"), ("cannot write /proc/out.csv",))


CASES = {
    # what tables hold reaches no terminal as it is
    "title in a class": told(classes(TITLE), "\\u001b]0;owned\\u0007 (20)", code=0),
    "colour without ESC in a class": told(classes("\x9b31m"), "\\u009b31m (20)", code=0),
    "text that runs backwards": told(classes("\u202eexe"), "\\u202eexe", code=0),
    "emoji of several parts": told(classes("👩‍🔬"), "👩‍🔬 (20)", code=0),
    "title in a column": told(table(f"size,{TITLE},knd"), "u001b]0;owned"),
    "title in a note": told(
        table(f"size,a{TITLE},kind", [f"{k}.5,1,{'ab'[k % 2]}" for k in range(40)]),
        "note:",
        "x1b]0;owned",
        code=0,
    ),
    "title in the name of a file": Case(("fit", f"{TITLE}.csv", "-t", "k"), ("\\u001b]0;owned",)),
    "title in an option": Case((*FIT, "--method", TITLE), ("x1b]0;owned",)),
    "half a letter in the name of a file": Case(("fit", "\udcff.csv", "-t", "k"), ("\\udcff",)),
    # outputs are tried before anything is computed, here before the table is opened
    "save where nobody writes": unwritable("--save", *FIT),
    "out where nobody writes": unwritable("--out", *PREDICT),
    "components where nobody writes": unwritable("--out", "transform", "m.skops", "t.csv"),
    "report where nobody writes": unwritable("--report", *COMPARE),
    "best model where nobody writes": unwritable("--save", *COMPARE),
    "records where nobody writes": unwritable("--run", *COMPARE),
    "records of a paper where nobody writes": unwritable("--run", "reproduce", "lsva", "--quick"),
    "records below a file": Case((*COMPARE, "--run", "t.csv/run"), ("cannot be made", "t.csv")),
    "report and model in one file": Case(
        (*COMPARE, "--report", "o.html", "--save", "./o.html"), ("are both",)
    ),
    "too long a name": Case((*FIT, "--save", "m" * 300), ("cannot write", "too long")),
    "model that exists": Case((*FIT, "--save", "m.skops"), ("exists and is left as it is",)),
    # inputs are never replaced
    "out is the table": Case((*PREDICT, "--out", "t.csv", "--overwrite"), ("never replaced",)),
    "out is a link to the table": Case(
        (*PREDICT, "--out", "l.csv", "--overwrite"), ("never replaced",), links={"l.csv": "t.csv"}
    ),
    "out is the model": Case((*PREDICT, "--out", "m.skops", "--overwrite"), ("never replaced",)),
    "save is the table": Case((*FIT, "--save", "t.csv", "--overwrite"), ("never replaced",)),
    "report is the table": Case(
        (*COMPARE, "--report", "t.csv", "--overwrite"), ("never replaced",)
    ),
    "report is the records": Case(
        (*COMPARE, "--report", "r/records.sqlite", "--overwrite", "--run", "r"),
        ("never replaced",),
        files={"t.csv": table(), "r/records.sqlite": b"sound"},
    ),
    "out is a link to nothing": Case(
        (*PREDICT, "--out", "l.csv"), ("link to", "not there"), links={"l.csv": "none.csv"}
    ),
    "out is a link to itself": Case(
        (*PREDICT, "--out", "l.csv", "--overwrite"), ("link to",), links={"l.csv": "l.csv"}
    ),
    "save is a link to nothing": Case(
        (*FIT, "--save", "l", "--overwrite"), ("link to", "not there"), links={"l": "none"}
    ),
    # numbers
    "huge number": told(table(rows=[*ROWS, "1e308,3,a"]), "'size' has 1e+308", "1e+150", "row 41"),
    "huge number among money": told(
        table(rows=[f'"€{row[:3]}"{row[3:]}' for row in ROWS] + ["€1e308,3,a"]), "1e+308", "row 41"
    ),
    "huge number to compare": told(
        table(rows=["-1.7e308,3,a", *ROWS]), "-1.7e+308", "row 1", call=COMPARE
    ),
    "huge number to predict": told(
        table(rows=[*ROWS, "2e200,3,a"]), "2e+200", "row 41", call=PREDICT
    ),
    # how files are written
    "line ends of old Macs": told(table(end="\r"), "lda", "40", code=0),
    "wrong byte after such lines": told(table(end="\r").encode() + b"1,2,\xdf\r", "line 42"),
    "UTF-32": told(table().encode("utf-32"), "40", code=0),
    "UTF-32 without a mark": told(table().encode("utf-32-le"), "UTF-32", "--encoding utf-32-le"),
    "UTF-16 without a mark": told(table().encode("utf-16-be"), "UTF-16", "--encoding utf-16-be"),
    "quote that is not closed": told(
        table(rows=[*ROWS, '1,2,"' + "z" * 200_000]), "line 42", "quotation mark"
    ),
    "name with a dash": Case(
        ("fit", "-dash.csv", "-t", "kind"), ("./-dash.csv",), files={"-dash.csv": table()}
    ),
    "the same name in full": Case(
        ("fit", "./-dash.csv", "-t", "kind", "-m", "lda"), ("40",), 0, {"-dash.csv": table()}
    ),
    "gzip that grows": Case(
        ("fit", "t.csv.gz", "-t", "kind"),
        ("MB are unpacked so far", "50 MB are available"),
        files={"t.csv.gz": gzip.compress(b"a,kind\n" + b"0,x\n1,y\n" * 2_000_000, 1)},
    ),
}
NEED_PROC = {name for name, case in CASES.items() if "/proc/out.csv" in case.call}


@pytest.fixture(scope="module")
def model_file(tmp_path_factory):
    """The bytes of a model, and of the records of a comparison."""
    folder = tmp_path_factory.mktemp("model")
    (folder / "t.csv").write_text(table())
    with inside(folder):
        assert main([*FIT, "--save", "m.skops"]) == 0
        assert main([*COMPARE, "--run", "r"]) == 0
    return folder


@contextmanager
def inside(folder):
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def hidden(text):
    """The characters of what was said that act on a terminal."""
    kinds = ("Cc", "Cf", "Cs", "Zl", "Zp")
    return [c for c in text if unicodedata.category(c) in kinds and c not in "\n\u200d"]


def contents(folder):
    return {p.relative_to(folder): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=LINUX if name in NEED_PROC else ()) for name in CASES]
)
def test_a_command_ends_as_it_should(name, tmp_path, model_file, capsys, monkeypatch):
    case = CASES[name]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MARGINFOLD_MEMORY_LIMIT", "50MB")
    for file, content in case.files.items():
        Path(file).parent.mkdir(exist_ok=True)
        Path(file).write_bytes(content if isinstance(content, bytes) else content.encode())
    Path("m.skops").write_bytes((model_file / "m.skops").read_bytes())
    for link, end in case.links.items():
        Path(link).symlink_to(end)
    before = contents(tmp_path)
    code = main(case.call)
    said = capsys.readouterr()
    everything = said.out + said.err
    assert code == case.code, everything
    assert all(word in everything for word in case.words), everything
    assert "unexpected" not in everything
    assert not hidden(everything)
    assert contents(tmp_path) == before
    if code:
        assert said.out == ""
        assert said.err.startswith("error: ")
        assert said.err.count("\n") == 1


def test_json_is_json_and_has_the_names_as_they_are(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("t.csv").write_text(classes(TITLE + "\x9b\u202e"))
    assert main([*FIT, "--json"]) == 0
    said = capsys.readouterr().out
    assert not hidden(said)
    assert json.loads(said)["classes"] == {TITLE + "\x9b\u202e": 20, "b": 20}


@pytest.fixture
def formulas(tmp_path, monkeypatch, capsys):
    """A folder with a model whose classes, and a table whose columns, are formulas."""
    monkeypatch.chdir(tmp_path)
    rows = [f"{row},@SUM(A1),-5 %,-1+1" for row in classes(FORMULA).splitlines()[1:]]
    Path("t.csv").write_text(table("size,age,kind,+cmd|,rate,-x", rows))
    assert (
        main([*FIT, "--drop", "+cmd|", "--drop", "-x", "--drop", "rate", "--save", "m.skops"]) == 0
    )
    capsys.readouterr()
    return ("+cmd|", "rate", "-x", "size")


def kept_columns(names):
    return [word for name in names for word in (f"--keep={name}",)]


def test_formulas_are_escaped_in_csv_unless_raw(formulas, capsys):
    call = [*PREDICT, *kept_columns(formulas)]
    shown = {}
    for options in ((), ("--raw",), ("--out", "o.csv"), ("--out", "o.csv.gz")):
        assert main([*call, *options]) == 0
        said = capsys.readouterr()
        assert ("like a formula" in said.err) == ("--raw" not in options)
        text = {"o.csv": lambda: Path("o.csv").read_text(), "o.csv.gz": unzipped}
        shown[options] = text.get(options[-1] if options else "", lambda out=said.out: out)()
    raw = pd.read_csv(io.StringIO(shown["--raw",]))
    assert list(raw.columns) == [*formulas, "prediction"]
    assert set(raw["prediction"]) == {FORMULA, "b"}
    for options in shown.keys() - {("--raw",)}:
        escaped = pd.read_csv(io.StringIO(shown[options]))
        assert list(escaped.columns) == ["'+cmd|", "rate", "'-x", "size", "prediction"]
        assert set(escaped["prediction"]) == {f"'{FORMULA}", "b"}
        assert set(escaped["'+cmd|"]) == {"'@SUM(A1)"}
        assert set(escaped["rate"]) == {"-5 %"}  # a number
        assert escaped["size"].tolist() == raw["size"].tolist()
    assert "--raw" in help_of("predict", capsys)
    assert "--raw" in help_of("transform", capsys)


def unzipped():
    return gzip.decompress(Path("o.csv.gz").read_bytes()).decode()


def help_of(command, capsys):
    assert main([command, "--help"]) == 0
    return capsys.readouterr().out


def test_formulas_stay_as_they_are_where_nothing_computes_them(formulas, capsys):
    assert main([*PREDICT, "--keep=-x", "--json"]) == 0
    assert {row["prediction"] for row in json.loads(capsys.readouterr().out)["data"]} == {
        FORMULA,
        "b",
    }
    pytest.importorskip("pyarrow")
    assert main([*PREDICT, "--keep=-x", "--out", "o.parquet"]) == 0
    assert set(pd.read_parquet("o.parquet")["prediction"]) == {FORMULA, "b"}


@contextmanager
def files_up_to(n_bytes):
    """Let no file grow beyond so many bytes: what a full disk does, but for the words."""
    resource = pytest.importorskip("resource")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (n_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


@pytest.mark.parametrize(
    ("call", "n_bytes", "shown"),
    [
        ((*FIT, "--save", "new.skops"), 1000, "training error"),
        ((*PREDICT, "--keep", "size", "--out", "new.csv"), 100, "size,prediction\n0.5,"),
        ((*PREDICT, "--out", "new.csv", "--json"), 50, '"data": [{"prediction"'),
        ((*COMPARE, "--run", "r", "--report", "new.html"), 34_000, "largest class"),
    ],
)
def test_a_result_is_shown_although_its_file_cannot_be_written(
    call, n_bytes, shown, tmp_path, model_file, capsys, monkeypatch
):
    copy(model_file, tmp_path)
    monkeypatch.chdir(tmp_path)
    if "--report" in call:  # what a report needs beside the errors
        assert main([*call[:-1], "first.html"]) == 0
        capsys.readouterr()
    with files_up_to(n_bytes):
        code = main(call)
    said = capsys.readouterr()
    assert code == 2, said.err
    assert shown in said.out
    assert said.err.splitlines()[-1].startswith("error: new.")
    assert "too large" in said.err
    assert not [p for p in tmp_path.rglob("*") if p.name.startswith((".", "new"))]


def copy(source, folder):
    for path, content in contents(source).items():
        (folder / path).parent.mkdir(exist_ok=True)
        (folder / path).write_bytes(content)


DAMAGES = {
    "JSON that ends": "UPDATE records SET params = '{'",
    "JSON of something else": "UPDATE records SET options = '[1]'",
    "bytes for JSON": "UPDATE records SET params = x'fffe'",
    "bytes that are no text": "UPDATE records SET reason = CAST(x'fffe' AS TEXT)",
    "words for a number": "UPDATE records SET value = 'many'",
    "words for a count": "UPDATE records SET dimension = 'many'",
    "bytes for a fold": "UPDATE records SET fold = x'00' WHERE part = 0",
    "bytes for versions": "UPDATE environments SET versions = x'00'",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_cells_are_told(damage, tmp_path, model_file, capsys, monkeypatch):
    copy(model_file, tmp_path)
    with closing(sqlite3.connect(tmp_path / "r" / records.FILE_NAME)) as file, file:
        file.execute(DAMAGES[damage])
    monkeypatch.chdir(tmp_path)
    code = main([*COMPARE, "--run", "r"])
    said = capsys.readouterr().err
    assert code == 2, said
    assert said.startswith("error: r/records.sqlite")
    assert "damaged" in said
    assert "another folder" in said


def test_a_locked_store_is_not_called_damaged(tmp_path, model_file, capsys, monkeypatch):
    copy(model_file, tmp_path)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(records, "WAIT_SECONDS", 0.1)
    with closing(sqlite3.connect(Path("r") / records.FILE_NAME)) as file:
        file.execute("BEGIN IMMEDIATE")
        assert main([*COMPARE, "--run", "r"]) == 2
    said = capsys.readouterr().err
    assert "another process writes to it" in said
    assert "damaged" not in said
    assert "move it away" not in said


def test_a_full_disk_and_a_store_to_read_are_not_called_damaged(tmp_path, model_file):
    copy(model_file, tmp_path)
    task = records.Task("demo", "wine", "1-NN", work=print)
    results = [records.Result("error", 0.5, reason="x" * 5000)] * 50
    with records.RecordStore(tmp_path / "r") as store:
        n_pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
        store._connection.execute(f"PRAGMA max_page_count = {n_pages}")
        with pytest.raises(records.InvalidInputError, match="disk is full: make room") as full:
            store.write(task, results, seconds=0.0)
    with (
        records.RecordStore(tmp_path / "r", read_only=True) as store,
        pytest.raises(records.InvalidInputError, match="to be read only") as read_only,
    ):
        store.write(task, results, seconds=0.0)
    assert not any("damaged" in str(error.value) for error in (full, read_only))


def test_a_terminal_gets_only_what_is_printable(tmp_path, model_file):
    """Through the real command: the CSV of a pipe is exact, that of a terminal is harmless."""
    pty = pytest.importorskip("pty")
    copy(model_file, tmp_path)
    rows = [f"{row},{TITLE}" for row in ROWS[:3]]
    (tmp_path / "new.csv").write_text(table("size,age,kind,note", rows))
    call = [sys.executable, "-m", "marginfold", "predict", "m.skops", "new.csv", "--keep=note"]
    piped = subprocess.run(call, cwd=tmp_path, capture_output=True, timeout=120, check=True)
    assert piped.stdout.decode().count(TITLE) == 3
    parent, child = pty.openpty()
    subprocess.run(call, cwd=tmp_path, stdout=child, stderr=child, timeout=120, check=True)
    os.close(child)
    seen = b""
    try:
        while part := os.read(parent, 65536):
            seen += part
    except OSError:  # the other end is closed
        pass
    os.close(parent)
    assert seen.decode().count("\\u001b]0;owned\\u0007") == 3
    assert not hidden(seen.decode().replace("\r\n", "\n"))
